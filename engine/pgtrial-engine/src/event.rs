//! The events of a run: what the event loop reports and counts, written as the types of the crate `events`.

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
use drive::ledger::tasks::{PooledTasks, Task, Tasks};
use drive::ledger::{ScriptAccount, Tally, Turn};
use drive::plan::Plan;
use drive::slices::Slice;
use drive::{Abortion, Began, Cause, Observer, Outcome, PoolPlan, PooledPlan, RunError, Tick};
use events::{Connected, DistributionRecord, Event, EventLine, Extent, Measurement, Warning};
pub use events::{PROTOCOL, timestamp};
use ground::clock::{Clock, Phase, seconds};
use ground::output::{CouldNot, OutputFile};
use ground::shard::ClientShare;
pub use replay::{ReplayDescription, TemplateName};

/// The destination of the events that the option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
}

/// The optional keys of ticks and summaries, which only some loads have.
#[derive(Debug, Clone, Copy, Default)]
struct Sections {
    /// Service times and schedule lags: the load has a rate or recorded times.
    pace: bool,
    /// Statements by kind: a test of sysbench or a replay.
    queries: bool,
    /// Service times and times in the queue: tasks share pools of connections.
    pools: bool,
}

/// The facts about a run that its first event reports in addition to the time.
pub struct RunDescription<'a> {
    pub frontend: &'static str,
    pub plan: &'a Plan,
    /// The scale; `None` if the tables are not pgbench's.
    pub scale: Option<u32>,
    pub seed: u64,
    /// The server's version, if it is known.
    pub server: Option<&'a str>,
    /// The description of the replay; only for a replay.
    pub replay: Option<&'a ReplayDescription>,
    /// The exit status if a file or stream that the options name could not be written, however the run ended.
    pub lost_status: u8,
}

impl Events {
    /// Returns the destination that the option names: a file, or `-` for standard output.
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
            pace: plan.mode_plan().has_schedule(),
            queries: plan.mode_plan().counts_queries(),
            pools: plan.load.of::<PooledPlan>().is_some(),
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

/// The open file of the events.
struct EventWriter {
    out: OutputFile,
    sections: Sections,
    clock: Clock,
    /// True if the events are the only output of the run.
    is_only_output: bool,
}

impl EventWriter {
    fn write(&mut self, event: Event) -> Result<(), CouldNot> {
        EventLine { t: seconds(self.clock.now()), event }.write(&mut self.out)
    }
}

/// The events of a run, if an option requests them. The first event that cannot be written is reported, and no further
/// events are written.
pub struct RunEvents<'a> {
    writer: Option<EventWriter>,
    replay: Option<ReplayDescription>,
    is_lost: bool,
    lost_status: u8,
    /// True if the load has begun.
    has_begun: bool,
    /// Ends the run if the events are the only output and one cannot be written.
    stop: &'a AtomicBool,
    /// The function that prints the error, a sentence.
    complain: Box<dyn FnMut(&str) + 'a>,
}

impl<'a> RunEvents<'a> {
    /// If the option for events was given, opens their destination and writes the first event. `stop` is the flag that
    /// ends the run early. `complain` is called with a whole sentence if an event cannot be written.
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
    /// The events of a load that fails after its begin are ended, with the status of a failure.
    pub fn run(&mut self, plan: &Plan, clock: Clock, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
        let stop = self.stop;
        let ran = drive::run(plan, clock, stop, &mut Beside { events: self, observer });
        if ran.is_err() && self.has_begun {
            self.done(&Outcome::default(), self.lost_status, &[]);
        }
        ran
    }

    /// Ends the events when the run is over. Returns the exit status: the given one, or the run's `lost_status` if an
    /// event could not be written.
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
    let phase = |tally, seconds| (seconds > 0.0).then(|| measurement(tally, None, sections).summary(seconds));
    let drained = &outcome.drain.counts;
    // With a single script the summaries are the script's.
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
        tasks: outcome.own.get().map(tasks_event),
        replay: replay.map(|described| described.event(outcome.own.get())),
        machines: None,
    }
}

/// The observer that writes events. It passes each report of the run to the front end's observer first.
struct Beside<'e, 'a> {
    events: &'e mut RunEvents<'a>,
    observer: &'e mut dyn Observer,
}

impl Observer for Beside<'_, '_> {
    fn connected(&mut self, clients: usize, connect_s: f64) {
        self.observer.connected(clients, connect_s);
        // The observer may have found that it took too long.
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

    /// Writes the event of a second, after the tasks that failed in it.
    fn tick(&mut self, tick: &Tick) {
        self.observer.tick(tick);
        let Some(EventWriter { sections, .. }) = self.events.writer else { return };
        let tasks = tick.tally.own.get::<PooledTasks>().into_iter().flat_map(|pooled| &pooled.tasks);
        tasks.filter(|task| task.failure.is_some()).for_each(|task| self.events.write(Event::Task(task_event(task))));
        let event = measurement(&tick.tally, tick.slice, sections).tick(tick.phase, tick.second, tick.seconds);
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
    let limits = plan.mode_plan().limits();
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
        pools: plan.load.of::<PooledPlan>().map(|load| pools_event(&load.pools)),
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

/// Returns the record of one of several scripts.
fn script_event(script: &ScriptAccount) -> events::ScriptRecord {
    let ScriptAccount { whole, latencies, .. } = script;
    events::ScriptRecord {
        counts: counts(whole),
        latency_us: DistributionRecord::new(&whole.moments, latencies.percentiles()),
        histogram: Some(latencies.encode()),
    }
}

/// Returns the measurement of a second or a phase. Its sections exist even if they contain no transactions, so that
/// every second has the same keys.
fn measurement(tally: &Tally, slice: Option<Slice>, sections: Sections) -> Measurement {
    let mut measurement = Measurement {
        counts: counts(&tally.counts),
        moments: tally.counts.moments,
        latencies: tally.latencies.clone(),
        ..Measurement::default()
    };
    measurement.counts.queries = sections.queries.then(|| queries(&tally.counts.queries));
    if sections.pace {
        let pace = tally.pace.as_deref().cloned().unwrap_or_default();
        measurement.backlog =
            pace.queue.map(|queue| events::QueueRecord { waiting: queue.waiting.into(), busy: queue.busy.into() });
        (measurement.service, measurement.lags) = (Some(pace.service), Some(pace.lags));
    }
    if sections.pools {
        let pooled = tally.own.get::<PooledTasks>().cloned().unwrap_or_default();
        (measurement.service, measurement.queue) = (Some(pooled.service), Some(pooled.queue));
        measurement.timeouts = Some(pooled.timeouts);
    }
    measurement.slice = tally.turn.as_ref().map(|turn| slice_event(slice.unwrap_or_default(), turn));
    measurement
}

/// Returns the record of a slice: its planned times, and the times in which clients really took part.
fn slice_event(slice: Slice, turn: &Turn) -> events::SliceRecord {
    events::SliceRecord {
        round: slice.round,
        planned_begin_s: seconds(slice.begins),
        planned_end_s: seconds(slice.ends),
        begin_s: turn.span.map(|(begin, _)| seconds(begin)),
        end_s: turn.span.map(|(_, end)| seconds(end)),
        client_s: seconds(turn.client_ns),
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

/// Returns the CPU time of the load threads per committed transaction of the measured phase.
fn cpu_per_transaction_us(outcome: &Outcome) -> Option<f64> {
    let transactions = outcome.measure.counts.transactions();
    (transactions > 0).then(|| outcome.cpu.total().as_secs_f64() * 1e6 / transactions as f64)
}

/// Returns the seconds since 1970, rounded to the microsecond.
fn unix_seconds(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1e3).round() / 1e6
}
