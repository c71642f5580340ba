//! The lines of a transaction log that is aggregated by intervals: each line has the sums over the transactions that
//! ended in one interval. Intervals begin at full seconds since 1970.

use std::io::Write;
use std::time::Duration;

use super::entry::{Entry, LogPlan, TransactionEnd, microseconds};
use super::file::LogFile;
use crate::statistics::counts::Counts;
use ground::clock::SECOND;
use latency::Moments;

/// The current interval, and the sums over the transactions that ended in it.
pub struct Intervals {
    /// The length of an interval, in seconds.
    length: u64,
    /// The time at which the current interval begins, seconds since 1970; `None` before the run.
    begins: Option<u64>,
    /// Counts of the transactions that ended in the current interval.
    counts: Counts,
    plan: LogPlan,
}

impl Intervals {
    /// Makes the intervals of a log before the run begins. `length` is rounded down to whole seconds, but to at least
    /// one.
    pub fn new(plan: &LogPlan, length: Duration) -> Self {
        Self { length: length.as_secs().max(1), begins: None, counts: Counts::default(), plan: plan.clone() }
    }

    /// Begins the first interval. The run begins at `at_ns`, in nanoseconds since 1970.
    pub fn begin(&mut self, at_ns: u64) {
        self.begins = Some(at_ns / SECOND);
    }

    /// Adds a transaction that ended at `ended_ns`, in nanoseconds since 1970.
    pub fn add(&mut self, entry: &Entry, ended_ns: u64, file: &mut LogFile) {
        self.advance(ended_ns, file);
        count(&mut self.counts, entry);
    }

    /// Writes the lines of all intervals that are over at `now_ns` (nanoseconds since 1970), including those without
    /// any transaction.
    pub fn advance(&mut self, now_ns: u64, file: &mut LogFile) {
        let now = now_ns / SECOND;
        let mut begins = *self.begins.get_or_insert(now);
        while begins + self.length <= now {
            let counts = std::mem::take(&mut self.counts);
            self.write_line(begins, &counts, file);
            begins += self.length;
        }
        self.begins = Some(begins);
    }

    /// Writes the line of one interval: `start transactions latency(sum squares min max) lag(sum squares min max)
    /// skipped retried retries serialization deadlock [other]`. Columns of options that were not given are written as
    /// 0.
    fn write_line(&self, begins: u64, counts: &Counts, file: &mut LogFile) {
        let only_if = |wanted: bool, number: u64| if wanted { number } else { 0 };
        let plan = &self.plan;
        let lag = if plan.throttled { counts.lag } else { Moments::default() };
        let line = file.line();
        // Writing to memory cannot fail.
        let _ = write!(line, "{begins} {}", counts.moments.count);
        for moments in [counts.moments, lag] {
            let Moments { sum, sum_of_squares, min, max, .. } = moments;
            let _ = write!(line, " {sum:.0} {sum_of_squares:.0} {min:.0} {max:.0}");
        }
        let _ = write!(
            line,
            " {} {} {} {} {}",
            only_if(plan.limited, counts.skipped),
            only_if(plan.retried, counts.retried),
            only_if(plan.retried, counts.retries),
            only_if(plan.failures_detailed, counts.serialization_failures()),
            only_if(plan.failures_detailed, counts.deadlocks()),
        );
        if plan.other_failures {
            let _ = write!(line, " {}", only_if(plan.failures_detailed, counts.other_failures));
        }
        line.push(b'\n');
        file.end_line();
    }
}

fn count(counts: &mut Counts, entry: &Entry) {
    match entry.end {
        TransactionEnd::Committed { latency } => {
            counts.moments.add(microseconds(latency) as f64);
            counts.lag.add(microseconds(entry.lag) as f64);
        }
        TransactionEnd::Skipped => return counts.skipped += 1,
        TransactionEnd::Failed(kind) => match kind.sqlstate() {
            Some(sqlstate) => counts.fail(sqlstate),
            None => counts.other_failures += 1,
        },
    }
    counts.add_retries(entry.retries);
}
