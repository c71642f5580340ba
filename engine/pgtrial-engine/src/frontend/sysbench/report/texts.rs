//! The texts that sysbench prints about a run: the options before the load begins, the line for an interval, and the
//! report at a checkpoint or at the end.

use std::fmt::Display;
use std::io::Write;

use super::options::ReportOptions;
use super::statistics::{of_clients, percentile_ms, spread};
use crate::frontend::sysbench::log::{Level, Log};
use drive::statistics::LoadStatistics;
use ground::shard::ClientShare;
use workload::settings::Settings;
use workload::statistics::{Introduction, Statistics};

/// Writes the options of the run, before its clients are started.
pub fn opening<W: Write>(
    log: &mut Log<W>,
    settings: &Settings,
    part: &ClientShare,
    options: &ReportOptions,
    introduction: Introduction,
) {
    let number = |name| settings.int(name);
    let notice = |text: String| log.text(Level::Notice, text);
    notice("Running the test with following options:".to_owned());
    notice(format!("Number of threads: {}", number("threads")));
    if part.shard.is_part() {
        let (own, first) = (part.clients(), part.number(0));
        notice(format!("Shard {} of the run: {own} threads, from #{first}", part.shard));
    }
    if let Some(length) = settings.text("slice") {
        let number = settings.text("slice_of").unwrap_or_default();
        notice(format!(
            "Slices of {length}, engine {number}; rates count only the time of the threads in their slices"
        ));
    }
    if number("warmup_time") > 0 {
        notice(format!("Warmup time: {}s", number("warmup_time")));
    }
    if options.has_rate {
        notice(format!("Target transaction rate: {}/sec", number("rate")));
    }
    if let Some(interval) = options.interval {
        notice(format!("Report intermediate results every {interval} second(s)"));
    }
    if !options.checkpoints.is_empty() {
        let points: Vec<_> = options.checkpoints.iter().map(u64::to_string).collect();
        notice(format!("Report checkpoint(s) at {} seconds", points.join(", ")));
    }
    if options.debug {
        notice("Debug mode enabled.\n".to_owned());
    }
    if settings.is_on("validate") {
        notice("Validation checks: on.\n".to_owned());
    }
    match number("rand_seed") {
        0 => notice("Initializing random number generator from current time\n".to_owned()),
        seed => notice(format!("Initializing random number generator from seed ({seed}).\n")),
    }
    if let Some(grace) = options.grace {
        let seconds = number("time").unsigned_abs() + grace;
        notice(format!("Forcing shutdown in {seconds} seconds"));
    }
    notice(String::new());
    introduction.details.iter().for_each(|line| log.text(Level::Info, line));
    introduction.parameters.into_iter().for_each(notice);
    if options.has_rate {
        log.text(Level::Debug, "Event generating thread started");
    }
    log.text(Level::Notice, "Initializing worker threads...\n");
    if options.interval.is_some() {
        log.text(Level::Debug, "Reporting thread started");
    }
    if !options.checkpoints.is_empty() {
        log.text(Level::Debug, "Checkpoints report thread started");
    }
    let threads = (0..part.clients()).map(|index| part.number(index));
    threads.for_each(|thread| log.text(Level::Debug, format_args!("Worker thread (#{thread}) started")));
}

/// Writes the line for an interval and, if the load has a rate, the line about the queue. `has_queries` is false if the
/// test has not used the database; the line then has no numbers of queries.
pub fn intermediate<W: Write>(log: &mut Log<W>, statistics: &Statistics, options: &ReportOptions, has_queries: bool) {
    let Statistics { time_total, queries, queue_length, concurrency, .. } = *statistics;
    let (threads, latency) = (statistics.threads_running, statistics.latency_pct * 1e3);
    let (percentile, rate) = (options.percentile, |count: u64| statistics.per_second(count as f64));
    let events = rate(statistics.events);
    if has_queries {
        log.timed(
            time_total,
            format_args!(
                "thds: {threads} tps: {events:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{percentile}%): \
                 {latency:.2} err/s: {:.2} reconn/s: {:.2}",
                rate(queries.total()),
                rate(queries.reads),
                rate(queries.writes),
                rate(queries.others),
                rate(queries.errors),
                rate(queries.reconnects),
            ),
        );
    } else {
        log.timed(time_total, format_args!("thds: {threads} eps: {events:.2} lat (ms,{percentile}%): {latency:.2}"));
    }
    if options.has_rate {
        let comma = if has_queries { "," } else { "" };
        log.timed(time_total, format_args!("queue length: {queue_length}{comma} concurrency: {concurrency}"));
    }
}

/// The period that a report is about: the whole run, or the time since the last checkpoint.
pub struct ReportedPeriod<'a> {
    pub statistics: &'a Statistics,
    pub measured: &'a LoadStatistics,
    pub clients: usize,
    /// The number of the first client in the whole run.
    pub first_client: usize,
    /// True if the test has used the database. If false, the report has no numbers of queries.
    pub has_queries: bool,
    /// The number of transactions that were interrupted by a forced shutdown.
    pub unfinished: usize,
}

/// Writes the report on the whole run, or on the time since the last checkpoint.
pub fn cumulative<W: Write>(log: &mut Log<W>, part: &ReportedPeriod<'_>, options: &ReportOptions) {
    let mut notice = |line: String| log.text(Level::Notice, line);
    let Statistics { time_total, events, .. } = *part.statistics;
    if part.has_queries {
        query_lines(part.statistics).into_iter().for_each(&mut notice);
    }
    if part.unfinished > 0 {
        notice(format!("\nNumber of unfinished transactions on forced shutdown: {}", part.unfinished));
    }
    notice("\nGeneral statistics:".to_owned());
    notice(value("    total time:", format_args!("{time_total:.4}s")));
    notice(value("    total number of events:", events));
    latency_lines(part, options).into_iter().for_each(&mut notice);
    let (events, events_stddev) = spread(part.measured, part.clients, |totals| totals.transactions as f64);
    let (time, time_stddev) = spread(part.measured, part.clients, |totals| totals.busy_ns as f64 / 1e9);
    notice("\nThreads fairness:".to_owned());
    notice(format!("    events (avg/stddev):           {events:.4}/{events_stddev:.2}"));
    notice(format!("    execution time (avg/stddev):   {time:.4}/{time_stddev:.2}\n"));
    if options.debug {
        log.text(Level::Debug, "Verbose per-thread statistics:\n");
        client_lines(part).into_iter().for_each(|line| log.text(Level::Debug, line));
        log.text(Level::Notice, "");
    }
}

fn query_lines(statistics: &Statistics) -> Vec<String> {
    let Statistics { queries, events, .. } = *statistics;
    let counts =
        [("read", queries.reads), ("write", queries.writes), ("other", queries.others), ("total", queries.total())];
    let rates = [
        ("transactions", events),
        ("queries", queries.total()),
        ("ignored errors", queries.errors),
        ("reconnects", queries.reconnects),
    ];
    let mut lines = vec!["SQL statistics:".to_owned(), "    queries performed:".to_owned()];
    lines.extend(counts.map(|(name, count)| value(&format!("        {name}:"), count)));
    lines.extend(rates.map(|(name, count)| {
        value(&format!("    {name}:"), format_args!("{count:<6} ({:.2} per sec.)", statistics.per_second(count as f64)))
    }));
    lines
}

fn latency_lines(part: &ReportedPeriod<'_>, options: &ReportOptions) -> Vec<String> {
    let Statistics { latency_min, latency_avg, latency_max, latency_pct, latency_sum, .. } = *part.statistics;
    let latency = |name: &str, ms: f64| value(name, format_args!("{ms:12.2}"));
    let percentile = |percentile: &str, ms: f64| latency(&format!("{percentile:>11}th percentile:"), ms);
    let mut lines = vec![
        "\nLatency (ms):".to_owned(),
        latency("         min:", latency_min * 1e3),
        latency("         avg:", latency_avg * 1e3),
        latency("         max:", latency_max * 1e3),
    ];
    lines.push(match options.percentile {
        0 => value("         percentile stats:", "disabled"),
        number => percentile(&number.to_string(), latency_pct * 1e3),
    });
    // The texts are known to be numbers, since the option has been checked before.
    let others = options.percentiles.iter();
    lines.extend(
        others.map(|number| percentile(number, percentile_ms(part.measured, number.parse().unwrap_or_default()))),
    );
    lines.push(latency("         sum:", latency_sum * 1e3));
    lines
}

fn client_lines(part: &ReportedPeriod<'_>) -> Vec<String> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of_clients = of_clients(part.measured);
    let lines = (0..part.clients).flat_map(|client| {
        let totals = of_clients.get(client).copied().unwrap_or_default();
        let (number, busy) = (part.first_client + client, seconds(totals.busy_ns));
        [
            format!(
                "    thread #{number:3}: min: {:.4}s  avg: {:.4}s  max: {:.4}s  events: {}",
                seconds(totals.shortest_ns),
                busy / totals.transactions.max(1) as f64,
                seconds(totals.longest_ns),
                totals.transactions
            ),
            format!("                 total time taken by event execution: {busy:.4}s"),
        ]
    });
    lines.collect()
}

/// Returns a line with a name and a value, which begins in the same column on all lines.
fn value(name: &str, value: impl Display) -> String {
    format!("{name:<41}{value}")
}
