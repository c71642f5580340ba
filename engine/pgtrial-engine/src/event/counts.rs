//! The counts of the event loop, as the events write them.

use drive::ledger::{Counts, Failures};
use workload::queries::Queries;

/// Returns failures by their kinds.
pub fn failures(failures: &Failures) -> events::FailuresRecord {
    failures.iter().map(|(kind, count)| (kind.clone(), (*count).into())).collect()
}

/// Returns the counts of transactions, without statements by kind.
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

/// Returns the counts of statements by kind.
pub fn queries(queries: &Queries) -> events::QueriesRecord {
    events::QueriesRecord {
        reads: queries.reads.into(),
        writes: queries.writes.into(),
        others: queries.others.into(),
        errors: queries.errors.into(),
        reconnects: queries.reconnects.into(),
    }
}
