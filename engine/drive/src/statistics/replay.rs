//! The counters of replays: how many recorded sessions ended in which way, and how the statements of each template
//! ended. A template stands for statements that differ only in their values. Each thread hands over these totals when
//! it ends. The counts of each second are not here, but in the statistics of the second (`load.rs`).

use std::borrow::Cow;

use super::counts::Failures;
use ground::clock::Nanos;
use ground::random::splitmix64_at;
use latency::{Latencies, Moments};
use workload::recorded::{Expected, StatementFailure};

/// The name under which failures are counted if the recording that is replayed does not contain their SQLSTATE.
const UNSTATED: &str = "unstated";

/// The SQLSTATE of a statement in a transaction that an earlier error has aborted.
pub const IN_FAILED_TRANSACTION: &str = "25P02";

/// The totals of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayTotals {
    pub sessions: SessionCounts,
    /// The number of transactions that have ended, by commit or by rollback.
    pub transactions: u64,
    /// Errors that were recorded for the same statement and that happened in the replay, too; their number by SQLSTATE.
    pub expected: Failures,
    /// Errors that happened in the replay but were not recorded for the same statement; their number by SQLSTATE.
    pub unexpected: Failures,
    /// Recorded errors that did not happen in the replay; their number by SQLSTATE.
    pub missing: Failures,
    /// The totals of each template of statements.
    pub accounts: Vec<ReplayAccount>,
}

/// The numbers of recorded sessions by how they ended in the replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Sessions that got their connection.
    pub begun: u64,
    /// Sessions whose last statement was executed.
    pub finished: u64,
    /// Sessions that got no connection.
    pub refused: u64,
    /// Sessions whose connection broke.
    pub lost: u64,
    /// Sessions whose first COMMIT or ROLLBACK had no transaction to end: the transaction presumably began before the
    /// recording of the sessions did.
    pub begun_before: u64,
    /// Sessions that ended inside a transaction. Presumably the recording stopped before the end of the transaction, or
    /// an error aborted the transaction and the client never rolled it back.
    pub left_open: u64,
}

/// The totals of all statements of one template. A template stands for statements that differ only in their values.
#[derive(Debug, Clone, Default)]
pub struct ReplayAccount {
    /// Statements of the template that the server has answered, or whose connection was lost.
    pub statements: u64,
    /// Rows that the template's statements returned or changed.
    pub rows: u64,
    /// The sum over the template's statements of a hash of the rows that each returned. It does not depend on the order
    /// in which statements ran. Meaningful only if rows were hashed.
    pub hash: u64,
    /// Statements of the template that returned or changed a different number of rows than recorded.
    pub other_rows: u64,
    /// Recorded errors of the template's statements that happened in the replay, too; their number by SQLSTATE.
    pub expected: Failures,
    /// Errors of the template's statements that happened in the replay but were not recorded; their number by SQLSTATE.
    pub unexpected: Failures,
    /// Recorded errors of the template's statements that did not happen in the replay; their number by SQLSTATE.
    pub missing: Failures,
    /// Statements that failed with an unrecorded 25P02 because an earlier statement of their transaction, one of this
    /// template, had failed and thereby aborted the transaction. The statements themselves can have any template. They
    /// are counted by the SQLSTATE of the earlier error.
    pub consequences: Failures,
    /// Statements whose recorded 25P02 did not happen, because an earlier statement of their transaction, one of this
    /// template, did not fail as recorded and the transaction was therefore not aborted. They are counted by the
    /// SQLSTATE of the recorded error of the earlier statement.
    pub missing_consequences: Failures,
    /// The time from sending a statement to its answer, in microseconds. Statements with unexpected errors are not
    /// counted.
    pub moments: Moments,
    /// The same times as in `moments`, as a histogram.
    pub times: Latencies,
}

/// The errors of a session's current transaction that explain why later statements of the transaction fail or succeed
/// unlike in the recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TransactionErrors {
    /// The error that aborted the transaction, if there was one.
    ended_by: Option<Cause>,
    /// The recorded error of this transaction that did not happen in the replay, if there is one.
    missing: Option<Cause>,
}

#[derive(Debug, Clone, Copy)]
struct Cause {
    account: usize,
    failure: StatementFailure,
}

impl Cause {
    fn new(account: usize, sqlstate: &str) -> Self {
        let failure = sqlstate.as_bytes().try_into().map_or(StatementFailure::Unstated, StatementFailure::Code);
        Self { account, failure }
    }
}

/// The number of rows that a statement returned or changed, and their hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplyRows {
    pub rows: u64,
    /// The hash of the rows; 0 if rows are not hashed.
    pub hash: u64,
}

impl ReplayTotals {
    /// Returns empty totals for a replay with this number of templates.
    pub(crate) fn new(accounts: usize) -> Self {
        Self { accounts: vec![ReplayAccount::default(); accounts], ..Self::default() }
    }

    /// Counts a statement that succeeded. `errors` are the errors of earlier statements of its transaction.
    pub(crate) fn succeed(
        &mut self,
        expected: &Expected,
        ReplyRows { rows, hash }: ReplyRows,
        time: Nanos,
        errors: &mut TransactionErrors,
    ) {
        let account = &mut self.accounts[expected.account];
        account.answer(time);
        account.rows += rows;
        account.hash = account.hash.wrapping_add(splitmix64_at(hash, rows));
        account.other_rows += u64::from(expected.rows.is_some_and(|recorded| recorded != rows));
        let Some(failure) = expected.failure else { return };
        for failures in [&mut account.missing, &mut self.missing] {
            count(failures, &name(&failure));
        }
        match errors.missing {
            Some(cause) if failure == StatementFailure::Unstated || name(&failure) == IN_FAILED_TRANSACTION => {
                count(&mut self.accounts[cause.account].missing_consequences, &name(&cause.failure));
            }
            _ => errors.missing = Some(Cause { account: expected.account, failure }),
        }
    }

    /// Counts a statement that failed with its recorded error.
    pub(crate) fn fail_as_recorded(
        &mut self,
        expected: &Expected,
        sqlstate: &str,
        time: Nanos,
        errors: &mut TransactionErrors,
    ) {
        let account = &mut self.accounts[expected.account];
        account.answer(time);
        for failures in [&mut account.expected, &mut self.expected] {
            count(failures, sqlstate);
        }
        if sqlstate != IN_FAILED_TRANSACTION {
            errors.ended_by = Some(Cause::new(expected.account, sqlstate));
        }
    }

    /// Counts a statement that failed with an error that was not recorded. Returns true if this error follows from an
    /// earlier error of the transaction.
    pub(crate) fn fail(&mut self, expected: &Expected, sqlstate: &str, errors: &mut TransactionErrors) -> bool {
        let account = &mut self.accounts[expected.account];
        account.statements += 1;
        for failures in [&mut account.unexpected, &mut self.unexpected] {
            count(failures, sqlstate);
        }
        match errors.ended_by {
            Some(cause) if sqlstate == IN_FAILED_TRANSACTION => {
                count(&mut self.accounts[cause.account].consequences, &name(&cause.failure));
                true
            }
            _ => {
                errors.ended_by = Some(Cause::new(expected.account, sqlstate));
                false
            }
        }
    }

    /// Returns the number of statements of all templates, and the number of their rows.
    pub fn statements(&self) -> (u64, u64) {
        self.accounts
            .iter()
            .fold((0, 0), |(statements, rows), account| (statements + account.statements, rows + account.rows))
    }

    /// Returns the number of statements that returned or changed a different number of rows than recorded.
    pub fn other_rows(&self) -> u64 {
        self.accounts.iter().map(|account| account.other_rows).sum()
    }

    /// Adds the totals of another thread.
    pub(super) fn merge(&mut self, other: &ReplayTotals) {
        self.sessions.merge(&other.sessions);
        self.transactions += other.transactions;
        add(&mut self.expected, &other.expected);
        add(&mut self.unexpected, &other.unexpected);
        add(&mut self.missing, &other.missing);
        if self.accounts.len() < other.accounts.len() {
            self.accounts.resize_with(other.accounts.len(), ReplayAccount::default);
        }
        self.accounts.iter_mut().zip(&other.accounts).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}

impl SessionCounts {
    fn merge(&mut self, other: &SessionCounts) {
        self.begun += other.begun;
        self.finished += other.finished;
        self.refused += other.refused;
        self.lost += other.lost;
        self.begun_before += other.begun_before;
        self.left_open += other.left_open;
    }
}

impl ReplayAccount {
    fn answer(&mut self, time: Nanos) {
        self.statements += 1;
        self.moments.add(time as f64 / 1000.0);
        self.times.record(time);
    }

    /// Returns the number of statements that failed with an error that was not recorded.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.values().sum()
    }

    fn merge(&mut self, other: &ReplayAccount) {
        self.statements += other.statements;
        self.rows += other.rows;
        self.hash = self.hash.wrapping_add(other.hash);
        self.other_rows += other.other_rows;
        for (mine, theirs) in [
            (&mut self.expected, &other.expected),
            (&mut self.unexpected, &other.unexpected),
            (&mut self.missing, &other.missing),
            (&mut self.consequences, &other.consequences),
            (&mut self.missing_consequences, &other.missing_consequences),
        ] {
            add(mine, theirs);
        }
        self.moments.merge(&other.moments);
        self.times.merge(&other.times);
    }
}

/// Returns the name under which a recorded failure is counted: its SQLSTATE or, if the recording does not contain it,
/// `unstated`.
fn name(failure: &StatementFailure) -> Cow<'_, str> {
    failure.code().map_or(UNSTATED.into(), |code| String::from_utf8_lossy(code))
}

fn count(failures: &mut Failures, kind: &str) {
    *failures.entry(kind.to_owned()).or_default() += 1;
}

fn add(sum: &mut Failures, failures: &Failures) {
    for (kind, count) in failures {
        *sum.entry(kind.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_their_account_and_by_what_was_recorded() {
        let expected = |account, failure, rows| Expected { account, failure, rows, ..Expected::default() };
        let (mut one, mut other) = (ReplayTotals::new(2), ReplayTotals::new(2));
        let found = |rows| ReplyRows { rows, hash: 7 };
        let alone = TransactionErrors::default;
        one.succeed(&expected(0, None, Some(3)), found(3), 1_000_000, &mut alone());
        one.succeed(&expected(0, None, Some(3)), found(4), 3_000_000, &mut alone());
        let duplicate = expected(1, Some(StatementFailure::Code(*b"23505")), None);
        other.succeed(&duplicate, found(1), 1_000_000, &mut alone());
        other.succeed(&expected(1, Some(StatementFailure::Unstated), None), found(1), 1_000_000, &mut alone());
        other.fail_as_recorded(&duplicate, "23505", 2_000_000, &mut alone());
        assert!(!other.fail(&expected(0, None, None), "42P01", &mut alone()));
        let mut whole = ReplayTotals::default();
        whole.merge(&one);
        whole.merge(&other);
        let [first, second] = &whole.accounts[..] else { panic!("{whole:?}") };
        assert_eq!((first.statements, first.rows, first.other_rows, first.unexpected()), (3, 7, 1, 1));
        assert_eq!((first.moments.count, first.moments.mean()), (2, 2000.0));
        assert_eq!(first.times.percentile(50.0), Some(1000.447));
        let counts =
            |of: &[(&str, u64)]| of.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect::<Failures>();
        assert_eq!((second.statements, &second.expected), (3, &counts(&[("23505", 1)])));
        assert_eq!(second.missing, counts(&[("23505", 1), ("unstated", 1)]));
        assert_eq!(whole.expected, counts(&[("23505", 1)]));
        assert_eq!(whole.unexpected, counts(&[("42P01", 1)]));
        assert_eq!(whole.missing, counts(&[("23505", 1), ("unstated", 1)]));
        assert_eq!((whole.statements(), whole.other_rows()), ((6, 9), 1));
    }

    #[test]
    fn what_follows_from_an_error_in_a_transaction_is_counted_with_that_error() {
        let plain = |account| Expected { account, ..Expected::default() };
        let recorded = |account, code| Expected { failure: Some(StatementFailure::Code(code)), ..plain(account) };
        let mut totals = ReplayTotals::new(3);
        let mut errors = TransactionErrors::default();
        assert!(!totals.fail(&plain(0), "42P01", &mut errors));
        assert!(totals.fail(&plain(1), "25P02", &mut errors));
        assert!(totals.fail(&plain(2), "25P02", &mut errors));
        // A statement fails as recorded, but the recording lacks the errors of the statements after it.
        let mut errors = TransactionErrors::default();
        totals.fail_as_recorded(&recorded(1, *b"23505"), "23505", 1, &mut errors);
        totals.fail_as_recorded(&recorded(2, *b"25P02"), "25P02", 1, &mut errors);
        assert!(totals.fail(&plain(2), "25P02", &mut errors));
        // A recorded error does not happen, and neither do the recorded errors that followed from it.
        let mut errors = TransactionErrors::default();
        totals.succeed(&recorded(1, *b"23505"), ReplyRows::default(), 1, &mut errors);
        totals.succeed(&recorded(2, *b"25P02"), ReplyRows::default(), 1, &mut errors);
        // The recording does not contain the beginning of the transaction.
        assert!(!totals.fail(&plain(2), "25P02", &mut TransactionErrors::default()));
        let [first, second, third] = &totals.accounts[..] else { panic!("{totals:?}") };
        let once = |kind: &str| Failures::from([(kind.to_owned(), 1)]);
        assert_eq!(first.consequences, Failures::from([("42P01".to_owned(), 2)]));
        assert_eq!((&second.consequences, &second.missing_consequences), (&once("23505"), &once("23505")));
        assert_eq!((&third.consequences, &third.missing), (&Failures::new(), &once("25P02")));
        assert_eq!(third.unexpected, Failures::from([("25P02".to_owned(), 3)]));
    }

    #[test]
    fn hashes_of_executions_add_up_in_any_order_and_in_any_thread() {
        let hash = |threads: &[&[(u64, u64)]]| {
            let mut whole = ReplayTotals::default();
            for executions in threads {
                let mut totals = ReplayTotals::new(1);
                executions.iter().for_each(|(rows, hash)| {
                    totals.succeed(
                        &Expected::default(),
                        ReplyRows { rows: *rows, hash: *hash },
                        1,
                        &mut TransactionErrors::default(),
                    )
                });
                whole.merge(&totals);
            }
            whole.accounts[0].hash
        };
        let whole = hash(&[&[(1, 50), (2, 70), (0, 0)]]);
        assert_eq!(hash(&[&[(0, 0)], &[(2, 70), (1, 50)]]), whole);
        for other in [&[(1, 50), (2, 70)][..], &[(2, 50), (1, 70), (0, 0)], &[(1, 49), (2, 71), (0, 0)]] {
            assert_ne!(hash(&[other]), whole);
        }
    }
}
