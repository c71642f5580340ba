//! The report at the end of a run, with the same lines as the report of pgbench 18.

#[cfg(test)]
mod tests;

use std::fmt::{Result, Write};

use super::server::Facts;
use crate::frontend::common::options::OutputOptions;
use drive::Outcome;
use drive::plan::{Plan, PoolPlan};
use drive::slices::Slices;
use drive::statistics::tasks::Tasks;
use drive::statistics::{Account, Counts, LoadStatistics};
use ground::clock::seconds;
use ground::shard::ClientShare;
use latency::{Latencies, Moments};
use workload::ScriptInfo;

/// Returns the text of the report.
pub fn report(output: &OutputOptions, plan: &Plan, facts: &Facts, outcome: &Outcome) -> String {
    let mut total = outcome.measure.clone();
    total.merge(&outcome.drain);
    let mut report =
        Report { out: String::new(), output, plan, facts, outcome, total, scripts: plan.scripts().to_vec() };
    // Writing to a string cannot fail, so the result is ignored.
    let _ = report.write();
    report.out
}

struct Report<'a> {
    out: String,
    output: &'a OutputOptions,
    plan: &'a Plan,
    facts: &'a Facts,
    outcome: &'a Outcome,
    /// The counts of the measured part and of the time after it, in which the transactions that are still running are
    /// finished.
    total: LoadStatistics,
    scripts: Vec<ScriptInfo>,
}

/// Returns the number of all transactions: committed, failed, and skipped.
fn all(counts: &Counts) -> u64 {
    counts.transactions() + counts.skipped + counts.failed()
}

impl<'a> Report<'a> {
    fn write(&mut self) -> Result {
        self.write_settings()?;
        if !self.plan.warmup.is_zero() {
            self.write_warmup()?;
        }
        if all(&self.total.counts) == 0 {
            return Ok(());
        }
        let counts = self.total.counts.clone();
        self.write_failures("", &counts)?;
        self.write_skipped("", &counts)?;
        self.write_late()?;
        self.write_latency()?;
        self.write_speed()?;
        self.write_scripts()
    }

    fn pools(&self) -> Option<&'a PoolPlan> {
        self.plan.load.pools()
    }

    fn write_settings(&mut self) -> Result {
        let pools = self.pools();
        let out = &mut self.out;
        let kind = if let [script] = self.scripts.as_slice() { &script.description } else { "multiple scripts" };
        writeln!(out, "transaction type: {kind}")?;
        writeln!(out, "scaling factor: {}", self.facts.scale)?;
        if let Some((method, count)) = &self.facts.partitions {
            writeln!(out, "partition method: {method}\npartitions: {count}")?;
        }
        writeln!(out, "query mode: {}", self.plan.mode.name())?;
        let ClientShare { shard, whole, .. } = self.plan.part;
        if shard.is_part() {
            let what = if pools.is_some() { "connections" } else { "clients" };
            writeln!(out, "shard: {shard} of a run of {whole} {what}")?;
        }
        match pools {
            Some(pools) => writeln!(out, "number of applications: {}", pools.apps)?,
            None => writeln!(out, "number of clients: {}", self.plan.clients)?,
        }
        if let Some(Slices { length, index, of, .. }) = self.plan.slices {
            let (number, ms) = (index + 1, seconds(length) * 1000.0);
            writeln!(
                out,
                "slices: engine {number} of {of}, {ms} ms each; tps counts only the time of the clients in their slices"
            )?;
        }
        writeln!(out, "number of threads: {}", self.plan.jobs)?;
        if let Some(tries) = self.plan.options.tries {
            writeln!(out, "maximum number of tries: {tries}")?;
        }
        let committed = self.total.counts.transactions();
        if let Some(pools) = pools {
            return write_pools(out, pools, committed);
        }
        if let Some(each) = self.plan.load.limits().of_each_client {
            let wanted = each * self.plan.clients as u64;
            writeln!(out, "number of transactions per client: {each}")?;
            return writeln!(out, "number of transactions actually processed: {committed}/{wanted}");
        }
        if let Some(duration) = self.plan.duration() {
            writeln!(out, "duration: {} s", duration.as_secs())?;
        }
        writeln!(out, "number of transactions actually processed: {committed}")
    }

    /// Writes how long tasks (transactions of applications) waited for a connection of their pool, and how long they
    /// used the connection.
    fn write_waits(&mut self, tasks: &Tasks) -> Result {
        let out = &mut self.out;
        let all = tasks.completed() + tasks.failed();
        writeln!(out, "number of pool time-outs: {}", share(tasks.timeouts.count, all))?;
        if tasks.timeouts.count > 0 {
            write_average(out, "waited before a pool time-out", &tasks.timeouts)?;
        }
        write_average(out, "time in the pool's queue", &tasks.queue)?;
        write_average(out, "time with the connection", &tasks.service)
    }

    fn write_warmup(&mut self) -> Result {
        let (seconds, transactions) = (self.outcome.warmup_s, self.outcome.warmup.counts.transactions());
        // If the run was interrupted before its load began, the time is 0. The rate is then 0, too.
        let loaded = self.outcome.warmup.slice_time_s(self.plan.clients).unwrap_or(seconds);
        let tps = if loaded > 0.0 { transactions as f64 / loaded } else { 0.0 };
        writeln!(self.out, "warm-up: {seconds:.1} s, {transactions} transactions, {tps:.6} tps, not in these results")
    }

    fn write_failures(&mut self, prefix: &str, counts: &Counts) -> Result {
        let all = all(counts);
        let out = &mut self.out;
        writeln!(out, "{prefix}number of failed transactions: {}", share(counts.failed(), all))?;
        if self.output.failures_detailed {
            writeln!(out, "{prefix}number of serialization failures: {}", share(counts.serialization_failures(), all))?;
            writeln!(out, "{prefix}number of deadlock failures: {}", share(counts.deadlocks(), all))?;
            if self.plan.options.continue_on_error {
                writeln!(out, "{prefix}number of other failures: {}", share(counts.other_failures, all))?;
            }
        }
        if self.plan.options.tries != Some(1) {
            writeln!(out, "{prefix}number of transactions retried: {}", share(counts.retried, all))?;
            writeln!(out, "{prefix}total number of retries: {}", counts.retries)?;
        }
        Ok(())
    }

    fn write_skipped(&mut self, prefix: &str, counts: &Counts) -> Result {
        if self.plan.interval_ns().is_none() || self.plan.options.latency_limit.is_none() {
            return Ok(());
        }
        writeln!(self.out, "{prefix}number of transactions skipped: {}", share(counts.skipped, all(counts)))
    }

    fn write_late(&mut self) -> Result {
        let Some(limit) = self.plan.options.latency_limit else { return Ok(()) };
        let (late, committed) = (self.total.counts.late, self.total.counts.transactions());
        let percent = if committed == 0 { 0.0 } else { 100.0 * late as f64 / committed as f64 };
        writeln!(
            self.out,
            "number of transactions above the {:.1} ms latency limit: {late}/{committed} ({percent:.3}%)",
            limit.as_micros() as f64 / 1000.0
        )
    }

    /// Returns the time in seconds by which counts are divided for rates. It is the length of the run or, if engines
    /// take turns in slices of time, the average time for which a client took part.
    fn seconds(&self) -> f64 {
        self.total.slice_time_s(self.plan.clients).unwrap_or(self.outcome.elapsed_s)
    }

    fn write_latency(&mut self) -> Result {
        let throttled = self.plan.interval_ns().is_some();
        if throttled
            || self.pools().is_some()
            || self.output.progress.is_some()
            || self.plan.options.latency_limit.is_some()
        {
            self.write_moments("", &self.total.counts.moments.clone())?;
        } else {
            // If no option makes pgbench measure latencies, it computes the average latency from the run time, and
            // prints no standard deviation.
            let spent = self.seconds() * 1000.0 * self.plan.clients as f64;
            let average = spent / all(&self.total.counts) as f64;
            let note = if self.total.counts.failed() > 0 { " (including failures)" } else { "" };
            writeln!(self.out, "latency average = {average:.3} ms{note}")?;
        }
        if throttled {
            write_average(&mut self.out, "rate limit schedule lag", &self.total.counts.lag)?;
        }
        if let Some(tasks) = self.outcome.of_mode.tasks() {
            self.write_waits(tasks)?;
        }
        if self.output.percentiles {
            self.write_percentiles()?;
        }
        Ok(())
    }

    fn write_percentiles(&mut self) -> Result {
        let max_us = self.total.counts.moments.max;
        write_percentiles(&mut self.out, "latency", &self.total.latencies, Some(max_us))?;
        if let Some(schedule) = &self.total.schedule {
            write_percentiles(&mut self.out, "service time", &schedule.service, None)?;
            write_percentiles(&mut self.out, "schedule lag", &schedule.lags, None)?;
        }
        if let Some(pooled) = self.total.of_mode.tasks() {
            write_percentiles(&mut self.out, "queue time", &pooled.queue, None)?;
            write_percentiles(&mut self.out, "service time", &pooled.service, None)?;
        }
        Ok(())
    }

    fn write_speed(&mut self) -> Result {
        let counts = &self.total.counts;
        let tps = counts.transactions() as f64 / self.seconds();
        if self.pools().is_some() {
            return writeln!(self.out, "tps = {tps:.6} (including connection times)");
        }
        if self.plan.load.reconnects() {
            let connected = (counts.transactions() + counts.failed()).max(1);
            let connect_ms = self.outcome.reconnect_s * 1000.0 / connected as f64;
            writeln!(self.out, "average connection time = {connect_ms:.3} ms")?;
            writeln!(self.out, "tps = {tps:.6} (including reconnection times)")
        } else {
            writeln!(self.out, "initial connection time = {:.3} ms", self.outcome.connect_s * 1000.0)?;
            writeln!(self.out, "tps = {tps:.6} (without initial connection time)")
        }
    }

    fn write_scripts(&mut self) -> Result {
        let scripts = std::mem::take(&mut self.scripts);
        let several = scripts.len() > 1;
        let weights: u64 = scripts.iter().map(|script| script.weight).sum();
        for (number, (script, account)) in scripts.iter().zip(&self.outcome.scripts).enumerate() {
            if several {
                let target = 100.0 * script.weight as f64 / weights as f64;
                writeln!(self.out, "SQL script {}: {}", number + 1, script.description)?;
                writeln!(self.out, " - weight: {} (targets {target:.1}% of total)", script.weight)?;
                self.write_script(&account.whole)?;
            }
            if self.plan.options.timed_commands {
                let prefix = if several { " - " } else { "" };
                let columns =
                    if self.plan.options.tries == Some(1) { " and failures" } else { ", failures and retries" };
                writeln!(self.out, "{prefix}statement latencies in milliseconds{columns}:")?;
                for (command, account) in script.commands.iter().zip(&account.commands) {
                    self.write_command(&command.line, account)?;
                }
            }
        }
        Ok(())
    }

    fn write_script(&mut self, counts: &Counts) -> Result {
        let (executed, of) = (all(counts), all(&self.total.counts));
        let percent = 100.0 * executed as f64 / of as f64;
        writeln!(self.out, " - {executed} transactions ({percent:.1}% of total)")?;
        if executed > 0 {
            let committed = counts.transactions();
            let tps = committed as f64 / self.seconds();
            writeln!(self.out, " - number of transactions actually processed: {committed} (tps = {tps:.6})")?;
            self.write_failures(" - ", counts)?;
            self.write_skipped(" - ", counts)?;
        }
        self.write_moments(" - ", &counts.moments)
    }

    fn write_command(&mut self, line: &str, account: &Account) -> Result {
        let Account { moments, failures, retries } = account;
        write!(self.out, "   {:11.3}  {failures:10} ", moments.mean() / 1000.0)?;
        if self.plan.options.tries != Some(1) {
            write!(self.out, "{retries:10} ")?;
        }
        writeln!(self.out, "{line}")
    }

    fn write_moments(&mut self, prefix: &str, moments: &Moments) -> Result {
        if moments.count > 0 {
            writeln!(self.out, "{prefix}latency average = {:.3} ms", moments.mean() / 1000.0)?;
            writeln!(self.out, "{prefix}latency stddev = {:.3} ms", moments.stddev() / 1000.0)?;
        }
        Ok(())
    }
}

/// Writes the lines about connection pools. They replace the line with the number of transactions per client.
fn write_pools(out: &mut String, pools: &PoolPlan, committed: u64) -> Result {
    let PoolPlan { tasks, arrival, size, timeout, lifetime, .. } = pools;
    writeln!(out, "pool of each application: {size} connections, time-out {} s", timeout.as_secs_f64())?;
    if let Some(lifetime) = lifetime {
        writeln!(out, "lifetime of a connection: {} s", lifetime.as_secs_f64())?;
    }
    writeln!(out, "number of tasks per application: {tasks}, arrival {arrival}")?;
    writeln!(out, "number of transactions actually processed: {committed}/{}", pools.all_tasks())
}

fn write_average(out: &mut String, name: &str, moments: &Moments) -> Result {
    let (mean, max) = (moments.mean() / 1000.0, moments.max / 1000.0);
    writeln!(out, "{name}: avg {mean:.3} (max {max:.3}) ms")
}

fn write_percentiles(out: &mut String, name: &str, latencies: &Latencies, max_us: Option<f64>) -> Result {
    let Some(found) = latencies.percentiles() else { return Ok(()) };
    let found = found.at_most(max_us.unwrap_or(f64::INFINITY));
    let rest = max_us.map_or_else(String::new, |us| format!(", max = {:.3}", us / 1000.0));
    let percentiles =
        [("p50", found.p50), ("p90", found.p90), ("p95", found.p95), ("p99", found.p99), ("p99.9", found.p999)];
    let listed: Vec<_> = percentiles.iter().map(|(name, us)| format!("{name} = {:.3}", us / 1000.0)).collect();
    writeln!(out, "{name} percentiles (ms): {}{rest}", listed.join(", "))
}

fn share(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    format!("{part} ({percent:.3}%)")
}
