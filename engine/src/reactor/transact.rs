//! The hot path: a reply comes in, the program says what is next, the next request goes out.

use mio::Token;

use super::schedule::{Nanos, Phase};
use super::worker::{State, Worker};
use super::{Cause, Report};
use crate::connection::Reply;
use crate::connection::error::ServerError;
use crate::plan::Limit;
use crate::program::Action;

impl Worker<'_> {
    /// Starts a client's first transaction, or the one after a failed one.
    pub fn begin_transaction(&mut self, index: usize, now: Nanos) {
        if self.next_transaction(index, now) {
            self.drive(index, now);
        }
    }

    /// Makes a client ready for its next transaction, which starts when the former one ends: one clock reading serves
    /// for both. False if it has done its share, or if its connection must be made first.
    #[inline]
    fn next_transaction(&mut self, index: usize, now: Nanos) -> bool {
        if self.is_done(index, now) {
            self.end_client(index);
            return false;
        }
        let client = &mut self.clients[index];
        client.script = client.program.begin(&mut self.choose);
        if client.connection.is_none() {
            self.connect_later(index, now);
            return false;
        }
        client.transaction_began = now;
        true
    }

    /// Takes in what the server sent; goes on if the reply is complete.
    #[inline]
    pub fn receive(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let Some(connection) = &mut client.connection else { return };
        match connection.receive(&mut self.buffer, self.poll.registry(), Token(index)) {
            Ok(None) => {}
            Ok(Some(reply)) => {
                let now = self.clock.now();
                self.replied(index, reply, now);
            }
            Err(error) => {
                let command = self.current_command(index);
                self.clients[index].connection = None;
                self.roll(self.clock.now());
                self.abort(index, command, Cause::Connection(error));
            }
        }
    }

    #[inline]
    fn replied(&mut self, index: usize, reply: Reply, now: Nanos) {
        if now >= self.stretch.ends {
            self.roll(now);
        }
        match (self.clients[index].state, reply.error) {
            (State::Waiting { command }, None) => {
                if self.plan.timed_commands {
                    self.account_command(index, command, now);
                }
                self.drive(index, now);
            }
            (State::Waiting { command }, Some(error)) => {
                self.statement_failed(index, command, error, reply.status, now)
            }
            (State::RollingBack { sqlstate }, None) => self.fail_transaction(index, &sqlstate, now),
            (State::RollingBack { .. }, Some(error)) => self.abort(index, None, Cause::Statement(error)),
            _ => {}
        }
    }

    /// Asks the program until the server or the end is needed.
    #[inline]
    pub fn drive(&mut self, index: usize, mut now: Nanos) {
        loop {
            let client = &mut self.clients[index];
            if self.plan.timed_commands {
                client.command_began = now;
            }
            match client.program.next() {
                Action::Query { command, statement, values } => {
                    client.state = State::Waiting { command };
                    let Some(connection) = &mut client.connection else { return };
                    let sent = connection.send(statement, self.plan.mode, values, &mut self.scratch);
                    let sent = sent.and_then(|()| {
                        if connection.has_unsent() {
                            connection.watch_unsent(self.poll.registry(), Token(index))?;
                        }
                        Ok(())
                    });
                    // A broken socket may still hold the server's last word: the read that follows finds it.
                    if sent.is_err() {
                        self.receive(index);
                    }
                    return;
                }
                Action::Local { command } => {
                    now = self.clock.now();
                    self.account_command(index, command, now);
                }
                Action::End => {
                    self.commit(index, now);
                    self.count_towards_limit(index);
                    if !self.next_transaction(index, now) {
                        return;
                    }
                }
                Action::Abort { command, message } => {
                    return self.abort(index, Some(command), Cause::Program(message));
                }
            }
        }
    }

    /// A transaction is over, whether committed or failed; with `--connect` so is its connection.
    #[inline]
    fn count_towards_limit(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if matches!(self.plan.limit, Limit::Transactions(_)) && self.stretch.phase == Phase::Measure {
            client.done += 1;
        }
        if self.plan.reconnect {
            if let Some(mut connection) = client.connection.take() {
                connection.terminate();
            }
        }
    }

    #[inline]
    fn commit(&mut self, index: usize, now: Nanos) {
        let client = &self.clients[index];
        let latency = now - client.transaction_began;
        self.tally.commit(latency);
        if self.scripts.len() > 1 {
            self.scripts[client.script].whole.moments.add(latency as f64 / 1000.0);
        }
    }

    /// Notes the time of a command that ended at `now`.
    pub fn account_command(&mut self, index: usize, command: usize, now: Nanos) {
        if self.plan.timed_commands {
            let client = &self.clients[index];
            let account = &mut self.scripts[client.script].commands[command];
            account.moments.add((now - client.command_began) as f64 / 1000.0);
        }
    }

    fn statement_failed(&mut self, index: usize, command: usize, error: Box<ServerError>, status: u8, now: Nanos) {
        if !error.is_retryable() {
            return self.abort(index, Some(command), Cause::Statement(error));
        }
        let script = self.clients[index].script;
        self.scripts[script].commands[command].failures += 1;
        let mut sqlstate = [b'0'; 5];
        sqlstate.copy_from_slice(&error.sqlstate.as_bytes()[..5]);
        if status == b'I' {
            return self.fail_transaction(index, &sqlstate, now);
        }
        let client = &mut self.clients[index];
        client.state = State::RollingBack { sqlstate };
        let sent = client.connection.as_mut().map(|connection| connection.send_query("ROLLBACK"));
        if let Some(Err(error)) = sent {
            self.abort(index, None, Cause::Connection(error));
        }
    }

    fn fail_transaction(&mut self, index: usize, sqlstate: &[u8], now: Nanos) {
        self.tally.fail(&String::from_utf8_lossy(sqlstate));
        let script = self.clients[index].script;
        self.scripts[script].whole.failures += 1;
        self.count_towards_limit(index);
        self.begin_transaction(index, now);
    }

    fn current_command(&self, index: usize) -> Option<usize> {
        match self.clients[index].state {
            State::Waiting { command } => Some(command),
            _ => None,
        }
    }

    /// Gives a client up; the others go on. Its last transaction has failed.
    pub fn abort(&mut self, index: usize, command: Option<usize>, cause: Cause) {
        if let Some(sqlstate) = cause.sqlstate() {
            self.tally.fail(sqlstate);
        }
        self.totals.aborted += 1;
        let script = self.clients[index].script;
        self.report(Report::Aborted { client: self.first_client + index, script, command, cause });
        self.end_client(index);
    }

    fn end_client(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.state = State::Finished;
        if let Some(mut connection) = client.connection.take() {
            connection.terminate();
        }
        self.active -= 1;
    }
}
