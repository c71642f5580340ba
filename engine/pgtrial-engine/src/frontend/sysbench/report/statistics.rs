//! Computes sysbench's statistics from the counts of a run.

use drive::statistics::{ClientTotals, LoadStatistics, PerClient};
use latency::Latencies;
use workload::statistics::Statistics;

/// Returns the statistics of a period of the run. `interval` is the length of this period and `total` the time since
/// the start of the run, both in seconds. The percentile is wrong by at most a thousandth, and thus more exact than in
/// sysbench, whose buckets are 1.8% apart.
pub fn statistics(
    measured: &LoadStatistics,
    percentile: f64,
    threads_running: usize,
    interval: f64,
    total: f64,
) -> Statistics {
    let moments = &measured.counts.moments;
    Statistics {
        threads_running,
        time_interval: interval,
        time_total: total,
        latency_pct: percentile_ms(measured, percentile) / 1e3,
        latency_min: moments.min / 1e6,
        latency_max: moments.max / 1e6,
        latency_avg: moments.mean() / 1e6,
        latency_sum: moments.sum / 1e6,
        events: moments.count + measured.counts.more_events,
        queries: measured.counts.queries,
        queue_length: 0,
        concurrency: 0,
    }
}

/// Returns a percentile of the latency in milliseconds, which is never greater than the longest latency. Returns 0 if
/// there are no latencies, or for the percentile 0.
pub fn percentile_ms(measured: &LoadStatistics, percentile: f64) -> f64 {
    let found = |latencies: &Latencies| latencies.percentile(percentile).unwrap_or_default();
    if percentile > 0.0 { found(&measured.latencies).min(measured.counts.moments.max) / 1e3 } else { 0.0 }
}

/// Returns the totals of each client, in the order of the clients' numbers.
pub fn of_clients(measured: &LoadStatistics) -> &[ClientTotals] {
    measured.of_mode.clients().map_or(&[], PerClient::totals)
}

/// Returns the mean and the standard deviation (with the divisor n) of a value over all clients, as sysbench's section
/// "Threads fairness" shows them.
pub fn spread(measured: &LoadStatistics, clients: usize, value: impl Fn(&ClientTotals) -> f64) -> (f64, f64) {
    let n = clients.max(1) as f64;
    let values: Vec<_> = of_clients(measured).iter().map(value).collect();
    // The sum of an empty iterator would be -0, which the report would show with its sign. This sum begins with 0.
    let mean = values.iter().fold(0.0, |sum, value| sum + value) / n;
    // A client without totals has run no transaction. Its value is 0, so its squared distance from the mean is the
    // square of the mean.
    let unknown = clients.saturating_sub(values.len()) as f64 * mean * mean;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() + unknown;
    (mean, (squares / n).sqrt())
}
