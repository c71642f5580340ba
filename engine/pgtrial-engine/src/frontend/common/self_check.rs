//! Warns if the client itself limited the measurement, so that the figures describe it rather than the server.

use drive::Outcome;
pub use events::Warning;

/// A thread limits the load if it runs on the processor for more than this share of the time.
const BUSY: f64 = 0.8;

/// The client's own lag distorts the latencies if it is more than this share of their median.
const LAG: f64 = 0.1;

/// Returns the reasons to doubt the measured phase. `threads` is the name of the option that adds threads.
pub fn warnings(outcome: &Outcome, threads: &str) -> Vec<Warning> {
    [client_busy(outcome.busiest_thread, threads), schedule_lag(outcome), output_slow(outcome.held_up_s)]
        .into_iter()
        .flatten()
        .collect()
}

fn client_busy(share: f64, threads: &str) -> Option<Warning> {
    let message = format!(
        "the busiest client thread was on the processor {:.0}% of the time, so that the client may have been the limit; \
         more threads ({threads}) or another machine for the client would tell",
        100.0 * share
    );
    (share > BUSY).then(|| Warning { kind: "client-busy".to_owned(), message })
}

/// Returns a warning if the engine spent much of the queries' time on reading their rows, so that the times say less
/// about the server. For queries that run one after the other.
pub fn reading_rows(share: f64) -> Option<Warning> {
    let message = format!(
        "the client was on the processor {:.0}% of the time of the queries, to read their rows; queries that return fewer \
         rows show more of the server",
        100.0 * share
    );
    (share > BUSY).then(|| Warning { kind: "client-busy".to_owned(), message })
}

fn schedule_lag(outcome: &Outcome) -> Option<Warning> {
    let lag = outcome.measure.pace.as_ref()?.oversleeps.percentiles()?.p99;
    let latency = outcome.measure.latencies.percentiles()?.p50;
    let message = format!(
        "1 of 100 transactions began {:.3} ms late or later although a client was free, which is more than {:.0}% of the \
         median latency of {:.3} ms; another machine or processors of its own for the client would tell",
        lag / 1000.0,
        100.0 * LAG,
        latency / 1000.0
    );
    (lag > LAG * latency).then(|| Warning { kind: "schedule-lag".to_owned(), message })
}

fn output_slow(held_up_s: f64) -> Option<Warning> {
    let message = format!(
        "the clients of a thread stood still for {held_up_s:.3} s because nobody read the output of the engine; the figures \
         include that time"
    );
    (held_up_s > 0.0).then(|| Warning { kind: "output-slow".to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::ledger::{Pace, Tally};

    fn kinds(busiest_thread: f64, latency_us: u64, lag_us: Option<u64>) -> Vec<String> {
        let mut measure = Tally::default();
        measure.commit(latency_us * 1000);
        measure.pace = lag_us.map(|lag| {
            let mut pace = Pace::default();
            pace.oversleeps.record(lag * 1000);
            Box::new(pace)
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
