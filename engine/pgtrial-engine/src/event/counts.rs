//! Converts the counters of the event loop to the records that the events contain.

use drive::statistics::{Counts, Failures};
use workload::queries::Queries;

/// Converts the numbers of failed transactions, which are grouped by the kind of failure.
pub fn failures(failures: &Failures) -> events::FailuresRecord {
    failures.iter().map(|(kind, count)| (kind.clone(), (*count).into())).collect()
}

/// Converts the counts of transactions. The key `queries` stays empty: only loads that count reads, writes and other
/// statements separately have it, and their counts are added by the caller.
pub fn counts(counts: &Counts) -> events::CountsRecord {
    events::CountsRecord {
        transactions: counts.transactions().into(),
        failures: failures(&counts.failures),
        skipped: counts.skipped.into(),
        late: counts.late.into(),
        retried: counts.retried.into(),
        retries: counts.retries.into(),
        queries: None,
    }
}

/// Converts the counts of statements: reads, writes, others, errors, and reconnects.
pub fn queries(queries: &Queries) -> events::QueriesRecord {
    events::QueriesRecord {
        reads: queries.reads.into(),
        writes: queries.writes.into(),
        others: queries.others.into(),
        errors: queries.errors.into(),
        reconnects: queries.reconnects.into(),
    }
}
