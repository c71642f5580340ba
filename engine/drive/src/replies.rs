//! What the server sent, and what it means for the client that waits for it.

use mio::Token;

use super::Cause;
use super::client::{Client, State};
use super::thread::Thread;
use ground::clock::Nanos;
use wire::error::ConnectionError;
use wire::{Connection, Reply, StatementError};

impl Thread<'_> {
    /// Takes in what the server sent; goes on if the reply is complete.
    pub fn receive(&mut self, client: &mut Client) {
        let Some(connection) = &mut client.connection else { return };
        let received = connection.receive(&mut self.buffer, self.readiness.registry(), Token(client.index));
        self.received(client, received);
    }

    /// Goes on after a reply or an error.
    pub(super) fn received(&mut self, client: &mut Client, received: Result<Option<Reply>, ConnectionError>) {
        match received {
            Ok(None) => {}
            Ok(Some(Reply { status, error: None })) => {
                let now = self.clock.now();
                self.succeeded(client, status, now);
            }
            Ok(Some(Reply { status, error: Some(failed) })) => {
                let now = self.clock.now();
                self.failed(client, failed, status, now);
            }
            Err(error) => self.lose(client, error),
        }
    }

    /// The server has done what was asked for.
    fn succeeded(&mut self, client: &mut Client, status: u8, now: Nanos) {
        self.roll(now);
        client.status = status;
        client.was_answered = true;
        match client.state {
            State::Waiting { command, last } => {
                self.account_command(client, command, now);
                if !last || self.end_transaction(client, now).is_some() {
                    self.drive(client, now);
                }
            }
            State::WaitingForRows { command } => self.store_rows(client, command, now),
            State::WaitingForCount { last } => {
                self.count_query(client);
                if !last || self.end_transaction(client, now).is_some() {
                    self.drive(client, now);
                }
            }
            State::WaitingForAnswer { counts } => self.hand_answer(client, counts, now),
            State::Preparing { command } => self.open_pipeline(client, command, now),
            State::RollingBack => self.rolled_back(client, now),
            _ => {}
        }
    }

    /// The server could not do what was asked for.
    fn failed(&mut self, client: &mut Client, failed: StatementError, status: u8, now: Nanos) {
        self.roll(now);
        client.status = status;
        client.was_answered = true;
        let StatementError { error, query } = failed;
        match client.state {
            State::Waiting { command, .. } | State::WaitingForRows { command } => {
                self.statement_failed(client, command, StatementError { error, query }, now);
            }
            State::WaitingForCount { .. } => self.hand_failure(client, &error, true, now),
            State::WaitingForAnswer { counts } => self.hand_failure(client, &error, counts, now),
            State::Preparing { command } => {
                self.abort(client, Some(command), Cause::Statement { error, query });
            }
            State::RollingBack => self.abort(client, None, Cause::Statement { error, query }),
            _ => {}
        }
    }

    fn store_rows(&mut self, client: &mut Client, command: usize, now: Nanos) {
        let results = client.connection.as_mut().map(Connection::take_results).unwrap_or_default();
        match client.program.store(&results) {
            Ok(()) => {
                self.account_command(client, command, now);
                self.drive(client, now);
            }
            Err(trouble) => self.abort(client, None, Cause::Program(trouble)),
        }
    }
}
