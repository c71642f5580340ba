//! Replays: what became of the recorded sessions and of the statements of each template. Counted apart from the seconds, in
//! each thread until its end.

use super::counts::Failures;
use ground::clock::Nanos;
use ground::random::splitmix64_at;
use latency::{Latencies, Moments};
use workload::recorded::{Expected, Failure};

/// The kind of failure of a statement whose recorded SQLSTATE is not known.
const UNSTATED: &str = "unstated";

/// What became of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayTotals {
    pub sessions: SessionCounts,
    /// Transactions that have ended, whichever way.
    pub transactions: u64,
    /// Errors by SQLSTATE: those that were recorded for their statements, other ones, and recorded ones that did not come.
    pub expected: Failures,
    pub unexpected: Failures,
    pub missing: Failures,
    /// By account.
    pub accounts: Vec<ReplayAccount>,
}

/// What became of recorded sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Those that got their connection.
    pub begun: u64,
    /// Those of them whose last statement was executed.
    pub finished: u64,
    /// Those that got no connection.
    pub refused: u64,
    /// Those whose connection broke.
    pub lost: u64,
    /// Those that ended a transaction that they had not begun: it began before the capture.
    pub begun_before: u64,
    /// Those that left in a transaction: it ended after the capture, or with an error.
    pub left_open: u64,
}

/// The statements of one template.
#[derive(Debug, Clone, Default)]
pub struct ReplayAccount {
    /// Those that the server has answered, or that lost their connection.
    pub statements: u64,
    /// Rows that they returned or changed.
    pub rows: u64,
    /// The sum of a hash of each execution's rows, whatever the order of executions; without meaning unless rows were
    /// hashed.
    pub hash: u64,
    /// Those with another number of rows than recorded.
    pub other_rows: u64,
    /// As in [`ReplayTotals`].
    pub expected: u64,
    pub unexpected: Failures,
    pub missing: u64,
    /// From sending to the answer, microseconds and as a histogram; without unexpected errors.
    pub moments: Moments,
    pub times: Latencies,
}

/// What an execution returned or changed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    pub rows: u64,
    /// Of the rows; 0 unless they were hashed.
    pub hash: u64,
}

impl ReplayTotals {
    /// Those of a replay that has not begun.
    pub(crate) fn new(accounts: usize) -> Self {
        Self { accounts: vec![ReplayAccount::default(); accounts], ..Self::default() }
    }

    /// The server has executed a statement.
    pub(crate) fn succeed(&mut self, expected: &Expected, Found { rows, hash }: Found, time: Nanos) {
        let account = &mut self.accounts[expected.account];
        account.answer(time);
        account.rows += rows;
        account.hash = account.hash.wrapping_add(splitmix64_at(hash, rows));
        account.other_rows += u64::from(expected.rows.is_some_and(|recorded| recorded != rows));
        let Some(failure) = expected.failure else { return };
        account.missing += 1;
        let code = match &failure {
            Failure::Code(code) => String::from_utf8_lossy(code),
            Failure::Unstated => UNSTATED.into(),
        };
        *self.missing.entry(code.into_owned()).or_default() += 1;
    }

    /// A statement failed as it was recorded.
    pub(crate) fn fail_as_recorded(&mut self, expected: &Expected, sqlstate: &str, time: Nanos) {
        let account = &mut self.accounts[expected.account];
        account.answer(time);
        account.expected += 1;
        *self.expected.entry(sqlstate.to_owned()).or_default() += 1;
    }

    /// A statement failed otherwise than it was recorded.
    pub(crate) fn fail(&mut self, expected: &Expected, sqlstate: &str) {
        let account = &mut self.accounts[expected.account];
        account.statements += 1;
        for failures in [&mut account.unexpected, &mut self.unexpected] {
            *failures.entry(sqlstate.to_owned()).or_default() += 1;
        }
    }

    /// Statements of all accounts, and rows.
    pub fn statements(&self) -> (u64, u64) {
        self.accounts
            .iter()
            .fold((0, 0), |(statements, rows), account| (statements + account.statements, rows + account.rows))
    }

    /// Statements with another number of rows than recorded.
    pub fn other_rows(&self) -> u64 {
        self.accounts.iter().map(|account| account.other_rows).sum()
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, other: &ReplayTotals) {
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

    /// Statements that failed otherwise than recorded.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.values().sum()
    }

    fn merge(&mut self, other: &ReplayAccount) {
        self.statements += other.statements;
        self.rows += other.rows;
        self.hash = self.hash.wrapping_add(other.hash);
        self.other_rows += other.other_rows;
        self.expected += other.expected;
        add(&mut self.unexpected, &other.unexpected);
        self.missing += other.missing;
        self.moments.merge(&other.moments);
        self.times.merge(&other.times);
    }
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
        let found = |rows| Found { rows, hash: 7 };
        one.succeed(&expected(0, None, Some(3)), found(3), 1_000_000);
        one.succeed(&expected(0, None, Some(3)), found(4), 3_000_000);
        other.succeed(&expected(1, Some(Failure::Code(*b"23505")), None), found(1), 1_000_000);
        other.succeed(&expected(1, Some(Failure::Unstated), None), found(1), 1_000_000);
        other.fail_as_recorded(&expected(1, Some(Failure::Code(*b"23505")), None), "23505", 2_000_000);
        other.fail(&expected(0, None, None), "42P01");
        let mut whole = ReplayTotals::default();
        whole.merge(&one);
        whole.merge(&other);
        let [first, second] = &whole.accounts[..] else { panic!("{whole:?}") };
        assert_eq!((first.statements, first.rows, first.other_rows, first.unexpected()), (3, 7, 1, 1));
        assert_eq!((second.statements, second.expected, second.missing), (3, 1, 2));
        assert_eq!((first.moments.count, first.moments.mean(), first.times.percentile(50.0)), (2, 2000.0, Some(1000)));
        let counts =
            |of: &[(&str, u64)]| of.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect::<Failures>();
        assert_eq!(whole.expected, counts(&[("23505", 1)]));
        assert_eq!(whole.unexpected, counts(&[("42P01", 1)]));
        assert_eq!(whole.missing, counts(&[("23505", 1), ("unstated", 1)]));
        assert_eq!((whole.statements(), whole.other_rows()), ((6, 9), 1));
    }

    #[test]
    fn hashes_of_executions_add_up_in_any_order_and_in_any_thread() {
        let hash = |threads: &[&[(u64, u64)]]| {
            let mut whole = ReplayTotals::default();
            for executions in threads {
                let mut totals = ReplayTotals::new(1);
                executions.iter().for_each(|(rows, hash)| {
                    totals.succeed(&Expected::default(), Found { rows: *rows, hash: *hash }, 1)
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
