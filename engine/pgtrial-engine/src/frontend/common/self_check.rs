//! Warns if the load generator itself limited the measurement. The figures then describe the load generator rather than
//! the server.

use drive::Outcome;
pub use events::Warning;

/// The fraction of the time above which a thread counts as busy: it may then limit the load.
const BUSY: f64 = 0.8;

/// A warning is given if the delay with which transactions start is above this fraction of the median latency, for at
/// least one transaction of 100. Only delays that the load generator itself caused are counted.
const LAG: f64 = 0.1;

/// Returns the warnings about the measured part. `threads` is the name of the option that sets the number of threads,
/// which the advice mentions.
pub fn warnings(outcome: &Outcome, threads: &str) -> Vec<Warning> {
    [client_busy(outcome.busiest_thread, threads), schedule_lag(outcome), output_slow(outcome.held_up_s)]
        .into_iter()
        .flatten()
        .collect()
}

fn client_busy(share: f64, threads: &str) -> Option<Warning> {
    let message = format!(
        "the busiest thread of the load generator used a processor for {:.0}% of the time, so the load generator may \
         have limited the results; to find out, repeat the run with more threads ({threads}) or with the load \
         generator on another machine",
        100.0 * share
    );
    (share > BUSY).then(|| Warning { kind: "client-busy".to_owned(), message })
}

/// Returns a warning if reading the returned rows kept the engine busy for most of the time of the queries: the times
/// are then partly those of the engine and not of the server. Used for queries that run one after the other; `share` is
/// the CPU time of the engine divided by the time of the queries.
pub fn reading_rows(share: f64) -> Option<Warning> {
    let message = format!(
        "the load generator used a processor for {:.0}% of the time of the queries, to read the rows that they \
         returned; the times of queries that return fewer rows say more about the server",
        100.0 * share
    );
    (share > BUSY).then(|| Warning { kind: "client-busy".to_owned(), message })
}

fn schedule_lag(outcome: &Outcome) -> Option<Warning> {
    let lag = outcome.measure.schedule.as_ref()?.oversleeps.percentiles()?.p99;
    let latency = outcome.measure.latencies.percentiles()?.p50;
    let message = format!(
        "1 of 100 transactions began {:.3} ms late or later although a client was free, which is more than {:.0}% of the \
         median latency of {:.3} ms; to find out whether the load generator is the cause, repeat the run with the load \
         generator on another machine or on processors of its own",
        lag / 1000.0,
        100.0 * LAG,
        latency / 1000.0
    );
    (lag > LAG * latency).then(|| Warning { kind: "schedule-lag".to_owned(), message })
}

fn output_slow(held_up_s: f64) -> Option<Warning> {
    let message = format!(
        "the clients of one thread were stopped for {held_up_s:.3} s in total because the program that reads the \
         output of pgtrial-engine was too slow; the figures include this time"
    );
    (held_up_s > 0.0).then(|| Warning { kind: "output-slow".to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::statistics::{LoadStatistics, ScheduleStatistics};

    fn kinds(busiest_thread: f64, latency_us: u64, lag_us: Option<u64>) -> Vec<String> {
        let mut measure = LoadStatistics::default();
        measure.commit(latency_us * 1000);
        measure.schedule = lag_us.map(|lag| {
            let mut schedule = ScheduleStatistics::default();
            schedule.oversleeps.record(lag * 1000);
            Box::new(schedule)
        });
        let outcome = Outcome { busiest_thread, measure, ..Outcome::default() };
        warnings(&outcome, "-j").into_iter().map(|warning| warning.kind).collect()
    }

    #[test]
    fn a_busy_client_and_a_late_one_cause_warnings() {
        assert_eq!(kinds(0.81, 1000, Some(101)), ["client-busy", "schedule-lag"]);
        assert!(kinds(0.80, 1000, Some(99)).is_empty());
        assert!(kinds(0.0, 1000, None).is_empty());
    }

    #[test]
    fn clients_that_waited_for_the_reader_of_the_output_cause_a_warning() {
        let outcome = Outcome { held_up_s: 0.25, ..Outcome::default() };
        assert_eq!(warnings(&outcome, "-j")[0].kind, "output-slow");
    }

    #[test]
    fn nothing_measured_is_nothing_to_doubt() {
        assert!(warnings(&Outcome::default(), "-j").is_empty());
    }
}
