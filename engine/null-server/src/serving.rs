//! A thread of the server: the sockets of its clients, an event loop, and the statements that wait for their delay.

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

const WAKE: Token = Token(usize::MAX - 2);
const BUFFER_SIZE: usize = 64 * 1024;

/// The time before the end of a statement at which the thread wakes up, nanoseconds; it waits for the rest without
/// sleeping. A processor takes up to 80 us to wake up, if it is virtual and has slept for milliseconds.
const AWAKE: Nanos = 150_000;

/// The size, bytes, above which the buffer of a client is freed when it is empty.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A connection that was accepted, and its session.
pub struct Accepted {
    pub socket: Socket,
    pub session: ClientSession,
}

/// The waker of a thread of the server that waits.
pub struct Waker(UnixStream);

impl Waker {
    /// Makes a waker, and the stream that can be read when it has been called.
    fn new() -> io::Result<(Self, UnixStream)> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok((Self(near), far))
    }

    /// Wakes the thread that waits.
    pub fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&[0]) {
            // So many wakes are unread that one more says nothing.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            written => written.map(drop),
        }
    }
}

/// The state that the threads share.
pub struct ServerState {
    pub setup: Setup,
    /// The clock of all threads.
    pub clock: Clock,
    /// The queue in which statements wait for one of a limited number of servers; `None`: all are served at once.
    pub queue: Option<Mutex<ServiceQueue>>,
    pub stop: AtomicBool,
    /// The number of open connections.
    pub open: AtomicUsize,
}

struct ServedClient {
    socket: Socket,
    session: ClientSession,
    /// The bytes that wait for the end of a statement or for the rest of their message, from `kept_at` on.
    kept: Vec<u8>,
    kept_at: usize,
    /// True if the socket may have more bytes to read: the kernel reports changes only, so this has to be remembered.
    may_read: bool,
    /// True if a statement waits for its delay.
    is_held: bool,
    /// True if output waits for the socket.
    waits_for_write: bool,
    /// The time at which the last bytes were read or the last statement ended, from which the next delay counts.
    began: Nanos,
}

/// The state of a client after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The client can continue at once.
    Go,
    /// The client waits for its socket or for a delay.
    Wait,
    /// The client's connection is closed.
    Close,
}

/// The state of a thread.
pub struct Serving {
    shared: Arc<ServerState>,
    inbox: Receiver<Accepted>,
    /// The stream that can be read when the waker has been called.
    wakes: UnixStream,
    readiness: Readiness,
    clock: Clock,
    clients: Vec<Option<ServedClient>>,
    /// The indexes in `clients` that are free for new clients.
    free: Vec<usize>,
    /// The times at which statements end, and the clients they belong to.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Clients that may have sent more than one buffer holds.
    eager: Vec<usize>,
    buffer: Vec<u8>,
}

impl Serving {
    /// Creates a thread's state; it receives clients from `inbox` when the waker is called.
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
                            // Nearly always there is something to read; otherwise the read returns nothing.
                            client.may_read = true;
                            self.drive(index);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how long the thread may wait for sockets: zero if a client may have sent more than one buffer holds, or
    /// if the next statement ends soon; otherwise without a limit, since the alarm ends the wait shortly before the
    /// next statement ends.
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

    /// Ends the statements whose delay is over.
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
        // Everything, since the poll reports only what comes after it.
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

    /// Continues with a client as far as possible.
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

/// The parts of a thread that are needed to serve one of its clients.
struct Step<'a> {
    setup: &'a Setup,
    queue: Option<&'a Mutex<ServiceQueue>>,
    buffer: &'a mut [u8],
    /// The clock, if statements have a delay.
    clock: Option<Clock>,
    /// The end of a statement that this step has begun.
    due: Option<Nanos>,
    poll: &'a Poll,
    token: Token,
}

impl Step<'_> {
    /// Answers the messages in the bytes that were kept, then those in one buffer of new bytes.
    #[inline]
    fn drive(&mut self, client: &mut ServedClient) -> io::Result<Next> {
        if client.waits_for_write && !self.flush(client)? {
            return Ok(Next::Wait);
        }
        // After a statement has ended, there may be no kept bytes, but still messages to send.
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

    /// Sends the output, or notes when a delay ends.
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

    /// Sends the output. Returns false if the socket does not accept all of it; it is reported when it accepts more.
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
            // Writability is asked for only while output waits: each answer that a client reads would wake the thread.
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
