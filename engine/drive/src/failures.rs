//! A script's statement failed: the transaction is rolled back, then tried again or counted, or its client cannot go on.

use crate::client::{Awaited, Failure};
use crate::ledger::log::FailureKind;
use crate::mode::{ClientOf, Mode};
use crate::outcome::Cause;
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::{Rows, StatementError};

impl<M: Mode> Thread<'_, M> {
    /// Rolls back the transaction whose statement failed, unless the client cannot go on.
    pub fn statement_failed(&mut self, client: &mut ClientOf<M>, command: usize, failed: StatementError, now: Nanos) {
        let kind = FailureKind::of(&failed.error.sqlstate);
        if kind == FailureKind::Other && !self.options.continue_on_error {
            return M::stuck(self, client, Some(command), Cause::from(failed));
        }
        if self.options.notes.failures {
            self.note_failure(client, command, &failed.error);
        }
        client.transaction.failure = Some(Box::new(Failure { error: failed.error, kind, command }));
        if client.status == b'I' {
            return self.rolled_back(client, now);
        }
        let sent = client.connection.as_mut().map(|connection| connection.send_query("ROLLBACK", Rows::Skipped));
        self.sent(client, Awaited::Rollback, sent);
    }

    /// Tries the transaction again that was rolled back, or counts it and goes on to the next one.
    pub fn rolled_back(&mut self, client: &mut ClientOf<M>, now: Nanos) {
        let Some(failure) = client.transaction.failure.take() else { return };
        if self.is_over(now) {
            return self.leave(client);
        }
        let again = self.may_retry(client, failure.kind, now);
        if self.options.notes.failures {
            self.note_try(client, again, now);
        }
        let account = &mut self.books.totals.scripts[client.transaction.script].commands[failure.command];
        if again {
            account.retries += 1;
            client.transaction.tries += 1;
            client.program.retry();
            return self.drive(client, now);
        }
        account.failures += 1;
        self.books.end_failed(client, &failure.error.sqlstate, failure.kind, now);
        M::failed(self, client, &failure, now);
        self.begin_transaction(client, now);
    }

    fn may_retry(&self, client: &ClientOf<M>, kind: FailureKind, now: Nanos) -> bool {
        let (limit, tries) = (self.options.latency_limit, client.transaction.tries);
        kind != FailureKind::Other
            && self.options.tries.is_none_or(|most| tries < most)
            && limit.is_none_or(|limit| u128::from(now - client.transaction.scheduled) <= limit.as_nanos())
    }
}
