//! The connections of one thread: the buffers that all of them share, and the making of connections.

use std::collections::VecDeque;
use std::sync::Arc;

use ground::poll::Token;

use wire::network::Network;
use wire::statement::ResultFormat;
use wire::target::Target;
use wire::{Connection, OpenError, ReceiveBuffer, Scratch};

/// The number of connections of one thread that are made at a time: enough to overlap, few enough for a listener's
/// queue.
const AT_ONCE: usize = 16;

/// The buffers and the queue that the connections of a thread share.
pub struct Sockets {
    /// The buffer for replies.
    pub buffer: ReceiveBuffer,
    /// The buffers in which requests are encoded.
    pub scratch: Scratch,
    /// The indexes of clients whose connections will be made when fewer connections are being made.
    queue: VecDeque<usize>,
    /// The indexes of clients whose connections are being made, at most [`AT_ONCE`].
    opening: Vec<usize>,
    /// True if a connection that is being made waits for room in a listener's queue. No event announces that room.
    pub await_room: bool,
}

impl Sockets {
    /// Makes the buffers of a thread that has no connection yet. If `describes` is true, executions send Describe;
    /// `format` is the format in which they request results.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        let (buffer, scratch) = (ReceiveBuffer::default(), Scratch::new(describes, format));
        Self { buffer, scratch, queue: VecDeque::new(), opening: Vec::new(), await_room: false }
    }

    /// Queues the making of a connection for client `index`.
    pub fn enqueue(&mut self, index: usize) {
        self.queue.push_back(index);
    }

    /// Returns true if any connection is queued or being made.
    #[inline]
    pub fn are_connecting(&self) -> bool {
        !(self.opening.is_empty() && self.queue.is_empty())
    }

    /// Returns the number of clients in the queue of connections to be made.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the next client out of the queue and returns it, if another connection can be made now.
    pub fn next_in_queue(&mut self) -> Option<usize> {
        if self.opening.len() < AT_ONCE { self.queue.pop_front() } else { None }
    }

    /// Begins to make the connection of client `index`.
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

    /// Returns the clients whose connections are being made, by their indexes.
    pub fn opening(&self) -> &[usize] {
        &self.opening
    }

    /// Forgets that the connection of client `index` is being made.
    pub fn forget(&mut self, index: usize) {
        self.opening.retain(|opening| *opening != index);
    }

    /// Takes all clients out of the queue that no longer `wait` for a connection.
    pub fn drop_queued(&mut self, wait: impl Fn(usize) -> bool) {
        self.queue.retain(|queued| wait(*queued));
    }
}
