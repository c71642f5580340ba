//! A server that goes and comes back: where the plan says so, clients that lose their connection make another one.

use super::client::{Client, State};
use super::thread::Thread;
use super::worker::Worker;
use super::{Cause, Report};
use crate::ledger::log::{End, FailureKind};
use ground::clock::Nanos;
use wire::OpenError;

/// Between two attempts of a client: short beside any restart, long beside what a refusal costs.
const PAUSE: Nanos = 200_000_000;

impl Worker<'_> {
    /// Ends the waiting of clients whose patience, or whose run, is over while their connection is being made.
    pub(super) fn end_waits(&mut self) {
        if self.thread.plan.wait_for_server().is_none() {
            return;
        }
        let now = self.thread.clock.now();
        for client in self.clients.iter_mut().filter(|client| client.state == State::Connecting) {
            if client.outage.is_some_and(|since| self.thread.is_over(now) || self.thread.has_waited(since, now)) {
                self.thread.end_wait(client);
            }
        }
    }
}

impl Thread<'_> {
    /// Whether a client's next transaction needs a connection made first.
    pub(super) fn is_to_connect(&self, client: &Client) -> bool {
        client.connection.is_none() && (self.plan.reconnect() || client.outage.is_some())
    }

    /// A client has lost its connection, or could not make one: true if it goes on all the same.
    #[cold]
    pub(super) fn waits_out(&mut self, client: &mut Client, cause: &Cause) -> bool {
        let lost = matches!(cause, Cause::Connection(_));
        if self.plan.wait_for_server().is_none()
            || self.plan.is_staged()
            || !(lost || matches!(cause, Cause::Connect(_)))
        {
            return false;
        }
        let now = self.clock.now();
        self.roll(now);
        if lost {
            self.lose_transaction(client, cause, now);
            return true;
        }
        let since = *client.outage.get_or_insert(now);
        if self.is_over(now) {
            self.end_client(client);
            return true;
        }
        if self.has_waited(since, now) {
            return false;
        }
        client.state = State::WaitingForServer;
        self.timers.add(now + PAUSE, client.index);
        true
    }

    /// The transaction under way has failed with its connection; the next one gets another.
    fn lose_transaction(&mut self, client: &mut Client, cause: &Cause, now: Nanos) {
        if !self.connects_under_way {
            self.connects_under_way = true;
            let number = self.number_of(client.index);
            let text = format!("client {number} waits for the server: {cause} (others of its thread are not told)");
            self.report(Report::Note(text));
        }
        let before = client.failure.take().map(|failure| failure.sqlstate);
        let sqlstate = before.as_deref().or(cause.sqlstate()).unwrap_or_default();
        let (script, retries) = (client.script, client.tries - 1);
        for counts in [&mut self.tally.counts, &mut self.scripts[script].whole] {
            counts.fail(sqlstate);
            counts.other_failures += 1;
            counts.add_retries(retries);
        }
        self.log(client, now, End::Failed(FailureKind::Other));
        client.connection = None;
        client.status = b'I';
        client.outage = Some(now);
        self.count(client);
        self.begin_transaction(client, now);
    }

    fn has_waited(&self, since: Nanos, now: Nanos) -> bool {
        self.plan.wait_for_server().is_some_and(|patience| u128::from(now - since) > patience.as_nanos())
    }

    /// Nobody waits any longer for the connection that is being made, or for its turn.
    #[cold]
    fn end_wait(&mut self, client: &mut Client) {
        if client.connection.take().is_some() {
            self.connecting.count -= 1;
        }
        self.connecting.queue.retain(|index| *index != client.index);
        let message = "the server did not answer in time".to_owned();
        self.abort(client, None, Cause::Connect(OpenError { message, sqlstate: "08001".to_owned() }));
    }
}
