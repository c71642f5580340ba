//! A thread of the null server: the sockets of its clients, the event loop, and the statements whose delay is not over
//! yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ground::clock::{Clock, Nanos};
use ground::poll::{Poll, Ready, Token};
use ground::readiness::Readiness;
use socket2::Socket;

use crate::queue::ServiceQueue;
use crate::session::{ClientSession, ServerAction, Setup};
use wire::BUFFER_SIZE;

const WAKE: Token = Token(usize::MAX - 2);

/// The time before the end of a statement at which the thread wakes up, in nanoseconds. The thread waits for the rest
/// of the time without sleeping, since a virtual processor that has slept for milliseconds takes up to 80 us to wake
/// up.
const AWAKE: Nanos = 150_000;

/// The size in bytes above which a client's buffer is freed when it becomes empty.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A connection that was accepted, with its session.
pub struct Accepted {
    pub socket: Socket,
    pub session: ClientSession,
}

/// Wakes a thread of the server that is waiting for events.
pub struct Waker(UnixStream);

impl Waker {
    /// The number of open files that a waker and its stream need.
    pub const FILES: u64 = 2;

    /// Makes a waker, and a stream that becomes readable when the waker is called.
    fn new() -> io::Result<(Self, UnixStream)> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok((Self(near), far))
    }

    /// Wakes the thread to which this waker belongs.
    pub fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&[0]) {
            // The thread has not yet read the bytes of earlier calls, and will wake because of them.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            written => written.map(drop),
        }
    }
}

/// The state that all threads of the server share.
pub struct ServerState {
    pub setup: Setup,
    /// The clock of all threads.
    pub clock: Clock,
    /// The queue in which statements wait for one of a limited number of simulated servers. `None` if there is no
    /// limit.
    pub queue: Option<Mutex<ServiceQueue>>,
    pub stop: AtomicBool,
    /// The number of open connections.
    pub open: AtomicUsize,
}

struct ServedClient {
    socket: Socket,
    session: ClientSession,
    /// The received bytes that were not answered yet, from the index `kept_at` on: they wait for the end of a
    /// statement's delay, or for the rest of their message.
    kept: Vec<u8>,
    /// The index in `kept` of the first byte that was not answered yet.
    kept_at: usize,
    /// True if the socket may have more bytes to read. The poll reports changes only, so the thread has to remember
    /// this.
    may_read: bool,
    /// True if a statement of the client waits for the end of its delay.
    is_held: bool,
    /// True if output waits until the socket accepts it.
    waits_for_write: bool,
    /// The time at which the last bytes were read or the last statement ended. The delay of the next statement counts
    /// from it.
    began: Nanos,
}

/// The state of a client after a step of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The client can go on at once.
    Go,
    /// The client waits for its socket or for a delay.
    Wait,
    /// The client's connection is closed.
    Close,
}

/// The state of one thread of the server.
pub struct Serving {
    shared: Arc<ServerState>,
    inbox: Receiver<Accepted>,
    /// The stream that becomes readable when the waker is called.
    wakes: UnixStream,
    readiness: Readiness,
    clock: Clock,
    clients: Vec<Option<ServedClient>>,
    /// The indexes in `clients` that can be used for new clients.
    free: Vec<usize>,
    /// The times at which statements end, with the indexes of their clients.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The indexes of clients that may have sent more bytes than one buffer holds.
    eager: Vec<usize>,
    buffer: Vec<u8>,
}

impl Serving {
    /// Makes the state of a thread. The thread receives clients from `inbox` when the waker is called.
    pub fn new(shared: Arc<ServerState>, inbox: Receiver<Accepted>) -> io::Result<(Self, Waker)> {
        let readiness = Readiness::new()?;
        let (waker, wakes) = Waker::new()?;
        readiness.poll().register(&wakes, WAKE, false)?;
        let clock = shared.clock;
        let serving = Self {
            shared,
            inbox,
            wakes,
            readiness,
            clock,
            clients: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            eager: Vec::new(),
            buffer: vec![0; BUFFER_SIZE],
        };
        Ok((serving, waker))
    }

    /// Serves until the server stops.
    pub fn serve(mut self) -> io::Result<()> {
        let mut ready = Ready::default();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let timeout = self.timeout()?;
            let count = self.readiness.wait(&mut ready, timeout)?;
            self.end_statements();
            for index in 0..self.eager.len() {
                self.drive(self.eager[index]);
            }
            self.eager.retain(|index| self.clients[*index].as_ref().is_some_and(|c| c.may_read && !c.is_held));
            for token in ready.tokens(count) {
                match Token(token) {
                    WAKE => self.add_clients()?,
                    Token(index) => {
                        if let Some(Some(client)) = self.clients.get_mut(index) {
                            // In nearly all cases there are bytes to read; otherwise the read returns nothing.
                            client.may_read = true;
                            self.drive(index);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how long the thread may wait for events. It is 0 if a client may have sent more bytes than one buffer
    /// holds, or if the next statement ends soon. Otherwise there is no limit, since a timer ends the wait shortly
    /// before the next statement ends.
    fn timeout(&mut self) -> io::Result<Option<Duration>> {
        if !self.eager.is_empty() {
            return Ok(Some(Duration::ZERO));
        }
        let Some(Reverse((due, _))) = self.due.peek() else { return Ok(None) };
        let near = due.saturating_sub(AWAKE);
        if near <= self.clock.now() {
            return Ok(Some(Duration::ZERO));
        }
        self.readiness.wake_at(self.clock.moment(near))?;
        Ok(None)
    }

    /// Answers the statements whose delay is over.
    #[inline]
    fn end_statements(&mut self) {
        if self.due.is_empty() {
            return;
        }
        let mut now = self.clock.now();
        while let Some(Reverse((due, index))) = self.due.peek().copied() {
            if due > now {
                now = self.clock.now();
                if due > now {
                    return;
                }
            }
            self.due.pop();
            if let Some(client) = &mut self.clients[index] {
                client.is_held = false;
                client.began = due;
            }
            self.drive(index);
        }
    }

    fn add_clients(&mut self) -> io::Result<()> {
        // All bytes are read, since the poll reports only bytes that arrive after that.
        while self.wakes.read(&mut self.buffer).is_ok_and(|read| read > 0) {}
        while let Ok(Accepted { socket, session }) = self.inbox.try_recv() {
            let index = self.free.pop().unwrap_or(self.clients.len());
            if index == self.clients.len() {
                self.clients.push(None);
            }
            self.readiness.poll().register(&socket, Token(index), false)?;
            self.clients[index] = Some(ServedClient {
                socket,
                session,
                kept: Vec::new(),
                kept_at: 0,
                may_read: false,
                is_held: false,
                waits_for_write: false,
                began: 0,
            });
        }
        Ok(())
    }

    /// Serves a client as far as possible without waiting.
    #[inline]
    fn drive(&mut self, index: usize) {
        let Some(client) = self.clients[index].as_mut().filter(|client| !client.is_held) else { return };
        let has_delay = !self.shared.setup.delay.is_zero();
        let mut step = Step {
            setup: &self.shared.setup,
            queue: self.shared.queue.as_ref(),
            buffer: &mut self.buffer,
            clock: has_delay.then_some(self.clock),
            due: None,
            poll: self.readiness.poll(),
            token: Token(index),
        };
        let next = step.drive(client).unwrap_or(Next::Close);
        if let Some(due) = step.due {
            client.is_held = true;
            self.due.push(Reverse((due, index)));
        }
        if next == Next::Close {
            self.clients[index] = None;
            self.free.push(index);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        } else if client.may_read && !client.is_held && !client.waits_for_write && !self.eager.contains(&index) {
            self.eager.push(index);
        }
    }
}

/// The parts of a thread's state that are needed to serve one of its clients.
struct Step<'a> {
    setup: &'a Setup,
    queue: Option<&'a Mutex<ServiceQueue>>,
    buffer: &'a mut [u8],
    /// The clock. `None` if statements have no delay.
    clock: Option<Clock>,
    /// The end of the delay of a statement that this step has begun.
    due: Option<Nanos>,
    poll: &'a Poll,
    token: Token,
}

impl Step<'_> {
    /// Answers the messages in the bytes that were received before, then those in one buffer of new bytes.
    #[inline]
    fn drive(&mut self, client: &mut ServedClient) -> io::Result<Next> {
        if client.waits_for_write && !self.flush(client)? {
            return Ok(Next::Wait);
        }
        // After the end of a statement's delay there may be no received bytes left, but still messages to send.
        match self.answer_kept(client)? {
            Next::Go if client.may_read => self.receive(client),
            next => Ok(next),
        }
    }

    #[inline]
    fn receive(&mut self, client: &mut ServedClient) -> io::Result<Next> {
        let read = match client.socket.read(self.buffer) {
            Ok(0) => return Ok(Next::Close),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                client.may_read = false;
                return Ok(Next::Wait);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Next::Wait),
            Err(error) => return Err(error),
        };
        if let Some(clock) = self.clock {
            client.began = clock.now();
        }
        if client.kept.is_empty() {
            let (used, turn) = client.session.answer(&self.buffer[..read], self.setup);
            client.kept.extend_from_slice(&self.buffer[used..read]);
            return self.end_turn(client, turn);
        }
        client.kept.drain(..client.kept_at);
        client.kept_at = 0;
        client.kept.extend_from_slice(&self.buffer[..read]);
        self.answer_kept(client)
    }

    #[inline]
    fn answer_kept(&mut self, client: &mut ServedClient) -> io::Result<Next> {
        let (used, turn) = client.session.answer(&client.kept[client.kept_at..], self.setup);
        client.kept_at += used;
        if client.kept_at == client.kept.len() {
            client.kept_at = 0;
            empty(&mut client.kept);
        }
        self.end_turn(client, turn)
    }

    /// Sends the output. If a statement has a delay, records instead when the delay ends.
    #[inline]
    fn end_turn(&mut self, client: &mut ServedClient, turn: ServerAction) -> io::Result<Next> {
        match turn {
            ServerAction::Hold(delay) => {
                self.due = Some(match self.queue {
                    None => client.began + delay,
                    Some(queue) => queue.lock().unwrap_or_else(PoisonError::into_inner).serve(client.began, delay),
                });
                Ok(Next::Wait)
            }
            ServerAction::Go => Ok(if self.flush(client)? { Next::Go } else { Next::Wait }),
            ServerAction::Close => self.flush(client).map(|_| Next::Close),
        }
    }

    /// Sends the output. Returns false if the socket does not accept all of it; the poll then reports when the socket
    /// accepts more.
    #[inline]
    fn flush(&mut self, client: &mut ServedClient) -> io::Result<bool> {
        let out = &mut client.session.out;
        let mut sent = 0;
        while sent < out.len() {
            match client.socket.write(&out[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let is_complete = sent == out.len();
        if is_complete {
            empty(out);
        } else {
            out.drain(..sent);
        }
        if is_complete == client.waits_for_write {
            client.waits_for_write = !is_complete;
            // The poll reports that the socket can be written only while output waits. Otherwise each answer that a
            // client reads would wake the thread.
            self.poll.reregister(&client.socket, self.token, !is_complete)?;
        }
        Ok(is_complete)
    }
}

fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEPT_CAPACITY {
        *buffer = Vec::new();
    }
}
