//! A load with a rate: which scheduled start a client gets, and what waits at the end of a stretch. With slices the
//! schedule is that of the own ones, as if they followed each other without a pause, so a start belongs to the slice in
//! which it lies, and the time of others counts neither as schedule lag nor as response time.

use crate::client::{Client, ClientState};
use crate::ledger::{Counting, Queue};
use crate::shell::Shell;
use crate::thread::Thread;
use ground::clock::Nanos;
use workload::Actions;

impl<M: Counting, S: Shell> Thread<'_, M, S> {
    /// Gives the client the next scheduled start before the end of the load or, with slices, of the own slice; `None`
    /// if there is none.
    pub fn next_start<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) -> Option<Nanos> {
        let pause = self.pause();
        let start = self.throttle.as_mut()?.next_before(self.books.gate.saturating_sub(pause))?;
        client.transaction.pause = pause;
        client.transaction.scheduled = start.saturating_add(pause);
        Some(client.transaction.scheduled)
    }

    /// Returns true if the client can begin the transaction for which it waited. If another engine has its slice by
    /// now, a client of the next own slice gets the scheduled start.
    pub fn may_begin<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) -> bool {
        let (is_open, pause) = (self.is_open(now), self.pause());
        if let (Some(throttle), Some(_)) = (&mut self.throttle, self.books.stretch.slice) {
            let start = client.transaction.scheduled.saturating_sub(client.transaction.pause);
            if is_open {
                client.transaction.pause = pause;
                client.transaction.scheduled = start.saturating_add(pause);
            } else {
                throttle.give_back(start);
            }
        }
        is_open
    }

    /// Makes the client wait for the end of the load or, with slices, of the own slice, since no start is left for it
    /// before that.
    pub fn rest<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) {
        client.state = ClientState::Yielding;
        self.timers.add(self.books.gate, client.index);
    }

    /// Lets the client take no part from now on. The first one notes what waits. Used only with slices.
    pub fn part<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        if client.takes_part {
            self.note_queue(now, 1);
            self.books.part(client, now);
        }
    }

    /// Notes the transactions and the clients that wait at the end of a stretch, unless that is done. `free` of the
    /// clients without a timer are not in a transaction. Used only with a rate.
    pub fn note_queue(&mut self, now: Nanos, free: usize) {
        let pause = self.pause();
        let now = if self.books.stretch.slice.is_some() { now.min(self.books.gate) } else { now };
        let (Some(pace), Some(throttle)) = (&mut self.books.tally.pace, &self.throttle) else { return };
        let busy = self.active.saturating_sub(self.timers.len() + free) as u64;
        pace.queue.get_or_insert_with(|| Queue { waiting: throttle.backlog(now.saturating_sub(pause)), busy });
    }

    /// Returns about how many scheduled starts of this thread until `now` have no client. Used only with a rate.
    pub fn waiting(&self, now: Nanos) -> u64 {
        let until = now.min(self.books.gate).saturating_sub(self.pause());
        self.throttle.as_ref().map_or(0, |throttle| throttle.backlog(until))
    }

    /// Returns how long other engines have had their slices so far.
    fn pause(&self) -> Nanos {
        self.books.schedule.pause(&self.books.stretch)
    }
}
