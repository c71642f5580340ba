//! Prints lines while the run is in progress: progress lines, the reasons why clients were aborted, and other messages
//! about the run.

use super::options::ORDER_ENTRY;
use crate::frontend::common::messages::USER;
use crate::frontend::common::progress::{Progress, ProgressInterval};
use drive::plan::Plan;
use drive::statistics::LoadStatistics;
use drive::{Abortion, Began, Observer, Tick};
use ground::clock::Phase;
use workload::order_entry::TransactionKind;

/// The observer of a run, which the event loop calls once for each second and for each client that is aborted. It
/// prints the lines that the user sees while the run is in progress.
pub struct OrderEntryObserver {
    progress: Progress,
}

impl OrderEntryObserver {
    /// Makes the observer for a run with this plan. It prints a progress line every `every` seconds of the measured
    /// part.
    pub fn new(every: Option<u32>, plan: &Plan) -> Self {
        Self { progress: Progress::new(every, plan) }
    }
}

impl Observer for OrderEntryObserver {
    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(|message| ORDER_ENTRY.warning(message));
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(ProgressInterval { end_s, length_s, statistics }) = self.progress.add(tick) {
            (USER.tell)(&line(end_s, length_s, &statistics));
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        let Abortion { client, script, cause, .. } = abortion;
        let name = TransactionKind::all().get(*script).map_or("a transaction", |kind| kind.name());
        let reason = cause.to_string();
        // The server's message has more lines, about the statement. Only the first line is printed.
        let reason = reason.lines().next().unwrap_or_default();
        ORDER_ENTRY.error(format_args!("client {client} was aborted in {name}: {reason}"));
    }

    fn note(&mut self, text: &str) {
        ORDER_ENTRY.info(text);
    }
}

/// Returns a progress line. `time` is the elapsed time of the measured part in seconds, and `seconds` is the time in
/// which the counts of `statistics` were counted.
fn line(time: f64, seconds: f64, statistics: &LoadStatistics) -> String {
    let counts = &statistics.counts;
    let tps = if seconds > 0.0 { counts.transactions() as f64 / seconds } else { 0.0 };
    let p90 = statistics.latencies.percentile(90.0).unwrap_or_default() / 1000.0;
    let (mean, failed) = (counts.moments.mean() / 1000.0, counts.failed());
    format!("progress: {time:.1} s, {tps:.1} tps, lat {mean:.3} ms, p90 {p90:.3} ms, {failed} failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_has_the_rate_and_the_latency() {
        let mut statistics = LoadStatistics::default();
        (0..10).for_each(|_| statistics.commit(2_000_000));
        assert_eq!(line(5.0, 2.0, &statistics), "progress: 5.0 s, 5.0 tps, lat 2.000 ms, p90 2.001 ms, 0 failed");
    }
}
