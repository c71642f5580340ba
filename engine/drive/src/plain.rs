//! The hot path: what `transact.rs` does with the answers of a run in which there is nothing to look after but statements
//! and the tally, in few instructions. Whatever else comes up goes the longer way, from any point.

use mio::Token;

use super::client::{Client, State};
use super::thread::Thread;
use ground::clock::{Nanos, Phase};
use wire::{Reply, Rows};

impl Thread<'_> {
    /// Takes in what the server sent to a client that waits for the answer to a statement, perhaps its transaction's
    /// `last`; goes on if the reply is complete.
    #[inline(always)]
    pub fn receive_plain(&mut self, client: &mut Client, last: bool) {
        let Some(connection) = &mut client.connection else { return };
        let (registry, token) = (self.readiness.registry(), Token(client.index));
        let status = match connection.receive(&mut self.buffer, registry, token) {
            Ok(Some(Reply { status, error: None })) => status,
            received => return self.received(client, received),
        };
        let now = self.clock.now();
        self.roll(now);
        client.status = status;
        client.was_answered = true;
        if !last || self.end_plain(client, now) {
            self.drive_plain(client, now);
        }
    }

    /// Counts the transaction and begins the next one; false if there is none.
    #[inline(always)]
    fn end_plain(&mut self, client: &mut Client, now: Nanos) -> bool {
        self.tally.commit(now - client.scheduled);
        if client.status != b'I' {
            self.leave_open(client);
            return false;
        }
        client.done += u64::from(self.stretch.phase != Phase::Warmup);
        if self.share.is_done(client.done, now) {
            self.end_client(client);
            return false;
        }
        client.script = client.program.begin(&mut self.choose);
        client.was_answered = false;
        client.scheduled = now;
        true
    }

    /// Sends what is next, if that is a query.
    #[inline(always)]
    fn drive_plain(&mut self, client: &mut Client, now: Nanos) {
        let Some(connection) = &mut client.connection else { return };
        let Some(query) = client.program.next_query() else { return self.drive(client, now) };
        let (command, last) = (query.command, query.last);
        client.state = State::Waiting { command, last };
        let (mode, scratch) = (self.plan.mode, &mut self.scratch);
        let sent = connection.send(query.statement, mode, query.values, Rows::Skipped, scratch);
        if sent.is_err() || connection.has_unsent() {
            self.sent_in_part(client, sent);
        }
    }
}
