//! The report on the whole run, or on what has happened since the last checkpoint.

use std::io::Write;

use super::choice::Choice;
use super::statistics::{Fairness, percentile_ms};
use crate::frontend::sysbench::log::{Level, Log};
use drive::ledger::Tally;
use workload::statistics::Statistics;

/// What is reported on.
pub struct Part<'a> {
    pub statistics: &'a Statistics,
    pub tally: &'a Tally,
    pub clients: usize,
    /// The number of the first one in the whole run.
    pub first_client: usize,
    /// Whether the test has used the database.
    pub has_queries: bool,
    /// Transactions that a forced shutdown cut off.
    pub unfinished: usize,
}

/// Writes the report.
pub fn report<W: Write>(log: &mut Log<W>, part: &Part<'_>, choice: &Choice) {
    Writer { log, part, choice }.write();
}

struct Writer<'a, W: Write> {
    log: &'a mut Log<W>,
    part: &'a Part<'a>,
    choice: &'a Choice,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self) {
        if self.part.has_queries {
            self.write_queries();
        }
        if self.part.unfinished > 0 {
            self.line("");
            let unfinished = self.part.unfinished;
            self.line(&format!("Number of unfinished transactions on forced shutdown: {unfinished}"));
        }
        self.line("");
        self.line("General statistics:");
        let Statistics { time_total, events, .. } = *self.part.statistics;
        self.value("    total time:", &format!("{time_total:.4}s"));
        self.value("    total number of events:", &events.to_string());
        self.line("");
        self.write_latency();
        self.line("");
        self.write_fairness();
        self.line("");
        if self.choice.debug {
            self.write_clients();
        }
    }

    fn write_queries(&mut self) {
        let Statistics { queries, events, time_interval, .. } = *self.part.statistics;
        self.line("SQL statistics:");
        self.line("    queries performed:");
        for (name, count) in
            [("read", queries.reads), ("write", queries.writes), ("other", queries.others), ("total", queries.total())]
        {
            self.value(&format!("        {name}:"), &count.to_string());
        }
        for (name, count) in [
            ("transactions", events),
            ("queries", queries.total()),
            ("ignored errors", queries.errors),
            ("reconnects", queries.reconnects),
        ] {
            // A run may be interrupted before its load begins.
            let rate = if time_interval > 0.0 { count as f64 / time_interval } else { 0.0 };
            self.value(&format!("    {name}:"), &format!("{count:<6} ({rate:.2} per sec.)"));
        }
    }

    fn write_latency(&mut self) {
        let Statistics { latency_min, latency_avg, latency_max, latency_pct, latency_sum, .. } = *self.part.statistics;
        self.line("Latency (ms):");
        self.latency("         min:", latency_min * 1e3);
        self.latency("         avg:", latency_avg * 1e3);
        self.latency("         max:", latency_max * 1e3);
        match self.choice.percentile {
            0 => self.value("         percentile stats:", "disabled"),
            percentile => self.percentile(&percentile.to_string(), latency_pct * 1e3),
        }
        for percentile in &self.choice.percentiles {
            // It has been checked to be a number.
            let number = percentile.parse().unwrap_or_default();
            self.percentile(percentile, percentile_ms(self.part.tally, number));
        }
        self.latency("         sum:", latency_sum * 1e3);
    }

    fn percentile(&mut self, percentile: &str, ms: f64) {
        self.latency(&format!("{percentile:>11}th percentile:"), ms);
    }

    fn write_fairness(&mut self) {
        let Fairness { events, events_stddev, time, time_stddev } = Fairness::of(self.part.tally, self.part.clients);
        self.line("Threads fairness:");
        self.line(&format!("    events (avg/stddev):           {events:.4}/{events_stddev:.2}"));
        self.line(&format!("    execution time (avg/stddev):   {time:.4}/{time_stddev:.2}"));
    }

    fn write_clients(&mut self) {
        self.log.text(Level::Debug, "Verbose per-thread statistics:\n");
        for client in 0..self.part.clients {
            let totals = self.part.tally.clients.totals().get(client).copied().unwrap_or_default();
            let number = self.part.first_client + client;
            let seconds = |ns: u64| ns as f64 / 1e9;
            let mean = seconds(totals.busy_ns) / totals.transactions.max(1) as f64;
            self.log.text(
                Level::Debug,
                format_args!(
                    "    thread #{number:3}: min: {:.4}s  avg: {mean:.4}s  max: {:.4}s  events: {}",
                    seconds(totals.shortest_ns),
                    seconds(totals.longest_ns),
                    totals.transactions
                ),
            );
            let busy = seconds(totals.busy_ns);
            self.log
                .text(Level::Debug, format_args!("                 total time taken by event execution: {busy:.4}s"));
        }
        self.line("");
    }

    fn latency(&mut self, name: &str, ms: f64) {
        self.value(name, &format!("{ms:12.2}"));
    }

    /// A name, and its value in the column of values.
    fn value(&mut self, name: &str, value: &str) {
        self.line(&format!("{name:<41}{value}"));
    }

    fn line(&mut self, text: &str) {
        self.log.text(Level::Notice, text);
    }
}
