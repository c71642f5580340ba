//! Failed statements of a script: the transaction is rolled back and then retried or counted as failed, or the client
//! is aborted.

use crate::client::{Awaited, TransactionFailure};
use crate::mode::{ClientOf, End, Mode};
use crate::outcome::Cause;
use crate::shell::Shell;
use crate::statistics::log::FailureKind;
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::error::ServerError;
use wire::{Rows, StatementError};

/// The SQLSTATE with which the server rejects the execution of a statement that was not prepared.
const NO_SUCH_STATEMENT: &str = "26000";

impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Returns true if the client executes a statement although the server could not prepare it, as pgbench does.
    pub fn passes_unprepared(&self, error: &ServerError) -> bool {
        M::EXECUTES_UNPREPARED && error.is_unprepared && !self.options.continue_on_error
    }

    /// Prints the error of a statement that could not be prepared, and then executes the statement nevertheless, as
    /// pgbench does: sends the messages of the request that come after the statement's text. Returns false if no such
    /// messages are left, so that no further answer of the server will come.
    pub fn pass_unprepared(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited, error: Box<ServerError>) -> bool {
        self.write_error(&error);
        client.transaction.unprepared = Some(error);
        let rows = if matches!(awaited, Awaited::Rows { .. }) { Rows::Kept } else { Rows::Skipped };
        match client.connection.as_mut().map(|connection| connection.pass_unprepared(rows)) {
            Some(Ok(None)) => return false,
            sent => self.sent(client, awaited, sent.and_then(Result::transpose)),
        };
        true
    }

    /// Rolls back the transaction whose statement failed, or aborts the client if it cannot go on after this error.
    pub fn statement_failed(
        &mut self,
        client: &mut ClientOf<M, S>,
        command: usize,
        failed: StatementError,
        now: Nanos,
    ) {
        let kind = FailureKind::of(&failed.error.sqlstate);
        if kind == FailureKind::Other && !self.options.continue_on_error {
            let cause = match client.transaction.unprepared.take() {
                Some(error) if failed.error.sqlstate == NO_SUCH_STATEMENT => {
                    Cause::Unprepared { error, execution: failed }
                }
                _ => Cause::from(failed),
            };
            return M::stuck(self, client, Some(command), cause);
        }
        if self.options.notes.failures {
            self.note_failure(client, command, &failed.error);
        }
        client.transaction.failure = Some(Box::new(TransactionFailure { error: failed.error, kind, command }));
        if client.status == b'I' {
            return self.rolled_back(client, now);
        }
        let sent = client.connection.as_mut().map(|connection| connection.send_query("ROLLBACK", Rows::Skipped));
        self.sent(client, Awaited::Rollback, sent);
    }

    /// Called when a failed transaction has been rolled back. Tries it again, or counts it as failed and begins the
    /// client's next transaction. If the load is over, the client ends, and the transaction is not counted.
    pub fn rolled_back(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        let Some(failure) = client.transaction.failure.take() else { return };
        if self.is_over(now) {
            return self.leave(client);
        }
        let again = self.may_retry(client, failure.kind, now);
        if self.options.notes.failures {
            self.note_try(client, again, now);
        }
        let account = &mut self.counters.totals.scripts[client.transaction.script].commands[failure.command];
        if again {
            account.retries += 1;
            client.transaction.tries += 1;
            client.program.retry();
            return self.drive(client, now);
        }
        account.failures += 1;
        self.counters.end_failed(client, &failure.error.sqlstate, failure.kind, now);
        if let Some(now) = M::ended(self, client, End::Failed(&failure.error), now) {
            self.drive(client, now);
        }
    }

    fn may_retry(&self, client: &ClientOf<M, S>, kind: FailureKind, now: Nanos) -> bool {
        let (limit, tries) = (self.options.latency_limit, client.transaction.tries);
        kind != FailureKind::Other
            && self.options.tries.is_none_or(|most| tries < most)
            && limit.is_none_or(|limit| u128::from(now - client.transaction.scheduled) <= limit.as_nanos())
    }
}
