//! The lines on an interval.

use std::io::Write;

use crate::frontend::sysbench::log::Log;
use workload::statistics::Statistics;

/// Writes the line on an interval, and with a rate the one on the queue.
pub fn report<W: Write>(log: &mut Log<W>, statistics: &Statistics, percentile: u32, paced: bool) {
    let Statistics { time_interval: seconds, time_total, queries, .. } = *statistics;
    let rate = |count: u64| count as f64 / seconds;
    log.timed(
        time_total,
        format_args!(
            "thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): {:.2} err/s: {:.2} \
             reconn/s: {:.2}",
            statistics.threads_running,
            rate(statistics.events),
            rate(queries.total()),
            rate(queries.reads),
            rate(queries.writes),
            rate(queries.others),
            statistics.latency_pct * 1e3,
            rate(queries.errors),
            rate(queries.reconnects),
        ),
    );
    if paced {
        let Statistics { queue_length, concurrency, .. } = statistics;
        log.timed(time_total, format_args!("queue length: {queue_length}, concurrency: {concurrency}"));
    }
}

/// Writes the line on an interval of a test that has not used the database.
pub fn report_events<W: Write>(log: &mut Log<W>, statistics: &Statistics, percentile: u32, paced: bool) {
    let Statistics { time_interval, time_total, events, threads_running, latency_pct, .. } = *statistics;
    let (rate, latency) = (events as f64 / time_interval, latency_pct * 1e3);
    log.timed(time_total, format_args!("thds: {threads_running} eps: {rate:.2} lat (ms,{percentile}%): {latency:.2}"));
    if paced {
        let Statistics { queue_length, concurrency, .. } = statistics;
        log.timed(time_total, format_args!("queue length: {queue_length} concurrency: {concurrency}"));
    }
}
