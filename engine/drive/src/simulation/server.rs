//! The server's end of a simulated session. It reads the client's messages, executes a few kinds of statements, and
//! fails in all the ways in which servers fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::world::{CancelRequest, Chunk, LineEnd, World};
use ground::clock::Nanos;

/// The errors with which statements fail. The flag is true if the error also ends the session.
const ERRORS: [(&str, bool); 7] = [
    ("40001", false),
    ("40001", false),
    ("40P01", false),
    ("23505", false),
    ("57014", false),
    ("XX000", false),
    ("57P01", true),
];

/// The SQLSTATEs of the errors with which a server refuses a connection.
const REFUSALS: [&str; 3] = ["53300", "57P03", "28P01"];

/// The server's end of one session.
pub struct SimulatedSession {
    pub process: u32,
    incoming: Vec<u8>,
    pub is_started: bool,
    /// The transaction status that ReadyForQuery reports.
    status: u8,
    /// The texts of prepared statements, by the names of the statements.
    parsed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The statement text and the first parameter of the portal.
    portal: (Vec<u8>, Vec<u8>),
    /// True if an error has occurred, after which the server ignores all messages until the next Sync.
    fails: bool,
    reply: Vec<u8>,
    busy_until: Nanos,
    /// True if the server has stopped answering.
    is_silent: bool,
    /// True if the session ends after the current reply.
    is_ending: bool,
}

impl SimulatedSession {
    pub fn new(process: u32) -> Self {
        Self {
            process,
            incoming: Vec::new(),
            is_started: false,
            status: b'I',
            parsed: BTreeMap::new(),
            portal: (Vec::new(), Vec::new()),
            fails: false,
            reply: Vec::new(),
            busy_until: 0,
            is_silent: false,
            is_ending: false,
        }
    }

    /// Returns true if the client is still waiting at `now` for a part of the reply.
    pub fn is_busy(&self, now: Nanos) -> bool {
        self.is_silent || self.busy_until > now
    }

    /// Returns true if the session is in a transaction.
    pub fn is_in_transaction(&self) -> bool {
        self.status != b'I'
    }

    fn put(&mut self, kind: u8, body: &[u8]) {
        self.reply.push(kind);
        self.reply.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.reply.extend_from_slice(body);
    }

    fn put_error(&mut self, severity: &str, sqlstate: &str) {
        let fields = format!("S{severity}\0V{severity}\0C{sqlstate}\0Msimulated\0\0");
        self.put(b'E', fields.as_bytes());
    }

    fn put_ready(&mut self) {
        let status = self.status;
        self.put(b'Z', &[status]);
    }

    fn put_description(&mut self) {
        let mut body = 1u16.to_be_bytes().to_vec();
        body.extend_from_slice(b"value\0");
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&[0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0]);
        self.put(b'T', &body);
    }

    /// Writes the description of a statement to the reply: no parameters, and its columns.
    fn put_statement(&mut self, text: &[u8]) {
        self.put(b't', &[0, 0]);
        if Self::has_row(text) { self.put_description() } else { self.put(b'n', &[]) }
    }

    fn put_row(&mut self, value: &[u8]) {
        let mut body = 1u16.to_be_bytes().to_vec();
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
        self.put(b'D', &body);
    }

    /// Begins a session, or refuses it with the SQLSTATE `refusal`.
    fn start(&mut self, refusal: Option<&str>) {
        if let Some(sqlstate) = refusal {
            self.put_error("FATAL", sqlstate);
            self.is_ending = true;
            return;
        }
        self.is_started = true;
        self.put(b'R', &[0; 4]);
        self.put(b'S', b"server_version\x0018.0\0");
        let process = self.process.to_be_bytes();
        self.put(b'K', &[&process[..], &[1, 2, 3, 4]].concat());
        self.put_ready();
    }

    /// Returns true if the statement with this text returns a row.
    fn has_row(text: &[u8]) -> bool {
        text.starts_with(b"SELECT")
    }

    /// Executes a statement. If `failure` is given, the statement fails with this error. If `is_text` is true, the
    /// reply includes the description of the result's columns.
    fn execute(&mut self, text: &[u8], value: &[u8], is_text: bool, failure: Option<(&str, bool)>) {
        let ends = text.starts_with(b"END") || text.starts_with(b"ROLLBACK");
        let failure = if self.status == b'E' && !ends { Some(("25P02", false)) } else { failure };
        if Self::has_row(text) && self.status != b'E' {
            if is_text {
                self.put_description();
            }
            self.put_row(value);
        }
        if let Some((sqlstate, is_fatal)) = failure {
            self.put_error(if is_fatal { "FATAL" } else { "ERROR" }, sqlstate);
            (self.fails, self.is_ending) = (true, is_fatal);
            if self.status == b'T' {
                self.status = b'E';
            }
            return;
        }
        let tag: &[u8] = match () {
            () if text.starts_with(b"BEGIN") => {
                self.status = b'T';
                b"BEGIN\0"
            }
            () if ends => {
                let was_failed = std::mem::replace(&mut self.status, b'I') == b'E';
                if was_failed || text.starts_with(b"ROLLBACK") { b"ROLLBACK\0" } else { b"COMMIT\0" }
            }
            () if Self::has_row(text) => b"SELECT 1\0",
            () if text.starts_with(b"DISCARD") => {
                self.parsed.clear();
                b"DISCARD ALL\0"
            }
            () => b"UPDATE 1\0",
        };
        self.put(b'C', tag);
    }

    /// Returns the next complete message of the client: its type and its body. The first message of a session has no
    /// type, which is returned as 0.
    fn next_message(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = usize::from(self.is_started);
        let length: [u8; 4] = self.incoming.get(head..head + 4)?.try_into().ok()?;
        let end = head + u32::from_be_bytes(length) as usize;
        if self.incoming.len() < end {
            return None;
        }
        let message: Vec<u8> = self.incoming.drain(..end).collect();
        Some((if head == 1 { message[0] } else { 0 }, message[head + 4..].to_vec()))
    }
}

impl World {
    /// Receives bytes from the client, and answers the messages that are complete.
    pub fn serve(&mut self, thread: usize, id: usize, bytes: &[u8]) {
        let session = &mut self.threads[thread].lines[id].session;
        session.incoming.extend_from_slice(bytes);
        loop {
            let session = &mut self.threads[thread].lines[id].session;
            if session.is_silent || session.is_ending {
                return;
            }
            let Some((kind, body)) = session.next_message() else { return };
            self.take(thread, id, kind, &body);
        }
    }

    fn failure(&mut self) -> Option<(&'static str, bool)> {
        self.happens(self.faults.error).then(|| ERRORS[self.chance.range(0, ERRORS.len() as i64 - 1) as usize])
    }

    fn take(&mut self, thread: usize, id: usize, kind: u8, body: &[u8]) {
        let failure = match kind {
            b'Q' | b'E' => self.failure(),
            b'P' => self.happens(self.faults.rejection).then_some(("42601", false)),
            _ => None,
        };
        let refusal =
            (kind == 0 && self.happens(self.faults.refusal)).then(|| REFUSALS[self.chance.range(0, 2) as usize]);
        let line = &mut self.threads[thread].lines[id];
        let (token, session) = (line.token, &mut line.session);
        let mut words = body.split(|byte| *byte == 0);
        let used = self.truth.client((thread, token)).line;
        if b"QPBE".contains(&kind) && used.is_some_and(|used| used != id) {
            let defect = format!("the engine sent a statement on connection {id}, but the program uses {used:?}");
            self.truth.defects.push(defect);
        }
        let process = session.process;
        let is_cancelled =
            self.threads[thread].cancels.iter().any(|request| request.process == process && request.is_sent);
        if b"QPBE".contains(&kind) && is_cancelled {
            let defect = format!("the engine sent a statement on connection {id} while a cancel request was under way");
            self.truth.defects.push(defect);
        }
        let session = &mut self.threads[thread].lines[id].session;
        match kind {
            0 => {
                session.start(refusal);
                self.reply(thread, id, None);
            }
            b'Q' => {
                let text = words.next().unwrap_or_default();
                let value = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                session.execute(text, value, true, failure);
                session.put_ready();
                session.fails = false;
                let is_rollback = text.starts_with(b"ROLLBACK");
                self.reply(thread, id, Some(is_rollback));
            }
            b'S' => {
                session.put_ready();
                session.fails = false;
                self.reply(thread, id, Some(false));
            }
            b'X' => session.is_ending = true,
            _ if session.fails => {}
            b'P' => {
                let (name, text) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                if failure.is_some() {
                    session.put_error("ERROR", "42601");
                    session.fails = true;
                    session.status = if session.status == b'I' { b'I' } else { b'E' };
                    return;
                }
                session.parsed.insert(name.to_vec(), text.to_vec());
                session.put(b'1', &[]);
            }
            b'B' => {
                let (_, name) = (words.next(), words.next().unwrap_or_default());
                let Some(text) = session.parsed.get(name) else {
                    if self.faults.rejection == 0.0 {
                        self.truth
                            .defects
                            .push("the engine executed a statement that the server has not parsed".to_owned());
                    }
                    session.put_error("ERROR", "26000");
                    session.fails = true;
                    session.status = if session.status == b'I' { b'I' } else { b'E' };
                    return;
                };
                session.portal = (text.clone(), first_parameter(&body[name.len() + 2..]));
                session.put(b'2', &[]);
            }
            b'D' if body.first() == Some(&b'S') => {
                let name = body[1..].split(|byte| *byte == 0).next().unwrap_or_default();
                let text = session.parsed.get(name).cloned().unwrap_or_default();
                session.put_statement(&text);
            }
            b'D' if SimulatedSession::has_row(&session.portal.0) => session.put_description(),
            b'D' => session.put(b'n', &[]),
            b'E' => {
                let (text, value) = session.portal.clone();
                session.execute(&text, &value, false, failure);
                if session.is_ending {
                    self.reply(thread, id, Some(false));
                }
            }
            _ => {}
        }
    }

    /// Sends the reply, which is complete. `is_rollback` is `None` if the reply does not answer statements; otherwise
    /// it is true for the reply to a ROLLBACK.
    fn reply(&mut self, thread: usize, id: usize, is_rollback: Option<bool>) {
        let faults = self.faults.clone();
        let mut service = self.time(faults.service.0, faults.service.1);
        if self.happens(faults.stall) {
            service += self.time(1_000_000_000, 20_000_000_000);
        }
        let (is_silent, is_broken) = (self.happens(faults.silence), self.happens(faults.fracture));
        let now = self.threads[thread].now;
        let line = &mut self.threads[thread].lines[id];
        let (token, session) = (line.token, &mut line.session);
        let mut reply = std::mem::take(&mut session.reply);
        if is_silent {
            session.is_silent = true;
            return;
        }
        let at = session.busy_until.max(now) + service;
        session.busy_until = at;
        let (is_ending, status) = (session.is_ending, session.status);
        if is_ending {
            // A session that ends sends nothing after its error.
            let error = reply.windows(6).position(|window| window == b"SFATAL").map_or(0, |at| at - 5);
            let length = u32::from_be_bytes([reply[error + 1], reply[error + 2], reply[error + 3], reply[error + 4]]);
            reply.truncate(error + 1 + length as usize);
        }
        let has_error = is_ending || is_broken || !errors_in(&reply).is_empty();
        let client = self.truth.client((thread, token));
        let is_success = !has_error && is_rollback == Some(false);
        let commits = (is_success && client.is_last && (status == b'I' || client.ends_anywhere)).then_some(service);
        if commits.is_some() {
            client.is_last = false;
        } else if is_success {
            client.serve(service);
        }
        if is_broken {
            reply.truncate(self.chance.range(0, reply.len() as i64 - 1) as usize);
        }
        self.send(thread, id, at, reply, commits);
        if !is_ending && !is_broken && is_rollback.is_some() {
            self.say_more(thread, id);
        }
        if is_broken || is_ending {
            self.threads[thread].lines[id].session.is_ending = true;
            let end = if self.happens(0.5) { LineEnd::Closed } else { LineEnd::Reset };
            let end = if is_ending { LineEnd::Closed } else { end };
            let last = self.threads[thread].lines[id].session.busy_until;
            let late = self.time(0, 2_000_000);
            self.end_line(thread, id, last + late, end);
        }
    }

    /// Draws whether the server sends an unsolicited message after a reply, and whether it then ends the session.
    fn say_more(&mut self, thread: usize, id: usize) {
        let (chats, dismisses) = (self.happens(self.faults.chatter), self.happens(self.faults.dismissal));
        if !chats && !dismisses {
            return;
        }
        let at = self.threads[thread].lines[id].session.busy_until + self.time(0, 500_000_000);
        let session = &mut self.threads[thread].lines[id].session;
        if chats {
            session.put(b'S', b"TimeZone\0UTC\0");
        }
        if dismisses {
            session.put_error("FATAL", "57P01");
            session.is_ending = true;
        }
        session.busy_until = at;
        let bytes = std::mem::take(&mut session.reply);
        let errors = errors_in(&bytes);
        self.deliver(thread, id, Chunk { at, bytes, errors, ..Chunk::default() });
        if dismisses {
            self.end_line(thread, id, at, LineEnd::Closed);
        }
    }

    /// Sends a reply to the client, in several pieces if the simulated network splits it.
    fn send(&mut self, thread: usize, id: usize, mut at: Nanos, mut reply: Vec<u8>, commits: Option<Nanos>) {
        // A connection that is refused fails no transaction.
        let is_started = self.threads[thread].lines[id].session.is_started;
        let errors = if is_started { errors_in(&reply) } else { Vec::new() };
        while self.happens(self.faults.fragment) && reply.len() > 1 {
            let rest = reply.split_off(self.chance.range(1, reply.len() as i64 - 1) as usize);
            let bytes = std::mem::replace(&mut reply, rest);
            self.deliver(thread, id, Chunk { at, bytes, errors: errors.clone(), ..Chunk::default() });
            at += self.time(0, 2_000_000);
        }
        let session = &mut self.threads[thread].lines[id].session;
        session.busy_until = session.busy_until.max(at);
        self.deliver(thread, id, Chunk { at, bytes: reply, commits, errors, ..Chunk::default() });
    }

    /// Handles a cancel request for the session of a server process. The thread of the session's client is ending, so
    /// that none of its transactions counts any more.
    pub fn cancel(&mut self, process: u32) {
        self.threads[process as usize / 1_000_000].is_cancelled = true;
        self.break_off(process);
    }

    /// Handles a cancel request for the session of a server process, whose client goes on. The request is under way for
    /// a while. If the server is still replying, the session breaks after the bytes that the server has already sent.
    pub fn cancel_aside(&mut self, thread: usize, process: u32, held: Arc<()>) {
        let is_sent = self.threads[thread].lines[process as usize % 1_000_000].is_sent;
        self.break_off(process);
        let arrives = self.threads[thread].now + self.time(0, 5_000_000);
        self.threads[thread].cancels.push(CancelRequest { process, arrives, is_sent, _held: held });
    }

    fn break_off(&mut self, process: u32) {
        let (thread, id) = (process as usize / 1_000_000, process as usize % 1_000_000);
        if self.happens(self.faults.silence) {
            return;
        }
        let now = self.threads[thread].now;
        let session = &mut self.threads[thread].lines[id].session;
        if !session.is_busy(now) {
            return;
        }
        // The part of the reply that was already sent still arrives. After it the session looks to the client as if the
        // server had closed it.
        let at = now + 100_000;
        self.withdraw(thread, id);
        self.end_line(thread, id, at, LineEnd::Closed);
    }
}

/// Returns the first parameter of a Bind message. `rest` is the message after the names of portal and statement.
fn first_parameter(rest: &[u8]) -> Vec<u8> {
    let number = |at: usize| rest.get(at..at + 2).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    let formats = number(0);
    let at = 2 + 2 * formats;
    if number(at) == 0 {
        return Vec::new();
    }
    let Some(length) = rest.get(at + 2..at + 6).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes) else {
        return Vec::new();
    };
    rest.get(at + 6..at + 6 + length.max(0) as usize).map(<[u8]>::to_vec).unwrap_or_default()
}

/// Returns the SQLSTATEs of the ErrorResponse messages in a reply.
fn errors_in(reply: &[u8]) -> Vec<String> {
    let errors = wire::frame::messages(reply).filter(|(kind, _)| *kind == b'E');
    let sqlstates =
        errors.filter_map(|(_, body)| body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"C")));
    sqlstates.map(|sqlstate| String::from_utf8_lossy(sqlstate).into_owned()).collect()
}
