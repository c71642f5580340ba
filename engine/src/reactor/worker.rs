//! One thread: its clients' connections, one event loop, its page of the ledger.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::schedule::{Clock, Nanos, Phase, Schedule, Stretch};
use super::usage::CpuTime;
use super::{Cause, Report, ThreadTotals};
use crate::connection::{BUFFER_SIZE, Connection, OpenError, Progress};
use crate::ledger::{Account, ScriptAccount, Tally};
use crate::plan::{Limit, Plan};
use crate::program::Program;
use crate::program::random::Random;

/// How many connections of one thread are being made at a time: enough to overlap, few enough for a listener's queue.
const CONNECTING_AT_ONCE: usize = 16;

/// The longest sleep of the loop: how soon an interrupt is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A client and where it is in its transaction.
pub(super) struct Client {
    pub program: Box<dyn Program>,
    pub connection: Option<Connection>,
    pub state: State,
    pub script: usize,
    /// Start of the current transaction and of the current command.
    pub transaction_began: Nanos,
    pub command_began: Nanos,
    /// Transactions that count towards the limit, done so far.
    pub done: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not begun, or between two transactions with `--connect`.
    Idle,
    Connecting,
    /// A statement is with the server.
    Waiting {
        command: usize,
    },
    /// A failed transaction is being rolled back; then it counts as failed with this SQLSTATE.
    RollingBack {
        sqlstate: [u8; 5],
    },
    Finished,
}

/// The thread's whole state.
pub(super) struct Worker<'a> {
    pub plan: &'a Plan,
    pub clock: Clock,
    /// Number of the thread's first client in the run.
    pub first_client: usize,
    pub clients: Vec<Client>,
    pub choose: Random,
    pub poll: Poll,
    pub schedule: Schedule,
    pub stretch: Stretch,
    pub tally: Tally,
    pub scripts: Vec<ScriptAccount>,
    pub reports: Sender<Report>,
    pub buffer: Vec<u8>,
    pub scratch: Vec<u8>,
    pub active: usize,
    pub totals: ThreadTotals,
    stop: &'a AtomicBool,
    worker: usize,
    cpu_at_measure: Option<CpuTime>,
    /// Indexes of clients whose connections wait for their turn to be made.
    to_connect: Vec<usize>,
    connecting: usize,
}

impl<'a> Worker<'a> {
    /// A thread for the clients `first_client..first_client + count`.
    pub fn new(
        plan: &'a Plan,
        clock: Clock,
        worker: usize,
        first_client: usize,
        count: usize,
        reports: Sender<Report>,
        stop: &'a AtomicBool,
    ) -> io::Result<Self> {
        let clients = (first_client..first_client + count)
            .map(|number| Client {
                program: plan.workload.client(number, plan.seeds.clients[number].clone()),
                connection: None,
                state: State::Idle,
                script: 0,
                transaction_began: 0,
                command_began: 0,
                done: 0,
            })
            .collect();
        let schedule = Schedule::new(0, plan.warmup, None);
        Ok(Self {
            plan,
            clock,
            first_client,
            clients,
            choose: plan.seeds.threads[worker].clone(),
            poll: Poll::new()?,
            stretch: schedule.first(),
            schedule,
            tally: Tally::default(),
            scripts: empty_accounts(plan),
            reports,
            buffer: vec![0; BUFFER_SIZE],
            scratch: Vec::with_capacity(1024),
            active: count,
            totals: ThreadTotals::default(),
            stop,
            worker,
            cpu_at_measure: None,
            to_connect: Vec::new(),
            connecting: 0,
        })
    }

    /// Connects, waits for the start, runs to the end, and reports all the way. `start` delivers the schedule, or
    /// nothing if the run is called off.
    pub fn run(mut self, start: &Receiver<Schedule>) {
        if !self.plan.reconnect {
            if let Err((client, error)) = self.connect_all() {
                return self.report(Report::CannotConnect { client, error });
            }
        }
        self.report(Report::Connected);
        let Ok(schedule) = start.recv() else { return };
        self.schedule = schedule;
        self.stretch = schedule.first();
        if self.stretch.phase == Phase::Measure {
            self.cpu_at_measure = CpuTime::of_thread();
        }
        for index in 0..self.clients.len() {
            self.begin_transaction(index, schedule.start);
        }
        self.serve();
        self.finish();
    }

    /// The event loop.
    fn serve(&mut self) {
        let mut events = Events::with_capacity(256);
        while self.active > 0 && !self.stop.load(Ordering::Relaxed) {
            self.start_connecting();
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return self.report(Report::Failed { message: format!("could not wait for events: {error}") });
                }
                _ => {}
            }
            for event in &events {
                self.ready(event.token());
            }
            for index in self.overdue() {
                self.go_on_connecting(index);
            }
            if events.is_empty() {
                self.roll(self.clock.now());
            }
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_nanos(self.stretch.ends.saturating_sub(self.clock.now())).min(LONGEST_WAIT)
    }

    /// A socket can be read or written.
    #[inline]
    fn ready(&mut self, token: Token) {
        let index = token.0;
        match self.clients[index].state {
            State::Connecting => self.go_on_connecting(index),
            State::Waiting { .. } | State::RollingBack { .. } => self.receive(index),
            State::Idle | State::Finished => {}
        }
    }

    /// Ends stretches that are over at `now`: each is handed to the run, empty or not.
    #[inline]
    pub fn roll(&mut self, now: Nanos) {
        while now >= self.stretch.ends {
            let next = self.schedule.after(&self.stretch);
            self.hand_over(self.stretch.ends);
            if next.phase != self.stretch.phase {
                self.change_phase(next.phase);
            }
            self.stretch = next;
        }
    }

    fn change_phase(&mut self, phase: Phase) {
        match phase {
            Phase::Measure => {
                self.scripts = empty_accounts(self.plan);
                self.totals.reconnect_ns = 0;
                self.cpu_at_measure = CpuTime::of_thread();
            }
            Phase::Drain => self.note_cpu(),
            Phase::Warmup => {}
        }
    }

    fn note_cpu(&mut self) {
        if let (Some(before), Some(now)) = (self.cpu_at_measure.take(), CpuTime::of_thread()) {
            self.totals.cpu = now - before;
        }
    }

    fn hand_over(&mut self, ended: Nanos) {
        let stretch = Stretch { ends: ended.max(self.stretch.begins), ..self.stretch };
        let tally = Box::new(std::mem::take(&mut self.tally));
        self.report(Report::Tick { worker: self.worker, stretch, tally });
    }

    fn finish(mut self) {
        let ended = self.clock.now();
        self.roll(ended);
        self.note_cpu();
        self.hand_over(ended);
        for client in &mut self.clients {
            if let Some(connection) = &mut client.connection {
                connection.terminate();
            }
        }
        let mut totals = std::mem::take(&mut self.totals);
        totals.ended = ended;
        if self.stretch.phase == Phase::Warmup {
            // The thread has nothing to say of the measured part.
            self.scripts = empty_accounts(self.plan);
        }
        totals.scripts = std::mem::take(&mut self.scripts);
        self.report(Report::Finished { worker: self.worker, totals: Box::new(totals) });
    }

    /// Reports to the run; nobody listens any more once the run has been given up, which is no error here.
    pub fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }

    /// Connects all clients before the start.
    fn connect_all(&mut self) -> Result<(), (usize, OpenError)> {
        let mut events = Events::with_capacity(256);
        self.to_connect = (0..self.clients.len()).rev().collect();
        let mut missing = self.clients.len();
        while missing > 0 {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            while self.connecting < CONNECTING_AT_ONCE {
                let Some(index) = self.to_connect.pop() else { break };
                self.open(index).map_err(|error| (self.first_client + index, error))?;
            }
            if let Err(error) = self.poll.poll(&mut events, Some(LONGEST_WAIT)) {
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err((self.first_client, failure(&error)));
                }
            }
            let ready: Vec<_> = events.iter().map(|event| event.token().0).chain(self.overdue()).collect();
            for index in ready {
                if self.clients[index].state != State::Connecting {
                    continue;
                }
                if self.advance(index).map_err(|error| (self.first_client + index, error))? {
                    self.clients[index].state = State::Idle;
                    missing -= 1;
                }
            }
        }
        Ok(())
    }

    /// Queues the making of a client's connection (for `--connect`).
    pub fn connect_later(&mut self, index: usize, now: Nanos) {
        self.clients[index].state = State::Connecting;
        self.clients[index].command_began = now;
        self.to_connect.push(index);
    }

    fn start_connecting(&mut self) {
        while self.connecting < CONNECTING_AT_ONCE {
            let Some(index) = self.to_connect.pop() else { break };
            if let Err(error) = self.open(index) {
                self.abort(index, None, Cause::Connect(error));
            }
        }
    }

    fn open(&mut self, index: usize) -> Result<(), OpenError> {
        let mut connection = Connection::open(&self.plan.target)?;
        connection.register(self.poll.registry(), Token(index)).map_err(|error| failure(&error))?;
        self.clients[index].connection = Some(connection);
        self.clients[index].state = State::Connecting;
        self.connecting += 1;
        Ok(())
    }

    /// Goes on with a start-up; true when the session is ready.
    fn advance(&mut self, index: usize) -> Result<bool, OpenError> {
        let registry = self.poll.registry();
        let Some(connection) = &mut self.clients[index].connection else { return Ok(false) };
        loop {
            let progress = connection.advance(&mut self.buffer, registry, Token(index));
            match progress {
                Ok(Progress::Pending) => return Ok(false),
                Ok(Progress::Reopened) => {
                    connection.register(registry, Token(index)).map_err(|error| failure(&error))?;
                }
                Ok(Progress::Ready(_)) => {
                    self.connecting -= 1;
                    return Ok(true);
                }
                Err(error) => {
                    self.connecting -= 1;
                    return Err(error);
                }
            }
        }
    }

    /// Clients whose time for connecting is over: no event tells of them.
    fn overdue(&self) -> Vec<usize> {
        if self.connecting == 0 || self.plan.target.params.connect_timeout.is_none() {
            return Vec::new();
        }
        let now = Instant::now();
        let deadline = |client: &Client| client.connection.as_ref().and_then(Connection::deadline);
        let is_over = |client: &Client| deadline(client).is_some_and(|deadline| deadline <= now);
        (0..self.clients.len()).filter(|index| is_over(&self.clients[*index])).collect()
    }

    fn go_on_connecting(&mut self, index: usize) {
        match self.advance(index) {
            Ok(false) => {}
            Ok(true) => {
                let now = self.clock.now();
                self.totals.reconnect_ns += now - self.clients[index].command_began;
                self.clients[index].transaction_began = now;
                self.drive(index, now);
            }
            Err(error) => {
                self.clients[index].connection = None;
                self.abort(index, None, Cause::Connect(error));
            }
        }
    }

    /// Whether a client has done all that it should.
    pub fn is_done(&self, index: usize, now: Nanos) -> bool {
        match self.plan.limit {
            Limit::Transactions(limit) => self.clients[index].done >= limit,
            Limit::Time(_) => self.schedule.end.is_some_and(|end| now >= end),
        }
    }
}

fn empty_accounts(plan: &Plan) -> Vec<ScriptAccount> {
    let scripts = plan.workload.scripts();
    scripts
        .iter()
        .map(|script| ScriptAccount {
            whole: Account::default(),
            commands: vec![Account::default(); script.commands.len()],
        })
        .collect()
}

fn failure(error: &io::Error) -> OpenError {
    OpenError { message: error.to_string(), sqlstate: "08001".to_owned() }
}
