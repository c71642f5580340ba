//! One client's session: bytes in, bytes out. It knows neither sockets nor clocks: a statement that takes time ends the
//! turn, and the caller comes back when that time is over.

use std::collections::HashMap;

use super::copying::Copying;
use super::delay::{Delay, Nanos};
use super::extended::{Portal, Prepared};
use crate::answers;
use crate::answers::{Answers, FAILED, IDLE, IN_TRANSACTION};
use crate::statements;
use crate::statements::{Kind, Tag};
use ground::random::Random;

/// The longest start-up packet and the longest message, bytes: PostgreSQL's own limits.
const LONGEST_STARTUP: usize = 10_000;
const LONGEST_MESSAGE: usize = (1 << 30) - 1;

/// Codes that a start-up packet may have instead of a version.
const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// What all sessions share.
pub struct Setup {
    pub answers: Answers,
    pub delay: Delay,
    pub seed: u64,
}

/// What a session wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Send what there is, then more bytes.
    Go,
    /// Send nothing until so much time has passed since the statement came, or since the end of the former one.
    Hold(Nanos),
    /// Send what there is, then close.
    Close,
}

/// A client's session.
pub struct Session {
    number: u32,
    random: Random,
    stage: Stage,
    /// Whether there are too many sessions already.
    refused: bool,
    /// What is to be sent.
    pub out: Vec<u8>,
    pub(super) status: u8,
    pub(super) statements: HashMap<Box<[u8]>, Prepared>,
    pub(super) unnamed: Option<Prepared>,
    pub(super) portals: HashMap<Box<[u8]>, Portal>,
    pub(super) portal: Option<Portal>,
    /// Whether messages are skipped up to the next Sync, because of an error.
    pub(super) skipping: bool,
    pub(super) copying: Option<Copying>,
    /// The simple query that is being answered, and how far.
    query: Vec<u8>,
    query_at: usize,
    answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Startup,
    Ready,
    /// A simple query has been begun; what is left of it comes before further messages.
    Query,
}

/// How a statement went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
    /// Data is expected.
    CopyIn,
}

impl Session {
    /// The session of the connection with this number, which counts from 0 in the order of acceptance.
    pub fn new(number: u32, setup: &Setup, refused: bool) -> Self {
        // The numbers are spread over all seeds, so that neighbours of two servers have nothing in common.
        let mut base = Random::seeded(setup.seed ^ (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Self {
            number,
            random: base.derive(),
            stage: Stage::Startup,
            refused,
            out: Vec::new(),
            status: IDLE,
            statements: HashMap::new(),
            unnamed: None,
            portals: HashMap::new(),
            portal: None,
            skipping: false,
            copying: None,
            query: Vec::new(),
            query_at: 0,
            answered: false,
        }
    }

    /// Answers what is complete in `input`; tells how many bytes that took. After [`Turn::Hold`] it is called again
    /// with the rest.
    pub fn take(&mut self, input: &[u8], setup: &Setup) -> (usize, Turn) {
        let mut used = 0;
        loop {
            if self.stage == Stage::Query && self.copying.is_none() {
                let turn = self.go_on_with_query(setup);
                if turn != Turn::Go {
                    return (used, turn);
                }
                if self.copying.is_none() {
                    self.stage = Stage::Ready;
                }
            }
            let rest = &input[used..];
            let (taken, turn) =
                if self.stage == Stage::Startup { self.start(rest) } else { self.next_message(rest, setup) };
            used += taken;
            if taken == 0 || turn != Turn::Go {
                return (used, turn);
            }
        }
    }

    #[inline]
    fn next_message(&mut self, input: &[u8], setup: &Setup) -> (usize, Turn) {
        let Some((&[kind, a, b, c, d], body)) = input.split_first_chunk() else { return (0, Turn::Go) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=LONGEST_MESSAGE).contains(&length) {
            return (input.len(), self.fatal("08P01", "invalid message length"));
        }
        match body.get(..length - 4) {
            Some(body) => (length + 1, self.message(kind, body, setup)),
            None => (0, Turn::Go),
        }
    }

    #[inline]
    fn message(&mut self, kind: u8, body: &[u8], setup: &Setup) -> Turn {
        if kind == b'X' {
            return Turn::Close;
        }
        if self.copying.is_some() {
            self.copy_message(kind, body);
            return Turn::Go;
        }
        match kind {
            b'S' => {
                self.skipping = false;
                if self.status == IDLE {
                    self.forget_portals();
                }
                answers::ready(&mut self.out, self.status);
                Turn::Go
            }
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => {
                if self.skipping {
                    return Turn::Go;
                }
                self.extended(kind, body, setup)
            }
            b'Q' => self.simple(body, setup),
            b'F' => {
                self.fail("0A000", "function calls by message are not supported");
                answers::ready(&mut self.out, self.status);
                Turn::Go
            }
            // data of a COPY that has failed meanwhile
            b'd' | b'c' | b'f' => Turn::Go,
            other => self.fatal("08P01", &format!("invalid frontend message type {other}")),
        }
    }

    /// A simple query: as many statements as its text has.
    fn simple(&mut self, body: &[u8], setup: &Setup) -> Turn {
        self.skipping = false;
        self.answered = false;
        let text = body.split(|byte| *byte == 0).next().unwrap_or_default();
        let (at, turn) = self.run_query(text, setup);
        if turn != Turn::Go || self.copying.is_some() {
            self.query.clear();
            self.query.extend_from_slice(&text[at..]);
            self.query_at = 0;
            self.stage = Stage::Query;
        }
        turn
    }

    fn go_on_with_query(&mut self, setup: &Setup) -> Turn {
        let query = std::mem::take(&mut self.query);
        let (at, turn) = self.run_query(&query[self.query_at..], setup);
        self.query = query;
        self.query_at += at;
        turn
    }

    /// Answers statements until one takes time or wants data; tells how many bytes of the text are done.
    fn run_query(&mut self, text: &[u8], setup: &Setup) -> (usize, Turn) {
        let mut at = 0;
        while at < text.len() {
            let (statement, rest) = statements::split(&text[at..]);
            at = text.len() - rest.len();
            let kind = statements::classify(statement);
            if kind == Kind::Empty {
                continue;
            }
            self.answered = true;
            match self.perform(&kind, None, setup) {
                Outcome::Failed => break,
                Outcome::CopyIn => self.copying = Some(Copying::new(false)),
                Outcome::Done => {}
            }
            let delay = self.delay(&kind, setup);
            if delay > 0 {
                return (at, Turn::Hold(delay));
            }
            if self.copying.is_some() {
                return (at, Turn::Go);
            }
        }
        if !self.answered {
            answers::bare(&mut self.out, b'I');
        }
        answers::ready(&mut self.out, self.status);
        (text.len(), Turn::Go)
    }

    /// How long this statement takes: drawn for each but those that survey the tables before a run.
    #[inline]
    pub(super) fn delay(&mut self, kind: &Kind, setup: &Setup) -> Nanos {
        if setup.delay.is_zero() || statements::is_survey(kind) { 0 } else { setup.delay.draw(&mut self.random) }
    }

    /// Writes a statement's answer. Rows are described unless they go through a portal, whose format is given then.
    #[inline]
    pub(super) fn perform(&mut self, kind: &Kind, portal_binary: Option<bool>, setup: &Setup) -> Outcome {
        if self.status == FAILED && !matches!(kind, Kind::Commit | Kind::Rollback | Kind::RollbackTo) {
            let sentence = "current transaction is aborted, commands ignored until end of transaction block";
            self.fail("25P02", sentence);
            return Outcome::Failed;
        }
        let tag = match kind {
            Kind::Empty => {
                answers::bare(&mut self.out, b'I');
                return Outcome::Done;
            }
            Kind::CopyIn => {
                answers::copy_begins(&mut self.out, b'G');
                return Outcome::CopyIn;
            }
            Kind::CopyOut => {
                answers::copy_begins(&mut self.out, b'H');
                answers::bare(&mut self.out, b'c');
                Tag::Known("COPY 0")
            }
            Kind::Rows(table, tag) => {
                if portal_binary.is_none() {
                    self.out.extend_from_slice(setup.answers.description(*table, false));
                }
                self.out.extend_from_slice(setup.answers.row(*table, portal_binary.unwrap_or(false)));
                *tag
            }
            Kind::Done(tag) => *tag,
            Kind::Begin(tag) => {
                self.status = IN_TRANSACTION;
                Tag::Known(tag)
            }
            Kind::Commit => Tag::Known(if self.end_transaction() == FAILED { "ROLLBACK" } else { "COMMIT" }),
            Kind::Rollback => {
                self.end_transaction();
                Tag::Known("ROLLBACK")
            }
            Kind::RollbackTo => {
                if self.status == FAILED {
                    self.status = IN_TRANSACTION;
                }
                Tag::Known("ROLLBACK")
            }
        };
        answers::complete(&mut self.out, &tag);
        Outcome::Done
    }

    /// Ends the transaction and tells what its status was.
    fn end_transaction(&mut self) -> u8 {
        std::mem::replace(&mut self.status, IDLE)
    }

    /// An error that ends the transaction, if there is one.
    pub(super) fn fail(&mut self, sqlstate: &str, sentence: &str) {
        answers::error(&mut self.out, "ERROR", sqlstate, sentence);
        if self.status == IN_TRANSACTION {
            self.status = FAILED;
        }
    }

    fn fatal(&mut self, sqlstate: &str, sentence: &str) -> Turn {
        answers::error(&mut self.out, "FATAL", sqlstate, sentence);
        Turn::Close
    }

    fn copy_message(&mut self, kind: u8, body: &[u8]) {
        let Some(mut copying) = self.copying.take() else { return };
        match kind {
            b'd' => copying.add(body),
            b'c' => return answers::copied(&mut self.out, copying.finish()),
            // while data is expected both mean nothing
            b'H' | b'S' => {}
            _ => {
                let reason = body.split(|byte| *byte == 0).next().unwrap_or_default();
                if kind == b'f' {
                    self.fail("57014", &format!("COPY from stdin failed: {}", String::from_utf8_lossy(reason)));
                } else {
                    self.fail("08P01", &format!("unexpected message type 0x{kind:02X} during COPY from stdin"));
                }
                self.skipping = copying.extended;
                // the rest of the query is given up
                self.query_at = self.query.len();
                return;
            }
        }
        self.copying = Some(copying);
    }

    fn start(&mut self, input: &[u8]) -> (usize, Turn) {
        let Some((length, rest)) = input.split_first_chunk::<4>() else { return (0, Turn::Go) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(8..=LONGEST_STARTUP).contains(&length) {
            return (input.len(), self.fatal("08P01", "invalid length of startup packet"));
        }
        let Some(packet) = rest.get(..length - 4) else { return (0, Turn::Go) };
        let code = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
        let turn = match code {
            SSL_REQUEST | GSSENC_REQUEST => {
                self.out.push(b'N');
                Turn::Go
            }
            // It is heard, but statements end when their time is over.
            CANCEL_REQUEST => Turn::Close,
            version if version >> 16 == 3 => self.welcome(version & 0xFFFF, &packet[4..]),
            version => {
                let (major, minor) = (version >> 16, version & 0xFFFF);
                let sentence = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
                self.fatal("0A000", &sentence)
            }
        };
        (length, turn)
    }

    fn welcome(&mut self, minor: u32, parameters: &[u8]) -> Turn {
        let mut words = parameters.split(|byte| *byte == 0);
        let mut user: &[u8] = b"";
        let mut unknown = Vec::new();
        while let Some(name) = words.next().filter(|name| !name.is_empty()) {
            let value = words.next().unwrap_or_default();
            if name == b"user" {
                user = value;
            } else if name.starts_with(b"_pq_.") {
                unknown.push(name);
            }
        }
        if user.is_empty() {
            return self.fatal("28000", "no PostgreSQL user name specified in startup packet");
        }
        if self.refused {
            return self.fatal("53300", "sorry, too many clients already");
        }
        if minor > 0 || !unknown.is_empty() {
            answers::negotiate(&mut self.out, &unknown);
        }
        answers::welcome(&mut self.out, user, self.number + 1, self.random.clone().next_u64() as u32);
        self.stage = Stage::Ready;
        Turn::Go
    }
}
