//! Tests of the observer of a run. The tests call it once for each second of an invented run.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::observer::{LoadRun, RunObserver};
use super::super::options::ReportOptions;
use super::super::run::log_limits;
use super::super::status::OVERDUE;
use super::super::texts::opening;
use super::{logged, measured, usual};
use crate::frontend::never_run::Nothing;
use crate::frontend::sysbench::log::Level;
use drive::plan::{Load, Plan, StagedPlan};
use drive::slices::Slices;
use drive::statistics::{LoadStatistics, Queue, ScheduleStatistics, SliceTime};
use drive::{Abortion, Cause, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase, SECOND};
use ground::shard::{ClientShare, Shard};
use wire::params;
use wire::params::{Given, ProcessEnvironment};
use wire::statement::QueryMode;
use wire::target::Target;
use workload::seeds::Seeds;
use workload::settings::{OptionValue, Settings};
use workload::statistics::{Hooks, Introduction, Statistics};
use workload::{AbortReason, Fatal};

impl Hooks for Nothing {}

/// A sysbench test that makes all reports by functions of its own. If `fails` is true, these functions fail.
#[derive(Default)]
struct Own {
    reports: RefCell<Vec<Statistics>>,
    fails: bool,
}

impl Own {
    fn report(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.reports.borrow_mut().push(*statistics);
        if self.fails { Err(Fatal::new("the hook failed")) } else { Ok(true) }
    }
}

impl Hooks for Own {
    fn intermediate(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.report(statistics)
    }

    fn cumulative(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.report(statistics)
    }
}

fn plan() -> Plan {
    let given = Given { host: Some("/tmp".to_owned()), ..Given::default() };
    let target = Target::resolve(params::resolve(&given, &ProcessEnvironment).unwrap());
    let part = ClientShare::whole(2);
    let seeds = Seeds::derive(1, &part, 0, 1, None);
    let staged = StagedPlan { time: Some(Duration::from_secs(2)), ..StagedPlan::default() };
    Plan {
        mode: QueryMode::Prepared,
        warmup: Duration::from_secs(1),
        exit_on_abort: true,
        ..Plan::new(Some(Arc::new(target)), part, seeds, Load::staged(Arc::new(Nothing), staged))
    }
}

fn tick(phase: Phase, second: u32) -> Tick {
    Tick { phase, second, seconds: 1.0, slice: None, statistics: measured() }
}

/// Runs the observer. Returns true if the observer stopped the run, and the text that it wrote.
fn watched(
    options: &ReportOptions,
    test: &dyn Hooks,
    act: impl FnOnce(&mut RunObserver<'_, Vec<u8>>),
) -> (bool, String) {
    watched_of(&plan(), options, test, act)
}

/// Runs the observer for a run with this plan. Returns true if the observer stopped the run, and the text that it
/// wrote.
fn watched_of(
    plan: &Plan,
    options: &ReportOptions,
    test: &dyn Hooks,
    act: impl FnOnce(&mut RunObserver<'_, Vec<u8>>),
) -> (bool, String) {
    let stop = Arc::new(AtomicBool::new(false));
    let text = logged(3, |log| {
        let run = LoadRun { settings: &Settings::default(), plan, clock: Clock::start(), test, log };
        let mut observer = RunObserver::new(run, options, None, &stop);
        act(&mut observer);
    });
    (stop.load(Ordering::Relaxed), text)
}

/// Returns the lines that begin with one of `beginnings`, each cut off before ` tps`.
fn lines(text: &str, beginnings: &[&str]) -> Vec<String> {
    let wanted = text.lines().filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)));
    wanted.map(|line| line.split(" tps").next().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn intervals_come_before_checkpoints_and_checkpoints_begin_anew() {
    let options = ReportOptions { interval: Some(1), checkpoints: vec![1], ..usual() };
    let (_, text) = watched(&options, &Nothing, |observer| {
        observer.connected(2, 0.1);
        observer.phase(Phase::Warmup, None);
        observer.tick(&tick(Phase::Warmup, 0));
        observer.phase(Phase::Measure, None);
        observer.tick(&tick(Phase::Measure, 0));
        observer.tick(&tick(Phase::Measure, 1));
        observer.phase(Phase::Drain, None);
        observer.tick(&Tick { seconds: 0.5, ..tick(Phase::Drain, 0) });
        observer.report_whole(&Outcome { elapsed_s: 2.5, ..Outcome::default() });
    });
    let told = lines(&text, &["Threads", "Warming", "[", "    total", "    transactions"]);
    let expected = [
        "Threads started!",
        "Warming up for 1 seconds...",
        "[ 1s ] thds: 2",
        "[ 1s ] Checkpoint report:",
        "transactions:                        4      (4.00 per sec.)",
        "total time:                          1.0000s",
        "total number of events:              4",
        "Threads fairness:",
        "[ 2s ] thds: 2",
        "transactions:                        8      (5.33 per sec.)",
        "total time:                          2.5000s",
        "total number of events:              8",
        "Threads fairness:",
    ];
    assert_eq!(told, expected, "{text}");
}

#[test]
fn an_interval_of_several_seconds_is_told_when_it_is_full() {
    let options = ReportOptions { interval: Some(2), has_rate: true, ..usual() };
    let (_, text) = watched(&options, &Nothing, |observer| {
        for second in 0..3 {
            let mut tick = tick(Phase::Measure, second);
            let queue = Some(Queue { waiting: u64::from(second), busy: 2 });
            tick.statistics.schedule = Some(Box::new(ScheduleStatistics { queue, ..ScheduleStatistics::default() }));
            observer.tick(&tick);
        }
    });
    let expected = "\
[ 2s ] thds: 2 tps: 4.00 qps: 24.00 (r/w/o: 12.00/4.00/8.00) lat (ms,95%): 10.00 err/s: 1.00 reconn/s: 2.00
[ 2s ] queue length: 1, concurrency: 2
";
    assert_eq!(text, expected);
}

#[test]
fn with_slices_intervals_are_of_the_clock_and_rates_of_the_time_of_the_threads() {
    let options = ReportOptions { interval: Some(1), checkpoints: vec![2], ..usual() };
    let slices = Slices { length: SECOND * 3 / 4, index: 0, of: 2, seed: 0 };
    let plan = Plan { slices: Some(slices), ..plan() };
    let (_, text) = watched_of(&plan, &options, &Nothing, |observer| {
        for round in 0..2 {
            let mut tick =
                Tick { seconds: 0.75, slice: Some(slices.slice(round.into())), ..tick(Phase::Measure, round) };
            // Two threads took part in the slice, each for half a second.
            tick.statistics.slice_time = Some(SliceTime { client_ns: SECOND, span: None });
            observer.tick(&tick);
        }
    });
    let told: Vec<_> = text.lines().filter(|line| line.contains("tps: ") || line.contains("transactions:")).collect();
    assert_eq!(told.len(), 3, "{text}");
    assert!(told[0].starts_with("[ 2s ] thds: 2 tps: 8.00 "), "{text}");
    assert!(told[1].starts_with("[ 3s ] thds: 2 tps: 8.00 "), "{text}");
    assert!(told[2].ends_with("(8.00 per sec.)"), "{text}");
}

#[test]
fn the_run_is_stopped_when_the_grace_is_over() {
    let options = ReportOptions { grace: Some(1), ..usual() };
    let mut status = 0;
    let begin = |observer: &mut RunObserver<'_, Vec<u8>>| {
        observer.tick(&tick(Phase::Measure, 0));
        observer.phase(Phase::Drain, None);
    };
    assert!(!watched(&options, &Nothing, begin).0);
    let (stopped, text) = watched(&options, &Nothing, |observer| {
        begin(observer);
        observer.tick(&tick(Phase::Drain, 0));
        let outcome = Outcome { unfinished: 1, interrupted: true, ..Outcome::default() };
        status = observer.status(&outcome);
        observer.report_whole(&outcome);
    });
    assert_eq!((stopped, status), (true, OVERDUE));
    assert!(text.contains("\n\nNumber of unfinished transactions on forced shutdown: 1\n\nGeneral"), "{text}");
}

#[test]
fn without_a_grace_nothing_is_waited_for() {
    let (stopped, _) =
        watched(&ReportOptions { grace: Some(0), ..usual() }, &Nothing, |observer| observer.phase(Phase::Drain, None));
    assert!(stopped);
}

#[test]
fn a_run_has_the_status_of_how_it_ended() {
    let mut statuses = Vec::new();
    watched(&usual(), &Nothing, |observer| {
        for (aborted, interrupted) in [(0, false), (0, true), (1, true)] {
            statuses.push(observer.status(&Outcome { aborted, interrupted, ..Outcome::default() }));
        }
    });
    assert_eq!(statuses, [0, 130, 1]);
}

#[test]
fn fatal_lines_are_told_as_they_are_and_other_causes_in_a_sentence() {
    let abortion = |client, trouble| Abortion { client, script: 0, command: None, cause: Cause::Program(trouble) };
    let (_, text) = watched(&usual(), &Nothing, |observer| {
        let lines = ["PQexec() failed: 7 no", "failed query was: SELECT"].map(str::to_owned).to_vec();
        observer.aborted(&abortion(0, AbortReason::Fatal(lines)));
        observer.aborted(&abortion(1, AbortReason::Script { reason: "it is stuck".to_owned() }));
    });
    let expected = "\
FATAL: PQexec() failed: 7 no
FATAL: failed query was: SELECT
FATAL: thread 1 cannot go on: it is stuck
";
    assert_eq!(text, expected);
}

#[test]
fn a_test_reports_in_its_own_way() {
    let options = ReportOptions { interval: Some(1), checkpoints: vec![1], ..usual() };
    let own = Own::default();
    let (_, text) = watched(&options, &own, |observer| observer.tick(&tick(Phase::Measure, 0)));
    assert_eq!(text, "[ 1s ] Checkpoint report:\n");
    let reports = own.reports.borrow();
    assert_eq!((reports.len(), reports[0].events, reports[1].events), (2, 4, 4));
    assert_eq!((reports[1].latency_max, reports[1].latency_pct, reports[1].time_interval), (0.01, 0.01, 1.0));
}

#[test]
fn a_report_of_the_tests_own_that_fails_is_told_and_the_run_goes_on() {
    let own = Own { fails: true, ..Own::default() };
    let (stopped, text) = watched(&ReportOptions { interval: Some(1), ..usual() }, &own, |observer| {
        observer.tick(&tick(Phase::Measure, 0));
        observer.tick(&tick(Phase::Measure, 1));
        observer.report_whole(&Outcome::default());
    });
    assert_eq!((stopped, text.as_str(), own.reports.borrow().len()), (false, "FATAL: the hook failed\n", 3));
}

#[test]
fn the_opening_names_every_option() {
    let mut settings = Settings::default();
    for (name, number) in [("threads", 2), ("warmup_time", 3), ("rate", 50), ("rand_seed", 5), ("time", 60)] {
        settings.set(name, OptionValue::Int(number));
    }
    settings.set("validate", OptionValue::Bool(true));
    let options = ReportOptions {
        interval: Some(10),
        checkpoints: vec![20, 40],
        debug: true,
        has_rate: true,
        grace: Some(3),
        ..usual()
    };
    let expected = "\
Running the test with following options:
Number of threads: 2
Warmup time: 3s
Target transaction rate: 50/sec
Report intermediate results every 10 second(s)
Report checkpoint(s) at 20, 40 seconds
Debug mode enabled.

Validation checks: on.

Initializing random number generator from seed (5).

Forcing shutdown in 63 seconds

DEBUG: Event generating thread started
Initializing worker threads...

DEBUG: Reporting thread started
DEBUG: Checkpoints report thread started
DEBUG: Worker thread (#0) started
DEBUG: Worker thread (#1) started
";
    assert_eq!(
        logged(5, |log| opening(log, &settings, &ClientShare::whole(2), &options, Introduction::default())),
        expected
    );
}

#[test]
fn a_shard_of_a_run_says_which_it_is() {
    let mut settings = Settings::default();
    settings.set("threads", OptionValue::Int(5));
    let part = ClientShare::of_clients(Shard { index: 1, of: 2 }, 5);
    let text = logged(5, |log| opening(log, &settings, &part, &usual(), Introduction::default()));
    let told = lines(&text, &["Number", "Shard", "DEBUG: Worker"]);
    let expected = [
        "Number of threads: 5",
        "Shard 2/2 of the run: 2 threads, from #3",
        "DEBUG: Worker thread (#3) started",
        "DEBUG: Worker thread (#4) started",
    ];
    assert_eq!(told, expected);
}

#[test]
fn clients_say_why_they_ended() {
    let told = |total, done: u64, elapsed_s| {
        let mut measure = LoadStatistics::default();
        (0..done).for_each(|_| measure.commit(1000));
        let outcome = Outcome { measure, elapsed_s, ..Outcome::default() };
        let staged = StagedPlan { events: total, time: Some(Duration::from_secs(2)), ..StagedPlan::default() };
        logged(4, |log| {
            log_limits(&Plan { load: Load::staged(Arc::new(Nothing), staged), ..plan() }, &outcome, log);
            log.text(Level::Info, "Done.\n");
        })
    };
    assert_eq!(told(Some(3), 3, 1.0), "Event limit exceeded, exiting...\n(last message repeated 1 times)\nDone.\n\n");
    assert_eq!(told(Some(3), 2, 1.0), "Done.\n\n");
    assert_eq!(told(Some(3), 2, 2.0), "Time limit exceeded, exiting...\n(last message repeated 1 times)\nDone.\n\n");
}
