//! sysbench's statistics from the counts of a run.

use drive::ledger::{ClientTotals, PerClient, Tally};
use latency::Latencies;
use workload::statistics::Statistics;

/// Returns the statistics of a part of the run; `time_interval` and `time_total` are in seconds. The percentile is not
/// rounded to a bucket of sysbench's histogram: it is within a thousandth.
pub fn statistics(tally: &Tally, percentile: f64, threads_running: usize, interval: f64, total: f64) -> Statistics {
    let moments = &tally.counts.moments;
    Statistics {
        threads_running,
        time_interval: interval,
        time_total: total,
        latency_pct: percentile_ms(tally, percentile) / 1e3,
        latency_min: moments.min / 1e6,
        latency_max: moments.max / 1e6,
        latency_avg: moments.mean() / 1e6,
        latency_sum: moments.sum / 1e6,
        events: moments.count + tally.counts.more_events,
        queries: tally.counts.queries,
        queue_length: 0,
        concurrency: 0,
    }
}

/// Returns a percentile of the latency, milliseconds; 0 without latencies, or for the percentile 0. No percentile is
/// above the longest latency.
pub fn percentile_ms(tally: &Tally, percentile: f64) -> f64 {
    let found = |latencies: &Latencies| latencies.percentile(percentile).unwrap_or_default();
    if percentile > 0.0 { found(&tally.latencies).min(tally.counts.moments.max) / 1e3 } else { 0.0 }
}

/// Returns the totals of each client, in the order of their numbers.
pub fn of_clients(tally: &Tally) -> &[ClientTotals] {
    tally.own.get().map_or(&[], PerClient::totals)
}

/// Returns the mean and the standard deviation (with the divisor n) of a value over all clients. They show how evenly
/// the clients share the work.
pub fn spread(tally: &Tally, clients: usize, value: impl Fn(&ClientTotals) -> f64) -> (f64, f64) {
    let n = clients.max(1) as f64;
    let values: Vec<_> = of_clients(tally).iter().map(value).collect();
    // The sum of an empty iterator is -0.
    let mean = values.iter().fold(0.0, |sum, value| sum + value) / n;
    // A client without totals has done nothing.
    let unknown = clients.saturating_sub(values.len()) as f64 * mean * mean;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() + unknown;
    (mean, (squares / n).sqrt())
}
