//! The connections of one thread: the buffers that all connections share, and the queue of connections that have to be
//! made.

use std::collections::VecDeque;
use std::sync::Arc;

use ground::poll::Token;

use wire::network::Network;
use wire::statement::ResultFormat;
use wire::target::Target;
use wire::{Connection, OpenError, ReceiveBuffer, Scratch};

/// The number of connections that one thread makes at the same time: enough to overlap their waiting times, and few
/// enough for the queue of a server's listening socket.
const AT_ONCE: usize = 16;

/// The buffers and the queue that the connections of a thread share.
pub struct Sockets {
    /// The buffer into which replies are read.
    pub buffer: ReceiveBuffer,
    /// The buffers in which requests are encoded.
    pub scratch: Scratch,
    /// The indexes of clients that wait until a connection can be made for them, because [`AT_ONCE`] connections are
    /// already being made.
    queue: VecDeque<usize>,
    /// The indexes of the clients whose connections are being made, at most [`AT_ONCE`].
    opening: Vec<usize>,
    /// True if a connection that is being made waits for room in the queue of a listening socket. The operating system
    /// reports no event when there is room, so the thread has to try again.
    pub await_room: bool,
}

impl Sockets {
    /// Makes the buffers of a thread that has no connection yet. If `describes` is true, executions also send Describe.
    /// `format` is the format in which results are requested.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        let (buffer, scratch) = (ReceiveBuffer::default(), Scratch::new(describes, format));
        Self { buffer, scratch, queue: VecDeque::new(), opening: Vec::new(), await_room: false }
    }

    /// Adds client `index` to the queue of clients for which a connection has to be made.
    pub fn enqueue(&mut self, index: usize) {
        self.queue.push_back(index);
    }

    /// Returns true if any client waits in the queue for its connection, or if any connection is being made.
    #[inline]
    pub fn are_connecting(&self) -> bool {
        // Each round of the event loop asks this twice. With `&` both lengths are compared in one step.
        !(self.opening.is_empty() & self.queue.is_empty())
    }

    /// Returns the number of clients in the queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Removes and returns the next client in the queue, or `None` if no further connection can be made now.
    pub fn next_in_queue(&mut self) -> Option<usize> {
        if self.opening.len() < AT_ONCE { self.queue.pop_front() } else { None }
    }

    /// Begins to make a connection for client `index`.
    pub fn open<N: Network>(
        &mut self,
        target: &Arc<Target>,
        network: &N,
        index: usize,
    ) -> Result<Connection<N::Transport>, OpenError> {
        let connection = Connection::open(target, network, Token(index))?;
        self.opening.push(index);
        self.await_room |= connection.awaits_room();
        Ok(connection)
    }

    /// Continues the startup of a session. Returns true when the session is ready.
    pub fn advance<N: Network>(
        &mut self,
        connection: &mut Connection<N::Transport>,
        network: &N,
        index: usize,
    ) -> Result<bool, OpenError> {
        let advanced = connection.advance(&mut self.buffer.bytes, network, Token(index));
        if !matches!(advanced, Ok(None)) {
            self.forget(index);
        }
        self.await_room |= connection.awaits_room();
        advanced.map(|ready| ready.is_some())
    }

    /// Returns the indexes of the clients whose connections are being made.
    pub fn opening(&self) -> &[usize] {
        &self.opening
    }

    /// Removes client `index` from the list of clients whose connections are being made.
    pub fn forget(&mut self, index: usize) {
        self.opening.retain(|opening| *opening != index);
    }

    /// Removes the clients from the queue for which `wait` returns false, because they no longer wait for a connection.
    pub fn drop_queued(&mut self, wait: impl Fn(usize) -> bool) {
        self.queue.retain(|queued| wait(*queued));
    }
}
