//! One thread's event loop over its clients.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::Report;
use super::client::{Client, State};
use super::schedule::Schedule;
use super::thread::Thread;
use ground::readiness::Ready;

/// The longest sleep of the loop: how soon an interrupt is noticed.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A thread with its clients.
pub(super) struct Worker<'a> {
    pub clients: Vec<Client>,
    pub thread: Thread<'a>,
}

impl<'a> Worker<'a> {
    /// The thread with its `count` clients, that are made where they will run.
    pub fn new(thread: Thread<'a>, count: usize) -> Self {
        let plan = thread.plan;
        let clients = (0..count).map(|index| {
            let random = plan.seeds.clients[thread.first_client + index].clone();
            Client::new(index, plan.workload.client(thread.number_of(index), random))
        });
        Self { clients: clients.collect(), thread }
    }

    /// Connects, waits for the start, runs to the end, and reports all the way. `start` delivers the schedule, or
    /// nothing if the run is called off.
    pub fn run(mut self, start: &Receiver<Schedule>) {
        if self.thread.plan.is_staged() {
            if let Err(error) = self.make_ready() {
                return self.thread.fail(&error);
            }
        } else if !self.thread.connects_under_way {
            if let Err((client, error)) = self.connect_all() {
                return self.thread.report(Report::CannotConnect { client, error });
            }
        }
        self.thread.report(Report::Connected);
        let Ok(schedule) = start.recv() else { return self.leave() };
        self.thread.clock.sleep_until(schedule.start);
        self.thread.start(schedule);
        self.thread.report(Report::Began { at: self.thread.clock.now() });
        if self.thread.pools.is_some() {
            self.start_pools(schedule.start);
        } else {
            for client in &mut self.clients {
                self.thread.begin_load(client, schedule.start);
            }
        }
        if let Err(error) = self.serve() {
            return self.thread.fail(&error);
        }
        self.leave();
        self.thread.finish();
    }

    /// Takes leave of the server.
    fn leave(&mut self) {
        for connection in self.clients.iter_mut().filter_map(|client| client.connection.as_mut()) {
            connection.terminate();
        }
    }

    /// The event loop of the load, with the registers to itself.
    #[inline(never)]
    fn serve(&mut self) -> io::Result<()> {
        let mut ready = Ready::default();
        while self.thread.active > 0 && !self.thread.shared.stop.load(Ordering::Relaxed) {
            self.serve_once(&mut ready)?;
        }
        Ok(())
    }

    /// Serves what has happened, or waits until something does.
    #[inline(always)]
    pub(super) fn serve_once(&mut self, ready: &mut Ready) -> io::Result<()> {
        let has_turns = self.thread.has_errands() && self.prepare_to_wait()?;
        let patience = if has_turns { Duration::ZERO } else { LONGEST_WAIT };
        let count = self.thread.readiness.wait(ready, patience)?;
        for token in ready.tokens(count) {
            if let Some(client) = self.clients.get_mut(token) {
                self.thread.ready(client);
            }
        }
        if count == 0 {
            self.thread.roll(self.thread.clock.now());
        }
        if self.thread.has_errands() {
            self.wake();
            self.resume();
            if self.thread.pools.is_some() {
                self.serve_pools();
            }
        }
        Ok(())
    }

    /// Goes on with connections that wait for their turn, and names the moment of the next client that waits for one;
    /// whether somebody has yielded, so that there is nothing to wait for.
    #[inline(never)]
    fn prepare_to_wait(&mut self) -> io::Result<bool> {
        if self.thread.connects_under_way {
            self.end_waits();
            self.go_on_with_queue();
        }
        let of_pools = self.thread.pools.as_ref().and_then(|pools| pools.next());
        if let Some(next) = self.thread.timers.next().into_iter().chain(of_pools).min() {
            self.thread.readiness.wake_at(self.thread.clock.moment(next))?;
        }
        Ok(!self.thread.yielding.is_empty())
    }

    /// Goes on with clients whose time has come.
    fn wake(&mut self) {
        if self.thread.timers.next().is_none() {
            return;
        }
        let now = self.thread.clock.now();
        self.thread.roll(now);
        while let Some(index) = self.thread.timers.pop(now) {
            let client = &mut self.clients[index];
            match client.state {
                State::Scheduled => self.thread.start_scheduled(client, now),
                State::WaitingForServer => self.thread.connect_later(client, now),
                State::Sleeping { command } => {
                    self.thread.account_command(client, command, now);
                    self.thread.drive(client, now);
                }
                _ => {}
            }
        }
    }

    /// Goes on with clients that yielded; whoever yields again waits for the next round.
    fn resume(&mut self) {
        for index in std::mem::take(&mut self.thread.yielding) {
            let now = self.thread.clock.now();
            self.thread.roll(now);
            let client = &mut self.clients[index];
            match client.state {
                State::Pausing => self.thread.drive(client, now),
                _ => self.thread.begin_transaction(client, now),
            }
        }
    }
}

impl Thread<'_> {
    /// Whether anything but sockets is to be looked after.
    #[inline(always)]
    fn has_errands(&self) -> bool {
        self.timers.len() | self.yielding.len() | usize::from(self.connects_under_way) != 0
    }

    /// A client's socket can be read or written.
    #[inline(always)]
    fn ready(&mut self, client: &mut Client) {
        if let State::Waiting { last, .. } = client.state {
            if self.is_plain {
                return self.receive_plain(client, last);
            }
        }
        self.ready_otherwise(client);
    }

    /// The same for what is not on the hot path.
    #[inline(never)]
    fn ready_otherwise(&mut self, client: &mut Client) {
        match client.state {
            State::Waiting { .. }
            | State::WaitingForRows { .. }
            | State::WaitingForCount { .. }
            | State::WaitingForAnswer { .. }
            | State::RollingBack
            | State::Preparing { .. } => self.receive(client),
            State::Connecting => self.go_on_connecting(client),
            State::Idle if self.pools.is_some() => self.slot_spoke(client),
            State::Idle
            | State::WaitingForServer
            | State::Scheduled
            | State::Yielding
            | State::Pausing
            | State::Sleeping { .. }
            | State::Finished => {}
        }
    }
}
