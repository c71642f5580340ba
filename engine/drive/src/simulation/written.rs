//! Checks of simulated runs: whether the transaction log and the debugging lines about clients are correct.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::promises::Judge;
use super::scenario::Kind;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::statistics::LoadStatistics;

/// Returns the transaction logs of all threads of a run.
pub fn logs(plan: &Plan) -> Vec<String> {
    let Some(log) = &plan.options.log else { return Vec::new() };
    (0..plan.jobs).filter_map(|thread| fs::read_to_string(log.path(thread)).ok()).collect()
}

impl Judge<'_> {
    /// Returns true if the scenario makes the log impossible to open.
    pub fn has_no_log(&self) -> bool {
        self.scenario.extras.log.as_ref().is_some_and(|log| log.is_unopened)
    }

    /// Checks that the log has each transaction of the measured part once, as committed, failed or skipped.
    pub fn judge_log(&mut self, outcome: &Outcome) {
        let Some(log) = self.scenario.extras.log.clone() else { return };
        if self.engine.truth.starts.is_empty() {
            return;
        }
        match log.aggregate {
            Some(length) => self.judge_intervals(outcome, length),
            None => self.judge_lines(outcome, log.sampling_rate < 1.0),
        }
    }

    fn judge_lines(&mut self, outcome: &Outcome, is_sample: bool) {
        let measured = |of: &dyn Fn(&LoadStatistics) -> u64| of(&outcome.measure) + of(&outcome.drain);
        let (mut latencies_us, mut committed, mut skipped, mut failed, mut retries) = (0, 0, 0, 0, 0);
        let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for line in self.engine.logs.iter().flat_map(|log| log.lines()) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap_or(u64::MAX);
            numbers.entry(number(0)).or_default().push(number(1));
            match words[2] {
                "skipped" => skipped += 1,
                "failed" | "serialization" | "deadlock" | "other" => failed += 1,
                _ => {
                    latencies_us += number(2);
                    committed += 1;
                }
            }
            retries += number(words.len() - 1);
        }
        let counted = measured(&|statistics| statistics.counts.transactions());
        let whole: u64 = outcome.scripts.iter().map(|script| script.whole.failures.values().sum::<u64>()).sum();
        let (all_skipped, all_retries) =
            (measured(&|statistics| statistics.counts.skipped), measured(&|statistics| statistics.counts.retries));
        let is_closed = matches!(self.scenario.kind, Kind::Closed { .. });
        let is_right = if is_sample {
            committed <= counted && skipped <= all_skipped && failed <= whole
        } else {
            let are_failures_right = if is_closed { failed == whole } else { failed <= whole };
            committed == counted && skipped == all_skipped && are_failures_right
        };
        self.promise(is_right, || {
            format!(
                "the log has {committed} committed, {skipped} skipped and {failed} failed transactions, the engine counted \
                 {counted}, {all_skipped} and {whole}"
            )
        });
        if is_sample {
            return;
        }
        self.promise(!is_closed || retries == all_retries, || {
            format!("the log has {retries} retries, but the engine counted {all_retries}")
        });
        let of =
            |statistics: &LoadStatistics| statistics.counts.moments.mean() * statistics.counts.transactions() as f64;
        let sum_us = of(&outcome.measure) + of(&outcome.drain);
        self.promise((latencies_us as f64 - sum_us).abs() <= 1.0 + committed as f64, || {
            format!(
                "the latencies in the log add up to {latencies_us} us, but those that the engine counted to {sum_us} us"
            )
        });
        let gap = numbers.iter().find(|(_, numbers)| !numbers.iter().copied().eq(1..=numbers.len() as u64));
        self.promise(gap.is_none(), || format!("the log numbers the transactions of a client with gaps: {gap:?}"));
    }

    /// Checks that the intervals of the log follow each other without a gap, and contain only transactions that were
    /// counted.
    fn judge_intervals(&mut self, outcome: &Outcome, length: Duration) {
        let measured = |of: &dyn Fn(&LoadStatistics) -> u64| of(&outcome.measure) + of(&outcome.drain);
        let (mut committed, mut skipped) = (0, 0);
        for log in &self.engine.logs {
            let mut next = None;
            for line in log.lines() {
                let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap_or(u64::MAX)).collect();
                let [begins, count, ..] = words[..] else {
                    return self.promise(false, || format!("the log has a malformed line of an interval: {line}"));
                };
                let is_next = next.is_none_or(|next| next == begins);
                self.promise(is_next && words.len() == 16, || {
                    format!("the log has a line that does not begin at {next:?} or is malformed: {line}")
                });
                next = Some(begins + length.as_secs());
                committed += count;
                skipped += words[10];
            }
        }
        let (all, all_skipped) = (
            measured(&|statistics| statistics.counts.transactions()),
            measured(&|statistics| statistics.counts.skipped),
        );
        self.promise(committed <= all && skipped <= all_skipped, || {
            format!(
                "the log has {committed} committed and {skipped} skipped transactions, more than the engine counted: \
                 {all} and {all_skipped}"
            )
        });
    }

    /// Checks that the debugging output has a line for each transaction, each retry, and each failure after which the
    /// client went on.
    pub fn judge_notes(&mut self, outcome: &Outcome) {
        let (truth, notes) = (&self.engine.truth, self.scenario.extras.notes);
        let count = |what: &str| truth.lines.iter().filter(|line| line.contains(what)).count() as u64;
        let stray = truth.lines.iter().find(|line| !line.starts_with("program: ") || line.ends_with('\n'));
        self.promise(stray.is_none(), || {
            format!("a printed line does not begin with the program's name, or has two line feeds: {stray:?}")
        });
        if notes.steps {
            let (scripts, begun) = (count("executing script"), truth.starts.len() as u64);
            self.promise(scripts >= begun, || {
                format!("the debugging lines show {scripts} scripts, but {begun} transactions began")
            });
            let (sent, received) = (count(" sending "), count(" receiving"));
            self.promise(sent > 0 || received == 0, || {
                format!("the debugging lines show {sent} sent statements, but {received} waits for answers")
            });
        }
        let is_counted = self.scenario.warmup.is_zero() && !truth.starts.is_empty();
        if notes.failures && is_counted {
            let commands = || outcome.scripts.iter().flat_map(|script| &script.commands);
            let failures: u64 = commands().map(|command| command.failures).sum();
            let retries: u64 = commands().map(|command| command.retries).sum();
            let (ended, repeated) = (count("ends the failed transaction"), count("repeats the transaction"));
            self.promise((failures, retries) == (ended, repeated), || {
                format!(
                    "the debugging lines show {ended} failures and {repeated} retries, but the engine counted {failures} \
                     and {retries}"
                )
            });
            let errors = count("got an error in command");
            self.promise(errors >= ended + repeated, || {
                format!("the debugging lines show {errors} errors, but at least {} are expected", ended + repeated)
            });
        }
    }
}
