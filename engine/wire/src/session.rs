//! A session that blocks until the server has answered. It is used for the work before and after a load: asking for the
//! version, counting rows, VACUUM, and loading data.

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

/// The longest time that a client waits until the server has ended a session. If the server needs longer, the client
/// disconnects.
const FAREWELL: Duration = Duration::from_secs(1);

/// The longest time until an interrupt is noticed, and the pause between two cancel requests. The request is repeated
/// because the server ignores a cancel request that arrives between two statements.
const PATIENCE: Duration = Duration::from_millis(100);

/// The longest time that the server may take to cancel an interrupted statement. After that the client disconnects,
/// although the statement may still run.
const PATIENCE_WITH_CANCELS: Duration = Duration::from_secs(5);

/// The longest time that the server may take to cancel a statement that has reached its time limit.
const PATIENCE_AFTER_LIMIT: Duration = Duration::from_secs(60);

/// A row of a result. NULL is `None`.
pub type Row = Vec<Option<String>>;

/// The answer of a function that has just written COPY data to the buffer: whether more data follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    More,
    Done,
    /// The caller cannot provide the rest of the data: the client makes the COPY fail.
    GiveUp,
}

/// The error for which a COPY failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The COPY failed before the server accepted data.
    #[error("{0}")]
    Refused(ConnectionError),
    /// The COPY failed after the server had begun to accept data.
    #[error("{0}")]
    Failed(ConnectionError),
}

/// A session whose calls block until the server has answered.
pub struct Session {
    connection: Connection,
    poll: Poll,
    buffer: ReceiveBuffer,
    target: Arc<Target>,
    /// True if the server's notices are not shown to the user.
    is_silent: bool,
    /// The time at which the server was first asked to cancel the statement.
    cancelled: Option<Instant>,
    /// The time limit of the statement, at which the server is asked to cancel it.
    until: Option<Instant>,
    /// The facts that the server has reported about itself when the session started.
    pub server: ServerInfo,
}

impl Session {
    /// Returns the user of the program, who gets the notices of the server.
    pub fn user(&self) -> User {
        self.target.user
    }

    /// Connects to `target`. The error has libpq's lines. If the server asks for a password and none is known, the user
    /// is asked for it on the terminal, and all later connections to `target` use it.
    pub fn open(target: &Arc<Target>) -> Result<Self, OpenError> {
        match Self::connect(target) {
            Err(error) if error.sqlstate == INVALID_PASSWORD && target.ask_for_password() => Self::connect(target),
            done => done,
        }
    }

    /// Connects to `target` as [`Session::open`] does, but never asks the user for a password.
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

    /// Returns the server process, which is needed to cancel the session's statements. Returns `None` if the server has
    /// not sent a key for that.
    pub fn backend(&self) -> Option<&Arc<Backend>> {
        self.connection.backend()
    }

    /// Stops showing the server's notices to the user.
    pub fn silence(&mut self) {
        self.is_silent = true;
    }

    /// Runs `sql`, which has one or more statements, and returns the rows of all results. An error of the server ends
    /// the query.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, ConnectionError> {
        let mut rows = RowCollector::new((!self.is_silent).then_some(self.target.user.tell));
        self.send_query(&mut rows, sql)?;
        self.wait(&mut rows, |rows| rows.ready)?;
        self.outcome(rows)
    }

    /// Sends one request with `send`, and waits for the reply. [`Session::answered`] then returns the answer.
    pub fn ask(
        &mut self,
        send: impl FnOnce(&mut Connection) -> Result<Sent, ConnectionError>,
    ) -> Result<Reply, ConnectionError> {
        if self.is_interrupted() {
            return Err(ConnectionError::Interrupted);
        }
        let (registry, buffer) = (&self.poll, &mut self.buffer);
        let sent = send(&mut self.connection).and_then(|_| Ok(self.connection.watch_unsent(registry, TOKEN)?));
        // If the socket is broken, it may still hold the server's last message.
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

    /// Sends one request as [`Session::ask`] does. If the server has not answered at the time `until`, it is asked to
    /// cancel the request. Returns the reply, and true if the server was asked to cancel. The cancel request may then
    /// still be on its way, so that the session must not be used any more.
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

    /// Returns the answer to the last request that was sent with [`Session::ask`].
    pub fn answered(&self) -> &Answered {
        self.connection.answered()
    }

    /// Runs `COPY ... FROM STDIN`. `fill` appends the data of one message to the buffer, and returns whether more data
    /// follows.
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

    /// Returns the error of a broken socket. A server that ends the session may have sent an error before it closed the
    /// socket; that error is returned then.
    fn last_error(&mut self, rows: &mut RowCollector, error: ConnectionError) -> ConnectionError {
        if !matches!(error, ConnectionError::Closed | ConnectionError::Send(_)) {
            return error;
        }
        self.wait(rows, |rows| rows.ready).err().unwrap_or(error)
    }

    /// Returns the rows, or the server's error with the statement in which it occurred.
    fn outcome(&self, rows: RowCollector) -> Result<Vec<Row>, ConnectionError> {
        match rows.error {
            None => Ok(rows.rows),
            Some(error) => Err(ConnectionError::Server(Box::new(error.of(self.connection.sent_text())))),
        }
    }

    /// Sends the data until there is no more, or until the server has reported an error. After an error the server
    /// ignores the rest of the data.
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

    /// Waits until the socket has accepted all bytes. After an interrupt the wait ends with an error if the server has
    /// stopped reading.
    fn send_rest(&mut self, mut sent: Sent) -> Result<(), ConnectionError> {
        while sent == Sent::InPart {
            self.connection.watch_unsent(&self.poll, TOKEN)?;
            self.pause()?;
            sent = self.connection.flush()?;
        }
        Ok(self.connection.watch_unsent(&self.poll, TOKEN)?)
    }

    /// Processes the bytes that the server has sent, without waiting for more.
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

    /// Waits until the socket is ready. After an interrupt, or when the statement has reached its time limit, asks the
    /// server to cancel the statement. Returns an error if the server does not end the statement.
    fn pause(&mut self) -> Result<(), ConnectionError> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let looks = self.target.is_interrupted().map(|_| PATIENCE);
        let left = left.map(|left| if left.is_zero() { PATIENCE } else { left });
        let is_ready = wait(&mut self.poll, looks.into_iter().chain(left).min())?;
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        if !self.is_interrupted() && !is_over {
            return Ok(());
        }
        // After a cancel request the answer is still read while it arrives. But a time limit cancels even a statement
        // whose answer keeps arriving.
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
        // If this cancel request does not reach the server, the next one may.
        let _ = cancel::cancel(self.connection.backend(), Instant::now() + FAREWELL);
        Ok(())
    }
}

/// Waits until the socket is ready, `patience` is over, or a signal has arrived. Returns true if the socket is ready.
fn wait(poll: &mut Poll, patience: Option<Duration>) -> io::Result<bool> {
    Ok(poll.wait(&mut Ready::default(), patience)? > 0)
}

/// Ends the session, and waits a moment until the server has closed the socket. The server adds the session's inserted
/// rows to its statistics just before it closes the socket. Without the wait, a VACUUM that the program runs next could
/// count the rows first, and the session's statistics would then be added to that number.
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

/// A visitor that ignores all messages of the server.
struct Unheard;

impl Visitor for Unheard {
    fn wants(&self, _kind: u8) -> bool {
        false
    }

    fn message(&mut self, _kind: u8, _body: &[u8]) -> Result<Flow, ConnectionError> {
        Ok(Flow::Stop)
    }
}

/// Collects the rows of one simple query in text format.
struct RowCollector {
    rows: Vec<Row>,
    error: Option<Box<ServerError>>,
    /// The function that receives the server's notices.
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
                let short = || "a row from the server is shorter than the lengths in it say".to_owned();
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
