//! Tests of the report: the reports of invented outcomes are compared line by line.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use drive::plan::{ClosedPlan, Limit, Load, ScriptOptions};
use drive::statistics::{ScheduleStatistics, ScriptAccount};
use ground::random::Random;
use ground::shard::ClientShare;
use wire::params;
use wire::params::{Given, ProcessEnvironment};
use wire::statement::QueryMode;
use wire::target::Target;
use workload::seeds::Seeds;
use workload::{CommandInfo, Program, Workload};

struct Scripts(Vec<ScriptInfo>);

impl Workload for Scripts {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.0.clone()
    }

    fn client(&self, _: usize, _: Random) -> Box<dyn Program> {
        unreachable!("a report needs no client")
    }
}

fn closed() -> ClosedPlan {
    ClosedPlan {
        limit: Limit::Time(Duration::from_secs(4)),
        interval_ns: None,
        alarm: None,
        reconnect: false,
        wait_for_server: None,
        thinks: false,
    }
}

fn plan(scripts: &[(&str, u64)]) -> Plan {
    plan_of(scripts, closed())
}

fn plan_of(scripts: &[(&str, u64)], closed: ClosedPlan) -> Plan {
    let given = Given { host: Some("/tmp".to_owned()), ..Given::default() };
    let target = Target::resolve(params::resolve(&given, &ProcessEnvironment).unwrap());
    let commands = vec![CommandInfo { line: "SELECT 1;".to_owned(), is_sql: true }];
    let scripts = scripts
        .iter()
        .map(|(name, weight)| ScriptInfo {
            description: (*name).to_owned(),
            weight: *weight,
            commands: commands.clone(),
        })
        .collect();
    let part = ClientShare::whole(2);
    let seeds = Seeds::derive(1, &part, 0, 1, None);
    Plan {
        mode: QueryMode::Prepared,
        ..Plan::new(Some(Arc::new(target)), part, seeds, Load::closed(Arc::new(Scripts(scripts)), closed))
    }
}

/// Returns counts with four committed transactions, and with the value 1 for every other count.
fn counts() -> Counts {
    let mut counts = Counts { other_failures: 1, skipped: 1, late: 1, retried: 2, retries: 3, ..Counts::default() };
    [1000.0, 3000.0, 1000.0, 3000.0].into_iter().for_each(|us| counts.moments.add(us));
    [0.0, 500.0].into_iter().for_each(|us| counts.lag.add(us));
    ["40001", "40P01", "57P01"].into_iter().for_each(|state| counts.fail(state));
    counts
}

fn outcome(scripts: usize) -> Outcome {
    let mut account = Account { failures: 2, retries: 3, ..Account::default() };
    account.moments.add(1500.0);
    Outcome {
        measure: LoadStatistics { counts: counts(), ..LoadStatistics::default() },
        elapsed_s: 4.0,
        connect_s: 0.005,
        reconnect_s: 0.014,
        scripts: vec![ScriptAccount { whole: counts(), commands: vec![account], ..ScriptAccount::default() }; scripts],
        ..Outcome::default()
    }
}

fn output(failures_detailed: bool, percentiles: bool) -> OutputOptions {
    OutputOptions { failures_detailed, percentiles, ..OutputOptions::default() }
}

fn report_of(output: &OutputOptions, plan: &Plan, outcome: &Outcome) -> String {
    report(output, plan, &Facts { scale: 3, partitions: Some(("hash".to_owned(), 5)) }, outcome)
}

#[test]
fn without_further_options_latency_follows_from_the_run_time() {
    let text = report_of(&OutputOptions::default(), &plan(&[("a.sql", 1)]), &outcome(1));
    let expected = "\
transaction type: a.sql
scaling factor: 3
partition method: hash
partitions: 5
query mode: prepared
number of clients: 2
number of threads: 1
maximum number of tries: 1
duration: 4 s
number of transactions actually processed: 4
number of failed transactions: 3 (37.500%)
latency average = 1000.000 ms (including failures)
initial connection time = 5.000 ms
tps = 1.000000 (without initial connection time)
";
    assert_eq!(text, expected);
}

#[test]
fn every_option_has_its_lines_in_pgbenchs_order() {
    let output = output(true, false);
    let closed = ClosedPlan { limit: Limit::Transactions(4), interval_ns: Some(1e6), reconnect: true, ..closed() };
    let options = ScriptOptions {
        timed_commands: true,
        latency_limit: Some(Duration::from_micros(2500)),
        tries: None,
        ..ScriptOptions::default()
    };
    let plan = Plan { options, ..plan_of(&[("a.sql", 1), ("b.sql", 3)], closed) };
    let text = report_of(&output, &plan, &outcome(2));
    let expected = "\
number of transactions per client: 4
number of transactions actually processed: 4/8
number of failed transactions: 3 (37.500%)
number of serialization failures: 1 (12.500%)
number of deadlock failures: 1 (12.500%)
number of transactions retried: 2 (25.000%)
total number of retries: 3
number of transactions skipped: 1 (12.500%)
number of transactions above the 2.5 ms latency limit: 1/4 (25.000%)
latency average = 2.000 ms
latency stddev = 1.000 ms
rate limit schedule lag: avg 0.250 (max 0.500) ms
average connection time = 2.000 ms
tps = 1.000000 (including reconnection times)
SQL script 1: a.sql
 - weight: 1 (targets 25.0% of total)
 - 8 transactions (100.0% of total)
 - number of transactions actually processed: 4 (tps = 1.000000)
 - number of failed transactions: 3 (37.500%)
 - number of serialization failures: 1 (12.500%)
 - number of deadlock failures: 1 (12.500%)
 - number of transactions retried: 2 (25.000%)
 - total number of retries: 3
 - number of transactions skipped: 1 (12.500%)
 - latency average = 2.000 ms
 - latency stddev = 1.000 ms
 - statement latencies in milliseconds, failures and retries:
         1.500           2          3 SELECT 1;
SQL script 2: b.sql
";
    assert!(text.starts_with("transaction type: multiple scripts\n"), "{text}");
    assert!(!text.contains("maximum number of tries"), "{text}");
    assert!(text.contains(expected), "{text}");
}

#[test]
fn other_failures_have_a_line_when_clients_go_on_after_them() {
    let output = output(true, false);
    let options = ScriptOptions { continue_on_error: true, ..ScriptOptions::default() };
    let plan = Plan { options, ..plan(&[("a.sql", 1)]) };
    let text = report_of(&output, &plan, &outcome(1));
    assert!(text.contains("deadlock failures: 1 (12.500%)\nnumber of other failures: 1 (12.500%)\n"), "{text}");
}

#[test]
fn with_a_rate_percentiles_are_those_of_service_and_lag_too() {
    let output = output(false, true);
    let mut outcome = outcome(1);
    outcome.measure.latencies.record(1_000_000);
    outcome.measure.schedule = Some(Box::new(ScheduleStatistics::default()));
    if let Some(schedule) = &mut outcome.measure.schedule {
        schedule.service.record(750_000);
        schedule.lags.record(250_000);
    }
    let text = report_of(&output, &plan(&[("a.sql", 1)]), &outcome);
    for line in [
        "latency percentiles (ms): p50 = 1.000, p90 = 1.000, p95 = 1.000, p99 = 1.000, p99.9 = 1.000, max = 3.000\n",
        "service time percentiles (ms): p50 = 0.750, p90 = 0.750, p95 = 0.750, p99 = 0.750, p99.9 = 0.750\n",
        "schedule lag percentiles (ms): p50 = 0.250, p90 = 0.250, p95 = 0.250, p99 = 0.250, p99.9 = 0.250\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn nothing_executed_leaves_the_settings_only() {
    let text = report_of(&OutputOptions::default(), &plan(&[("a.sql", 1)]), &Outcome::default());
    assert!(text.ends_with("number of transactions actually processed: 0\n"), "{text}");
}
