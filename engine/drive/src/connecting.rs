//! Making connections: before the start for all clients, and under way with `--connect`.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mio::Token;

use super::Cause;
use super::client::{Client, State};
use super::thread::Thread;
use super::worker::{LONGEST_WAIT, Worker};
use ground::clock::Nanos;
use ground::readiness::Ready;
use wire::{Connection, OpenError, Progress};

/// How many connections of one thread are being made at a time: enough to overlap, few enough for a listener's queue.
const AT_ONCE: usize = 16;

/// What is being connected.
#[derive(Default)]
pub struct Connecting {
    /// Indexes of clients whose connections wait for their turn.
    pub(super) queue: VecDeque<usize>,
    /// How many are being made.
    pub(super) count: usize,
}

impl Worker<'_> {
    /// Connects all clients before the start.
    pub fn connect_all(&mut self) -> Result<(), (usize, OpenError)> {
        let (thread, clients) = (&mut self.thread, &mut self.clients);
        let (part, first_client) = (thread.plan.part, thread.first_client);
        let of = |client: usize| move |error| (part.number(first_client + client), error);
        thread.connecting.queue = (0..clients.len()).collect();
        let mut missing = clients.len();
        let mut ready = Ready::default();
        while missing > 0 {
            if thread.shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            while thread.connecting.count < AT_ONCE {
                let Some(index) = thread.connecting.queue.pop_front() else { break };
                thread.open(&mut clients[index]).map_err(of(index))?;
            }
            let waited = thread.readiness.wait(&mut ready, LONGEST_WAIT);
            let count = waited.map_err(|error| of(0)(failure(&error)))?;
            let overdue = thread.overdue(clients);
            for index in ready.tokens(count).chain(overdue) {
                let client = &mut clients[index];
                if client.state == State::Connecting && thread.advance(client).map_err(of(index))? {
                    client.state = State::Idle;
                    missing -= 1;
                }
            }
        }
        Ok(())
    }

    /// Starts on queued connections, and gives those up whose time is over.
    pub fn go_on_with_queue(&mut self) {
        while self.thread.connecting.count < AT_ONCE {
            let Some(index) = self.thread.connecting.queue.pop_front() else { break };
            let client = &mut self.clients[index];
            if let Err(error) = self.thread.open(client) {
                if self.thread.pools.is_some() {
                    self.thread.slot_refused(client, &error);
                    continue;
                }
                if self.thread.plan.is_staged() {
                    self.thread.refused(client, &error);
                    continue;
                }
                self.thread.abort(client, None, Cause::Connect(error));
            }
        }
        for index in self.thread.overdue(&self.clients) {
            self.thread.go_on_connecting(&mut self.clients[index]);
        }
    }
}

impl Thread<'_> {
    /// Queues the making of a client's connection (for `--connect`).
    pub fn connect_later(&mut self, client: &mut Client, now: Nanos) {
        client.state = State::Connecting;
        client.command_began = now;
        self.connecting.queue.push_back(client.index);
    }

    /// The socket of a connection that is being made has news.
    pub fn go_on_connecting(&mut self, client: &mut Client) {
        match self.advance(client) {
            Ok(false) => {}
            Ok(true) => {
                let now = self.clock.now();
                self.totals.reconnect_ns += now - client.command_began;
                if self.plan.is_staged() {
                    return self.connected(client, now);
                }
                if self.pools.is_some() {
                    return self.slot_connected(client, now);
                }
                if client.outage.take().is_some() && self.is_over(now) {
                    return self.end_client(client);
                }
                self.start_transaction(client, now);
            }
            Err(error) => {
                client.connection = None;
                if self.plan.is_staged() {
                    return self.refused(client, &error);
                }
                if self.pools.is_some() {
                    return self.slot_refused(client, &error);
                }
                self.abort(client, None, Cause::Connect(error));
            }
        }
    }

    fn open(&mut self, client: &mut Client) -> Result<(), OpenError> {
        let mut connection = Connection::open(&self.plan.target)?;
        connection.register(self.readiness.registry(), Token(client.index)).map_err(|error| failure(&error))?;
        client.connection = Some(connection);
        client.state = State::Connecting;
        self.connecting.count += 1;
        Ok(())
    }

    /// Goes on with a start-up; true when the session is ready.
    fn advance(&mut self, client: &mut Client) -> Result<bool, OpenError> {
        let (registry, token) = (self.readiness.registry(), Token(client.index));
        let Some(connection) = &mut client.connection else { return Ok(false) };
        loop {
            match connection.advance(&mut self.buffer, registry, token) {
                Ok(Progress::Pending) => return Ok(false),
                Ok(Progress::Reopened) => {
                    connection.register(registry, token).map_err(|error| failure(&error))?;
                }
                Ok(Progress::Ready(_)) => {
                    self.connecting.count -= 1;
                    return Ok(true);
                }
                Err(error) => {
                    self.connecting.count -= 1;
                    return Err(error);
                }
            }
        }
    }

    /// Clients whose time for connecting is over: no event tells of them.
    fn overdue(&self, clients: &[Client]) -> Vec<usize> {
        if self.connecting.count == 0 || self.plan.target.params.connect_timeout.is_none() {
            return Vec::new();
        }
        let now = Instant::now();
        let deadline = |client: &Client| client.connection.as_ref().and_then(Connection::deadline);
        let is_over = |client: &Client| deadline(client).is_some_and(|deadline| deadline <= now);
        (0..clients.len()).filter(|index| is_over(&clients[*index])).collect()
    }
}

fn failure(error: &io::Error) -> OpenError {
    OpenError { message: error.to_string(), sqlstate: "08001".to_owned() }
}
