//! The session of one client: it takes bytes and returns bytes, and uses neither sockets nor clocks. When a statement
//! has a delay, [`ClientSession::answer`] returns, and the caller calls it again when the delay is over.

use ground::clock::Nanos;
use ground::random::Random;
use wire::frame::{CANCEL_REQUEST, Header, SSL_REQUEST};

use crate::copy_in::CopyIn;
use crate::delay::Delay;
use crate::messages::{self, EncodedRows, FAILED, IDLE, IN_TRANSACTION};
use crate::named::{Named, NamedStatement, Portal};
use crate::statements::{self, StatementKind};

/// The maximum length of a start-up packet in bytes, as in PostgreSQL (`MAX_STARTUP_PACKET_LENGTH`).
const MAX_STARTUP_LENGTH: usize = 10_000;

/// The length from which on messages are rejected, as in PostgreSQL (`PQ_LARGE_MESSAGE_LIMIT`).
const MESSAGE_LIMIT: usize = 1 << 30;

/// The code of a request for encryption by GSSAPI, which a first packet can have in place of the protocol version.
const GSSENC_REQUEST: u32 = 80_877_104;

/// The values that all sessions share.
pub struct Setup {
    pub rows: EncodedRows,
    pub delay: Delay,
    pub seed: u64,
}

/// The next action of the caller after a session has answered bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAction {
    /// The caller sends the output, then reads more bytes.
    Go,
    /// The caller sends nothing until this time is over, counted from reading the statement or from the end of the
    /// statement before.
    Hold(Nanos),
    /// The caller sends the output, then closes the connection.
    Close,
}

/// The session of one client.
pub struct ClientSession {
    number: u32,
    random: Random,
    stage: Stage,
    /// The output that has not been sent yet.
    pub out: Vec<u8>,
    /// The transaction status that ReadyForQuery reports.
    pub(crate) status: u8,
    pub(crate) statements: Named<NamedStatement>,
    pub(crate) portals: Named<Portal>,
    /// True if an error has occurred, after which messages are skipped up to the next Sync.
    pub(crate) skipping: bool,
    copying: Option<CopyIn>,
    query: SimpleQuery,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The session waits for a start-up packet. If `refused` is true, the server has too many sessions and answers with
    /// an error.
    Startup {
        refused: bool,
    },
    Ready,
    /// A simple query was interrupted by a delay or by COPY. The rest of the query is answered before further messages.
    Query,
}

/// The part of a simple query that has not been answered yet.
#[derive(Default)]
struct SimpleQuery {
    text: Vec<u8>,
    at: usize,
    /// True if at least one statement of the query was answered.
    is_answered: bool,
}

impl ClientSession {
    /// Makes the session of connection `number`. Connections are numbered from 0 in the order in which they are
    /// accepted. `refused` is true if there are too many sessions.
    pub fn new(number: u32, setup: &Setup, refused: bool) -> Self {
        // The factor spreads the numbers over all seeds, so that servers with consecutive seeds draw different delays.
        let mut base = Random::seeded(setup.seed ^ (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Self {
            number,
            random: base.derive(),
            stage: Stage::Startup { refused },
            out: Vec::new(),
            status: IDLE,
            statements: Named::default(),
            portals: Named::default(),
            skipping: false,
            copying: None,
            query: SimpleQuery::default(),
        }
    }

    /// Answers the complete messages in `input`. Returns the number of bytes that were answered. After
    /// [`ServerAction::Hold`] the caller calls this method again with the remaining bytes.
    pub fn answer(&mut self, input: &[u8], setup: &Setup) -> (usize, ServerAction) {
        let mut used = 0;
        loop {
            if self.stage == Stage::Query && self.copying.is_none() {
                let turn = self.continue_query(setup);
                if turn != ServerAction::Go {
                    return (used, turn);
                }
                if self.copying.is_none() {
                    self.stage = Stage::Ready;
                }
            }
            let rest = &input[used..];
            let (length, turn) = match self.stage {
                Stage::Startup { refused } => self.start(rest, refused),
                Stage::Ready | Stage::Query => self.next_message(rest, setup),
            };
            used += length;
            if length == 0 || turn != ServerAction::Go {
                return (used, turn);
            }
        }
    }

    #[inline]
    fn next_message(&mut self, input: &[u8], setup: &Setup) -> (usize, ServerAction) {
        let Some(header) = Header::read(input) else { return (0, ServerAction::Go) };
        if !header.is_valid(MESSAGE_LIMIT) {
            return (input.len(), self.fatal("08P01", "invalid message length"));
        }
        match header.split_body(input) {
            Some((body, _rest)) => (header.size(), self.message(header.kind, body, setup)),
            None => (0, ServerAction::Go),
        }
    }

    #[inline]
    fn message(&mut self, kind: u8, body: &[u8], setup: &Setup) -> ServerAction {
        if kind == b'X' {
            return ServerAction::Close;
        }
        if self.copying.is_some() {
            self.copy_message(kind, body);
            return ServerAction::Go;
        }
        match kind {
            b'S' => {
                self.skipping = false;
                if self.status == IDLE {
                    // Portals end with their transaction.
                    self.portals.clear();
                }
                messages::ready(&mut self.out, self.status);
                ServerAction::Go
            }
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' if self.skipping => ServerAction::Go,
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => self.extended(kind, body, setup),
            b'Q' => self.simple_query(body, setup),
            b'F' => {
                self.fail("0A000", "function calls by message are not supported");
                messages::ready(&mut self.out, self.status);
                ServerAction::Go
            }
            // Data of a COPY that has already failed.
            b'd' | b'c' | b'f' => ServerAction::Go,
            other => self.fatal("08P01", &format!("invalid frontend message type {other}")),
        }
    }

    /// Answers a simple query, which may have several statements.
    fn simple_query(&mut self, body: &[u8], setup: &Setup) -> ServerAction {
        self.skipping = false;
        self.query.is_answered = false;
        let text = until_zero(body);
        let (at, turn) = self.run_query(text, setup);
        if turn != ServerAction::Go || self.copying.is_some() {
            self.query.text.clear();
            self.query.text.extend_from_slice(&text[at..]);
            self.query.at = 0;
            self.stage = Stage::Query;
        }
        turn
    }

    fn continue_query(&mut self, setup: &Setup) -> ServerAction {
        let text = std::mem::take(&mut self.query.text);
        let (at, turn) = self.run_query(&text[self.query.at..], setup);
        self.query.text = text;
        self.query.at += at;
        turn
    }

    /// Answers statements of a simple query until one has a delay, begins COPY FROM STDIN or fails. Returns the number
    /// of bytes of the text that were answered. After a failure this is the whole text, since the rest is skipped.
    fn run_query(&mut self, text: &[u8], setup: &Setup) -> (usize, ServerAction) {
        let mut at = 0;
        while at < text.len() {
            let (statement, rest) = statements::split(&text[at..]);
            at = text.len() - rest.len();
            let kind = statements::classify(statement);
            if kind == StatementKind::Empty {
                continue;
            }
            self.query.is_answered = true;
            let Some(delay) = self.run_statement(&kind, None, setup) else { break };
            if delay > 0 {
                return (at, ServerAction::Hold(delay));
            }
            if self.copying.is_some() {
                return (at, ServerAction::Go);
            }
        }
        if !self.query.is_answered {
            messages::bare(&mut self.out, b'I');
        }
        messages::ready(&mut self.out, self.status);
        (text.len(), ServerAction::Go)
    }

    /// Writes the answer to a statement and returns its delay. If the statement fails, writes an error and returns
    /// `None`. The rows of a portal have the portal's format and no RowDescription.
    #[inline]
    pub(crate) fn run_statement(
        &mut self,
        kind: &StatementKind,
        portal: Option<&Portal>,
        setup: &Setup,
    ) -> Option<Nanos> {
        use StatementKind as Kind;
        let ends_transaction = matches!(kind, Kind::Commit | Kind::Rollback | Kind::RollbackTo);
        if self.status == FAILED && !ends_transaction {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            self.fail("25P02", message);
            return None;
        }
        let out = &mut self.out;
        match kind {
            Kind::Empty => messages::bare(out, b'I'),
            Kind::CopyIn => {
                messages::copy_response(out, b'G');
                self.copying = Some(CopyIn::new(portal.is_some()));
            }
            Kind::CopyOut => {
                messages::copy_response(out, b'H');
                messages::bare(out, b'c');
                messages::complete(out, b"COPY 0");
            }
            Kind::Rows(row, tag) => {
                if portal.is_none() {
                    out.extend_from_slice(setup.rows.description(*row, false));
                }
                out.extend_from_slice(setup.rows.row(*row, portal.is_some_and(|portal| portal.is_binary)));
                messages::complete(out, tag);
            }
            Kind::Done(tag) => messages::complete(out, tag),
            Kind::Begin(tag) => {
                self.status = IN_TRANSACTION;
                messages::complete(out, tag.as_bytes());
            }
            Kind::Commit | Kind::Rollback => {
                let is_committed = *kind == Kind::Commit && self.status != FAILED;
                self.status = IDLE;
                messages::complete(out, if is_committed { b"COMMIT" } else { b"ROLLBACK" });
            }
            Kind::RollbackTo => {
                if self.status == FAILED {
                    self.status = IN_TRANSACTION;
                }
                messages::complete(out, b"ROLLBACK");
            }
        }
        let is_immediate = setup.delay.is_zero() || statements::is_survey(kind);
        Some(if is_immediate { 0 } else { setup.delay.draw(&mut self.random) })
    }

    /// Writes an error. If a transaction is open, it fails.
    pub(crate) fn fail(&mut self, sqlstate: &str, message: &str) {
        messages::error(&mut self.out, "ERROR", sqlstate, message);
        if self.status == IN_TRANSACTION {
            self.status = FAILED;
        }
    }

    fn fatal(&mut self, sqlstate: &str, message: &str) -> ServerAction {
        messages::error(&mut self.out, "FATAL", sqlstate, message);
        ServerAction::Close
    }

    fn copy_message(&mut self, kind: u8, body: &[u8]) {
        let Some(copying) = &mut self.copying else { return };
        match kind {
            b'd' => return copying.add(body),
            // The server ignores Flush and Sync during COPY.
            b'H' | b'S' => return,
            b'c' => {
                let tag = format!("COPY {}", copying.finish());
                messages::complete(&mut self.out, tag.as_bytes());
            }
            _ => {
                // The rest of the query is skipped.
                (self.skipping, self.query.at) = (copying.is_extended, self.query.text.len());
                if kind == b'f' {
                    let reason = String::from_utf8_lossy(until_zero(body));
                    self.fail("57014", &format!("COPY from stdin failed: {reason}"));
                } else {
                    self.fail("08P01", &format!("unexpected message type 0x{kind:02X} during COPY from stdin"));
                }
            }
        }
        self.copying = None;
    }

    fn start(&mut self, input: &[u8], refused: bool) -> (usize, ServerAction) {
        let Some((length, rest)) = input.split_first_chunk::<4>() else { return (0, ServerAction::Go) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(8..=MAX_STARTUP_LENGTH).contains(&length) {
            return (input.len(), self.fatal("08P01", "invalid length of startup packet"));
        }
        let packet = rest.get(..length - 4).and_then(|packet| packet.split_first_chunk::<4>());
        let Some((code, parameters)) = packet else { return (0, ServerAction::Go) };
        let turn = match u32::from_be_bytes(*code) {
            SSL_REQUEST | GSSENC_REQUEST => {
                self.out.push(b'N');
                ServerAction::Go
            }
            // Cancel requests are ignored, since statements end when their delay is over.
            CANCEL_REQUEST => ServerAction::Close,
            version if version >> 16 == 3 => self.welcome(version & 0xFFFF, parameters, refused),
            version => {
                let (major, minor) = (version >> 16, version & 0xFFFF);
                let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
                self.fatal("0A000", &message)
            }
        };
        (length, turn)
    }

    fn welcome(&mut self, minor: u32, parameters: &[u8], refused: bool) -> ServerAction {
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
        if refused {
            return self.fatal("53300", "sorry, too many clients already");
        }
        if minor > 0 || !unknown.is_empty() {
            messages::negotiate(&mut self.out, &unknown);
        }
        messages::welcome(&mut self.out, user, self.number + 1, self.random.clone().next_u64() as u32);
        self.stage = Stage::Ready;
        ServerAction::Go
    }
}

/// Returns the text at the beginning of `bytes`, up to its zero byte.
fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
