//! The report at the end of a run: the number and the response times of each kind of transaction, and the number of
//! new-order transactions per minute.

use std::fmt::{Result, Write};

use drive::Outcome;
use drive::plan::Plan;
use drive::statistics::{Counts, LoadStatistics, ScriptAccount};
use ground::words::plural;
use latency::Latencies;
use tables::order_entry::{Made, Space};
use workload::order_entry::{MOST_NEW_ORDERS_PER_WAREHOUSE, TransactionKind, TransactionMix, TransactionStyle};

/// The results of a run, from which the report is made.
pub struct Results<'a> {
    pub plan: &'a Plan,
    pub made: Made,
    pub mix: TransactionMix,
    pub style: TransactionStyle,
    pub outcome: &'a Outcome,
    /// The disk space that the tables take after the run, or `None` if it is not known.
    pub space: Option<Space>,
}

/// Returns the text of the report.
pub fn report(results: &Results<'_>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, so the result is ignored.
    let _ = results.write(&mut out);
    out
}

impl Results<'_> {
    fn write(&self, out: &mut String) -> Result {
        let Self { plan, outcome, .. } = self;
        let mut total = outcome.measure.clone();
        total.merge(&outcome.drain);
        // If engines take turns in slices of time, rates are computed from the time for which a client took part on
        // average.
        let seconds = total.slice_time_s(plan.clients).unwrap_or(outcome.elapsed_s);
        self.write_settings(out, seconds)?;
        if total.counts.transactions() == 0 {
            return writeln!(out, "no transaction was completed");
        }
        self.write_table(out, &total)?;
        self.write_speed(out, &total.counts, seconds)?;
        write_failures(out, &total.counts)
    }

    fn write_settings(&self, out: &mut String, seconds: f64) -> Result {
        let Self { plan, made, mix, outcome, .. } = self;
        let weights: Vec<_> = TransactionKind::all()[..5].iter().map(|kind| mix.weight(*kind).to_string()).collect();
        let (clients, threads) = (plural(plan.clients, "client"), plural(plan.jobs, "thread"));
        let warehouses = plural(made.warehouses, "warehouse");
        let times = if self.thinks() { "with" } else { "without" };
        let calls = if self.style == TransactionStyle::Procedures { "; stored procedures" } else { "" };
        writeln!(out, "order entry: {warehouses}, {clients}, {threads}")?;
        let (protocol, weights) = (plan.mode.name(), weights.join(", "));
        writeln!(out, "protocol: {protocol}{calls}; mix: {weights}; {times} keying and think times")?;
        write!(out, "measured part: {seconds:.1} s")?;
        let warmup = &outcome.warmup;
        if outcome.warmup_s > 0.0 {
            let (length, transactions) = (outcome.warmup_s, plural(warmup.counts.transactions(), "transaction"));
            write!(out, "; warm-up: {length:.1} s, {transactions}, not in these results")?;
        }
        writeln!(out)
    }

    fn thinks(&self) -> bool {
        self.plan.load.thinks()
    }

    /// Writes the table of response times: a row for each kind of transaction, and a row for all transactions together.
    fn write_table(&self, out: &mut String, total: &LoadStatistics) -> Result {
        writeln!(out)?;
        writeln!(
            out,
            "{:<23}{:>9} {:>7} {:>10}{:>10}{:>10}{:>10}{:>10}{:>10} {:>7}",
            "response time in ms", "count", "share", "mean", "p50", "p90", "p95", "p99", "max", "failed"
        )?;
        let all = total.counts.transactions();
        let none = ScriptAccount::default();
        for kind in TransactionKind::all() {
            let ScriptAccount { whole, latencies, .. } = self.outcome.scripts.get(kind as usize).unwrap_or(&none);
            write_row(out, kind.name(), whole, latencies, all)?;
        }
        write_row(out, "all", &total.counts, &total.latencies, all)?;
        writeln!(out)
    }

    fn write_speed(&self, out: &mut String, counts: &Counts, seconds: f64) -> Result {
        let count = |kind: TransactionKind| {
            let account = self.outcome.scripts.get(kind as usize);
            account.map_or(0, |account| account.whole.transactions())
        };
        let rolled_back = count(TransactionKind::RolledBack);
        let new_orders = count(TransactionKind::NewOrder) + rolled_back;
        let per_minute = new_orders as f64 * 60.0 / seconds;
        writeln!(out, "new-order transactions per minute: {per_minute:.1}")?;
        let percent = if new_orders == 0 { 0.0 } else { 100.0 * rolled_back as f64 / new_orders as f64 };
        writeln!(out, "  of these rolled back, as specified: {rolled_back} of {new_orders} ({percent:.2}%)")?;
        writeln!(out, "transactions per second: {:.1}", counts.transactions() as f64 / seconds)?;
        if self.thinks() {
            let most = MOST_NEW_ORDERS_PER_WAREHOUSE * f64::from(self.made.warehouses);
            writeln!(
                out,
                "upper limit that keying and think times set for ten clients per warehouse: {most:.1} new-orders per \
                 minute"
            )?;
        }
        if let Some(space) = &self.space {
            let (now, later) = (space.bytes / 1e9, space.after_60_days(per_minute) / 1e9);
            writeln!(out, "disk space: {now:.2} GB now, {later:.2} GB after 60 days of 8 hours at this rate")?;
        }
        writeln!(out, "These are not TPC-C results, which need more than a load.")
    }
}

fn write_row(out: &mut String, name: &str, counts: &Counts, latencies: &Latencies, all: u64) -> Result {
    let (count, failed) = (counts.transactions(), counts.failures.values().sum::<u64>());
    let share = 100.0 * count as f64 / all as f64;
    write!(out, "{name:<23}{count:>9} {share:>6.2}% ")?;
    match latencies.percentiles() {
        Some(found) => {
            let found = found.at_most(counts.moments.max);
            let [p50, p90, p95, p99] = [found.p50, found.p90, found.p95, found.p99].map(|us| us / 1000.0);
            let (mean, max) = (counts.moments.mean() / 1000.0, counts.moments.max / 1000.0);
            write!(out, "{mean:>10.3}{p50:>10.3}{p90:>10.3}{p95:>10.3}{p99:>10.3}{max:>10.3}")?;
        }
        None => write!(out, "{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", "-", "-", "-")?,
    }
    writeln!(out, " {failed:>7}")
}

fn write_failures(out: &mut String, counts: &Counts) -> Result {
    let failed: u64 = counts.failures.values().sum();
    if failed > 0 {
        let kinds: Vec<_> = counts.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        writeln!(out, "failed transactions: {failed} ({})", kinds.join(", "))?;
    }
    if counts.skipped > 0 {
        writeln!(out, "transactions skipped, too late to start: {}", counts.skipped)?;
    }
    if counts.late > 0 {
        writeln!(out, "transactions above the latency limit: {}", counts.late)?;
    }
    if counts.retried > 0 {
        writeln!(out, "transactions tried again: {}, further tries: {}", counts.retried, counts.retries)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    use drive::plan::{ClosedPlan, Limit, Load};
    use ground::shard::ClientShare;
    use wire::statement::QueryMode;
    use workload::order_entry::OrderEntry;
    use workload::seeds::Seeds;

    fn plan(thinks: bool) -> Plan {
        let part = ClientShare::whole(8);
        let workload =
            OrderEntry::new(2, 8, TransactionMix::default(), TransactionStyle::Statements, (1, 1), QueryMode::Prepared);
        let load = ClosedPlan {
            limit: Limit::Time(Duration::from_secs(30)),
            interval_ns: None,
            alarm: None,
            reconnect: false,
            wait_for_server: None,
            thinks,
        };
        let seeds = Seeds::derive(1, &part, 0, 1, None);
        Plan { mode: QueryMode::Prepared, ..Plan::new(None, part, seeds, Load::closed(Arc::new(workload), load)) }
    }

    /// Returns the outcome of a run with 99 committed new-order transactions, one that was rolled back as specified,
    /// and 90 payments, one of which failed.
    fn outcome() -> Outcome {
        let mut scripts = vec![ScriptAccount::default(); 6];
        let mut outcome = Outcome { elapsed_s: 30.0, warmup_s: 2.0, ..Outcome::default() };
        for (kind, count, us) in [
            (TransactionKind::NewOrder, 99, 2000),
            (TransactionKind::Payment, 90, 1000),
            (TransactionKind::RolledBack, 1, 1500),
        ] {
            for _ in 0..count {
                outcome.measure.commit(us * 1000);
                scripts[kind as usize].whole.moments.add(us as f64);
                scripts[kind as usize].latencies.record(us * 1000);
            }
        }
        outcome.measure.counts.fail("40P01");
        scripts[1].whole.fail("40P01");
        outcome.scripts = scripts;
        outcome
    }

    fn lines(thinks: bool, outcome: &Outcome) -> Vec<String> {
        let made = Made { warehouses: 2, seed: 1, fillfactor: 100, foreign_keys: false };
        let space = Some(Space { bytes: 2e9, bytes_per_order: 1000.0 });
        let plan = plan(thinks);
        let text = report(&Results {
            plan: &plan,
            made,
            mix: TransactionMix::default(),
            style: TransactionStyle::Procedures,
            outcome,
            space,
        });
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn each_transaction_has_a_row_and_new_orders_are_counted_by_the_minute() {
        let found = lines(false, &outcome());
        for line in [
            "order entry: 2 warehouses, 8 clients, 1 thread",
            "protocol: prepared; stored procedures; mix: 45, 43, 4, 4, 4; without keying and think times",
            "measured part: 30.0 s; warm-up: 2.0 s, 0 transactions, not in these results",
            "response time in ms count share mean p50 p90 p95 p99 max failed",
            "new-order 99 52.11% 2.000 2.000 2.000 2.000 2.000 2.000 0",
            "payment 90 47.37% 1.000 1.000 1.000 1.000 1.000 1.000 1",
            "order-status 0 0.00% - - - - - - 0",
            "new-order, rolled back 1 0.53% 1.500 1.500 1.500 1.500 1.500 1.500 0",
            "new-order transactions per minute: 200.0",
            "of these rolled back, as specified: 1 of 100 (1.00%)",
            "transactions per second: 6.3",
            "disk space: 2.00 GB now, 7.76 GB after 60 days of 8 hours at this rate",
            "failed transactions: 1 (40P01 1)",
        ] {
            assert!(found.iter().any(|one| one == line), "{line}\n{found:#?}");
        }
    }

    #[test]
    fn the_limit_of_terminals_is_told_with_think_times() {
        let found = lines(true, &outcome());
        let limit =
            "upper limit that keying and think times set for ten clients per warehouse: 25.7 new-orders per minute";
        assert!(found.iter().any(|one| one == limit), "{found:#?}");
    }

    #[test]
    fn a_run_without_transactions_says_so() {
        assert_eq!(lines(false, &Outcome::default()).last().map(String::as_str), Some("no transaction was completed"));
    }
}
