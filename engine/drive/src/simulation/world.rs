//! The world of a simulated run: its time, its threads, and their connections. A simulated run takes place in one
//! thread of the test, and the world is a thread-local variable of that thread.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::faults::Faults;
use super::server::SimulatedSession;
use super::truth::{BROKEN, Truth};
use ground::clock::Nanos;
use ground::random::Random;

/// The token under which a poll reports that a set time has come, as in [`ground::readiness`]. No client has this
/// token.
pub const ALARM: usize = usize::MAX - 1;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Everything outside of the engine in a simulated run.
pub struct World {
    pub faults: Faults,
    pub chance: Random,
    pub threads: Vec<ThreadState>,
    /// The index of the thread that is running.
    pub running: usize,
    /// The current time of the main thread.
    pub main: Nanos,
    pub truth: Truth,
}

/// The simulated system around one thread of the engine.
#[derive(Default)]
pub struct ThreadState {
    pub now: Nanos,
    /// The two times at which a wait ends: each with the time that was set last, and whether it is still to come.
    alarms: [(Nanos, bool); 2],
    pub lines: Vec<Line>,
    /// The times at which connections may become ready, each with the number of its connection.
    edges: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The time at which a wait returns even if it should last longer, so that the other threads can go on first.
    pub horizon: Nanos,
    /// The time of the next event for this thread, if its last wait ended without any event.
    pub idle_until: Option<Nanos>,
    /// True if the thread has waited for events in its current step.
    pub has_waited: bool,
    /// The number of times that the thread has read the clock.
    pub readings: u64,
    /// True if the thread's sessions are being cancelled, so that none of its transactions ends any more.
    pub is_cancelled: bool,
    /// The cancel requests of the thread that are under way.
    pub cancels: Vec<CancelRequest>,
}

/// A cancel request that is under way.
pub struct CancelRequest {
    /// The server process whose session is cancelled.
    pub process: u32,
    pub arrives: Nanos,
    /// True if the client had sent its whole statement. Otherwise the rest of the statement follows.
    pub is_sent: bool,
    /// The other end of the mark by which the thread knows that the request is under way.
    pub _held: Arc<()>,
}

/// A simulated connection between a client and its server.
pub struct Line {
    pub token: usize,
    watches_write: bool,
    /// The time at which the socket is connected or refused. `None`: this never happens.
    connected_at: Option<Nanos>,
    is_refused: bool,
    /// The time until which the queue of the listening socket is full.
    full_until: Nanos,
    /// True if the client has learned that the queue is full.
    is_crowded: bool,
    inbound: VecDeque<Chunk>,
    end: Option<(Nanos, LineEnd)>,
    /// The time until which the socket accepts no more bytes from the client.
    blocked_until: Nanos,
    /// True if the last write of the client was complete.
    pub is_sent: bool,
    is_open: bool,
    pub session: SimulatedSession,
}

/// A piece of the server's reply, which the client can read from `at` on.
#[derive(Default)]
pub struct Chunk {
    pub at: Nanos,
    pub bytes: Vec<u8>,
    pub read: usize,
    /// The time that the server took for a statement, if the last byte of this piece commits the transaction of the
    /// statement. `None` otherwise.
    pub commits: Option<Nanos>,
    /// The SQLSTATEs of the errors in the reply of which this is a piece.
    pub errors: Vec<String>,
}

/// The ways in which the server can end a connection: it closes or resets the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    Closed,
    Reset,
}

/// Calls `visit` with the world of this thread.
pub fn world<R>(visit: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| visit(world.as_mut().expect("a simulated run has a world")))
}

/// Calls `visit` with the world of this thread, if a simulated run is in progress.
pub fn within(visit: impl FnOnce(&mut World)) {
    WORLD.with_borrow_mut(|world| world.as_mut().map(visit));
}

/// Makes the world for a run, in place of the world of the run before.
pub fn begin(faults: Faults, chance: Random) {
    let (threads, truth) = (Vec::new(), Truth::default());
    let world = World { faults, chance, threads, running: 0, main: 0, truth };
    WORLD.set(Some(world));
}

impl ThreadState {
    /// Makes the simulated system around a thread that begins at `now`.
    pub fn new(now: Nanos) -> Self {
        Self { now, ..Self::default() }
    }
}

impl World {
    /// Returns true with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.chance.unit() < probability
    }

    /// Draws a time between `least` and `most`. Short times are more likely than long ones.
    pub fn time(&mut self, least: Nanos, most: Nanos) -> Nanos {
        least + ((most - least) as f64 * self.chance.unit().powi(3)) as Nanos
    }

    /// Advances the time of a thread that makes a system call. The call takes between `least` and four times `least`.
    fn pass(&mut self, thread: usize, least: Nanos) {
        let time = self.time(least, 4 * least);
        self.threads[thread].now += time;
    }

    /// Returns the time that a thread's clock shows. Reading the clock takes some time, too.
    pub fn read_clock(&mut self, thread: usize) -> Nanos {
        let cost = self.faults.clock_ns;
        self.pass(thread, cost);
        let state = &mut self.threads[thread];
        state.readings += 1;
        let now = state.now;
        state.cancels.retain(|request| request.arrives > now);
        self.truth.note_time(thread, now);
        now
    }

    /// Makes a thread sleep until `at`.
    pub fn sleep(&mut self, thread: usize, at: Nanos) {
        self.truth.begin_load(thread, at);
        if at > self.threads[thread].now {
            self.threads[thread].now = at + self.lateness();
        }
    }

    /// Draws by how much a thread wakes too late.
    fn lateness(&mut self) -> Nanos {
        match self.chance.unit() {
            rare if rare < 0.002 => self.time(0, self.faults.lateness),
            few if few < 0.05 => self.time(0, 1_000_000),
            _ => self.time(1_000, 60_000),
        }
    }

    /// Sets one of the two times at which a wait ends.
    pub fn set_alarm(&mut self, thread: usize, alarm: usize, at: Nanos) {
        let alarm = &mut self.threads[thread].alarms[alarm];
        if alarm.0 != at {
            *alarm = (at, true);
        }
    }

    /// Waits for events of a thread, and adds their tokens to `ready`.
    pub fn wait(&mut self, thread: usize, ready: &mut Vec<usize>, timeout: Option<Nanos>) {
        self.pass(thread, 500);
        let at_once = self.chance.range(1, 256) as usize;
        let state = &mut self.threads[thread];
        state.has_waited = true;
        state.idle_until = None;
        let deadline = timeout.map(|timeout| state.now.saturating_add(timeout));
        loop {
            let state = &mut self.threads[thread];
            let alarms = state.alarms.iter().filter(|(_, is_set)| *is_set).map(|(at, _)| *at);
            let edge = state.edges.peek().map(|Reverse((at, _))| *at);
            let next = alarms.chain(edge).chain(deadline).min().unwrap_or(Nanos::MAX);
            if next > state.now && next > state.horizon {
                state.idle_until = Some(next);
                return self.truth.begin_round(thread, self.threads[thread].now);
            }
            if next > state.now {
                let late = self.lateness();
                self.threads[thread].now = next + late;
            }
            let state = &mut self.threads[thread];
            while let Some(Reverse((at, line))) = state.edges.peek().copied().filter(|_| ready.len() < at_once) {
                if at > state.now {
                    break;
                }
                state.edges.pop();
                let line = &state.lines[line];
                if line.is_ready(state.now) && !ready.contains(&line.token) {
                    ready.push(line.token);
                }
            }
            for (at, is_set) in &mut state.alarms {
                if *is_set && *at <= state.now {
                    *is_set = false;
                    ready.push(ALARM);
                }
            }
            if !ready.is_empty() || deadline.is_some_and(|deadline| deadline <= state.now) {
                return self.truth.begin_round(thread, state.now);
            }
        }
    }

    /// Begins to connect a socket of a thread. Returns the number of the connection, or an error.
    pub fn connect(&mut self, thread: usize) -> io::Result<usize> {
        self.pass(thread, 5_000);
        let now = self.threads[thread].now;
        self.truth.last_activity = self.truth.last_activity.max(now);
        if self.happens(self.faults.refusal) {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        let takes = self.time(20_000, 400_000);
        let (is_late_refusal, is_silent) = (self.happens(self.faults.refusal), self.happens(self.faults.silence));
        let is_crowded = self.happens(self.faults.crowd);
        let full_until = if is_crowded { now + self.time(100_000, 30_000_000) } else { 0 };
        let state = &mut self.threads[thread];
        let id = state.lines.len();
        state.lines.push(Line {
            token: 0,
            watches_write: false,
            connected_at: (!is_silent).then_some(now + takes),
            is_refused: is_late_refusal,
            full_until,
            is_crowded,
            inbound: VecDeque::new(),
            end: None,
            blocked_until: 0,
            is_sent: true,
            is_open: true,
            session: SimulatedSession::new((thread * 1_000_000 + id) as u32),
        });
        Ok(id)
    }

    /// Registers a connection with the poll of a thread. From now on the poll reports its events under `token`.
    pub fn register(&mut self, thread: usize, id: usize, token: usize, writable: bool) {
        let state = &mut self.threads[thread];
        let line = &mut state.lines[id];
        (line.token, line.watches_write) = (token, writable);
        let mut edges = vec![state.now];
        edges.extend(line.connected_at);
        edges.extend((line.blocked_until > 0).then_some(line.blocked_until));
        state.edges.extend(edges.into_iter().map(|at| Reverse((at, id))));
    }

    pub fn is_connected(&mut self, thread: usize, id: usize) -> io::Result<bool> {
        self.pass(thread, 500);
        let state = &mut self.threads[thread];
        let line = &mut state.lines[id];
        self.truth.note_activity((thread, line.token), state.now);
        if line.is_crowded {
            line.is_crowded = state.now < line.full_until;
            return Ok(!line.is_crowded);
        }
        match line.connected_at {
            Some(at) if at <= state.now && line.is_refused => Err(ErrorKind::ConnectionRefused.into()),
            Some(at) => Ok(at <= state.now),
            None => Ok(false),
        }
    }

    pub fn is_crowded(&self, thread: usize, id: usize) -> bool {
        self.threads[thread].lines[id].is_crowded
    }

    pub fn read(&mut self, thread: usize, id: usize, buffer: &mut [u8]) -> io::Result<usize> {
        self.pass(thread, 700);
        if self.happens(self.faults.interruption) {
            return Err(ErrorKind::Interrupted.into());
        }
        let is_short = self.happens(self.faults.fragment);
        let most = if is_short { self.chance.range(1, 9) as usize } else { buffer.len() };
        let state = &mut self.threads[thread];
        let (now, readings) = (state.now, state.readings);
        let line = &mut state.lines[id];
        let mut count = 0;
        while let Some(chunk) = line.inbound.front_mut().filter(|chunk| chunk.at <= now && count < most) {
            let part = (chunk.bytes.len() - chunk.read).min(buffer.len() - count).min(most - count);
            buffer[count..count + part].copy_from_slice(&chunk.bytes[chunk.read..chunk.read + part]);
            chunk.read += part;
            count += part;
            if chunk.read < chunk.bytes.len() {
                break;
            }
            let chunk = line.inbound.pop_front();
            let place = (thread, line.token);
            let Some(chunk) = chunk.filter(|_| !state.is_cancelled) else { continue };
            if let Some(service) = chunk.commits {
                self.truth.commit(place, service);
            }
            self.truth.client(place).errors.extend(chunk.errors);
        }
        let place = (thread, line.token);
        self.truth.note_activity(place, now);
        if count > 0 {
            self.truth.note_read(place);
            self.truth.client(place).readings = Some(readings);
            return Ok(count);
        }
        let Some((_, end)) = line.end.filter(|(at, _)| *at <= now && line.inbound.is_empty()) else {
            return Err(ErrorKind::WouldBlock.into());
        };
        self.truth.note_read(place);
        if line.session.is_started {
            self.truth.client(place).errors.push(BROKEN.to_owned());
        }
        match end {
            LineEnd::Closed => Ok(0),
            LineEnd::Reset => Err(ErrorKind::ConnectionReset.into()),
        }
    }

    pub fn write(&mut self, thread: usize, id: usize, bytes: &[u8]) -> io::Result<usize> {
        self.pass(thread, 1_500);
        if self.happens(self.faults.interruption) {
            return Err(ErrorKind::Interrupted.into());
        }
        let is_part = self.happens(self.faults.fragment);
        let pause = self.time(10_000, 3_000_000);
        let part = self.chance.range(0, bytes.len() as i64) as usize;
        let state = &mut self.threads[thread];
        let line = &mut state.lines[id];
        self.truth.note_activity((thread, line.token), state.now);
        if line.end.is_some_and(|(at, _)| at <= state.now) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if line.blocked_until > state.now {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = if is_part { part } else { bytes.len() };
        line.is_sent = taken == bytes.len();
        if taken < bytes.len() {
            line.blocked_until = state.now + pause;
            state.edges.push(Reverse((line.blocked_until, id)));
        }
        self.serve(thread, id, &bytes[..taken]);
        if taken == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Returns the number of the open connection that a client made last. The client is identified by its thread and
    /// its token.
    pub fn newest_line(&self, (thread, token): (usize, usize)) -> Option<usize> {
        self.threads[thread].lines.iter().rposition(|line| line.token == token && line.is_open)
    }

    /// Returns true if a client's session is in a transaction.
    pub fn is_in_transaction(&self, place: (usize, usize)) -> bool {
        self.newest_line(place).is_some_and(|line| self.threads[place.0].lines[line].session.is_in_transaction())
    }

    /// Closes the client's end of a connection.
    pub fn close(&mut self, thread: usize, id: usize) {
        let line = &mut self.threads[thread].lines[id];
        line.is_open = false;
        line.inbound = VecDeque::new();
        line.session = SimulatedSession::new(0);
    }

    /// Makes a piece of a reply arrive at a client.
    pub fn deliver(&mut self, thread: usize, id: usize, piece: Chunk) {
        if piece.bytes.is_empty() {
            return;
        }
        let (state, at) = (&mut self.threads[thread], piece.at);
        state.lines[id].inbound.push_back(piece);
        state.edges.push(Reverse((at, id)));
    }

    /// Makes the server close or reset a connection at `at`, unless it did so before.
    pub fn end_line(&mut self, thread: usize, id: usize, at: Nanos, end: LineEnd) {
        let state = &mut self.threads[thread];
        let known = &mut state.lines[id].end;
        if known.is_none_or(|(known, _)| at < known) {
            *known = Some((at, end));
        }
        state.edges.push(Reverse((at, id)));
    }

    /// Removes bytes that the server has sent and that have not arrived yet, so that they never arrive.
    pub fn withdraw(&mut self, thread: usize, id: usize) {
        let state = &mut self.threads[thread];
        let now = state.now;
        state.lines[id].inbound.retain(|chunk| chunk.at <= now);
    }
}

impl Line {
    /// Returns true if a poll reports the connection at `now`.
    fn is_ready(&self, now: Nanos) -> bool {
        let can_read = self.inbound.front().is_some_and(|chunk| chunk.at <= now);
        let is_connected = self.connected_at.is_some_and(|at| at <= now);
        let can_write = self.watches_write && is_connected && self.blocked_until <= now;
        self.is_open && (can_read || can_write || self.end.is_some_and(|(at, _)| at <= now))
    }
}
