//! The connection of a client: it sends statements and receives their replies, without ever blocking.

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

/// The size of the buffer that connections of one thread share for reading, bytes.
pub const BUFFER_SIZE: usize = 64 * 1024;

/// The number of bytes of a pipeline that are collected before they are sent, as in libpq.
const PIPELINE_BUFFER: usize = 64 * 1024;

/// The buffers that the connections of a thread share for encoding requests.
pub struct Scratch {
    short: [u8; SHORT_ROOM],
    long: Vec<u8>,
    /// True if executions of the extended protocol are described, as by libpq.
    describes: bool,
    format: ResultFormat,
    tail: Tail,
}

impl Scratch {
    /// Makes the buffers for requests whose results have this format. If `describes`, the server is asked to describe
    /// the results.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        Self { short: [0; SHORT_ROOM], long: Vec::new(), describes, format, tail: Tail::new(describes, format) }
    }
}

/// The buffers that the connections of a thread share for receiving replies.
pub struct ReceiveBuffer {
    pub bytes: Vec<u8>,
    usual: UsualReplies,
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self { bytes: vec![0; BUFFER_SIZE], usual: UsualReplies::default() }
    }
}

/// The connection of a client, over a socket unless `T` is something else.
pub struct Connection<T = Socket> {
    stream: Stream<T>,
    /// The last request and its reply.
    exchange: Exchange,
    mark: SessionMark,
    /// True if requests are collected until the pipeline's end.
    in_pipeline: bool,
    /// True if the poll reports that the socket can be written.
    watches_write: bool,
    /// The session's start, until the connection is ready.
    opening: Option<Box<Opening>>,
    /// The server process, by which the session's statements can be cancelled once the session is ready.
    backend: Option<Arc<Backend>>,
}

impl<T: Transport> Connection<T> {
    /// Starts connecting to `target`, registered with the poll under `token`.
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

    /// Returns the time at which the current attempt to connect times out; [`Connection::advance`] gives it up then.
    pub fn deadline(&self) -> Option<Instant> {
        self.opening.as_ref()?.deadline
    }

    /// Returns true if the queue of a Unix listener is full: no event tells when there is room, so
    /// [`Connection::advance`] has to be called again after [`crate::cancel::RETRY`].
    pub fn awaits_room(&self) -> bool {
        self.stream.socket.awaits_room()
    }

    /// Returns the server process of a ready session that has not answered its last request.
    pub fn busy_backend(&self) -> Option<&Arc<Backend>> {
        self.backend.as_ref().filter(|_| self.exchange.is_awaiting())
    }

    /// Returns the server process, if the session is ready and its statements can be cancelled.
    pub(crate) fn backend(&self) -> Option<&Arc<Backend>> {
        self.backend.as_ref()
    }

    /// Makes the poll report that the socket can be written as long as there are bytes to send, and only then.
    pub fn watch_unsent<N: Network<Transport = T>>(&mut self, network: &N, token: Token) -> io::Result<()> {
        let is_connecting = self.opening.as_ref().is_some_and(|opening| opening.startup.is_connecting());
        let wanted = is_connecting || self.stream.has_unsent();
        if wanted != self.watches_write {
            self.watches_write = wanted;
            network.reregister(&self.stream.socket, token, wanted)?;
        }
        Ok(())
    }

    /// Continues the start of the session, over a new socket if the first server is not of the wanted kind or does not
    /// answer. Returns `Some` when the session is ready. It is called only while the connection is being opened.
    pub fn advance<N: Network<Transport = T>>(
        &mut self,
        buffer: &mut [u8],
        network: &N,
        token: Token,
    ) -> Result<Option<ServerInfo>, OpenError> {
        loop {
            let Some(mut opening) = self.opening.take() else { return Ok(Some(ServerInfo::default())) };
            // An answer that came in time counts, even if it is read late.
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

    /// Sends a statement with its values, or adds it to the pipeline. `scratch` is the thread's.
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

    /// Sends a statement in another way, with other values, or adds it to the pipeline.
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
        // The columns' names of rows that are kept are needed.
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
            // ParseComplete has an effect.
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
            // A broken socket fails again at the end of the pipeline, as in libpq.
            let _ = self.stream.flush();
        }
        Sent::Collected
    }

    /// Notes that the last request contains the text of `statement`, so that the text can be found if the server
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

    /// Parses a text without parameters as the unnamed statement, and executes it. `scratch` is the thread's.
    pub fn send_unnamed(&mut self, text: &[u8], rows: Rows, scratch: &mut Scratch) -> Result<Sent, ConnectionError> {
        scratch.long.clear();
        messages::parse_and_execute(text, scratch.describes, &mut scratch.long);
        self.exchange.expect(rows, Order::of(Form::of_execution(scratch.describes)));
        self.send_text(&scratch.long)
    }

    /// Asks the server to parse and describe `statement`, even if this session has parsed it before.
    pub fn send_prepare(&mut self, statement: &Statement) -> Result<Sent, ConnectionError> {
        self.exchange.request.expect_parse(statement.id);
        self.exchange.expect(Rows::Handed, Order::of_preparation());
        self.send_text(
            &[&statement.parse_message(self.mark)[..], &statement.describe_message(self.mark), &SYNC].concat(),
        )
    }

    /// Asks the server to parse those of `statements` that are new to it; `None` if there are none.
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

    /// Continues after the server rejected a statement while preparing it, as if it had been prepared: sends the part
    /// of the last request that followed the statement's text, and asks for the same rows. Returns `None` if nothing
    /// followed.
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

    /// Collects the requests that follow, until [`Connection::end_pipeline`].
    pub fn start_pipeline(&mut self) {
        self.in_pipeline = true;
        self.exchange.expect_pipeline();
    }

    /// Ends a part of the pipeline.
    pub fn sync_pipeline(&mut self) {
        self.stream.queue(&SYNC);
        self.exchange.expect_part();
    }

    /// Sends what the pipeline holds; the reply is the reply to all of it.
    pub fn end_pipeline(&mut self) -> Result<Sent, ConnectionError> {
        self.sync_pipeline();
        self.in_pipeline = false;
        self.flush()
    }

    /// Returns the reply to the last request, if it is complete. A request that was sent in part is sent on; the caller
    /// has called [`Connection::watch_unsent`] for it. An error that the server sent before it closed the connection
    /// takes precedence over the failure of the socket.
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

    /// Sends the rest of the request and reads the reply. A server that accepts no more bytes may have sent an error
    /// that says why, so its bytes are read before a failed write is reported.
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

    /// Ends a COPY from the client without data, as libpq's `PQendcopy` does: the rest of the reply follows.
    #[cold]
    fn end_copy<N: Network<Transport = T>>(&mut self, network: &N, token: Token) -> Result<(), ConnectionError> {
        self.stream.send(&COPY_DONE)?;
        if !self.exchange.request.is_simple_query() {
            self.stream.send(&SYNC)?;
        }
        Ok(self.watch_unsent(network, token)?)
    }

    /// Returns the reason for which the session ends. If that is a COPY, for which this client has no data, the server
    /// can still receive messages and gets Terminate.
    #[cold]
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        let failure = self.exchange.failure(error);
        if matches!(failure, ConnectionError::Copy) {
            self.terminate();
        }
        failure
    }

    /// Hands what the server has sent to `visitor`, until that stops or nothing more is there.
    pub(crate) fn visit<V: Visitor>(&mut self, buffer: &mut [u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        self.stream.receive(buffer, visitor)
    }

    /// Sends messages that are not a request of their own.
    pub(crate) fn send_messages(&mut self, messages: &[u8]) -> Result<Sent, ConnectionError> {
        Ok(self.stream.send(messages)?)
    }

    /// Sends what the socket did not take before.
    pub(crate) fn flush(&mut self) -> Result<Sent, ConnectionError> {
        Ok(self.stream.flush()?)
    }

    /// Returns true if requests are collected now.
    pub fn is_in_pipeline(&self) -> bool {
        self.in_pipeline
    }

    /// Returns the text of the last request, if it held one.
    pub fn sent_text(&self) -> Option<&str> {
        self.exchange.request.text()
    }

    /// Returns the results of the last request with [`Rows::Kept`].
    pub fn take_results(&mut self) -> Vec<ResultSet> {
        self.exchange.take_results()
    }

    /// Returns the answer to the last request with [`Rows::Counted`], [`Rows::Hashed`] or [`Rows::Handed`].
    pub fn answered(&self) -> &Answered {
        self.exchange.answered()
    }

    /// Notes that the session has dropped its prepared statements.
    pub fn forget_prepared(&mut self) {
        self.exchange.request.forget_parsed();
    }

    /// Frees the memory that holds the text of the last request and the list of statements to prepare.
    pub fn trim(&mut self) {
        self.exchange.request.trim();
    }

    /// Returns true if the server has ended the session of a connection that waits for no reply: it sends an error
    /// without a request only then. It closes the socket later, when it has cleaned up, which may take long.
    pub fn is_dismissed(&self) -> bool {
        self.exchange.has_error()
    }

    /// Sends Terminate; the socket closes when the connection is dropped.
    pub fn terminate(&mut self) {
        // The server ends the session on the closed socket too, so a failure changes nothing.
        let _ = self.stream.send(&[b'X', 0, 0, 0, 4]);
    }
}
