//! Staged runs: clients whose programs connect by themselves, act before and after the load, and take the server's answers.

use std::io;
use std::sync::atomic::Ordering;

use super::client::{Client, Stage, State};
use super::thread::Thread;
use super::worker::Worker;
use ground::clock::{Nanos, Phase};
use ground::readiness::Ready;
use wire::error::{ConnectionError, ServerError};
use wire::{Connection, OpenError};
use workload::ActionResult;

impl Worker<'_> {
    /// Has all clients do what comes before their first transaction.
    pub fn make_ready(&mut self) -> io::Result<()> {
        let mut ready = Ready::default();
        for client in &mut self.clients {
            let now = self.thread.clock.now();
            self.thread.drive(client, now);
        }
        while self.thread.unready > 0 && !self.thread.shared.stop.load(Ordering::Relaxed) {
            self.serve_once(&mut ready)?;
        }
        Ok(())
    }
}

impl Thread<'_> {
    /// The load begins for a client.
    pub fn begin_load(&mut self, client: &mut Client, now: Nanos) {
        client.staged.stage = Stage::Load;
        self.begin_transaction(client, now);
    }

    /// The load is over for a client: it has its last actions.
    pub fn stop_client(&mut self, client: &mut Client) {
        client.staged.stage = Stage::Stop;
        client.program.stop();
        let now = self.clock.now();
        self.drive(client, now);
    }

    /// The program has come to an end: of its beginning, of a transaction, or of all.
    pub fn end_staged(&mut self, client: &mut Client, now: Nanos) -> Option<Nanos> {
        match client.staged.stage {
            Stage::Start => {
                client.state = State::Idle;
                self.unready = self.unready.saturating_sub(1);
                None
            }
            Stage::Load if !client.was_answered => {
                // The clock has stood still; and the others have their turn before the next one.
                let now = self.clock.now();
                self.roll(now);
                self.commit(client, now);
                self.count_staged(client, now);
                client.state = State::Yielding;
                self.yielding.push(client.index);
                None
            }
            Stage::Load => {
                self.commit(client, now);
                self.count_staged(client, now);
                self.next_transaction(client, now).then_some(now)
            }
            Stage::Stop => {
                self.leave(client);
                None
            }
        }
    }

    /// A transaction of the measured part is the client's own too.
    #[inline]
    pub fn count_staged(&mut self, client: &mut Client, now: Nanos) {
        if self.stretch.phase != Phase::Warmup {
            client.done += 1;
            self.tally.clients.add(client.index, now - client.scheduled);
        }
    }

    /// A counted statement has been done.
    #[inline]
    pub fn count_query(&mut self, client: &mut Client) {
        if let Some(connection) = &client.connection {
            self.tally.counts.queries.add(connection.answered().kind);
        }
    }

    /// An answer goes to the program.
    pub fn hand_answer(&mut self, client: &mut Client, counts: bool, now: Nanos) {
        if counts {
            self.count_query(client);
        }
        if let Some(connection) = &mut client.connection {
            client.program.complete(ActionResult::Done(connection.answered()));
            if !counts {
                connection.trim();
            }
        }
        self.drive(client, now);
    }

    /// A failure goes to the program.
    pub fn hand_failure(&mut self, client: &mut Client, error: &ServerError, counts: bool, now: Nanos) {
        self.tally.counts.queries.errors += u64::from(counts);
        client.program.complete(ActionResult::Failed(error));
        self.drive(client, now);
    }

    /// Requests went out, unless there was no connection to send them on.
    pub fn sent_on_staged(&mut self, client: &mut Client, sent: Option<Result<(), ConnectionError>>) {
        match sent {
            None => self.query_without_connection(client),
            Some(sent) if sent.is_err() || client.connection.as_ref().is_some_and(Connection::has_unsent) => {
                self.sent_in_part(client, sent);
            }
            Some(_) => {}
        }
    }

    /// A query that has no connection to go over: the program is told so. It goes on when the others have had their turn,
    /// since it may send the next query there too.
    #[cold]
    pub fn query_without_connection(&mut self, client: &mut Client) {
        client.program.complete(ActionResult::Lost(&ConnectionError::Closed));
        client.state = State::Pausing;
        self.yielding.push(client.index);
    }

    /// The connection in use is gone.
    pub fn lost(&mut self, client: &mut Client, error: &ConnectionError, now: Nanos) {
        client.connection = None;
        client.was_answered = true;
        client.program.complete(ActionResult::Lost(error));
        self.drive(client, now);
    }

    /// A connection that the program asked for is ready.
    pub fn connected(&mut self, client: &mut Client, now: Nanos) {
        let staged = &mut client.staged;
        if staged.made.contains(&staged.current) {
            self.tally.counts.queries.reconnects += 1;
        } else {
            staged.made.push(staged.current);
        }
        client.was_answered = true;
        if let Some(connection) = &client.connection {
            client.program.complete(ActionResult::Done(connection.answered()));
        }
        self.drive(client, now);
    }

    /// A connection that the program asked for could not be made.
    pub fn refused(&mut self, client: &mut Client, error: &OpenError) {
        client.connection = None;
        client.program.complete(ActionResult::Refused(error));
        let now = self.clock.now();
        self.drive(client, now);
    }

    /// Makes the connection `number` the one in use; the former one is kept.
    pub fn use_connection(&mut self, client: &mut Client, number: usize) {
        let staged = &mut client.staged;
        if staged.current == number {
            return;
        }
        if let Some(former) = client.connection.take() {
            staged.parked.push((staged.current, former));
        }
        staged.current = number;
        let found = staged.parked.iter().position(|(parked, _)| *parked == number);
        client.connection = found.map(|at| staged.parked.swap_remove(at).1);
    }
}
