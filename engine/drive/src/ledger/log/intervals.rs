//! Lines for intervals: sums over the transactions that ended in each. Intervals begin at full seconds since 1970.

use std::io::Write;
use std::time::Duration;

use super::file::LogFile;
use super::{End, Entry, FailureKind, LogPlan, microseconds};
use latency::Moments;

const SECOND_NS: u64 = 1_000_000_000;

/// The current interval.
pub struct Intervals {
    /// Seconds.
    length: u64,
    /// Seconds since 1970; `None` before the run.
    begins: Option<u64>,
    sums: Sums,
    throttled: bool,
    limited: bool,
    retried: bool,
    failures_detailed: bool,
    other_failures: bool,
}

/// What happened in an interval; times in microseconds.
#[derive(Default)]
struct Sums {
    latency: Moments,
    lag: Moments,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

impl Intervals {
    /// Intervals of `length`, in whole seconds.
    pub fn new(plan: &LogPlan, length: Duration) -> Self {
        Self {
            length: length.as_secs().max(1),
            begins: None,
            sums: Sums::default(),
            throttled: plan.throttled,
            limited: plan.limited,
            retried: plan.retried,
            failures_detailed: plan.failures_detailed,
            other_failures: plan.other_failures,
        }
    }

    /// The run begins at `at_ns`, nanoseconds since 1970.
    pub fn begin(&mut self, at_ns: u64) {
        self.begins = Some(at_ns / SECOND_NS);
    }

    /// Adds a transaction that ended at `ended_ns`, nanoseconds since 1970.
    pub fn add(&mut self, entry: &Entry, ended_ns: u64, file: &mut LogFile) {
        self.advance(ended_ns, file);
        self.sums.add(entry);
    }

    /// Writes the lines of all intervals that are over at `now_ns`, nanoseconds since 1970, the empty ones too.
    pub fn advance(&mut self, now_ns: u64, file: &mut LogFile) {
        let now = now_ns / SECOND_NS;
        let mut begins = *self.begins.get_or_insert(now);
        while begins + self.length <= now {
            let sums = std::mem::take(&mut self.sums);
            self.write_line(begins, &sums, file);
            begins += self.length;
        }
        self.begins = Some(begins);
    }

    /// `start transactions latency(sum squares min max) lag(sum squares min max) skipped retried retries
    /// serialization deadlock [other]`; what is not asked for is zero.
    fn write_line(&self, begins: u64, sums: &Sums, file: &mut LogFile) {
        let only_if = |wanted: bool, number: u64| if wanted { number } else { 0 };
        let lag = if self.throttled { sums.lag } else { Moments::default() };
        let line = file.line();
        // Writing to memory cannot fail.
        let _ = write!(line, "{begins} {}", sums.latency.count);
        for moments in [sums.latency, lag] {
            let Moments { sum, sum_of_squares, min, max, .. } = moments;
            let _ = write!(line, " {sum:.0} {sum_of_squares:.0} {min:.0} {max:.0}");
        }
        let _ = write!(
            line,
            " {} {} {} {} {}",
            only_if(self.limited, sums.skipped),
            only_if(self.retried, sums.retried),
            only_if(self.retried, sums.retries),
            only_if(self.failures_detailed, sums.serialization),
            only_if(self.failures_detailed, sums.deadlock),
        );
        if self.other_failures {
            let _ = write!(line, " {}", only_if(self.failures_detailed, sums.other));
        }
        line.push(b'\n');
        file.end_line();
    }
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        if entry.end != End::Skipped && entry.retries > 0 {
            self.retried += 1;
            self.retries += u64::from(entry.retries);
        }
        match entry.end {
            End::Committed { latency } => {
                self.latency.add(microseconds(latency) as f64);
                self.lag.add(microseconds(entry.lag) as f64);
            }
            End::Skipped => self.skipped += 1,
            End::Failed(FailureKind::Serialization) => self.serialization += 1,
            End::Failed(FailureKind::Deadlock) => self.deadlock += 1,
            End::Failed(FailureKind::Other) => self.other += 1,
        }
    }
}
