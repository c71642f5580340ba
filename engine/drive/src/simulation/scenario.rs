//! The scenario of a simulated run. Everything that happens in the run is drawn from one seed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::extras::{Extras, PlannedStart};
use super::faults::Faults;
use super::programs::Workloads;
use super::starts::{Process, Starts};
use super::world::world;
use crate::plan::{
    Arrival, ClosedPlan, Limit, Load, Notes, Plan, PoolPlan, ReplayPlan, ReplayTiming, ScriptOptions, StagedPlan,
};
use crate::slices::Slices;
use ground::clock::{MS, Nanos};
use ground::random::Random;
use ground::shard::{ClientShare, Shard, TaskShare};
use wire::params::{Environment, Given, resolve};
use wire::statement::QueryMode;
use wire::target::{Target, User};
use workload::seeds::Seeds;

/// A simulated run of one or more engines.
#[derive(Debug)]
pub struct Scenario {
    pub seed: u64,
    pub kind: Kind,
    pub faults: Faults,
    pub clients: usize,
    pub jobs: usize,
    pub shards: usize,
    pub mode: QueryMode,
    pub describes: bool,
    pub warmup: Duration,
    pub scripts: usize,
    pub options: ScriptOptions,
    pub slices: Option<Slices>,
    pub exit_on_abort: bool,
    pub connect_timeout: bool,
    /// The time at which the simulated user interrupts the run.
    pub interrupt_at: Option<Nanos>,
    /// The time at which the signal SIGALRM ends the load.
    pub alarm_at: Option<Nanos>,
    pub extras: Extras,
}

/// The mode of the load, with the options that only this mode has.
#[derive(Debug)]
pub enum Kind {
    Closed { limit: Limit, interval_ns: Option<f64>, reconnect: bool, wait_for_server: Option<Duration>, thinks: bool },
    Staged(StagedPlan),
    Pooled { apps: usize, tasks: u32, arrival: Arrival, size: usize, timeout: Duration, lifetime: Option<Duration> },
    Replayed { timing: ReplayTiming, time: Option<Duration> },
}

impl Kind {
    /// Returns a closed loop whose clients keep their connections and do not think.
    pub fn closed(limit: Limit, interval_ns: Option<f64>) -> Self {
        Self::Closed { limit, interval_ns, reconnect: false, wait_for_server: None, thinks: false }
    }
}

/// The random number generator from which a scenario is drawn.
pub struct Draw(pub Random);

impl Draw {
    pub fn happens(&mut self, probability: f64) -> bool {
        self.0.unit() < probability
    }

    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.range(least as i64, most as i64) as u64
    }

    /// Draws a number between `least` and `most`, in which each order of magnitude is equally likely.
    pub fn magnitude(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.unit())
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.within(least, most))
    }

    fn limit(&mut self) -> Limit {
        if self.happens(0.5) { Limit::Transactions(self.within(1, 30)) } else { Limit::Time(self.millis(1, 1500)) }
    }

    fn interval_ns(&mut self, faults: &mut Faults) -> Option<f64> {
        self.happens(0.4).then(|| {
            let interval = self.magnitude(0.3, 2e8);
            if interval < 20_000.0 {
                // Skipping a start must not cost the simulation more than it costs the engine.
                faults.clock_ns = 3_000;
            }
            interval
        })
    }

    fn closed(&mut self, faults: &mut Faults) -> Kind {
        let interval_ns = self.interval_ns(faults);
        Kind::Closed {
            limit: self.limit(),
            interval_ns,
            reconnect: self.happens(0.25),
            wait_for_server: self.happens(0.3).then(|| self.millis(1, 3000)),
            thinks: interval_ns.is_none() && self.happens(0.1),
        }
    }

    fn staged(&mut self, faults: &mut Faults) -> Kind {
        let interval_ns = self.interval_ns(faults);
        let time = self.happens(0.7).then(|| self.millis(1, 1500));
        let events_each = self.happens(0.2).then(|| self.within(1, 20));
        let events = (time.is_none() || self.happens(0.3)).then(|| self.within(1, 200));
        let longest_queue = interval_ns.and_then(|_| self.happens(0.5).then(|| self.within(1, 1000)));
        Kind::Staged(StagedPlan { events, events_each, time, interval_ns, longest_queue })
    }

    fn pooled(&mut self) -> Kind {
        let rate = self.magnitude(20.0, 5000.0);
        Kind::Pooled {
            apps: self.within(1, 3) as usize,
            tasks: self.within(1, 80) as u32,
            arrival: [Arrival::AtOnce, Arrival::Rate(rate), Arrival::Poisson(rate)][self.within(0, 2) as usize],
            size: self.within(2, 8) as usize,
            timeout: self.millis(1, 2000),
            lifetime: self.happens(0.4).then(|| self.millis(1, 300)),
        }
    }

    fn replayed(&mut self) -> Kind {
        let timing = if self.happens(0.6) {
            ReplayTiming::Recorded { speed: self.magnitude(0.2, 20.0) }
        } else {
            ReplayTiming::BackToBack
        };
        Kind::Replayed { timing, time: self.happens(0.4).then(|| self.millis(1, 1000)) }
    }
}

impl Scenario {
    /// Draws the scenario of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw(Random::seeded(seed));
        let mut faults = draw.faults();
        let kind = match draw.within(0, 9) {
            0..=4 => draw.closed(&mut faults),
            5..=6 => draw.staged(&mut faults),
            7 => draw.replayed(),
            _ => draw.pooled(),
        };
        let is_script = matches!(kind, Kind::Closed { .. } | Kind::Pooled { .. });
        let latency_limit = draw.happens(0.4).then(|| Duration::from_nanos(draw.magnitude(1e5, 1e9) as u64));
        let options = ScriptOptions {
            timed_commands: draw.happens(0.3),
            latency_limit,
            tries: if draw.happens(0.2) && latency_limit.is_some() { None } else { Some(draw.within(1, 5) as u32) },
            continue_on_error: draw.happens(0.3),
            ..ScriptOptions::default()
        };
        let shards = if draw.happens(0.2) { 2 } else { 1 };
        let most = if draw.happens(0.1) { 60 } else { 8 };
        let clients = shards.max(draw.within(1, most) as usize);
        let jobs = draw.within(1, (clients / shards).min(4) as u64) as usize;
        let mode = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared][draw.within(0, 2) as usize];
        let mut scenario = Self {
            seed,
            clients,
            jobs,
            shards,
            mode,
            describes: draw.happens(0.7),
            warmup: if draw.happens(0.3) && !matches!(kind, Kind::Pooled { .. } | Kind::Replayed { .. }) {
                draw.millis(1, 1200)
            } else {
                Duration::ZERO
            },
            scripts: draw.within(1, 3) as usize,
            options: if is_script { options } else { ScriptOptions::default() },
            slices: None,
            exit_on_abort: draw.happens(0.3),
            connect_timeout: draw.happens(0.3),
            interrupt_at: draw.happens(0.25).then(|| draw.within(0, 2000) * MS),
            alarm_at: draw.happens(0.05).then(|| draw.within(0, 2000) * MS),
            extras: Extras::draw(seed),
            kind,
            faults,
        };
        scenario.draw_slices(&mut draw);
        scenario.end_what_never_ends(&mut draw);
        scenario.keep_extras_that_fit();
        scenario
    }

    /// Returns a scenario without faults and rare features, with one thread that has one client.
    pub fn quiet(seed: u64, kind: Kind) -> Self {
        Self {
            seed,
            kind,
            faults: Faults::NONE,
            clients: 1,
            jobs: 1,
            shards: 1,
            mode: QueryMode::Simple,
            describes: true,
            warmup: Duration::ZERO,
            scripts: 1,
            options: ScriptOptions::default(),
            slices: None,
            exit_on_abort: false,
            connect_timeout: false,
            interrupt_at: Some(60_000 * MS),
            alarm_at: None,
            extras: Extras::default(),
        }
    }

    /// Draws for some of the loads with a time limit that several engines take turns in slices of time.
    fn draw_slices(&mut self, draw: &mut Draw) {
        let is_timed = match &mut self.kind {
            Kind::Closed { limit: Limit::Time(time), .. } => Some(time),
            Kind::Staged(StagedPlan { time: Some(time), .. }) => Some(time),
            _ => None,
        };
        let Some(time) = is_timed.filter(|_| draw.happens(0.3)) else { return };
        let of = draw.within(2, 3) as usize;
        let length = draw.within(10, 60) * MS;
        let (index, seed) = (draw.within(0, of as u64 - 1) as usize, draw.within(0, 1 << 40));
        let round = Duration::from_nanos(length * of as u64);
        *time = round * draw.within(1, 6) as u32;
        self.warmup = round * draw.within(0, 2) as u32;
        self.slices = Some(Slices { length, index, of, seed });
    }

    /// Makes sure that a run which may never end is interrupted at some time: its server may never answer, or its
    /// clients may wait for a server for ever.
    fn end_what_never_ends(&mut self, draw: &mut Draw) {
        self.interrupt_at = Some(self.interrupt_at.unwrap_or(20_000 * MS + draw.within(0, 5000) * MS));
    }

    /// Removes the features that the kind of load cannot have.
    fn keep_extras_that_fit(&mut self) {
        let is_script = matches!(self.kind, Kind::Closed { .. } | Kind::Pooled { .. });
        let is_staged = matches!(self.kind, Kind::Staged(_));
        let extras = &mut self.extras;
        if !is_script {
            (extras.log, extras.notes) = (None, Notes::default());
        }
        (self.faults.dismissal, self.faults.chatter) = (extras.dismissal, extras.chatter);
        (self.faults.is_deaf, self.faults.fails_at) = (extras.is_deaf, extras.fails_at);
        extras.is_command &= is_staged;
        extras.is_alone &= is_staged;
        extras.time_includes_connecting &= matches!(self.kind, Kind::Closed { .. })
            && extras.start.is_none()
            && self.slices.is_none()
            && self.warmup.is_zero();
    }

    /// Returns true if transactions have scheduled starts.
    pub fn has_rate(&self) -> bool {
        match self.kind {
            Kind::Closed { interval_ns, .. } | Kind::Staged(StagedPlan { interval_ns, .. }) => interval_ns.is_some(),
            Kind::Pooled { .. } | Kind::Replayed { .. } => false,
        }
    }

    /// Returns the length of the measured part, if it is limited.
    pub fn time(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Closed { limit: Limit::Time(time), .. } => Some(*time),
            Kind::Closed { .. } | Kind::Pooled { .. } => None,
            Kind::Staged(staged) => staged.time,
            Kind::Replayed { time, .. } => *time,
        }
    }

    /// Returns the plan of one engine, whose logs are written to `directory`.
    pub fn plan(&self, index: usize, directory: &Path) -> Plan {
        let shard = Shard { index, of: self.shards };
        let (part, apps) = match self.kind {
            Kind::Pooled { apps, size, .. } => (ClientShare::of_pools(shard, apps, size), apps),
            _ => (ClientShare::of_clients(shard, self.clients), 0),
        };
        let jobs = match self.kind {
            Kind::Pooled { apps, .. } => self.jobs.min(apps),
            _ => self.jobs.min(part.clients()),
        };
        let seeds = Seeds::derive(self.seed, &part, apps, jobs, None);
        let workload = Arc::new(Workloads::of(self));
        let mut options = self.options.clone();
        options.log = self.extras.log.as_ref().map(|log| log.plan(directory, self.has_rate()));
        options.notes = self.extras.notes;
        options.program = "program";
        let load = match &self.kind {
            Kind::Closed { limit, interval_ns, reconnect, wait_for_server, thinks } => Load::closed(
                workload,
                ClosedPlan {
                    limit: *limit,
                    alarm: self.alarm_at.map(|_| Arc::new(AtomicBool::new(false))),
                    interval_ns: *interval_ns,
                    reconnect: *reconnect,
                    wait_for_server: *wait_for_server,
                    thinks: *thinks,
                },
            ),
            Kind::Staged(staged) => {
                let events = staged.events.map(|events| part.transactions(events));
                Load::staged(workload, StagedPlan { events, ..*staged })
            }
            Kind::Pooled { apps, tasks, arrival, size, timeout, lifetime } => {
                let task_share = TaskShare { shard, tasks: *tasks, size: *size };
                let pools = PoolPlan {
                    apps: *apps,
                    tasks: task_share.own_tasks(),
                    arrival: *arrival,
                    size: task_share.own_slots(),
                    timeout: *timeout,
                    lifetime: *lifetime,
                    task_share,
                };
                Load::pooled(workload, pools)
            }
            Kind::Replayed { timing, time } => Load::replayed(
                workload,
                ReplayPlan { timing: *timing, time: *time, accounts: Arc::from(ACCOUNTS.map(str::to_owned)) },
            ),
        };
        let target = (!self.extras.is_alone).then(|| target(self.connect_timeout));
        let mut plan = Plan::new(target, part, seeds, load);
        plan.start = self.extras.start.as_ref().map(PlannedStart::plan);
        plan.is_command = self.extras.is_command;
        plan.jobs = jobs;
        plan.mode = self.mode;
        plan.describes = self.describes;
        plan.warmup = self.warmup;
        plan.time_includes_connecting = self.extras.time_includes_connecting;
        plan.slices = self.slices;
        plan.exit_on_abort = self.exit_on_abort;
        plan.options = options;
        plan
    }
}

impl Scenario {
    /// Tells the simulated world which scheduled starts the threads of `plan` must have.
    pub fn expect_starts(&self, plan: &Plan) {
        let interval_ns = match self.kind {
            Kind::Closed { interval_ns, .. } | Kind::Staged(StagedPlan { interval_ns, .. }) => interval_ns,
            Kind::Pooled { .. } | Kind::Replayed { .. } => None,
        };
        let share = self.clients as f64 / plan.clients as f64;
        let is_connected =
            !matches!(self.kind, Kind::Closed { reconnect: true, .. } | Kind::Closed { wait_for_server: Some(_), .. });
        for (thread, seeds) in plan.seeds.threads.iter().enumerate() {
            let interval = interval_ns.filter(|_| self.slices.is_none());
            let mean = interval.map(|interval| interval * share * plan.jobs as f64);
            let process = mean.map(|mean| Process::new(seeds.throttle.clone(), mean));
            let is_punctual = is_connected && self.slices.is_none();
            let starts = Starts::new(process, self.options.latency_limit.is_some(), is_punctual);
            world(|world| world.truth.expect_starts(thread, starts));
        }
    }

    /// Returns the times at which the tasks of each application arrive, in nanoseconds from the start of the load.
    pub fn arrivals(&self, plan: &Plan) -> Vec<Vec<f64>> {
        let Kind::Pooled { tasks, arrival, .. } = self.kind else { return Vec::new() };
        let of_application = |random: &Random| match arrival {
            Arrival::AtOnce => vec![0.0; tasks as usize],
            Arrival::Rate(rate) => (0..tasks).map(|task| f64::from(task) / rate * 1e9).collect(),
            Arrival::Poisson(rate) => {
                let mut process = Process::new(random.clone(), 1e9 / rate);
                (0..tasks).map(|_| process.next()).collect()
            }
        };
        plan.seeds.arrivals.iter().map(of_application).collect()
    }
}

/// The names of the two templates of recorded statements.
const ACCOUNTS: [&str; 2] = ["one", "other"];

/// A machine that has neither environment variables nor files.
struct Bare;

impl Environment for Bare {
    fn var(&self, _name: &str) -> Option<String> {
        None
    }

    fn user_name(&self) -> Option<String> {
        Some("user".to_owned())
    }

    fn home(&self) -> Option<std::path::PathBuf> {
        None
    }
}

/// Returns the address of the simulated server. No real socket is connected to it.
fn target(has_timeout: bool) -> Arc<Target> {
    let timeout = if has_timeout { " connect_timeout=2" } else { "" };
    let given =
        Given { dbname: Some(format!("host=/simulated user=u dbname=d password=p{timeout}")), ..Given::default() };
    let mut target = Target::resolve(resolve(&given, &Bare).expect("the parameters are right"));
    target.user = User { tell: |line| world(|world| world.truth.lines.push(line.to_owned())), ..User::NOBODY };
    Arc::new(target)
}
