//! What becomes of a client whose statement fails: the transaction is tried again, counted, or the client is given up.

use std::sync::atomic::Ordering;

use super::client::{Client, Stage, State};
use super::thread::Thread;
use super::{Cause, Report};
use crate::ledger::log::{End, FailureKind};
use ground::clock::Nanos;
use wire::Rows;
use wire::StatementError;
use wire::error::ConnectionError;
use wire::error::ServerError;

/// A transaction's failure, while it is cleaned up.
pub struct Failure {
    pub(super) sqlstate: String,
    kind: FailureKind,
    /// The command that failed.
    command: usize,
}

/// What kind of failure an error is.
fn kind_of(error: &ServerError) -> FailureKind {
    match error.sqlstate.as_str() {
        "40001" => FailureKind::Serialization,
        "40P01" => FailureKind::Deadlock,
        _ => FailureKind::Other,
    }
}

impl Thread<'_> {
    /// A statement failed: rolls back what is open, unless the client has to be given up.
    pub fn statement_failed(&mut self, client: &mut Client, command: usize, failed: StatementError, now: Nanos) {
        let StatementError { error, query } = failed;
        let kind = kind_of(&error);
        if kind == FailureKind::Other && self.pools.is_some() {
            self.tell_failure(client, &error.sqlstate, &error);
        }
        if kind == FailureKind::Other && !self.plan.options().continue_on_error {
            return self.abort(client, Some(command), Cause::Statement { error, query });
        }
        let script = client.script;
        client.failure = Some(Box::new(Failure { sqlstate: error.sqlstate.clone(), kind, command }));
        if self.plan.options().notes.failures {
            let number = self.number_of(client.index);
            let place = format!("command {command} (SQL) of script {script}");
            self.report(Report::Note(format!("client {number} got an error in {place}; {error}")));
        }
        if client.status == b'I' {
            return self.rolled_back(client, now);
        }
        client.state = State::RollingBack;
        let sent = client.connection.as_mut().map(|connection| connection.send_query("ROLLBACK", Rows::Skipped));
        if let Some(sent) = sent {
            self.sent_in_part(client, sent);
        }
    }

    /// The failed transaction is out of the way: once more, or on to the next one.
    pub fn rolled_back(&mut self, client: &mut Client, now: Nanos) {
        let Some(failure) = client.failure.take() else { return };
        if self.is_over(now) {
            return self.end_client(client);
        }
        let again = self.may_retry(client, failure.kind, now);
        if self.plan.options().notes.failures {
            self.note_try(client, again, now);
        }
        let account = &mut self.scripts[client.script].commands[failure.command];
        if again {
            account.retries += 1;
            client.tries += 1;
            client.program.retry();
            return self.drive(client, now);
        }
        account.failures += 1;
        self.count_failure(client, &failure, now);
        self.count(client);
        self.begin_transaction(client, now);
    }

    fn may_retry(&self, client: &Client, kind: FailureKind, now: Nanos) -> bool {
        kind != FailureKind::Other
            && self.plan.options().tries.is_none_or(|tries| client.tries < tries)
            && self
                .plan
                .options()
                .latency_limit
                .is_none_or(|limit| u128::from(now - client.scheduled) <= limit.as_nanos())
    }

    fn count_failure(&mut self, client: &mut Client, failure: &Failure, now: Nanos) {
        let (script, retries) = (client.script, client.tries - 1);
        for counts in [&mut self.tally.counts, &mut self.scripts[script].whole] {
            counts.fail(&failure.sqlstate);
            counts.other_failures += u64::from(failure.kind == FailureKind::Other);
            counts.add_retries(retries);
        }
        self.log(client, now, End::Failed(failure.kind));
        self.fail_task(client, &failure.sqlstate, now);
    }

    fn note_try(&self, client: &Client, again: bool, now: Nanos) {
        let what = if again { "repeats the transaction after the error" } else { "ends the failed transaction" };
        let most = self.plan.options().tries.map_or_else(String::new, |tries| format!("/{tries}"));
        let used = self.plan.options().latency_limit.map_or_else(String::new, |limit| {
            let share = 100.0 * (now - client.scheduled) as f64 / limit.as_nanos() as f64;
            format!(", {share:.3}% of the maximum time of tries was used")
        });
        let number = self.number_of(client.index);
        self.report(Report::Note(format!("client {number} {what} (try {}{most}{used})", client.tries)));
    }

    /// The connection is lost.
    pub fn lose(&mut self, client: &mut Client, error: ConnectionError) {
        let command = match client.state {
            State::Waiting { command, .. } | State::WaitingForRows { command } | State::Preparing { command } => {
                Some(command)
            }
            _ => None,
        };
        client.connection = None;
        let now = self.clock.now();
        self.roll(now);
        if self.plan.is_staged() {
            return self.lost(client, &error, now);
        }
        self.abort(client, command, Cause::Connection(error));
    }

    /// Gives a client up; the others go on unless the run is to end with it. Its last transaction has failed.
    pub fn abort(&mut self, client: &mut Client, command: Option<usize>, cause: Cause) {
        if self.pools.is_some() {
            return self.break_task(client, &cause);
        }
        if self.waits_out(client, &cause) {
            return;
        }
        if let Some(sqlstate) = cause.sqlstate() {
            self.tally.counts.fail(sqlstate);
        }
        self.totals.aborted += 1;
        let script = client.script;
        self.report(Report::Aborted {
            client: self.number_of(client.index),
            thread: self.number,
            script,
            command,
            cause,
        });
        let is_beginning = self.plan.is_staged() && client.staged.stage == Stage::Start;
        if is_beginning {
            self.unready = self.unready.saturating_sub(1);
        }
        self.leave(client);
        // Before the load each client tells its own troubles.
        if self.plan.exit_on_abort && !is_beginning {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The client takes part in no further transaction.
    pub fn end_client(&mut self, client: &mut Client) {
        if self.plan.is_staged() && client.staged.stage == Stage::Load {
            return self.stop_client(client);
        }
        self.leave(client);
    }

    /// The client takes no further part.
    pub fn leave(&mut self, client: &mut Client) {
        client.state = State::Finished;
        if let Some(mut connection) = client.connection.take() {
            connection.terminate();
        }
        self.active -= 1;
    }
}
