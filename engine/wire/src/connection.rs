//! The connection of a client. It sends statements and receives their replies, and never blocks.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use ground::poll::Token;

use crate::backend::Backend;
use crate::error::ConnectionError;
use crate::frame::{self, Flow, Visitor};
use crate::messages::{self, COPY_DONE, SYNC};
use crate::network::{Network, Transport};
use crate::opening::{OpenError, Opening};
use crate::order::{Form, Order};
use crate::reply::{Exchange, Receiving, Reply};
use crate::results::{Answered, ResultSet, Rows};
use crate::session_mark::SessionMark;
use crate::socket::Socket;
use crate::startup::ServerInfo;
use crate::statement::{QueryMode, RequestEnd, ResultFormat, SHORT_ROOM, Statement, Tail};
use crate::stream::{Sent, Stream};
use crate::target::Target;
use crate::usual::UsualReplies;
use crate::value::Value;

/// The size in bytes of the buffer into which the connections of one thread read.
pub const BUFFER_SIZE: usize = 64 * 1024;

/// The number of bytes of a pipeline that are collected before they are sent, as in libpq.
const PIPELINE_BUFFER: usize = 64 * 1024;

/// The buffers in which the connections of a thread encode their requests.
pub struct Scratch {
    short: [u8; SHORT_ROOM],
    long: Vec<u8>,
    /// True if executions in the extended protocol send Describe, as libpq does.
    describes: bool,
    format: ResultFormat,
    tail: Tail,
}

impl Scratch {
    /// Makes the buffers for requests whose results have this format. If `describes` is true, the server is asked to
    /// describe the results.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        Self { short: [0; SHORT_ROOM], long: Vec::new(), describes, format, tail: Tail::new(describes, format) }
    }
}

/// The buffers into which the connections of a thread receive replies.
pub struct ReceiveBuffer {
    pub bytes: Vec<u8>,
    usual: UsualReplies,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; BUFFER_SIZE], usual: UsualReplies::default() }
    }
}

/// The connection of a client. `T` is the type of the stream of bytes, which is a socket except in tests.
pub struct Connection<T = Socket> {
    stream: Stream<T>,
    /// The last request, and its reply as far as it has been received.
    exchange: Exchange,
    mark: SessionMark,
    /// True while requests are collected, until the end of the pipeline.
    in_pipeline: bool,
    /// True if the poll reports that the socket can be written.
    watches_write: bool,
    /// The state of the connection attempts, until the session is ready.
    opening: Option<Box<Opening>>,
    /// The server process of a ready session, which is needed to cancel its statements.
    backend: Option<Arc<Backend>>,
}

impl<T: Transport> Connection<T> {
    /// Starts to connect to `target`. The poll of `network` reports the connection's events under `token`.
    pub fn open<N: Network<Transport = T>>(target: &Arc<Target>, network: &N, token: Token) -> Result<Self, OpenError> {
        Self::registered(Opening::begin(target, network)?, network, token)
    }

    fn registered<N: Network<Transport = T>>(
        (opening, stream): (Opening, Stream<T>),
        network: &N,
        token: Token,
    ) -> Result<Self, OpenError> {
        network.register(&stream.socket, token, true)?;
        Ok(Self {
            stream,
            exchange: Exchange::telling(opening.user().tell),
            mark: SessionMark::draw(),
            in_pipeline: false,
            watches_write: true,
            opening: Some(Box::new(opening)),
            backend: None,
        })
    }

    /// Returns the time at which the current attempt to connect times out. [`Connection::advance`] must then be called,
    /// and gives the attempt up.
    pub fn deadline(&self) -> Option<Instant> {
        self.opening.as_ref()?.deadline
    }

    /// Returns true if the connection waits because the queue of a server's listening Unix socket is full. No event
    /// reports that there is room again, so the caller has to call [`Connection::advance`] after
    /// [`crate::cancel::RETRY`].
    pub fn awaits_room(&self) -> bool {
        self.stream.socket.awaits_room()
    }

    /// Returns the server process if the session is ready and its last request has not been answered completely.
    pub fn busy_backend(&self) -> Option<&Arc<Backend>> {
        self.backend.as_ref().filter(|_| self.exchange.is_awaiting())
    }

    /// Returns the server process if the session is ready and the server has sent the key for cancelling its
    /// statements.
    pub(crate) fn backend(&self) -> Option<&Arc<Backend>> {
        self.backend.as_ref()
    }

    /// Makes the poll report that the socket can be written, as long as there are bytes to send, and only then.
    pub fn watch_unsent<N: Network<Transport = T>>(&mut self, network: &N, token: Token) -> io::Result<()> {
        let is_connecting = self.opening.as_ref().is_some_and(|opening| opening.startup.is_connecting());
        let wanted = is_connecting || self.stream.has_unsent();
        if wanted != self.watches_write {
            self.watches_write = wanted;
            network.reregister(&self.stream.socket, token, wanted)?;
        }
        Ok(())
    }

    /// Continues to open the session. Connects to the next server if the first one does not answer or is not of the
    /// kind that `target_session_attrs` asks for. Returns `Some` when the session is ready. Called only while the
    /// connection is being opened.
    pub fn advance<N: Network<Transport = T>>(
        &mut self,
        buffer: &mut [u8],
        network: &N,
        token: Token,
    ) -> Result<Option<ServerInfo>, OpenError> {
        loop {
            let Some(mut opening) = self.opening.take() else { return Ok(Some(ServerInfo::default())) };
            // An answer that arrived in time counts even if it is read after the deadline.
            let error = match opening.startup.advance(&mut self.stream, buffer) {
                Ok(None) if opening.deadline.is_some_and(|deadline| network.now() >= deadline) => {
                    ConnectionError::Timeout
                }
                Ok(ready) => {
                    if ready.is_some() {
                        self.backend = opening.startup.take_backend();
                    }
                    self.opening = Some(opening).filter(|_| ready.is_none());
                    self.watch_unsent(network, token)?;
                    return Ok(ready);
                }
                Err(error) => error,
            };
            if matches!(error, ConnectionError::WrongSession(_)) {
                self.terminate();
            }
            *self = Self::registered(opening.fail(&error, network)?, network, token)?;
        }
    }

    /// Sends a statement with its values, or adds it to the pipeline. `scratch` has the thread's buffers for requests.
    #[inline(always)]
    pub fn send(
        &mut self,
        statement: &Statement,
        mode: QueryMode,
        values: &[Value],
        rows: Rows,
        scratch: &mut Scratch,
    ) -> Result<Sent, ConnectionError> {
        let parsed = mode == QueryMode::Prepared && self.exchange.request.has_parsed(statement.id);
        if parsed && !self.in_pipeline && rows != Rows::Kept {
            if let Some(messages) = statement.encode_short(self.mark, values, &scratch.tail, &mut scratch.short) {
                self.exchange.expect_of(statement.id, rows, Form::of_execution(scratch.describes));
                self.exchange.request.forget_text();
                return Ok(self.stream.send(messages)?);
            }
        }
        self.send_encoded(statement, mode, parsed, values, rows, scratch)
    }

    /// Sends a statement whose messages [`Statement::encode_short`] cannot write, or adds it to the pipeline.
    #[inline(never)]
    fn send_encoded(
        &mut self,
        statement: &Statement,
        mode: QueryMode,
        parsed: bool,
        values: &[Value],
        rows: Rows,
        scratch: &mut Scratch,
    ) -> Result<Sent, ConnectionError> {
        // If rows are kept, the names of the columns are needed, too.
        let describes = scratch.describes || rows == Rows::Kept;
        let format = scratch.format;
        let end = |syncs| RequestEnd { format, describes, syncs };
        let messages = &mut scratch.long;
        messages.clear();
        if self.in_pipeline {
            statement.encode(self.mark, (mode, parsed), values, end(false), messages);
            self.exchange.expect_execution(describes);
            return Ok(self.add_to_pipeline(statement, mode, parsed, messages));
        }
        statement.encode(self.mark, (mode, parsed), values, end(true), messages);
        let form = match mode {
            QueryMode::Simple => Form::Text,
            QueryMode::Extended | QueryMode::Prepared => Form::of_execution(describes),
        };
        if mode == QueryMode::Prepared && !parsed {
            // The reply has a ParseComplete message, which must be processed.
            self.exchange.expect(rows, Order::of(form));
        } else {
            self.exchange.expect_of(statement.id, rows, form);
        }
        if parsed {
            self.exchange.request.forget_text();
        } else {
            self.expect_text(statement, mode, messages);
        }
        Ok(self.stream.send(messages)?)
    }

    #[cold]
    fn add_to_pipeline(&mut self, statement: &Statement, mode: QueryMode, parsed: bool, messages: &[u8]) -> Sent {
        if mode == QueryMode::Prepared && !parsed {
            self.exchange.request.expect_parse(statement.id);
        }
        if self.stream.queue(messages) > PIPELINE_BUFFER {
            // If the socket is broken, sending fails again at the end of the pipeline, as in libpq.
            let _ = self.stream.flush();
        }
        Sent::Collected
    }

    /// Records that the last request contains the text of `statement`, so that the text can be shown if the server
    /// rejects it.
    #[cold]
    fn expect_text(&mut self, statement: &Statement, mode: QueryMode, messages: &[u8]) {
        if mode == QueryMode::Prepared {
            self.exchange.request.expect_parse(statement.id);
        }
        self.exchange.request.keep_text(messages);
    }

    /// Sends one simple query without values.
    pub fn send_query(&mut self, sql: impl AsRef<[u8]>, rows: Rows) -> Result<Sent, ConnectionError> {
        self.exchange.expect(rows, Order::of(Form::Text));
        Ok(self.stream.send(self.exchange.request.keep_query(sql.as_ref()))?)
    }

    /// Parses a text without parameters as the unnamed statement, and executes it. `scratch` has the thread's buffers
    /// for requests.
    pub fn send_unnamed(&mut self, text: &[u8], rows: Rows, scratch: &mut Scratch) -> Result<Sent, ConnectionError> {
        scratch.long.clear();
        messages::parse_and_execute(text, scratch.describes, &mut scratch.long);
        self.exchange.expect(rows, Order::of(Form::of_execution(scratch.describes)));
        self.send_text(&scratch.long)
    }

    /// Asks the server to parse and describe `statement`, even if this session has already parsed it.
    pub fn send_prepare(&mut self, statement: &Statement) -> Result<Sent, ConnectionError> {
        self.exchange.request.expect_parse(statement.id);
        self.exchange.expect(Rows::Handed, Order::of_preparation());
        self.send_text(
            &[&statement.parse_message(self.mark)[..], &statement.describe_message(self.mark), &SYNC].concat(),
        )
    }

    /// Asks the server to parse those of `statements` that this session has not parsed yet. Returns `None` if it has
    /// parsed all of them.
    pub fn prepare(&mut self, statements: &[Statement]) -> Result<Option<Sent>, ConnectionError> {
        let mut messages = Vec::new();
        for statement in statements {
            if !self.exchange.request.has_parsed(statement.id) {
                messages.extend_from_slice(&statement.parse_message(self.mark));
                self.exchange.request.expect_parse(statement.id);
            }
        }
        if messages.is_empty() {
            return Ok(None);
        }
        messages.extend_from_slice(&SYNC);
        self.exchange.expect(Rows::Skipped, Order::of_preparation());
        self.send_text(&messages).map(Some)
    }

    /// Goes on after the server has refused to prepare a statement, as if it had prepared the statement. The server has
    /// ignored the messages that came after the statement's text in the last request; they are sent again. `rows` says
    /// how the rows of their reply are used. Returns `None` if no messages came after the text.
    pub fn pass_unprepared(&mut self, rows: Rows) -> Result<Option<Sent>, ConnectionError> {
        let rest = self.exchange.request.pass_rejected();
        let mut kinds = frame::messages(&rest).map(|(kind, _)| kind);
        let order = match kinds.next() {
            None => return Ok(None),
            Some(b'P') => Order::of_preparation(),
            Some(_) => Order::of(Form::of_execution(kinds.any(|kind| kind == b'D'))),
        };
        let has_text = rest.first() == Some(&b'P');
        self.exchange.expect(rows, order);
        if has_text {
            self.exchange.request.keep_text(&rest);
        }
        Ok(Some(self.stream.send(&rest)?))
    }

    fn send_text(&mut self, messages: &[u8]) -> Result<Sent, ConnectionError> {
        self.exchange.request.keep_text(messages);
        Ok(self.stream.send(messages)?)
    }

    /// Begins a pipeline: requests are collected until [`Connection::end_pipeline`].
    pub fn start_pipeline(&mut self) {
        self.in_pipeline = true;
        self.exchange.expect_pipeline();
    }

    /// Adds a Sync message to the pipeline, which ends the current implicit transaction.
    pub fn sync_pipeline(&mut self) {
        self.stream.queue(&SYNC);
        self.exchange.expect_part();
    }

    /// Sends the collected requests of the pipeline. The reply to them is received as a single reply.
    pub fn end_pipeline(&mut self) -> Result<Sent, ConnectionError> {
        self.sync_pipeline();
        self.in_pipeline = false;
        self.flush()
    }

    /// Returns the reply to the last request if it is complete. If the request was sent only in part, sends more of it;
    /// in that case the caller must have called [`Connection::watch_unsent`] after sending. If the server sent an error
    /// before it closed the connection, that error is returned in place of the failure of the socket.
    #[inline(always)]
    pub fn receive<N: Network<Transport = T>>(
        &mut self,
        buffer: &mut ReceiveBuffer,
        network: &N,
        token: Token,
    ) -> Result<Option<Reply>, ConnectionError> {
        if self.watches_write {
            return self.flush_and_receive(buffer, network, token);
        }
        self.receive_reply(buffer, network, token)
    }

    /// Sends the rest of the request and reads the reply. If a write fails, the received bytes are read before the
    /// failure is reported, since the server may have sent an error that explains why it accepts no more bytes.
    #[cold]
    fn flush_and_receive<N: Network<Transport = T>>(
        &mut self,
        buffer: &mut ReceiveBuffer,
        network: &N,
        token: Token,
    ) -> Result<Option<Reply>, ConnectionError> {
        let flushed = self.flush().and_then(|_| Ok(self.watch_unsent(network, token)?));
        let reply = self.receive_reply(buffer, network, token)?;
        if reply.is_none() {
            flushed?;
        }
        Ok(reply)
    }

    #[inline(always)]
    fn receive_reply<N: Network<Transport = T>>(
        &mut self,
        buffer: &mut ReceiveBuffer,
        network: &N,
        token: Token,
    ) -> Result<Option<Reply>, ConnectionError> {
        let mut visitor = Receiving { exchange: &mut self.exchange, usual: &mut buffer.usual };
        match self.stream.receive(&mut buffer.bytes, &mut visitor) {
            Ok(Flow::Stop) => Ok(Some(self.exchange.take_reply())),
            Ok(Flow::Continue) => {
                if self.exchange.begins_to_end_copy() {
                    self.end_copy(network, token)?;
                }
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Ends a `COPY ... FROM STDIN` without sending data, as libpq's `PQendcopy` does. The server then sends the rest
    /// of the reply.
    #[cold]
    fn end_copy<N: Network<Transport = T>>(&mut self, network: &N, token: Token) -> Result<(), ConnectionError> {
        self.stream.send(&COPY_DONE)?;
        if !self.exchange.request.is_simple_query() {
            self.stream.send(&SYNC)?;
        }
        Ok(self.watch_unsent(network, token)?)
    }

    /// Returns the error with which the session ends. If the reason is a COPY, for which this client has no data, the
    /// connection itself still works; Terminate is then sent, so that the server ends the session, too.
    #[cold]
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        let failure = self.exchange.failure(error);
        if matches!(failure, ConnectionError::Copy) {
            self.terminate();
        }
        failure
    }

    /// Passes the messages that have arrived to `visitor`, until it stops or no more have arrived.
    pub(crate) fn visit<V: Visitor>(&mut self, buffer: &mut [u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        self.stream.receive(buffer, visitor)
    }

    /// Sends messages that belong to the current request, such as the data of a COPY.
    pub(crate) fn send_messages(&mut self, messages: &[u8]) -> Result<Sent, ConnectionError> {
        Ok(self.stream.send(messages)?)
    }

    /// Sends bytes that the socket did not accept before.
    pub(crate) fn flush(&mut self) -> Result<Sent, ConnectionError> {
        Ok(self.stream.flush()?)
    }

    /// Returns true if requests are being collected for a pipeline.
    pub fn is_in_pipeline(&self) -> bool {
        self.in_pipeline
    }

    /// Returns the text of the last request's statement, if the request contained the text.
    pub fn sent_text(&self) -> Option<&str> {
        self.exchange.request.text()
    }

    /// Returns the results of the last request, if it was sent with [`Rows::Kept`].
    pub fn take_results(&mut self) -> Vec<ResultSet> {
        self.exchange.take_results()
    }

    /// Returns the answer to the last request, if it was sent with [`Rows::Counted`], [`Rows::Hashed`] or
    /// [`Rows::Handed`].
    pub fn answered(&self) -> &Answered {
        self.exchange.answered()
    }

    /// Records that the server has dropped all prepared statements of the session.
    pub fn forget_prepared(&mut self) {
        self.exchange.request.forget_parsed();
    }

    /// Frees the memory that holds the text of the last request and the list of statements to prepare.
    pub fn trim(&mut self) {
        self.exchange.request.trim();
    }

    /// Returns true if the server has ended the session although the client was waiting for no reply. The server sends
    /// an error without a request only in this case. It closes the socket later, after cleaning up, which may take
    /// long.
    pub fn is_dismissed(&self) -> bool {
        self.exchange.has_error()
    }

    /// Sends Terminate. The socket is closed when the connection is dropped.
    pub fn terminate(&mut self) {
        // If the message cannot be sent, the server ends the session when it notices the closed socket.
        let _ = self.stream.send(&[b'X', 0, 0, 0, 4]);
    }
}
