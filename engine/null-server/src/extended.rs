//! The extended query protocol: prepared statements and portals.

use crate::messages;
use crate::named::{NamedStatement, Portal};
use crate::session::{ClientSession, ServerAction, Setup};
use crate::statements::{self, StatementKind};

/// The error with which a message is answered: its SQLSTATE and its text.
type Rejection = (&'static str, String);

impl ClientSession {
    /// Answers Parse, Bind, Describe, Execute, Close or Flush. After an error, all messages up to the next Sync are
    /// skipped.
    #[inline]
    pub(crate) fn extended(&mut self, kind: u8, body: &[u8], setup: &Setup) -> ServerAction {
        let mut fields = Fields(body);
        let done = match kind {
            b'B' => self.bind(&mut fields).map(|()| ServerAction::Go),
            b'E' => self.execute(&mut fields, setup),
            b'P' => self.parse(&mut fields).map(|()| ServerAction::Go),
            b'D' => self.describe(&mut fields, setup).map(|()| ServerAction::Go),
            b'C' => self.close(&mut fields).map(|()| ServerAction::Go),
            // Flush needs no action, since the output is always sent when all received messages are answered.
            _ => Ok(ServerAction::Go),
        };
        done.unwrap_or_else(|(sqlstate, message)| {
            self.fail(sqlstate, &message);
            self.skipping = true;
            ServerAction::Go
        })
    }

    fn parse(&mut self, fields: &mut Fields) -> Result<(), Rejection> {
        let (name, text) = (fields.text()?, fields.text()?);
        let (statement, rest) = statements::split(text);
        if statements::classify(rest) != StatementKind::Empty {
            return Err(("42601", "cannot insert multiple commands into a prepared statement".to_owned()));
        }
        // A new unnamed statement reuses the memory of the old one.
        let former = if name.is_empty() { self.statements.remove(name) } else { None };
        let mut types = former.map_or_else(Vec::new, |former| former.types);
        types.clear();
        for _ in 0..fields.u16()? {
            types.push(u32::from_be_bytes(fields.array()?));
        }
        types.resize(types.len().max(statements::parameters(text).into()), 0);
        types.iter_mut().filter(|oid| **oid == 0).for_each(|oid| *oid = messages::TEXT_OID);
        self.statements.insert(name, NamedStatement { kind: statements::classify(statement), types });
        messages::bare(&mut self.out, b'1');
        Ok(())
    }

    #[inline]
    fn bind(&mut self, fields: &mut Fields) -> Result<(), Rejection> {
        let (portal, statement) = (fields.text()?, fields.text()?);
        let kind = self.statements.get(statement).ok_or_else(|| no_statement(statement))?.kind.clone();
        for _ in 0..fields.u16()? {
            fields.u16()?;
        }
        for _ in 0..fields.u16()? {
            let length = i32::from_be_bytes(fields.array()?);
            fields.bytes(length.max(0) as usize)?;
        }
        // All columns are sent in the format of the first column.
        let mut is_binary = false;
        for number in 0..fields.u16()? {
            let format = fields.u16()?;
            is_binary = if number == 0 { format == 1 } else { is_binary };
        }
        self.portals.insert(portal, Portal { kind, is_binary });
        messages::bare(&mut self.out, b'2');
        Ok(())
    }

    #[inline]
    fn execute(&mut self, fields: &mut Fields, setup: &Setup) -> Result<ServerAction, Rejection> {
        let name = fields.text()?;
        let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?.clone();
        // The row limit of Execute is ignored, since no answer has more than one row.
        fields.bytes(4)?;
        Ok(match self.run_statement(&portal.kind, Some(&portal), setup) {
            None => {
                self.skipping = true;
                ServerAction::Go
            }
            Some(0) => ServerAction::Go,
            Some(delay) => ServerAction::Hold(delay),
        })
    }

    fn describe(&mut self, fields: &mut Fields, setup: &Setup) -> Result<(), Rejection> {
        let ([what], name) = (fields.array()?, fields.text()?);
        let (kind, is_binary) = if what == b'S' {
            let found = self.statements.get(name).ok_or_else(|| no_statement(name))?;
            messages::parameter_types(&mut self.out, &found.types);
            (&found.kind, false)
        } else {
            let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
            (&portal.kind, portal.is_binary)
        };
        if let StatementKind::Rows(row, _) = kind {
            self.out.extend_from_slice(setup.rows.description(*row, is_binary));
        } else {
            messages::bare(&mut self.out, b'n');
        }
        Ok(())
    }

    fn close(&mut self, fields: &mut Fields) -> Result<(), Rejection> {
        let ([what], name) = (fields.array()?, fields.text()?);
        if what == b'S' {
            self.statements.remove(name);
        } else {
            self.portals.remove(name);
        }
        messages::bare(&mut self.out, b'3');
        Ok(())
    }
}

fn no_statement(name: &[u8]) -> Rejection {
    ("26000", format!("prepared statement \"{}\" does not exist", String::from_utf8_lossy(name)))
}

fn no_portal(name: &[u8]) -> Rejection {
    ("34000", format!("portal \"{}\" does not exist", String::from_utf8_lossy(name)))
}

/// Reads the fields of a message, one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Reads a text that ends with a zero byte.
    fn text(&mut self) -> Result<&'a [u8], Rejection> {
        let length = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = self.bytes(length + 1)?;
        Ok(&text[..length])
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Rejection> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Rejection> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u16(&mut self) -> Result<u16, Rejection> {
        self.array().map(u16::from_be_bytes)
    }
}

fn malformed() -> Rejection {
    ("08P01", "invalid message format".to_owned())
}
