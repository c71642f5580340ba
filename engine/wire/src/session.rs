//! A session that waits for its answers: for the work around a run (versions, counts, vacuum, loading data).

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::cancel;
use crate::connection::{BUFFER_SIZE, Connection, ReceiveBuffer};
use crate::error::{ConnectionError, INVALID_PASSWORD, ServerError};
use crate::frame::{self, Flow, Visitor};
use crate::opening::OpenError;
use crate::order::{Form, Order};
use crate::reply::Reply;
use crate::results::{Answered, Rows, values};
use crate::startup::ServerInfo;
use crate::stream::Sent;
use crate::target::{Target, User};
use ground::poll::{Poll, Ready, Token};
use ground::text;

const TOKEN: Token = Token(0);

/// The longest time that a client waits for the server to end a session. A server that needs longer ends it later,
/// without the client.
const FAREWELL: Duration = Duration::from_secs(1);

/// The longest time until an interrupt is noticed, and the pause between two cancel requests. A request is repeated
/// because a server process that is between two statements ignores it.
const PATIENCE: Duration = Duration::from_millis(100);

/// The longest time that a server may take to cancel an interrupted statement; then it goes on alone, or does not
/// answer at all.
const PATIENCE_WITH_CANCELS: Duration = Duration::from_secs(5);

/// The longest time that a server may take to cancel a statement whose time is over.
const PATIENCE_AFTER_LIMIT: Duration = Duration::from_secs(60);

/// A row of a result; NULL is `None`.
pub type Row = Vec<Option<String>>;

/// The decision of a caller that sends COPY data: what follows the message that it has just filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    More,
    Done,
    /// The data is given up, and so is the statement.
    GiveUp,
}

/// The reason for which a COPY failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The COPY failed before it took data.
    #[error("{0}")]
    Refused(ConnectionError),
    /// The COPY failed when it had begun to take data.
    #[error("{0}")]
    Failed(ConnectionError),
}

/// A session that blocks until its answers have come.
pub struct Session {
    connection: Connection,
    poll: Poll,
    buffer: ReceiveBuffer,
    target: Arc<Target>,
    /// True if notices of the server are not passed to the user.
    is_silent: bool,
    /// The time at which the first request to cancel was sent.
    cancelled: Option<Instant>,
    /// The time at which the server is asked to cancel the statement.
    until: Option<Instant>,
    /// The facts that the server said of itself when the session started.
    pub server: ServerInfo,
}

impl Session {
    /// Returns the user of the program, as the session's target has it.
    pub fn user(&self) -> User {
        self.target.user
    }

    /// Connects to `target`; the error has libpq's lines. Where a password is needed, none is known and there is a
    /// terminal, the user is asked for it, and all later connections to `target` use it.
    pub fn open(target: &Arc<Target>) -> Result<Self, OpenError> {
        match Self::connect(target) {
            Err(error) if error.sqlstate == INVALID_PASSWORD && target.ask_for_password() => Self::connect(target),
            done => done,
        }
    }

    /// Connects to `target` as [`Session::open`] does, except that nobody is asked for a password.
    pub fn connect(target: &Arc<Target>) -> Result<Self, OpenError> {
        let mut poll = Poll::new()?;
        let mut buffer = ReceiveBuffer::default();
        let mut connection = Connection::open(target, &poll, TOKEN)?;
        loop {
            if target.is_interrupted() == Some(true) {
                return Err(io::Error::other("interrupted").into());
            }
            if let Some(server) = connection.advance(&mut buffer.bytes, &poll, TOKEN)? {
                return Ok(Self {
                    connection,
                    poll,
                    buffer,
                    target: Arc::clone(target),
                    is_silent: false,
                    cancelled: None,
                    until: None,
                    server,
                });
            }
            let left = connection.deadline().map(|end| end.saturating_duration_since(Instant::now()));
            let looks = target.is_interrupted().map(|_| PATIENCE);
            let patience = left.into_iter().chain(connection.awaits_room().then_some(cancel::RETRY)).chain(looks).min();
            wait(&mut poll, patience)?;
        }
    }

    /// Returns the server process, by which the session's statements can be cancelled; `None` if the server did not
    /// say.
    pub fn backend(&self) -> Option<&Arc<Backend>> {
        self.connection.backend()
    }

    /// Stops telling the user notices.
    pub fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Runs `sql` (one or more statements) and returns the rows of all results. A server error ends it.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, ConnectionError> {
        let mut rows = RowCollector::new((!self.is_silent).then_some(self.target.user.tell));
        self.send_query(&mut rows, sql)?;
        self.wait(&mut rows, |rows| rows.ready)?;
        self.outcome(rows)
    }

    /// Sends one request by `send` and waits for the reply; [`Session::answered`] is the answer.
    pub fn ask(
        &mut self,
        send: impl FnOnce(&mut Connection) -> Result<Sent, ConnectionError>,
    ) -> Result<Reply, ConnectionError> {
        if self.is_interrupted() {
            return Err(ConnectionError::Interrupted);
        }
        let (registry, buffer) = (&self.poll, &mut self.buffer);
        let sent = send(&mut self.connection).and_then(|_| Ok(self.connection.watch_unsent(registry, TOKEN)?));
        // A broken socket may still hold the server's last message.
        let mut reply = self.connection.receive(buffer, registry, TOKEN)?;
        sent?;
        loop {
            if let Some(reply) = reply {
                return Ok(reply);
            }
            self.pause()?;
            reply = self.connection.receive(&mut self.buffer, &self.poll, TOKEN)?;
        }
    }

    /// Sends one request as [`Session::ask`] does. If there is no answer at the time `until`, the server is asked to
    /// cancel the request. Returns the answer, and true if the cancellation was requested; the request to cancel may
    /// then still be under way, so that the session must not be used any more.
    pub fn ask_until(
        &mut self,
        until: Instant,
        send: impl FnOnce(&mut Connection) -> Result<Sent, ConnectionError>,
    ) -> Result<(Reply, bool), ConnectionError> {
        self.until = Some(until);
        let reply = self.ask(send);
        self.until = None;
        Ok((reply?, self.cancelled.is_some()))
    }

    /// Returns the answer to the last request of [`Session::ask`].
    pub fn answered(&self) -> &Answered {
        self.connection.answered()
    }

    /// Runs `COPY ... FROM STDIN`: `fill` appends one message's data to the buffer and says whether more will follow.
    pub fn copy_in(&mut self, sql: &str, mut fill: impl FnMut(&mut Vec<u8>) -> Fill) -> Result<(), CopyError> {
        let mut rows = RowCollector::new((!self.is_silent).then_some(self.target.user.tell));
        self.send_query(&mut rows, sql).map_err(CopyError::Refused)?;
        self.wait(&mut rows, |rows| rows.ready || rows.copying).map_err(CopyError::Refused)?;
        if !rows.copying {
            return self.outcome(rows).map(drop).map_err(CopyError::Refused);
        }
        match self.send_copy_data(&mut rows, &mut fill) {
            Err(error) => Err(self.last_error(&mut rows, error)),
            Ok(()) => self.wait(&mut rows, |rows| rows.ready).and_then(|()| self.outcome(rows).map(drop)),
        }
        .map_err(CopyError::Failed)
    }

    fn send_query(&mut self, rows: &mut RowCollector, sql: &str) -> Result<(), ConnectionError> {
        if self.is_interrupted() {
            return Err(ConnectionError::Interrupted);
        }
        let sent = self.connection.send_query(text::bytes(sql), Rows::Skipped).and_then(|sent| self.send_rest(sent));
        sent.map_err(|error| self.last_error(rows, error))
    }

    /// Returns why the socket is broken: a server that ends the session may have reported an error before.
    fn last_error(&mut self, rows: &mut RowCollector, error: ConnectionError) -> ConnectionError {
        if !matches!(error, ConnectionError::Closed | ConnectionError::Send(_)) {
            return error;
        }
        self.wait(rows, |rows| rows.ready).err().unwrap_or(error)
    }

    /// Returns the rows, or the error with the statement it is about.
    fn outcome(&self, rows: RowCollector) -> Result<Vec<Row>, ConnectionError> {
        match rows.error {
            None => Ok(rows.rows),
            Some(error) => Err(ConnectionError::Server(Box::new(error.of(self.connection.sent_text())))),
        }
    }

    /// Sends data until there is no more or the server has reported an error; it skips what comes after that.
    fn send_copy_data(
        &mut self,
        rows: &mut RowCollector,
        fill: &mut impl FnMut(&mut Vec<u8>) -> Fill,
    ) -> Result<(), ConnectionError> {
        let mut messages = Vec::with_capacity(BUFFER_SIZE * 2);
        let mut next = Fill::More;
        while next == Fill::More && rows.error.is_none() {
            messages.clear();
            frame::write(&mut messages, b'd', |out| next = fill(out));
            if self.is_interrupted() {
                next = Fill::GiveUp;
            }
            match next {
                Fill::More => {}
                Fill::Done => frame::write(&mut messages, b'c', |_| {}),
                Fill::GiveUp => {
                    messages.clear();
                    frame::write(&mut messages, b'f', |out| frame::write_text(out, b"given up"));
                }
            }
            let sent = self.connection.send_messages(&messages)?;
            self.send_rest(sent)?;
            if next == Fill::More {
                self.receive(rows)?;
            }
        }
        Ok(())
    }

    /// Waits until the socket has taken all that was sent. A server that has stopped reading is given up some time after
    /// an interrupt.
    fn send_rest(&mut self, mut sent: Sent) -> Result<(), ConnectionError> {
        while sent == Sent::InPart {
            self.connection.watch_unsent(&self.poll, TOKEN)?;
            self.pause()?;
            sent = self.connection.flush()?;
        }
        Ok(self.connection.watch_unsent(&self.poll, TOKEN)?)
    }

    /// Takes what the server has sent, without waiting.
    fn receive(&mut self, rows: &mut RowCollector) -> Result<Flow, ConnectionError> {
        let received = self.connection.visit(&mut self.buffer.bytes, rows);
        received.map_err(|error| match (error, rows.error.take()) {
            (ConnectionError::Closed, Some(last)) => ConnectionError::Dismissed(last),
            (error, _) => error,
        })
    }

    fn wait(
        &mut self,
        rows: &mut RowCollector,
        is_done: impl Fn(&RowCollector) -> bool,
    ) -> Result<(), ConnectionError> {
        loop {
            let flow = self.receive(rows)?;
            if is_done(rows) {
                return Ok(());
            }
            if flow == Flow::Continue {
                self.pause()?;
            }
        }
    }

    fn is_interrupted(&self) -> bool {
        self.target.is_interrupted() == Some(true)
    }

    /// Waits until the socket is ready; after an interrupt or the end of the time it has the statement cancelled. The
    /// error is that the server cancels nothing.
    fn pause(&mut self) -> Result<(), ConnectionError> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let looks = self.target.is_interrupted().map(|_| PATIENCE);
        let left = left.map(|left| if left.is_zero() { PATIENCE } else { left });
        let is_ready = wait(&mut self.poll, looks.into_iter().chain(left).min())?;
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        if !self.is_interrupted() && !is_over {
            return Ok(());
        }
        // An answer that comes is awaited, but one that comes for too long.
        if is_ready && !(is_over && self.cancelled.is_none()) {
            return Ok(());
        }
        let waited = self.cancelled.get_or_insert_with(Instant::now).elapsed();
        if self.is_interrupted() && waited > PATIENCE_WITH_CANCELS {
            return Err(ConnectionError::Interrupted);
        }
        if waited > PATIENCE_AFTER_LIMIT {
            return Err(ConnectionError::Timeout);
        }
        // Where the request does not reach the server, the next one may.
        let _ = cancel::cancel(self.connection.backend(), Instant::now() + FAREWELL);
        Ok(())
    }
}

/// Waits until the socket is ready, `patience` is over or a signal has come. Returns true if the socket is ready.
fn wait(poll: &mut Poll, patience: Option<Duration>) -> io::Result<bool> {
    Ok(poll.wait(&mut Ready::default(), patience)? > 0)
}

/// The end of the session, for which it waits a moment: the server adds what the session did to its statistics before
/// it closes the socket, and VACUUM would count rows twice that are added after it.
impl Drop for Session {
    fn drop(&mut self) {
        self.connection.terminate();
        let end = Instant::now() + FAREWELL;
        while let Ok(flow) = self.connection.visit(&mut self.buffer.bytes, &mut Unheard) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || (flow == Flow::Continue && wait(&mut self.poll, Some(left)).is_err()) {
                return;
            }
        }
    }
}

/// A visitor that passes over all that a server says.
struct Unheard;

impl Visitor for Unheard {
    fn wants(&self, _kind: u8) -> bool {
        false
    }

    fn message(&mut self, _kind: u8, _body: &[u8]) -> Result<Flow, ConnectionError> {
        Ok(Flow::Stop)
    }
}

/// Collects rows in text format: those of one simple query.
struct RowCollector {
    rows: Vec<Row>,
    error: Option<Box<ServerError>>,
    /// The function that gets notices.
    tell: Option<fn(&str)>,
    order: Order,
    copying: bool,
    ready: bool,
}

impl RowCollector {
    fn new(tell: Option<fn(&str)>) -> Self {
        Self { rows: Vec::new(), error: None, tell, order: Order::of(Form::Text), copying: false, ready: false }
    }
}

impl Visitor for RowCollector {
    fn wants(&self, _kind: u8) -> bool {
        true
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        if self.error.is_none() {
            self.order.take(kind, Some(body))?;
        }
        match kind {
            b'D' => {
                let row = values(body, text::of);
                let short = || "a row of the server's answer is shorter than it says".to_owned();
                self.rows.push(row.ok_or_else(|| ConnectionError::Protocol(short()))?);
            }
            b'E' => self.error = Some(Box::new(ServerError::parse(body))),
            b'N' => {
                if let Some(tell) = self.tell {
                    tell(&ServerError::notice(body, None));
                }
            }
            b'G' => {
                self.copying = true;
                return Ok(Flow::Stop);
            }
            b'Z' => {
                if self.error.is_none() && self.order.lacks_results() {
                    return Err(ConnectionError::NoResults);
                }
                self.ready = true;
                return Ok(Flow::Stop);
            }
            _ => {}
        }
        Ok(Flow::Continue)
    }
}
