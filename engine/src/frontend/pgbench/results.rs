//! The report at the end of a run, line for line as pgbench 18 prints it.

use std::fmt::Write;

use super::benchmark::Facts;
use super::options::Options;
use super::progress::results_failed;
use crate::ledger::{Account, Moments, ScriptAccount, Tally};
use crate::plan::{Limit, Plan};
use crate::program::ScriptInfo;
use crate::reactor::Outcome;

/// The whole report.
pub fn report(options: &Options, plan: &Plan, facts: &Facts, outcome: &Outcome) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, options, plan, facts, outcome);
    out
}

fn write_report(
    out: &mut String,
    options: &Options,
    plan: &Plan,
    facts: &Facts,
    outcome: &Outcome,
) -> std::fmt::Result {
    let scripts = plan.workload.scripts();
    let mut total = outcome.measure.clone();
    total.merge(&outcome.drain);
    let (committed, failed) = (total.transactions(), results_failed(&total));
    let kind = if let [script] = scripts.as_slice() { &script.description } else { "multiple scripts" };
    writeln!(out, "transaction type: {kind}")?;
    writeln!(out, "scaling factor: {}", facts.scale)?;
    if let Some((method, count)) = &facts.partitions {
        writeln!(out, "partition method: {method}\npartitions: {count}")?;
    }
    writeln!(out, "query mode: {}", plan.mode.name())?;
    writeln!(out, "number of clients: {}", plan.clients)?;
    writeln!(out, "number of threads: {}", plan.jobs)?;
    writeln!(out, "maximum number of tries: 1")?;
    match plan.limit {
        Limit::Transactions(each) => {
            let wanted = each * plan.clients as u64;
            writeln!(out, "number of transactions per client: {each}")?;
            writeln!(out, "number of transactions actually processed: {committed}/{wanted}")?;
        }
        Limit::Time(duration) => {
            writeln!(out, "duration: {} s", duration.as_secs())?;
            writeln!(out, "number of transactions actually processed: {committed}")?;
        }
    }
    if options.warmup.as_nanos() > 0 {
        write_warmup(out, outcome)?;
    }
    if committed + failed == 0 {
        return Ok(());
    }
    writeln!(out, "number of failed transactions: {}", share(failed, committed + failed))?;
    write_latency(out, options, plan, outcome, &total)?;
    let connect_ms = if plan.reconnect {
        outcome.reconnect_s * 1000.0 / (committed + failed) as f64
    } else {
        outcome.connect_s * 1000.0
    };
    let tps = committed as f64 / outcome.elapsed_s;
    if plan.reconnect {
        writeln!(out, "average connection time = {connect_ms:.3} ms")?;
        writeln!(out, "tps = {tps:.6} (including reconnection times)")?;
    } else {
        writeln!(out, "initial connection time = {connect_ms:.3} ms")?;
        writeln!(out, "tps = {tps:.6} (without initial connection time)")?;
    }
    write_scripts(out, options, &scripts, outcome, committed + failed)
}

fn write_warmup(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let transactions = outcome.warmup.transactions();
    let tps = transactions as f64 / outcome.warmup_s;
    writeln!(out, "warm-up: {:.1} s, {transactions} transactions, {tps:.6} tps, not in these results", outcome.warmup_s)
}

fn write_latency(
    out: &mut String,
    options: &Options,
    plan: &Plan,
    outcome: &Outcome,
    total: &Tally,
) -> std::fmt::Result {
    let failed = results_failed(total);
    if options.progress.is_some() {
        write_moments(out, "", &total.moments)?;
    } else {
        // Without measurements pgbench computes the average from the run time; the line says so by having no deviation.
        let average = outcome.elapsed_s * 1000.0 * plan.clients as f64 / (total.transactions() + failed) as f64;
        let note = if failed > 0 { " (including failures)" } else { "" };
        writeln!(out, "latency average = {average:.3} ms{note}")?;
    }
    if let (true, Some(found)) = (options.percentiles, total.latencies.percentiles()) {
        let ms = |us: u64| us as f64 / 1000.0;
        writeln!(
            out,
            "latency percentiles (ms): p50 = {:.3}, p90 = {:.3}, p95 = {:.3}, p99 = {:.3}, p99.9 = {:.3}, max = {:.3}",
            ms(found.p50),
            ms(found.p90),
            ms(found.p95),
            ms(found.p99),
            ms(found.p999),
            total.moments.max / 1000.0
        )?;
    }
    Ok(())
}

fn write_scripts(
    out: &mut String,
    options: &Options,
    scripts: &[ScriptInfo],
    outcome: &Outcome,
    total: u64,
) -> std::fmt::Result {
    let several = scripts.len() > 1;
    let weights: u64 = scripts.iter().map(|script| script.weight).sum();
    for (number, (script, account)) in scripts.iter().zip(&outcome.scripts).enumerate() {
        if several {
            let target = 100.0 * script.weight as f64 / weights as f64;
            writeln!(out, "SQL script {}: {}", number + 1, script.description)?;
            writeln!(out, " - weight: {} (targets {target:.1}% of total)", script.weight)?;
            write_script(out, account, outcome.elapsed_s, total)?;
        }
        if options.report_per_command {
            let prefix = if several { " - " } else { "" };
            writeln!(out, "{prefix}statement latencies in milliseconds and failures:")?;
            for (line, command) in script.commands.iter().zip(&account.commands) {
                write_command(out, line, command)?;
            }
        }
    }
    Ok(())
}

fn write_script(out: &mut String, account: &ScriptAccount, elapsed_s: f64, total: u64) -> std::fmt::Result {
    let (committed, failed) = (account.whole.moments.count, account.whole.failures);
    let all = committed + failed;
    let of_total = 100.0 * all as f64 / total as f64;
    writeln!(out, " - {all} transactions ({of_total:.1}% of total)")?;
    if all > 0 {
        let tps = committed as f64 / elapsed_s;
        writeln!(out, " - number of transactions actually processed: {committed} (tps = {tps:.6})")?;
        writeln!(out, " - number of failed transactions: {}", share(failed, all))?;
    }
    write_moments(out, " - ", &account.whole.moments)
}

fn write_moments(out: &mut String, prefix: &str, moments: &Moments) -> std::fmt::Result {
    if moments.count > 0 {
        writeln!(out, "{prefix}latency average = {:.3} ms", moments.mean() / 1000.0)?;
        writeln!(out, "{prefix}latency stddev = {:.3} ms", moments.stddev() / 1000.0)?;
    }
    Ok(())
}

fn write_command(out: &mut String, line: &str, command: &Account) -> std::fmt::Result {
    writeln!(out, "   {:11.3}  {:10} {line}", command.moments.mean() / 1000.0, command.failures)
}

fn share(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    format!("{part} ({percent:.3}%)")
}
