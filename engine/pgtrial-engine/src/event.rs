//! Writes the events of a run as JSON Lines (option `--events`): what happens in each second, and the totals at the
//! end. Converts the reports and counters of the event loop to the types of the crate `events`.

mod counts;
#[cfg(test)]
mod failed_runs;
mod replay;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use counts::{counts, failures, queries};
use drive::plan::{Plan, PoolPlan};
use drive::slices::Slice;
use drive::statistics::tasks::{Task, Tasks};
use drive::statistics::{LoadStatistics, ScriptAccount, SliceTime};
use drive::{Abortion, Began, Cause, Observer, Outcome, RunError, Tick};
use events::{Connected, DistributionRecord, Event, EventLine, Extent, Measurement, Warning};
pub use events::{PROTOCOL, timestamp};
use ground::clock::{Clock, Phase, seconds};
use ground::output::{CouldNot, OutputFile};
use ground::shard::ClientShare;
pub use replay::{ReplayDescription, TemplateName};

/// The destination of the events, which the option `--events` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
}

/// The groups of keys that only some loads have in their ticks (events of one second) and summaries. Each field is true
/// if the load has the group.
#[derive(Debug, Clone, Copy, Default)]
struct Sections {
    /// True if the load has scheduled times, from a rate or from a recording. The events then contain service times and
    /// lags: how long a transaction took from its actual beginning, and how long after its scheduled time it began.
    schedule: bool,
    /// True if reads, writes and other statements are counted separately, as for sysbench tests and replays.
    queries: bool,
    /// True if tasks share pools of connections. The events then contain queue times (waiting for a connection) and
    /// service times (using the connection).
    pools: bool,
}

/// The description of a run for its first event, `hello`.
pub struct RunDescription<'a> {
    pub frontend: &'static str,
    pub plan: &'a Plan,
    /// The scale factor of pgbench's tables, or the number of warehouses of order entry. `None` if the load uses other
    /// tables.
    pub scale: Option<u32>,
    pub seed: u64,
    /// The version of the server, or `None` if it is not known before the run.
    pub server: Option<&'a str>,
    /// The description of the replay, or `None` if the load is not a replay.
    pub replay: Option<&'a ReplayDescription>,
    /// The exit status of the program if an event could not be written. It replaces the status that the run itself
    /// would have.
    pub lost_status: u8,
}

impl<'a> RunDescription<'a> {
    /// Describes a run by what all front ends know. A front end that also knows the scale of the tables, the version of
    /// the server or the replay sets these fields itself.
    pub fn new(frontend: &'static str, plan: &'a Plan, seed: u64, lost_status: u8) -> Self {
        Self { frontend, plan, scale: None, seed, server: None, replay: None, lost_status }
    }
}

impl Events {
    /// Reads the value of the option `--events`: the path of a file, or `-` for standard output.
    pub fn named(name: &str) -> Self {
        if name == "-" { Self::Stdout } else { Self::File(ground::text::path(name)) }
    }

    fn open(&self, clock: Clock, hello: &RunDescription<'_>) -> Result<EventWriter, CouldNot> {
        let mut out = match self {
            Self::Stdout => OutputFile::stdout(""),
            Self::File(path) => OutputFile::create("events file ", path)?,
        };
        out.name = "events".to_owned();
        let plan = hello.plan;
        let sections = Sections {
            schedule: plan.load.has_schedule(),
            queries: plan.load.counts_queries(),
            pools: plan.load.pools().is_some(),
        };
        let hello = events::Hello {
            protocol: PROTOCOL,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            frontend: hello.frontend.to_owned(),
            pid: std::process::id(),
            started: timestamp(SystemTime::now()),
            server_version: hello.server.map(str::to_owned),
            plan: events::to_map(&plan_event(hello)),
            machines: None,
        };
        let mut writer = EventWriter { out, sections, clock, is_only_output: *self == Self::Stdout };
        writer.write(Event::Hello(Box::new(hello)))?;
        Ok(writer)
    }
}

/// The open output to which the events are written.
struct EventWriter {
    out: OutputFile,
    sections: Sections,
    clock: Clock,
    /// True if the events go to standard output. The run then has no other output, so it is stopped if an event cannot
    /// be written.
    is_only_output: bool,
}

impl EventWriter {
    fn write(&mut self, event: Event) -> Result<(), CouldNot> {
        EventLine { t: seconds(self.clock.now()), event }.write(&mut self.out)
    }
}

/// Writes the events of a run, if the option `--events` was given. After the first event that cannot be written, an
/// error is reported and no further events are written.
pub struct RunEvents<'a> {
    writer: Option<EventWriter>,
    replay: Option<ReplayDescription>,
    is_lost: bool,
    lost_status: u8,
    /// True once the load has begun. If the run fails after that, the last event, `done`, is written all the same; if
    /// it fails earlier, the events end without `done`.
    has_begun: bool,
    /// The flag that stops the run. It is set if the events are the only output and an event cannot be written.
    stop: &'a AtomicBool,
    /// The function that prints the error if an event cannot be written. The error is a whole sentence.
    complain: Box<dyn FnMut(&str) + 'a>,
}

impl<'a> RunEvents<'a> {
    /// Opens the destination of the events and writes the first event, if `option` is given. `stop` is the flag that
    /// stops the run. `complain` is called with a whole sentence if a later event cannot be written.
    pub fn open(
        option: Option<&Events>,
        clock: Clock,
        hello: &RunDescription<'_>,
        stop: &'a AtomicBool,
        complain: impl FnMut(&str) + 'a,
    ) -> Result<Self, CouldNot> {
        let writer = option.map(|events| events.open(clock, hello)).transpose()?;
        let lost_status = hello.lost_status;
        Ok(Self {
            writer,
            replay: hello.replay.cloned(),
            is_lost: false,
            lost_status,
            has_begun: false,
            stop,
            complain: Box::new(complain),
        })
    }

    /// Runs the load and writes its events. Each report of the run is passed to `observer` before its event is written.
    /// If the run fails after the load has begun, the event `done` is written with the exit status `lost_status`.
    pub fn run(&mut self, plan: &Plan, clock: Clock, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
        let stop = self.stop;
        let ran = drive::run(plan, clock, stop, &mut Beside { events: self, observer });
        if ran.is_err() && self.has_begun {
            self.done(&Outcome::default(), self.lost_status, &[]);
        }
        ran
    }

    /// Writes the last event, `done`. Returns the exit status of the program: `status`, or the run's `lost_status` if
    /// an event could not be written.
    pub fn done(&mut self, outcome: &Outcome, status: u8, warnings: &[Warning]) -> u8 {
        if let Some(EventWriter { sections, .. }) = self.writer {
            let done = done_event(outcome, status, warnings, sections, self.replay.as_ref());
            self.write(Event::Done(Box::new(done)));
            self.writer = None;
        }
        if self.is_lost { self.lost_status } else { status }
    }

    fn write(&mut self, event: Event) {
        let Some(writer) = &mut self.writer else { return };
        let Err(problem) = writer.write(event) else { return };
        if writer.is_only_output {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.writer = None;
        self.is_lost = true;
        (self.complain)(&problem.to_string());
    }
}

fn done_event(
    outcome: &Outcome,
    status: u8,
    warnings: &[Warning],
    sections: Sections,
    replay: Option<&ReplayDescription>,
) -> events::Done {
    let phase = |statistics, seconds| (seconds > 0.0).then(|| measurement(statistics, None, sections).summary(seconds));
    let drained = &outcome.drain.counts;
    // If there is only one script, its counts are the same as those in the summaries of the phases, and are not
    // repeated.
    let several = outcome.scripts.iter().filter(|_| outcome.scripts.len() > 1);
    events::Done {
        status,
        interrupted: outcome.interrupted,
        clients_aborted: (outcome.aborted as u64).into(),
        connect_s: outcome.connect_s,
        warmup: phase(&outcome.warmup, outcome.warmup_s),
        measure: phase(&outcome.measure, outcome.measure_s),
        drain: events::Drain {
            duration_s: (outcome.elapsed_s - outcome.measure_s).max(0.0),
            transactions: drained.transactions().into(),
            failures: failures(&drained.failures),
        },
        scripts: several.map(script_event).collect(),
        client: events::ClientUsage {
            cpu_user_s: outcome.cpu.user.as_secs_f64(),
            cpu_system_s: outcome.cpu.system.as_secs_f64(),
            busiest_thread_share: outcome.busiest_thread,
            cpu_per_transaction_us: cpu_per_transaction_us(outcome),
            warnings: warnings.to_vec(),
        },
        tasks: outcome.of_mode.tasks().map(tasks_event),
        replay: replay.map(|described| described.event(outcome.of_mode.replay())),
        machines: None,
    }
}

/// The observer of a run that writes the events; the event loop calls it once for each second, and when a client is
/// aborted. It first passes each call on to the observer of the front end, which prints lines for the user.
struct Beside<'e, 'a> {
    events: &'e mut RunEvents<'a>,
    observer: &'e mut dyn Observer,
}

impl Observer for Beside<'_, '_> {
    fn connected(&mut self, clients: usize, connect_s: f64) {
        self.observer.connected(clients, connect_s);
        // If the clients took too long to connect (sysbench's `--thread-init-timeout`), the observer has set `stop`.
        // The run then ends, so no event says that the clients are connected.
        if !self.events.stop.load(Ordering::Relaxed) {
            self.events.write(Event::Connected(Connected { clients: (clients as u64).into(), connect_s }));
        }
    }

    fn ready(&mut self, clients: usize, connect_s: f64) {
        self.observer.ready(clients, connect_s);
        self.events.write(Event::Ready(Connected { clients: (clients as u64).into(), connect_s }));
    }

    fn phase(&mut self, phase: Phase, began: Option<&Began>) {
        self.observer.phase(phase, began);
        self.events.has_begun = true;
        let at = began.map(|began| unix_seconds(began.at));
        let planned_at = began.and_then(|began| began.planned).map(unix_seconds);
        self.events.write(Event::Phase(events::PhaseStart { phase, at, planned_at }));
    }

    /// Writes an event `task` for each task that failed in this second, and then the event `tick` with the counts of
    /// the second.
    fn tick(&mut self, tick: &Tick) {
        self.observer.tick(tick);
        let Some(EventWriter { sections, .. }) = self.events.writer else { return };
        let tasks = tick.statistics.of_mode.tasks().into_iter().flat_map(|pooled| &pooled.tasks);
        tasks.filter(|task| task.failure.is_some()).for_each(|task| self.events.write(Event::Task(task_event(task))));
        let event = measurement(&tick.statistics, tick.slice, sections).tick(tick.phase, tick.second, tick.seconds);
        self.events.write(Event::Tick(Box::new(event)));
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.observer.aborted(abortion);
        let Abortion { client, script, command, ref cause } = *abortion;
        let command = command.or_else(|| if let Cause::Program(trouble) = cause { trouble.command() } else { None });
        let sqlstate = cause.sqlstate().map(str::to_owned);
        let error =
            events::ClientError { client, script, command, kind: cause.kind(), sqlstate, message: cause.to_string() };
        self.events.write(Event::Error(error));
    }

    fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    fn stuck(&mut self, outcome: &Outcome) -> u8 {
        let status = self.observer.stuck(outcome);
        self.events.done(outcome, status, &[])
    }
}

fn plan_event(hello: &RunDescription<'_>) -> events::PlanRecord {
    let plan = hello.plan;
    let limits = plan.load.limits();
    let ClientShare { shard, whole, .. } = plan.part;
    let number = shard.index as u64 + 1;
    events::PlanRecord {
        scripts: plan.scripts().iter().map(|script| script.description.clone()).collect(),
        clients: plan.clients,
        jobs: plan.jobs,
        query_mode: if hello.replay.is_some() { "recorded" } else { plan.mode.name() }.to_owned(),
        scale: hello.scale,
        warmup_s: plan.warmup.as_secs_f64(),
        duration_s: plan.duration().map(|duration| duration.as_secs_f64()),
        transactions_per_client: limits.of_each_client,
        transactions: limits.of_all_clients.or_else(|| Some(hello.replay?.plan.statements.0)),
        random_seed: hello.seed.to_string(),
        shard: shard.is_part().then_some(events::ShardRecord { number, of: shard.of as u64, clients: whole as u64 }),
        pools: plan.load.pools().map(pools_event),
        slices: plan.slices.map(|slices| events::SlicesRecord {
            length_s: seconds(slices.length),
            number: slices.index as u64 + 1,
            of: slices.of as u64,
            seed: slices.seed.to_string(),
        }),
        replay: hello.replay.map(|replay| replay.plan.clone()),
        suite: None,
    }
}

fn pools_event(pools: &PoolPlan) -> events::Pools {
    events::Pools {
        apps: pools.apps,
        tasks: pools.tasks,
        arrival: pools.arrival.to_string(),
        size: pools.size,
        timeout_s: pools.timeout.as_secs_f64(),
        lifetime_s: pools.lifetime.map(|lifetime| lifetime.as_secs_f64()),
    }
}

fn task_event(task: &Task) -> events::TaskRecord {
    events::TaskRecord {
        application: task.app as u64 + 1,
        task: u64::from(task.number) + 1,
        failure: task.failure.as_deref().map(str::to_owned),
        arrived_s: seconds(task.arrived),
        waited_s: seconds(task.waited),
        served_s: seconds(task.served),
        more: serde_json::Map::new(),
    }
}

/// Returns the record of one script, for runs with several scripts.
fn script_event(script: &ScriptAccount) -> events::ScriptRecord {
    let ScriptAccount { whole, latencies, .. } = script;
    events::ScriptRecord {
        counts: counts(whole),
        latency_us: DistributionRecord::new(&whole.moments, latencies.percentiles()),
        histogram: Some(latencies.encode()),
    }
}

/// Converts the counters of a second or a phase to a measurement. Every group of keys in `sections` is present even if
/// there were no transactions, so that all seconds have the same keys.
fn measurement(statistics: &LoadStatistics, slice: Option<Slice>, sections: Sections) -> Measurement {
    let mut measurement = Measurement {
        counts: counts(&statistics.counts),
        moments: statistics.counts.moments,
        latencies: statistics.latencies.clone(),
        ..Measurement::default()
    };
    measurement.counts.queries = sections.queries.then(|| queries(&statistics.counts.queries));
    if sections.schedule {
        let schedule = statistics.schedule.as_deref().cloned().unwrap_or_default();
        measurement.backlog =
            schedule.queue.map(|queue| events::QueueRecord { waiting: queue.waiting.into(), busy: queue.busy.into() });
        (measurement.service, measurement.lags) = (Some(schedule.service), Some(schedule.lags));
    }
    if sections.pools {
        let pooled = statistics.of_mode.tasks().cloned().unwrap_or_default();
        (measurement.service, measurement.queue) = (Some(pooled.service), Some(pooled.queue));
        measurement.timeouts = Some(pooled.timeouts);
    }
    measurement.slice = statistics.slice_time.as_ref().map(|time| slice_event(slice.unwrap_or_default(), time));
    measurement
}

/// Returns the record of one slice of time, in which this engine runs its load while other engines pause: the planned
/// beginning and end, and the first and the last moment at which clients really took part.
fn slice_event(slice: Slice, time: &SliceTime) -> events::SliceRecord {
    events::SliceRecord {
        round: slice.round,
        planned_begin_s: seconds(slice.begins),
        planned_end_s: seconds(slice.ends),
        begin_s: time.span.map(|(begin, _)| seconds(begin)),
        end_s: time.span.map(|(_, end)| seconds(end)),
        client_s: seconds(time.client_ns),
    }
}

fn tasks_event(tasks: &Tasks) -> events::TasksRecord {
    let [instant, flow, attention, longer] = tasks.classes().map(events::Count);
    let response = |extent| events::ResponseTime { extent, median: tasks.median() };
    events::TasksRecord {
        planned: tasks.planned.into(),
        completed: tasks.completed().into(),
        failed: tasks.failed().into(),
        failures: failures(&tasks.failures),
        unfinished: tasks.unfinished().into(),
        response_us: Extent::new(&tasks.response).map(response),
        queue_us: Extent::new(&tasks.queue),
        service_us: Extent::new(&tasks.service),
        timeout_waited_us: Extent::new(&tasks.timeouts),
        under_5_s: tasks.under_five_seconds().into(),
        classes: events::ResponseClasses { instant, flow, attention, longer },
    }
}

/// Returns the CPU time of all load threads divided by the number of committed transactions, both in the measured part,
/// in microseconds. `None` if no transaction was committed.
fn cpu_per_transaction_us(outcome: &Outcome) -> Option<f64> {
    let transactions = outcome.measure.counts.transactions();
    (transactions > 0).then(|| outcome.cpu.total().as_secs_f64() * 1e6 / transactions as f64)
}

/// Converts a time since 1970 to seconds, rounded to the microsecond.
fn unix_seconds(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1e3).round() / 1e6
}
