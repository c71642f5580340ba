//! The connections of one thread: the buffers that all of them share, and the making of connections.

use std::collections::VecDeque;
use std::sync::Arc;

use ground::poll::Token;

use wire::network::Network;
use wire::statement::ResultFormat;
use wire::target::Target;
use wire::{Connection, OpenError, ReceiveBuffer, Scratch};

/// How many connections of one thread are made at a time: enough to overlap, few enough for a listener's queue.
const AT_ONCE: usize = 16;

/// What the connections of a thread share.
pub struct Sockets {
    /// For reading.
    pub buffer: ReceiveBuffer,
    /// For encoding.
    pub scratch: Scratch,
    /// Indexes of clients that wait for their turn to connect.
    queue: VecDeque<usize>,
    /// Connections that are being made.
    opening: usize,
    /// Whether one of them waits for room in a listener's queue, for which no event comes.
    pub await_room: bool,
}

impl Sockets {
    /// Without any connection yet; requests have the server describe their results if the load `describes`, and send them
    /// in this format.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        let (buffer, scratch) = (ReceiveBuffer::default(), Scratch::new(describes, format));
        Self { buffer, scratch, queue: VecDeque::new(), opening: 0, await_room: false }
    }

    /// Queues the making of a connection for client `index`.
    pub fn enqueue(&mut self, index: usize) {
        self.queue.push_back(index);
    }

    /// Whether any connection is queued or being made.
    #[inline]
    pub fn are_connecting(&self) -> bool {
        self.opening | self.queue.len() != 0
    }

    /// How many clients wait for their turn to connect.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The next client whose connection is to be made now.
    pub fn next_in_queue(&mut self) -> Option<usize> {
        if self.opening < AT_ONCE { self.queue.pop_front() } else { None }
    }

    /// Begins to make the connection of client `index`.
    pub fn open<N: Network>(
        &mut self,
        target: &Arc<Target>,
        network: &N,
        index: usize,
    ) -> Result<Connection<N::Transport>, OpenError> {
        let connection = Connection::open(target, network, Token(index))?;
        self.opening += 1;
        self.await_room |= connection.awaits_room();
        Ok(connection)
    }

    /// Goes on with a session's start; true when the session is ready.
    pub fn advance<N: Network>(
        &mut self,
        connection: &mut Connection<N::Transport>,
        network: &N,
        index: usize,
    ) -> Result<bool, OpenError> {
        let advanced = connection.advance(&mut self.buffer.bytes, network, Token(index));
        self.opening -= usize::from(!matches!(advanced, Ok(None)));
        self.await_room |= connection.awaits_room();
        advanced.map(|ready| ready.is_some())
    }

    /// Client `index` waits no longer for its turn, nor for the connection that was being made if it `was_opening`.
    pub fn give_up(&mut self, index: usize, was_opening: bool) {
        self.opening -= usize::from(was_opening);
        self.queue.retain(|queued| *queued != index);
    }
}
