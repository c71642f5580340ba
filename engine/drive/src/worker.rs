//! The event loop of one thread, which serves the thread's clients.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use crate::client::{Client, ClientState};
use crate::mode::{ActionsOf, ClientOf, Mode};
use crate::report::{INTERRUPT_CHECK, Report};
use crate::schedule::Schedule;
use crate::shell::{Shell, TransportOf};
use crate::thread::{Share, Thread};
use ground::clock::Nanos;
use wire::cancel::RETRY;
use wire::network::Network;
use wire::{Connection, OpenError};
use workload::Workload;

/// A thread with its clients, and the stage that its run has reached.
pub struct Worker<'a, M: Mode<S>, S: Shell> {
    pub clients: Vec<ClientOf<M, S>>,
    pub thread: Thread<'a, M, S>,
    stage: Stage,
}

/// A stage of a thread's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    /// The clients connect and do the other actions that come before the load.
    Preparing,
    /// The clients are ready, and wait for the start of the load.
    Waiting,
    Loading,
    Ended,
}

/// The ways in which the event loop can return to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// The event loop has returned after one round, and more rounds follow ([`Shell::STEPS`]).
    InPart,
    All,
    /// The wait for events has failed.
    Failed,
}

impl<'a, M: Mode<S>, S: Shell> Worker<'a, M, S> {
    /// Makes the thread's clients and their programs. It is called in the thread that runs them.
    pub fn new(thread: Thread<'a, M, S>, workload: &dyn Workload<ActionsOf<M, S>>, share: Share) -> Self {
        let plan = thread.plan;
        let clients = (0..share.clients).map(|index| {
            let (number, random) = (plan.part.number(share.first_client + index), share.first_client + index);
            let program = workload.client(number, plan.seeds.clients[random].clone());
            Client::new(index, number, program)
        });
        Self { clients: clients.collect(), thread, stage: Stage::New }
    }

    /// Prepares the clients, waits for the start, and runs the load to its end. The channel `start` delivers the
    /// schedule; the main thread closes the channel if the run ends before the load begins. Returns true when the run
    /// of this thread is over. Returns false before, after each round of the event loop, if the simulation runs its
    /// threads step by step.
    pub fn run(&mut self, start: &Receiver<Schedule>) -> bool {
        loop {
            let next = match self.stage {
                Stage::New => {
                    self.clients.iter_mut().for_each(|client| M::prepare(&mut self.thread, client));
                    Some(Stage::Preparing)
                }
                Stage::Preparing => match self.serve_while(|thread| thread.unready > 0) {
                    Served::InPart => None,
                    Served::All => {
                        self.thread.counters.report(Report::Connected);
                        Some(Stage::Waiting)
                    }
                    Served::Failed => Some(self.end_sessions()),
                },
                Stage::Waiting => match if S::STEPS { start.try_recv() } else { start.recv().map_err(Into::into) } {
                    Ok(schedule) => {
                        self.begin(schedule);
                        Some(Stage::Loading)
                    }
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => Some(self.end_sessions()),
                },
                Stage::Loading => match self.serve_while(|thread| thread.active > 0) {
                    Served::InPart => None,
                    Served::All => {
                        let ended = self.thread.shell.now();
                        let stage = self.end_sessions();
                        self.finish(ended);
                        Some(stage)
                    }
                    Served::Failed => Some(self.end_sessions()),
                },
                Stage::Ended => return true,
            };
            let Some(stage) = next else { return false };
            self.stage = stage;
        }
    }

    /// Begins the load when the time of its start has come.
    fn begin(&mut self, schedule: Schedule) {
        self.thread.shell.sleep_until(schedule.start);
        self.thread.counters.start(schedule);
        self.thread.throttle.iter_mut().for_each(|throttle| throttle.start(schedule.start));
        let now = self.thread.shell.now();
        self.thread.counters.report(Report::Began { at: now });
        // A thread that wakes late begins its first transactions late, but none after the end of the load or in another
        // engine's slice.
        let at = if self.thread.is_open(now) { schedule.start } else { now };
        M::start(&mut self.thread, &mut self.clients, at);
    }

    /// Reports the counts that have not been reported yet, of a load that ended at `ended`.
    fn finish(&mut self, ended: Nanos) {
        self.thread.end_periods(ended);
        self.thread.note_queue(ended, 0);
        self.thread.counters.finish(ended, self.thread.active);
    }

    /// Ends all sessions. Statements that are still running on the server are cancelled.
    fn end_sessions(&mut self) -> Stage {
        self.thread.cancel_statements(&mut self.clients);
        self.clients.iter_mut().for_each(Client::disconnect);
        Stage::Ended
    }

    /// Runs the event loop. It is a separate function, so that the compiler can use all registers for it.
    #[inline(never)]
    fn serve_while(&mut self, is_unfinished: impl Fn(&Thread<'a, M, S>) -> bool) -> Served {
        let mut ready = S::Ready::default();
        let mut outcome = self.look_up();
        while outcome.is_ok() && is_unfinished(&self.thread) && !self.thread.shared.is_ended() {
            outcome = self.serve(&mut ready);
            if S::STEPS && outcome.is_ok() {
                return Served::InPart;
            }
        }
        let Err(error) = outcome else { return Served::All };
        let message = format!("could not wait for events: {error}");
        self.thread.counters.report(Report::Failed { message });
        Served::Failed
    }

    /// Serves the clients for which something has happened. If nothing has happened, waits until something does.
    #[inline(always)]
    fn serve(&mut self, ready: &mut S::Ready) -> io::Result<()> {
        if self.thread.sockets.are_connecting() {
            self.go_on_connecting();
        }
        if let Some(next) = self.thread.timers.next().into_iter().chain(self.thread.mode.tends_at()).min() {
            self.thread.shell.wake_at(next)?;
        }
        let timeout = if self.thread.timers.have_turns() {
            Some(Duration::ZERO)
        } else {
            self.thread.sockets.await_room.then_some(RETRY)
        };
        let count = self.thread.shell.wait(ready, timeout)?;
        for token in S::tokens(ready, count) {
            match self.clients.get_mut(token) {
                Some(client) => self.thread.ready(client),
                None => self.look_up()?,
            }
        }
        if self.thread.timers.next().is_some() {
            self.wake();
        }
        if self.thread.timers.have_turns() {
            self.resume();
        }
        M::tend(&mut self.thread, &mut self.clients);
        Ok(())
    }

    /// Moves the end of the load to `end`, or to the end of the warm-up if that is later. Clients that wait for a later
    /// start of a transaction stop waiting.
    #[cold]
    fn cut(&mut self, end: Nanos) {
        if self.thread.counters.cut(end) {
            let end = self.thread.counters.schedule.end;
            let clients = &self.clients;
            let waits = |index: usize| matches!(clients[index].state, ClientState::Idle | ClientState::Yielding);
            self.thread.timers.hasten(end, waits);
        }
    }

    /// Reports a second that has ended although no event came, checks whether the signal SIGALRM has ended the load,
    /// and sets the time of the next such check.
    #[inline(never)]
    fn look_up(&mut self) -> io::Result<()> {
        let now = self.thread.shell.now();
        // If the signal SIGALRM comes before the load, the load is shortened when it begins.
        if let Some(end) = self.thread.shared.alarm_at().filter(|_| self.stage == Stage::Loading) {
            self.cut(end);
        }
        self.thread.end_periods(now);
        self.thread.shell.look_up_at(now + INTERRUPT_CHECK.as_nanos() as Nanos)
    }

    /// Begins to make connections that are queued. Also gives up connections whose time limit is over, since no event
    /// reports that.
    #[inline(never)]
    fn go_on_connecting(&mut self) {
        let target = self.thread.plan.target.as_ref();
        // A client whose connection is refused may enter the queue again at once. It then has to wait for the next
        // round.
        for _ in 0..self.thread.sockets.queued() {
            let Some(index) = self.thread.sockets.next_in_queue() else { break };
            let client = &mut self.clients[index];
            let opened = match target {
                Some(target) => self.thread.sockets.open(target, self.thread.shell.network(), index),
                None => Err(OpenError::from(io::Error::other("the load has no server"))),
            };
            match opened {
                Ok(connection) => client.connection = Some(connection),
                Err(error) => {
                    let now = self.thread.shell.now();
                    M::refused(&mut self.thread, client, error, now);
                }
            }
        }
        let has_deadlines = target.is_some_and(|target| target.params.connect_timeout != Ok(None));
        if std::mem::take(&mut self.thread.sockets.await_room) || has_deadlines {
            let now = self.thread.shell.network().now();
            for index in self.thread.sockets.opening().to_vec() {
                let client = &mut self.clients[index];
                let is_due = |connection: &Connection<TransportOf<S>>| {
                    connection.awaits_room() || connection.deadline().is_some_and(|deadline| deadline <= now)
                };
                if client.connection.as_ref().is_some_and(is_due) {
                    self.thread.go_on_connecting(client);
                }
            }
        }
    }

    /// Resumes the clients whose wake-up time has come.
    #[inline(never)]
    fn wake(&mut self) {
        let now = self.thread.shell.now();
        // The counts are reported before a client is woken, because a client that waits for a time does not count as
        // busy at the end of a period.
        self.thread.end_periods(now);
        while let Some(index) = self.thread.timers.pop(now) {
            self.thread.act(&mut self.clients[index], now);
        }
    }

    /// Resumes the clients that have waited until other clients were served. A client that yields again waits for the
    /// next round.
    #[inline(never)]
    fn resume(&mut self) {
        for index in self.thread.timers.take_turns() {
            let now = self.thread.shell.now();
            self.thread.act(&mut self.clients[index], now);
        }
    }
}
