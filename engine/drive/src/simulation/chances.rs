//! Statistical tests over many simulated runs: that scripts are chosen by their weights, and that transactions start at
//! the rate of the load. The seeds are always the same. For other seeds each test would fail with a probability below
//! one in a million although nothing is wrong.

use std::sync::Arc;
use std::time::Duration;

use super::launch;
use super::scenario::{Kind, Scenario};
use crate::outcome::Outcome;
use crate::plan::{ClosedPlan, Limit, Load};
use crate::slices::Slices;
use ground::clock::MS;
use ground::random::Random;
use wire::statement::QueryMode;
use workload::pgbench::{ScriptEnvironment, Scripts, parse};

/// The quantile of the standard normal distribution that is exceeded with a probability of less than one in two
/// millions, so that both sides together are exceeded with less than one in a million.
const DEVIATIONS: f64 = 5.0;

const WEIGHTS: [u64; 4] = [1, 2, 0, 7];
const SEEDS: u64 = 60;
const INTERVAL_NS: f64 = 2e6;

/// Returns the value that a chi-square with `freedom` degrees of freedom exceeds (or with a negative number of standard
/// deviations undercuts) as seldom as a normal variable exceeds `deviations`. Source: Wilson and Hilferty, The
/// distribution of chi-square (PNAS 17, 1931).
fn chi_square(freedom: f64, deviations: f64) -> f64 {
    let variance = 2.0 / (9.0 * freedom);
    freedom * (1.0 - variance + deviations * variance.sqrt()).max(0.0).powi(3)
}

/// Runs four clients at a rate, with pgbench's own scripts.
fn run(seed: u64, change: &dyn Fn(&mut Scenario)) -> Outcome {
    let mut scenario = Scenario::quiet(seed, Kind::closed(Limit::Time(Duration::from_secs(1)), Some(INTERVAL_NS)));
    (scenario.clients, scenario.jobs) = (4, 2);
    change(&mut scenario);
    let Kind::Closed { limit, interval_ns, .. } = scenario.kind else { unreachable!("the load is a closed loop") };
    let environment = ScriptEnvironment {
        mode: QueryMode::Simple,
        timed: false,
        announced: false,
        needs_values: false,
        lists: Vec::new(),
        variables: Vec::new(),
        default_seed: 0,
    };
    let scripts = WEIGHTS.map(|weight| parse("s", weight, b"SELECT 1;").expect("the script is right"));
    let scripts = Scripts::link(scripts.into(), &environment).expect("the scripts fit together");
    let directory = tempfile::tempdir().expect("a directory for logs");
    let mut plan = scenario.plan(0, directory.path());
    plan.load = Load::closed(
        Arc::new(Arc::new(scripts)),
        ClosedPlan { limit, alarm: None, interval_ns, reconnect: false, wait_for_server: None, thinks: false },
    );
    launch(&scenario, &plan, Random::seeded(seed), None).outcome.expect("the run succeeds")
}

/// Checks the runs of all seeds. `expected` is the mean number of scheduled starts in the measured part of a run.
fn judge(change: &dyn Fn(&mut Scenario), expected: f64) {
    let (mut all, mut dispersion, mut scripts) = (0.0, 0.0, [0.0; WEIGHTS.len()]);
    for seed in 0..SEEDS {
        let outcome = run(seed, change);
        let count = outcome.scripts.iter().map(|script| script.whole.moments.count as f64).sum::<f64>();
        all += count;
        dispersion += (count - expected).powi(2) / expected;
        for (sum, script) in scripts.iter_mut().zip(&outcome.scripts) {
            *sum += script.whole.moments.count as f64;
        }
    }
    // The number of starts of a Poisson process has a variance that is equal to its mean.
    let mean = expected * SEEDS as f64;
    assert!((all - mean).abs() < DEVIATIONS * mean.sqrt(), "{all} transactions started instead of about {mean}");
    let (least, most) = (chi_square(SEEDS as f64, -DEVIATIONS), chi_square(SEEDS as f64, DEVIATIONS));
    assert!((least..most).contains(&dispersion), "the dispersion is {dispersion}, not from {least} to {most}");
    let total: u64 = WEIGHTS.iter().sum();
    let terms = scripts.iter().zip(WEIGHTS).filter(|(_, weight)| *weight > 0).map(|(count, weight)| {
        let expected = all * weight as f64 / total as f64;
        (count - expected).powi(2) / expected
    });
    let (sum, freedom) = (terms.sum::<f64>(), WEIGHTS.iter().filter(|weight| **weight > 0).count() - 1);
    assert!(sum < chi_square(freedom as f64, DEVIATIONS), "{scripts:?} are not the shares of the weights {WEIGHTS:?}");
    assert_eq!(scripts[2], 0.0, "a script without weight ran");
}

#[test]
fn transactions_start_at_the_rate_and_scripts_are_chosen_by_their_weights() {
    judge(&|_| {}, 1e9 / INTERVAL_NS);
}

#[test]
fn the_rate_and_the_weights_hold_after_a_warmup() {
    judge(&|scenario| scenario.warmup = Duration::from_millis(300), 1e9 / INTERVAL_NS);
}

#[test]
fn the_rate_and_the_weights_hold_in_slices() {
    let slices = Slices { length: 50 * MS, index: 0, of: 2, seed: 11 };
    judge(&|scenario| scenario.slices = Some(slices), 0.5e9 / INTERVAL_NS);
}

#[test]
fn chi_square_is_that_of_the_tables() {
    // Of the tables: 18.307 for 10 degrees of freedom is exceeded with 5%, which are 1.645 deviations.
    assert!((chi_square(10.0, 1.644_85) - 18.307).abs() < 0.02);
    assert!((chi_square(10.0, -1.644_85) - 3.940).abs() < 0.02);
}
