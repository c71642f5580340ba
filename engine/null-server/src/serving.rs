//! One thread of the server: its clients' sockets, one event loop, and the statements that wait for their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use mio::{Registry, Token, Waker};

use super::delay::Nanos;
use super::session::{Session, Setup, Turn};
use super::socket::Socket;
use ground::clock::Clock;
use ground::readiness::{Readiness, Ready};

const WAKE: Token = Token(usize::MAX - 2);
const BUFFER_SIZE: usize = 64 * 1024;

/// How long before a statement's end the thread is woken, to wait for the rest awake: longer than a processor takes to
/// wake up, a virtual one that has slept for milliseconds included (some 80 us).
const AWAKE: Nanos = 150_000;

/// The longest wait when nothing is due.
const FOREVER: Duration = Duration::from_secs(3600);

/// A buffer of a client that has grown beyond this is given back when it is empty.
const KEPT_CAPACITY: usize = 64 * 1024;

/// A connection that was accepted, and its session.
pub struct Accepted {
    pub socket: Socket,
    pub session: Session,
}

/// What the threads of one server share.
pub struct Shared {
    pub setup: Setup,
    pub stop: AtomicBool,
    /// Connections that are open.
    pub open: AtomicUsize,
}

struct Client {
    socket: Socket,
    session: Session,
    /// Bytes that wait for the end of a statement or for the rest of their message, from `kept_at` on.
    kept: Vec<u8>,
    kept_at: usize,
    /// Whether there may be more to read: polls tell of changes only.
    readable: bool,
    /// Whether a statement waits for its time.
    held: bool,
    /// Whether the poll tells when the socket takes more.
    writable_wanted: bool,
    /// When the bytes came, or when the last statement ended: from here on the next one takes its time.
    began: Nanos,
}

/// A thread's state.
pub struct Serving {
    shared: Arc<Shared>,
    inbox: Receiver<Accepted>,
    readiness: Readiness,
    clock: Clock,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    /// When statements end, and whose they are.
    due: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Clients that had more to say than one buffer holds.
    eager: Vec<usize>,
    buffer: Vec<u8>,
}

/// Whether a client stays.
#[derive(PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

impl Serving {
    /// A thread that takes clients from `inbox`; the waker is to be called when there are some.
    pub fn new(shared: Arc<Shared>, inbox: Receiver<Accepted>) -> io::Result<(Self, Waker)> {
        let readiness = Readiness::new()?;
        let waker = Waker::new(readiness.registry(), WAKE)?;
        let serving = Self {
            shared,
            inbox,
            readiness,
            clock: Clock::start(),
            clients: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            eager: Vec::new(),
            buffer: vec![0; BUFFER_SIZE],
        };
        Ok((serving, waker))
    }

    /// Serves until told to stop.
    pub fn serve(mut self) -> io::Result<()> {
        let mut ready = Ready::default();
        while !self.shared.stop.load(Ordering::Relaxed) {
            let timeout = self.timeout()?;
            let count = self.readiness.wait(&mut ready, timeout)?;
            self.end_statements();
            for index in 0..self.eager.len() {
                self.drive(self.eager[index]);
            }
            self.eager.retain(|index| self.clients[*index].as_ref().is_some_and(|c| c.readable && !c.held));
            for token in ready.tokens(count) {
                match Token(token) {
                    WAKE => self.welcome()?,
                    Token(index) => self.happened(index),
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// How long the poll may wait: until shortly before the next statement ends, and from then on not at all.
    fn timeout(&mut self) -> io::Result<Duration> {
        if !self.eager.is_empty() {
            return Ok(Duration::ZERO);
        }
        let Some(Reverse((due, _))) = self.due.peek() else { return Ok(FOREVER) };
        let near = due.saturating_sub(AWAKE);
        if near <= self.now() {
            return Ok(Duration::ZERO);
        }
        self.readiness.wake_at(self.clock.moment(near))?;
        Ok(FOREVER)
    }

    /// Ends the statements whose time is over.
    #[inline]
    fn end_statements(&mut self) {
        if self.due.is_empty() {
            return;
        }
        let mut now = self.now();
        while let Some(Reverse((due, index))) = self.due.peek().copied() {
            if due > now {
                now = self.now();
                if due > now {
                    return;
                }
            }
            self.due.pop();
            if let Some(client) = &mut self.clients[index] {
                client.held = false;
                client.began = due;
            }
            self.drive(index);
        }
    }

    /// Takes in new clients.
    fn welcome(&mut self) -> io::Result<()> {
        while let Ok(Accepted { mut socket, session }) = self.inbox.try_recv() {
            let index = self.free.pop().unwrap_or(self.clients.len());
            if index == self.clients.len() {
                self.clients.push(None);
            }
            socket.register(self.readiness.registry(), Token(index), false)?;
            self.clients[index] = Some(Client {
                socket,
                session,
                kept: Vec::new(),
                kept_at: 0,
                readable: false,
                held: false,
                writable_wanted: false,
                began: 0,
            });
        }
        Ok(())
    }

    #[inline]
    fn happened(&mut self, index: usize) {
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_mut) else { return };
        // Nearly always there is something to read; where there is not, reading says so.
        client.readable = true;
        if !client.held {
            self.drive(index);
        }
    }

    /// Goes on with a client as far as it goes.
    #[inline]
    fn drive(&mut self, index: usize) {
        let Some(client) = &mut self.clients[index] else { return };
        if client.held {
            return;
        }
        let timed = !self.shared.setup.delay.is_zero();
        let mut step = Step {
            setup: &self.shared.setup,
            buffer: &mut self.buffer,
            clock: timed.then_some(self.clock),
            due: None,
            registry: self.readiness.registry(),
            token: Token(index),
        };
        let fate = step.drive(client).unwrap_or(Fate::Goes);
        if let Some(due) = step.due {
            client.held = true;
            self.due.push(Reverse((due, index)));
        }
        if fate == Fate::Goes {
            self.clients[index] = None;
            self.free.push(index);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        } else if client.readable && !client.held && !client.writable_wanted && !self.eager.contains(&index) {
            self.eager.push(index);
        }
    }
}

/// What a client is driven with.
struct Step<'a> {
    setup: &'a Setup,
    buffer: &'a mut [u8],
    /// Where the thread's time begins, if statements take time.
    clock: Option<Clock>,
    /// When a statement that has begun ends.
    due: Option<Nanos>,
    registry: &'a Registry,
    token: Token,
}

impl Step<'_> {
    /// What was kept first, then one buffer of news.
    #[inline]
    fn drive(&mut self, client: &mut Client) -> io::Result<Fate> {
        if client.writable_wanted && !self.flush(client)? {
            return Ok(Fate::Stays);
        }
        // A statement that has ended may leave nothing in the buffer and still have its last messages to send.
        let kept = std::mem::take(&mut client.kept);
        let (used, turn) = client.session.take(&kept[client.kept_at..], self.setup);
        client.kept = kept;
        client.kept_at += used;
        if client.kept_at == client.kept.len() {
            client.kept_at = 0;
            client.kept.clear();
            if client.kept.capacity() > KEPT_CAPACITY {
                client.kept = Vec::new();
            }
        }
        if !self.turn(client, turn)? {
            return Ok(if turn == Turn::Close { Fate::Goes } else { Fate::Stays });
        }
        if client.readable { self.receive(client) } else { Ok(Fate::Stays) }
    }

    #[inline]
    fn receive(&mut self, client: &mut Client) -> io::Result<Fate> {
        let read = match client.socket.read(self.buffer) {
            Ok(0) => return Ok(Fate::Goes),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                client.readable = false;
                return Ok(Fate::Stays);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Fate::Stays),
            Err(error) => return Err(error),
        };
        if let Some(clock) = self.clock {
            client.began = clock.now();
        }
        let turn = if client.kept.is_empty() {
            let (used, turn) = client.session.take(&self.buffer[..read], self.setup);
            client.kept.extend_from_slice(&self.buffer[used..read]);
            turn
        } else {
            client.kept.drain(..client.kept_at);
            client.kept_at = 0;
            client.kept.extend_from_slice(&self.buffer[..read]);
            let (used, turn) = client.session.take(&client.kept, self.setup);
            client.kept.drain(..used);
            turn
        };
        self.turn(client, turn)?;
        Ok(if turn == Turn::Close { Fate::Goes } else { Fate::Stays })
    }

    /// Sends what there is, or notes until when it is held; whether the client can go on at once.
    #[inline]
    fn turn(&mut self, client: &mut Client, turn: Turn) -> io::Result<bool> {
        match turn {
            Turn::Hold(time) => {
                self.due = Some(client.began + time);
                Ok(false)
            }
            Turn::Go => self.flush(client),
            Turn::Close => {
                self.flush(client)?;
                Ok(false)
            }
        }
    }

    /// Sends what there is; false if the socket does not take all: then the poll tells when it takes more.
    #[inline]
    fn flush(&mut self, client: &mut Client) -> io::Result<bool> {
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
        let complete = sent == out.len();
        if complete {
            out.clear();
            if out.capacity() > KEPT_CAPACITY {
                *out = Vec::new();
            }
        } else {
            out.drain(..sent);
        }
        if complete == client.writable_wanted {
            client.writable_wanted = !complete;
            client.socket.reregister(self.registry, self.token, !complete)?;
        }
        Ok(complete)
    }
}
