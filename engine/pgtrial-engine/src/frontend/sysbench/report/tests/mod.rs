//! Tests of the lines that a run prints.

mod texts;
mod watching;

use super::options::ReportOptions;
use crate::frontend::sysbench::log::Log;
use drive::statistics::{LoadStatistics, ModeCounts, PerClient};
use workload::queries::Queries;

/// Returns the text that a log with this verbosity writes.
fn logged(verbosity: i64, act: impl FnOnce(&mut Log<Vec<u8>>)) -> String {
    let mut log = Log::to(Vec::new());
    log.limit(verbosity);
    act(&mut log);
    String::from_utf8(log.written()).unwrap()
}

/// Returns the measurements of two clients. The first client ran three transactions of 1, 2 and 3 ms, and the second
/// client ran one transaction of 10 ms.
fn measured() -> LoadStatistics {
    let (mut measured, mut clients) = (LoadStatistics::default(), PerClient::new(0, 2));
    for (client, ms) in [(0, 1), (0, 2), (0, 3), (1, 10)] {
        measured.commit(ms * 1_000_000);
        clients.add(client, ms * 1_000_000);
    }
    measured.of_mode = ModeCounts::Clients(clients);
    measured.counts.queries = Queries { reads: 12, writes: 4, others: 8, errors: 1, reconnects: 2 };
    measured
}

fn usual() -> ReportOptions {
    ReportOptions { percentile: 95, ..ReportOptions::default() }
}
