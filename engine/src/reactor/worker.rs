//! One thread's event loop over its clients.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use super::Report;
use super::client::{Client, State};
use super::readiness::{Ready, wake_in_time};
use super::schedule::{Clock, Schedule};
use super::thread::Thread;
use crate::plan::Plan;

/// The longest sleep of the loop: how soon an interrupt is noticed.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A thread with its clients.
pub(super) struct Worker<'a> {
    pub clients: Vec<Client>,
    pub thread: Thread<'a>,
}

impl<'a> Worker<'a> {
    /// A thread for the clients `first_client..first_client + count`.
    pub fn new(
        plan: &'a Plan,
        clock: Clock,
        number: usize,
        first_client: usize,
        count: usize,
        reports: Sender<Report>,
        stop: &'a AtomicBool,
    ) -> io::Result<Self> {
        let clients = (0..count).map(|index| {
            let number = first_client + index;
            Client::new(index, plan.workload.client(number, plan.seeds.clients[number].clone()))
        });
        Ok(Self {
            clients: clients.collect(),
            thread: Thread::new(plan, clock, number, first_client, count, reports, stop)?,
        })
    }

    /// Connects, waits for the start, runs to the end, and reports all the way. `start` delivers the schedule, or
    /// nothing if the run is called off.
    pub fn run(mut self, start: &Receiver<Schedule>) {
        if !self.thread.plan.reconnect {
            if let Err((client, error)) = self.connect_all() {
                return self.thread.report(Report::CannotConnect { client, error });
            }
        }
        self.thread.report(Report::Connected);
        let Ok(schedule) = start.recv() else { return };
        if self.thread.throttle.is_some() {
            wake_in_time();
        }
        self.thread.start(schedule);
        for client in &mut self.clients {
            self.thread.begin_transaction(client, schedule.start);
        }
        if let Err(error) = self.serve() {
            return self.thread.report(Report::Failed { message: format!("could not wait for events: {error}") });
        }
        for connection in self.clients.iter_mut().filter_map(|client| client.connection.as_mut()) {
            connection.terminate();
        }
        self.thread.finish();
    }

    /// The event loop.
    fn serve(&mut self) -> io::Result<()> {
        let mut ready = Ready::new();
        while self.thread.active > 0 && !self.thread.stop.load(Ordering::Relaxed) {
            if self.thread.plan.reconnect {
                self.go_on_with_queue();
            }
            let patience = self.thread.patience();
            let count = self.thread.readiness.wait(&mut ready, patience)?;
            for at in 0..count {
                if let Some(client) = self.clients.get_mut(ready.token(at).0) {
                    self.thread.ready(client);
                }
            }
            if self.thread.timers.next().is_some() {
                self.wake();
            }
            if !self.thread.yielding.is_empty() {
                self.resume();
            }
            if count == 0 {
                self.thread.roll(self.thread.clock.now());
            }
        }
        Ok(())
    }

    /// Goes on with clients whose time has come.
    fn wake(&mut self) {
        let now = self.thread.clock.now();
        self.thread.roll(now);
        while let Some(index) = self.thread.timers.pop(now) {
            let client = &mut self.clients[index];
            match client.state {
                State::Scheduled => self.thread.start_scheduled(client, now),
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
            self.thread.begin_transaction(&mut self.clients[index], now);
        }
    }
}

impl Thread<'_> {
    /// How long to wait for events.
    #[inline]
    fn patience(&self) -> Duration {
        match self.timers.next() {
            _ if !self.yielding.is_empty() => Duration::ZERO,
            None => LONGEST_WAIT,
            Some(next) => Duration::from_nanos(next.saturating_sub(self.clock.now())).min(LONGEST_WAIT),
        }
    }

    /// A client's socket can be read or written.
    #[inline]
    fn ready(&mut self, client: &mut Client) {
        match client.state {
            State::Waiting { .. } | State::WaitingForRows { .. } | State::RollingBack | State::Preparing { .. } => {
                self.receive(client)
            }
            State::Connecting => self.go_on_connecting(client),
            State::Idle | State::Scheduled | State::Yielding | State::Sleeping { .. } | State::Finished => {}
        }
    }
}
