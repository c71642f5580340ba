//! Simulated runs: the event loop and the main thread run in simulated time, with simulated servers that show all kinds
//! of faults. Everything is drawn from one seed. The counts of each run are compared with what its programs and servers
//! saw.
//!
//! `PGTRIAL_SIMULATION=SEED cargo test -p drive simulat` repeats the run of one seed; `PGTRIAL_SIMULATION=FIRST..END`
//! runs other seeds than the tests do.

mod accounts;
mod calendar;
mod chances;
mod distribution;
mod divisors;
mod ended;
mod extras;
mod faults;
mod former;
mod limits;
mod parts;
mod planted;
mod programs;
mod promises;
mod scenario;
mod seconds;
mod server;
mod shell;
mod starts;
mod times;
mod truth;
mod watch;
mod world;
mod written;

use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use planted::{Defect, Planted};
use promises::{Broken, broken_promises};
use scenario::Scenario;
use shell::{GivenUp, SimulatedRuntime};
use watch::{Ends, Engine, Watch};
use world::world;

use crate::outcome::RunError;
use crate::plan::Plan;
use crate::report::Shared;
use crate::run::Run;
use ground::clock::Nanos;
use ground::random::Random;

/// Records that a client of the thread that is running has taken the scheduled start `start`. Does nothing outside of a
/// simulated run.
pub fn note_start(start: Nanos) {
    world::within(|world| world.truth.take_start(world.running, start));
}

/// The seeds that `cargo test` runs.
const SEEDS: Range<u64> = 0..3000;

/// The environment variable that names other seeds to run.
const VARIABLE: &str = "PGTRIAL_SIMULATION";

/// The longest real time that a run may take, in seconds. A run that takes longer is assumed to compute without end.
const LONGEST_S: u64 = 60;

/// Runs the engines of a scenario. Returns for each engine what it counted and what really happened.
fn simulate(scenario: &Scenario) -> Vec<Engine> {
    simulate_planted(scenario, None)
}

/// Runs the engines of a scenario, and falsifies the reports of their threads if `defect` is given.
fn simulate_planted(scenario: &Scenario, defect: Option<Defect>) -> Vec<Engine> {
    let mut chance = Random::seeded(scenario.seed ^ 0x5151_5151);
    let engines = (0..scenario.shards).map(|index| {
        let directory = tempfile::tempdir().expect("a directory for logs");
        launch(scenario, &scenario.plan(index, directory.path()), chance.derive(), defect)
    });
    engines.collect()
}

/// Runs one engine of a scenario by its plan. `chance` determines what happens in the simulated world.
fn launch(scenario: &Scenario, plan: &Plan, chance: Random, defect: Option<Defect>) -> Engine {
    world::begin(scenario.faults.clone(), chance);
    scenario.expect_starts(plan);
    let (shared, mut watch) = (Shared::default(), Watch::default());
    let alarm = plan.load.alarm();
    let mut runtime = SimulatedRuntime::new(&shared, scenario.interrupt_at, alarm, scenario.alarm_at, &scenario.extras);
    runtime.planted = RefCell::new(defect.map(|defect| Planted::new(defect, scenario.slices)));
    let interrupt = &runtime.interrupt;
    let run = Run { plan, interrupt, observer: &mut watch, runtime: &runtime, shared: &shared };
    let (outcome, given_up) = match catch_unwind(AssertUnwindSafe(|| run.launch())) {
        Ok(outcome) => (outcome, None),
        Err(panic) => match panic.downcast_ref::<GivenUp>() {
            Some(GivenUp(status)) => (Err(RunError::died()), Some(*status)),
            None => resume_unwind(panic),
        },
    };
    let was_interrupted = interrupt.load(Ordering::Relaxed);
    let was_alarmed = alarm.is_some_and(|alarm| alarm.load(Ordering::Relaxed));
    let are_over = runtime.are_over();
    drop(runtime);
    let (ended, truth) = world(|world| (world.main, std::mem::take(&mut world.truth)));
    let (logs, clients, arrivals) = (written::logs(plan), plan.clients, scenario.arrivals(plan));
    let ends = Ends { ended, are_over, was_interrupted, was_alarmed, given_up };
    Engine { outcome, watch, truth, ends, logs, clients, arrivals }
}

/// Runs a scenario. Returns `None` if the run keeps all promises, which are the conditions that every run must fulfil.
/// Otherwise returns a description of the scenario and of the broken promises.
fn trouble(scenario: &Scenario) -> Option<String> {
    let broken = match catch_unwind(AssertUnwindSafe(|| broken_promises(scenario, &simulate(scenario)))) {
        Ok(broken) => broken,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            vec![Broken { promise: "the run does not panic", what: text.unwrap_or_default() }]
        }
    };
    if broken.is_empty() {
        return None;
    }
    let lines: String = broken.iter().map(|promise| format!("  {promise}\n")).collect();
    Some(format!("{scenario:#?}\nseed {}:\n{lines}", scenario.seed))
}

/// Returns the seeds that the environment variable names, or the seeds that every test runs.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(VARIABLE) else { return SEEDS };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{VARIABLE} is SEED or FIRST..END, not {text}"));
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&text)..number(&text) + 1,
    }
}

/// Ends the tests if the run of one seed takes so long that it presumably never ends.
fn watch_for_endless(current: &[AtomicU64]) {
    let mut before: Vec<u64> = Vec::new();
    loop {
        thread::sleep(Duration::from_secs(LONGEST_S));
        let now: Vec<u64> = current.iter().map(|seed| seed.load(Ordering::Relaxed)).collect();
        if let Some((seed, _)) = now.iter().zip(&before).find(|(now, before)| now == before && **now != u64::MAX) {
            println!(
                "{:#?}\nseed {seed}: the run computes without end\nrepeat it: {VARIABLE}={seed}",
                Scenario::draw(*seed)
            );
            process::abort();
        }
        before = now;
    }
}

#[test]
fn runs_that_broke_promises_before_keep_them() {
    for (found, scenario) in former::scenarios() {
        let trouble = trouble(&scenario);
        assert!(trouble.is_none(), "{}the scenario has found before: {found}", trouble.unwrap_or_default());
    }
}

#[test]
fn simulated_runs_keep_all_promises() {
    let seeds = seeds();
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    let current: &'static [AtomicU64] = Box::leak((0..threads).map(|_| AtomicU64::new(u64::MAX)).collect());
    thread::spawn(|| watch_for_endless(current));
    let failed = AtomicUsize::new(0);
    let next = AtomicU64::new(seeds.start);
    thread::scope(|scope| {
        for current in current {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || failed.load(Ordering::Relaxed) >= 3 {
                        return current.store(u64::MAX, Ordering::Relaxed);
                    }
                    current.store(seed, Ordering::Relaxed);
                    if let Some(trouble) = trouble(&Scenario::draw(seed)) {
                        failed.fetch_add(1, Ordering::Relaxed);
                        println!("{trouble}repeat it: {VARIABLE}={seed} cargo test -p drive simulat\n");
                    }
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "simulated runs broke promises");
}
