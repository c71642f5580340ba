//! The extended protocol: statements and portals.

use super::answers;
use super::copying::Copying;
use super::session::{Outcome, Session, Setup, Turn};
use crate::statements;
use crate::statements::Kind;

/// A parsed statement.
pub struct Prepared {
    kind: Kind,
    /// Type OIDs of its parameters.
    types: Vec<u32>,
}

/// A statement with its values.
#[derive(Clone, Copy)]
pub struct Portal {
    kind: Kind,
    binary: bool,
}

/// Why a message is refused: SQLSTATE and sentence.
type Refusal = (&'static str, String);

impl Session {
    /// Answers Parse, Bind, Describe, Execute, Close or Flush; after an error the rest up to Sync is skipped.
    #[inline]
    pub(super) fn extended(&mut self, kind: u8, body: &[u8], setup: &Setup) -> Turn {
        let done = match kind {
            b'B' => self.bind(body),
            b'E' => self.execute(body, setup),
            b'P' => self.parse(body),
            b'D' => self.describe(body, setup),
            b'C' => self.close(body),
            _ => Ok(Turn::Go),
        };
        done.unwrap_or_else(|(sqlstate, sentence)| {
            self.fail(sqlstate, &sentence);
            self.skipping = true;
            Turn::Go
        })
    }

    fn parse(&mut self, body: &[u8]) -> Result<Turn, Refusal> {
        let mut fields = Fields(body);
        let (name, text) = (fields.text()?, fields.text()?);
        let (statement, rest) = statements::split(text);
        if statements::classify(rest) != Kind::Empty {
            return Err(("42601", "cannot insert multiple commands into a prepared statement".to_owned()));
        }
        // The former unnamed statement's memory is used again.
        let former = if name.is_empty() { self.unnamed.take() } else { None };
        let mut types = former.map_or_else(Vec::new, |former| former.types);
        types.clear();
        for _ in 0..fields.u16()? {
            types.push(u32::from_be_bytes(fields.array()?));
        }
        types.resize(types.len().max(statements::parameters(text).into()), 0);
        types.iter_mut().filter(|oid| **oid == 0).for_each(|oid| *oid = answers::TEXT);
        let prepared = Prepared { kind: statements::classify(statement), types };
        if name.is_empty() {
            self.unnamed = Some(prepared);
        } else {
            self.statements.insert(name.into(), prepared);
        }
        answers::bare(&mut self.out, b'1');
        Ok(Turn::Go)
    }

    #[inline]
    fn bind(&mut self, body: &[u8]) -> Result<Turn, Refusal> {
        let mut fields = Fields(body);
        let (portal, statement) = (fields.text()?, fields.text()?);
        let kind = self.statement(statement)?.kind;
        for _ in 0..fields.u16()? {
            fields.u16()?;
        }
        for _ in 0..fields.u16()? {
            let length = i32::from_be_bytes(fields.array()?);
            fields.bytes(length.max(0) as usize)?;
        }
        // All columns have the format of the first: no row of ours has columns that a client would want otherwise.
        let mut binary = false;
        for number in 0..fields.u16()? {
            let format = fields.u16()?;
            binary = if number == 0 { format == 1 } else { binary };
        }
        let made = Portal { kind, binary };
        if portal.is_empty() {
            self.portal = Some(made);
        } else {
            self.portals.insert(portal.into(), made);
        }
        answers::bare(&mut self.out, b'2');
        Ok(Turn::Go)
    }

    #[inline]
    fn execute(&mut self, body: &[u8], setup: &Setup) -> Result<Turn, Refusal> {
        let mut fields = Fields(body);
        let portal = self.portal(fields.text()?)?;
        // A limit of rows: never fewer than the one row.
        fields.bytes(4)?;
        match self.perform(&portal.kind, Some(portal.binary), setup) {
            Outcome::Failed => {
                self.skipping = true;
                return Ok(Turn::Go);
            }
            Outcome::CopyIn => self.copying = Some(Copying::new(true)),
            Outcome::Done => {}
        }
        let delay = self.delay(&portal.kind, setup);
        Ok(if delay > 0 { Turn::Hold(delay) } else { Turn::Go })
    }

    fn describe(&mut self, body: &[u8], setup: &Setup) -> Result<Turn, Refusal> {
        let mut fields = Fields(body);
        let [what] = fields.array()?;
        let name = fields.text()?;
        let (kind, binary) = if what == b'S' {
            let kind = self.statement(name)?.kind;
            let mut out = std::mem::take(&mut self.out);
            let described = self.statement(name).map(|found| answers::parameters(&mut out, &found.types));
            self.out = out;
            described?;
            (kind, false)
        } else {
            let portal = self.portal(name)?;
            (portal.kind, portal.binary)
        };
        match kind {
            Kind::Rows(table, _) => self.out.extend_from_slice(setup.answers.description(table, binary)),
            _ => answers::bare(&mut self.out, b'n'),
        }
        Ok(Turn::Go)
    }

    fn close(&mut self, body: &[u8]) -> Result<Turn, Refusal> {
        let mut fields = Fields(body);
        let [what] = fields.array()?;
        let name = fields.text()?;
        match (what, name.is_empty()) {
            (b'S', true) => self.unnamed = None,
            (b'S', false) => drop(self.statements.remove(name)),
            (_, true) => self.portal = None,
            (_, false) => drop(self.portals.remove(name)),
        }
        answers::bare(&mut self.out, b'3');
        Ok(Turn::Go)
    }

    /// Portals end with their transaction.
    pub(super) fn forget_portals(&mut self) {
        self.portal = None;
        if !self.portals.is_empty() {
            self.portals.clear();
        }
    }

    fn statement(&self, name: &[u8]) -> Result<&Prepared, Refusal> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.statements.get(name) };
        found.ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            ("26000", format!("prepared statement \"{name}\" does not exist"))
        })
    }

    fn portal(&self, name: &[u8]) -> Result<Portal, Refusal> {
        let found = if name.is_empty() { self.portal.as_ref() } else { self.portals.get(name) };
        let missing = || ("34000", format!("portal \"{}\" does not exist", String::from_utf8_lossy(name)));
        found.copied().ok_or_else(missing)
    }
}

/// Reads a message's fields one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn text(&mut self) -> Result<&'a [u8], Refusal> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u16(&mut self) -> Result<u16, Refusal> {
        self.array().map(u16::from_be_bytes)
    }
}

fn malformed() -> Refusal {
    ("08P01", "invalid message format".to_owned())
}
