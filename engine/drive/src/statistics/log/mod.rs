//! The transaction log in pgbench's format: one line for each transaction, or one for each interval.

mod entry;
mod file;
mod intervals;

use std::io;

use entry::microseconds;
pub use entry::{Entry, FailureKind, LogPlan, TransactionEnd};
use file::LogFile;
use ground::clock::Nanos;
use ground::random::Random;
use intervals::Intervals;
use wire::value::Value;

/// The transaction log of one thread.
pub struct TransactionLog {
    file: LogFile,
    sample: Random,
    intervals: Option<Intervals>,
    origin_ns: u64,
    plan: LogPlan,
}

impl TransactionLog {
    /// Opens the log of thread `thread`. `sample` draws which transactions are logged. The message of an error is a
    /// whole sentence.
    pub fn open(plan: &LogPlan, thread: usize, sample: Random) -> io::Result<Self> {
        Ok(Self {
            file: LogFile::create(plan.path(thread))?,
            sample,
            intervals: plan.aggregate.map(|length| Intervals::new(plan, length)),
            origin_ns: u64::try_from(plan.origin.as_nanos()).unwrap_or(0),
            plan: plan.clone(),
        })
    }

    /// Begins the log when the measured part begins, at `at` on the run's clock. The first interval starts with that
    /// second.
    pub fn begin(&mut self, at: Nanos) {
        if let Some(intervals) = &mut self.intervals {
            intervals.begin(self.origin_ns + at);
        }
    }

    /// Writes the end of a transaction to the log.
    #[inline]
    pub fn note(&mut self, entry: &Entry) {
        if self.plan.sampling_rate < 1.0 && self.sample.unit() > self.plan.sampling_rate {
            return;
        }
        let ended_ns = self.origin_ns + entry.ended;
        match &mut self.intervals {
            Some(intervals) => intervals.add(entry, ended_ns, &mut self.file),
            None => self.write_line(entry, ended_ns / 1000),
        }
    }

    /// Writes the rest of the log when the thread ends at `ended`. As in pgbench, the line of an aggregated interval is
    /// written only if the interval is over by then. Returns the first error that occurred while the log was written;
    /// its message is a whole sentence.
    pub fn finish(mut self, ended: Nanos) -> io::Result<()> {
        if let Some(intervals) = &mut self.intervals {
            intervals.advance(self.origin_ns + ended, &mut self.file);
        }
        self.file.finish()
    }

    /// Writes the line of one transaction: `client transaction latency script seconds microseconds [lag] [retries]`.
    fn write_line(&mut self, entry: &Entry, ended_us: u64) {
        let line = self.file.line();
        let mut lag = 0;
        write_number(line, entry.client as u64);
        line.push(b' ');
        // pgbench counts a transaction before it logs it, so that its first transaction has number 1.
        write_number(line, entry.number + 1);
        line.push(b' ');
        match entry.end {
            TransactionEnd::Committed { latency } => {
                lag = entry.lag;
                write_number(line, microseconds(latency));
            }
            TransactionEnd::Skipped => line.extend_from_slice(b"skipped"),
            TransactionEnd::Failed(kind) => line.extend_from_slice(failure_word(kind, self.plan.failures_detailed)),
        }
        for number in [entry.script as u64, ended_us / 1_000_000, ended_us % 1_000_000] {
            line.push(b' ');
            write_number(line, number);
        }
        if self.plan.throttled {
            line.push(b' ');
            write_number(line, microseconds(lag));
        }
        if self.plan.retried {
            line.push(b' ');
            write_number(line, entry.retries.into());
        }
        line.push(b'\n');
        self.file.end_line();
    }
}

fn failure_word(kind: FailureKind, detailed: bool) -> &'static [u8] {
    if !detailed {
        return b"failed";
    }
    match kind {
        FailureKind::Serialization => b"serialization",
        FailureKind::Deadlock => b"deadlock",
        FailureKind::Other => b"other",
    }
}

#[inline]
fn write_number(out: &mut Vec<u8>, number: u64) {
    Value::Int(number as i64).write_text(out);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use ground::clock::SECOND;

    fn plan(directory: &std::path::Path) -> LogPlan {
        LogPlan {
            prefix: directory.join("log").display().to_string(),
            aggregate: None,
            sampling_rate: 1.0,
            throttled: false,
            limited: false,
            retried: false,
            failures_detailed: false,
            other_failures: false,
            origin: Duration::from_micros(1_795_234_906_000_007),
        }
    }

    fn entry(number: u64, ended: Nanos, end: TransactionEnd) -> Entry {
        Entry { client: 3, number, script: 1, ended, end, lag: 62_400, retries: 2 }
    }

    /// Returns the log that has these entries, of a run that begins at once and lasts five seconds.
    fn logged(change: impl FnOnce(&mut LogPlan), entries: &[Entry]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut plan = plan(directory.path());
        change(&mut plan);
        let mut log = TransactionLog::open(&plan, 0, Random::seeded(1)).unwrap();
        log.begin(0);
        entries.iter().for_each(|entry| log.note(entry));
        log.finish(5 * SECOND).unwrap();
        std::fs::read_to_string(plan.path(0)).unwrap()
    }

    fn all_ends() -> Vec<Entry> {
        vec![
            entry(0, 38_000, TransactionEnd::Committed { latency: 4_650_499 }),
            entry(1, SECOND, TransactionEnd::Skipped),
            entry(2, SECOND, TransactionEnd::Failed(FailureKind::Serialization)),
            entry(3, SECOND, TransactionEnd::Failed(FailureKind::Deadlock)),
            entry(4, SECOND, TransactionEnd::Failed(FailureKind::Other)),
        ]
    }

    #[test]
    fn a_line_has_client_number_latency_script_and_time() {
        assert_eq!(
            logged(|_| {}, &all_ends()),
            "3 1 4650 1 1795234906 45\n3 2 skipped 1 1795234907 7\n3 3 failed 1 1795234907 7\n\
             3 4 failed 1 1795234907 7\n3 5 failed 1 1795234907 7\n"
        );
    }

    #[test]
    fn lag_retries_and_kinds_of_failures_are_there_when_asked_for() {
        let change = |plan: &mut LogPlan| {
            plan.throttled = true;
            plan.retried = true;
            plan.failures_detailed = true;
        };
        assert_eq!(
            logged(change, &all_ends()),
            "3 1 4650 1 1795234906 45 62 2\n3 2 skipped 1 1795234907 7 0 2\n3 3 serialization 1 1795234907 7 0 2\n\
             3 4 deadlock 1 1795234907 7 0 2\n3 5 other 1 1795234907 7 0 2\n"
        );
    }

    #[test]
    fn intervals_are_summed_up_and_the_empty_ones_are_there() {
        let committed = |at, us: u64| entry(0, at, TransactionEnd::Committed { latency: us * 1000 });
        let entries = [
            committed(SECOND / 10, 100),
            committed(SECOND / 5, 300),
            committed(3 * SECOND, 5),
            entry(1, 3 * SECOND, TransactionEnd::Skipped),
            entry(2, 3 * SECOND, TransactionEnd::Failed(FailureKind::Deadlock)),
            committed(49 * SECOND / 10, 5),
        ];
        let each_second = |plan: &mut LogPlan| plan.aggregate = Some(Duration::from_secs(1));
        let plain = logged(each_second, &entries);
        // The run's clock begins 7 us after a full second, so that the fifth interval is over within the five seconds
        // of the run.
        assert_eq!(
            plain,
            "1795234906 2 400 100000 100 300 0 0 0 0 0 0 0 0 0\n1795234907 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             1795234908 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n1795234909 1 5 25 5 5 0 0 0 0 0 0 0 0 0\n\
             1795234910 1 5 25 5 5 0 0 0 0 0 0 0 0 0\n"
        );
        let everything = |plan: &mut LogPlan| {
            plan.aggregate = Some(Duration::from_secs(2));
            plan.throttled = true;
            plan.limited = true;
            plan.retried = true;
            plan.failures_detailed = true;
            plan.other_failures = true;
        };
        assert_eq!(
            logged(everything, &entries),
            "1795234906 2 400 100000 100 300 124 7688 62 62 0 2 4 0 0 0\n\
             1795234908 1 5 25 5 5 62 3844 62 62 1 2 4 0 1 0\n"
        );
    }

    #[test]
    fn a_sample_is_the_share_asked_for() {
        let entries: Vec<_> = (0..4000).map(|number| entry(number, 0, TransactionEnd::Skipped)).collect();
        let lines = logged(|plan| plan.sampling_rate = 0.25, &entries).lines().count();
        assert!((900..1100).contains(&lines), "{lines}");
    }

    #[test]
    fn more_lines_than_the_buffer_holds_all_arrive() {
        let entries: Vec<_> = (0..20_000).map(|number| entry(number, number, TransactionEnd::Skipped)).collect();
        assert_eq!(logged(|_| {}, &entries).lines().count(), entries.len());
    }

    #[test]
    fn the_first_threads_file_has_no_number() {
        let plan = LogPlan { prefix: "x".to_owned(), ..plan(std::path::Path::new("/")) };
        let pid = std::process::id();
        assert_eq!(plan.path(0), PathBuf::from(format!("x.{pid}")));
        assert_eq!(plan.path(2), PathBuf::from(format!("x.{pid}.2")));
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_named() {
        let plan = LogPlan { prefix: "/nonexistent/x".to_owned(), ..plan(std::path::Path::new("/")) };
        let error = TransactionLog::open(&plan, 0, Random::seeded(1)).err().unwrap();
        let pid = std::process::id();
        let expected = format!("could not open logfile \"/nonexistent/x.{pid}\": No such file or directory");
        assert_eq!(error.to_string(), expected);
    }
}
