//! The summary at the end of a run: the numbers of tasks (transactions of applications), as in the published benchmark,
//! and how the response times divide into waiting for a connection and work on the server.

use std::fmt::{Result, Write};

use drive::Outcome;
use drive::statistics::tasks::Tasks;
use latency::{Latencies, Moments};

/// The names of the classes of response times, each with what such a response time means for a person who waits.
const CLASSES: [&str; 4] =
    ["up to 0.1 s (instant)", "up to 1 s (flow kept)", "up to 10 s (attention kept)", "longer (attention lost)"];

/// Returns the text of the summary. It is empty if the run had no tasks.
pub fn summary(outcome: &Outcome) -> String {
    let mut out = String::new();
    if let Some(tasks) = outcome.of_mode.tasks() {
        // Writing to a string cannot fail, so the result is ignored.
        let _ = write_all(&mut out, outcome, tasks);
    }
    out
}

fn write_all(out: &mut String, outcome: &Outcome, tasks: &Tasks) -> Result {
    writeln!(out, "\ntasks               {:>12}", tasks.planned)?;
    writeln!(out, "completed           {:>12}", tasks.completed())?;
    writeln!(out, "failures            {:>12}{}", tasks.failed(), kinds(tasks))?;
    if tasks.unfinished() > 0 {
        writeln!(out, "not run to the end  {:>12}", tasks.unfinished())?;
    }
    writeln!(out, "run time            {:>12.3} s", outcome.elapsed_s)?;
    if tasks.completed() > 0 {
        write_times(out, outcome, tasks)?;
        write_classes(out, tasks)?;
    }
    if tasks.timeouts.count > 0 {
        let Moments { min, max, .. } = tasks.timeouts;
        let (min, mean, max) = (min / 1e6, tasks.timeouts.mean() / 1e6, max / 1e6);
        writeln!(out, "\nwaited for a connection in vain (s): min {min:.6}, mean {mean:.6}, max {max:.6}")?;
    }
    Ok(())
}

/// Returns a text with the number of failures of each kind, or an empty text if nothing failed.
fn kinds(tasks: &Tasks) -> String {
    let kinds: Vec<_> = tasks.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if kinds.is_empty() { String::new() } else { format!("   ({})", kinds.join(", ")) }
}

fn write_times(out: &mut String, outcome: &Outcome, tasks: &Tasks) -> Result {
    let pooled = outcome.measure.of_mode.tasks();
    let nothing = Latencies::default();
    let (queue, service) = pooled.map_or((&nothing, &nothing), |pooled| (&pooled.queue, &pooled.service));
    writeln!(out, "\n{:<18}{:>13}{:>13}{:>13}", "seconds", "response", "= queue", "+ service")?;
    let mut row = |name: &str, us: [f64; 3]| {
        let [response, queue, service] = us.map(|us| us / 1e6);
        writeln!(out, "{name:<18}{response:>13.6}{queue:>13.6}{service:>13.6}")
    };
    let moments = [&tasks.response, &tasks.queue, &tasks.service];
    row("min", moments.map(|moments| moments.min))?;
    row("max", moments.map(|moments| moments.max))?;
    row("mean", moments.map(Moments::mean))?;
    let histograms = [&outcome.measure.latencies, queue, service];
    let at = |percentile: f64| {
        // A percentile is the upper end of a bucket of the histogram, which may lie above the longest time. It is then
        // shown as the longest time.
        let of = |histogram: &Latencies| histogram.percentile(percentile).unwrap_or_default();
        [0, 1, 2].map(|at| of(histograms[at]).min(moments[at].max))
    };
    let [_, queue, service] = at(50.0);
    row("median", [tasks.median().unwrap_or_default(), queue, service])?;
    row("p95", at(95.0))?;
    row("p99", at(99.0))
}

fn write_classes(out: &mut String, tasks: &Tasks) -> Result {
    let ended = tasks.completed() + tasks.failed();
    out.push('\n');
    let mut row = |name: &str, count: u64| {
        let percent = 100.0 * count as f64 / ended as f64;
        writeln!(out, "{name:<31}{count:>8}  {percent:>6.2}%")
    };
    row("under 5 s", tasks.under_five_seconds())?;
    for (name, count) in CLASSES.iter().zip(tasks.classes()) {
        row(name, count)?;
    }
    row("failed", tasks.failed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::statistics::tasks::{POOL_TIMEOUT, PooledTasks, Task};
    use drive::statistics::{ModeCounts, ModeTotals};

    #[test]
    fn the_table_is_the_published_one() {
        let mut outcome = Outcome { elapsed_s: 12.5, ..Outcome::default() };
        let (mut tasks, mut pooled) = (Tasks::new(5), PooledTasks::default());
        for (waited, served, failure) in [
            (50_000_000, 50_000_000, None),
            (4_000_000_000, 2_000_000_000, None),
            (0, 800_000_000, None),
            (200_000_000, 0, Some(POOL_TIMEOUT.into())),
        ] {
            let task = Task { app: 0, number: 0, arrived: 0, waited, served, running: 1, failure };
            tasks.add(&task);
            if task.failure.is_none() {
                outcome.measure.commit(task.response());
            }
            pooled.add(task);
        }
        outcome.of_mode = ModeTotals::Tasks(tasks);
        outcome.measure.of_mode = ModeCounts::Tasks(pooled);
        let text = summary(&outcome);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "tasks 5",
            "completed 3",
            "failures 1 (pool-timeout 1)",
            "not run to the end 1",
            "run time 12.500 s",
            "seconds response = queue + service",
            "min 0.100000 0.000000 0.050000",
            "max 6.000000 4.000000 2.000000",
            "mean 2.300000 1.350000 0.950000",
            "under 5 s 2 50.00%",
            "up to 0.1 s (instant) 1 25.00%",
            "up to 10 s (attention kept) 1 25.00%",
            "failed 1 25.00%",
            "waited for a connection in vain (s): min 0.200000, mean 0.200000, max 0.200000",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}\n{text}");
        }
    }
}
