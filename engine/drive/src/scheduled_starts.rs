//! Loads with a rate: assigns scheduled starts to clients, and counts the transactions that wait for a client at the
//! end of a period. If engines take turns in slices of time, the schedule counts only this engine's slices, as if these
//! followed each other without a pause. Each scheduled start thus belongs to one slice of this engine, and neither
//! schedule lags nor response times include the slices of other engines.

use crate::client::{Client, ClientState};
use crate::shell::Shell;
use crate::statistics::Queue;
use crate::thread::Thread;
use ground::clock::Nanos;
use workload::Actions;

impl<M, S: Shell> Thread<'_, M, S> {
    /// Gives the client the next scheduled start that comes before the end of the load or, if several engines take
    /// turns in slices of time, before the end of this engine's slice. Returns `None` if there is no such start.
    pub fn next_start<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) -> Option<Nanos> {
        let pause = self.pause();
        let start = self.throttle.as_mut()?.next_before(self.counters.start_deadline.saturating_sub(pause))?;
        client.transaction.pause = pause;
        client.transaction.scheduled = start.saturating_add(pause);
        Some(client.transaction.scheduled)
    }

    /// Returns true if the client can begin the transaction for whose scheduled start it waited. If this engine's slice
    /// is already over, the scheduled start is put back, and a client gets it in this engine's next slice.
    pub fn may_begin<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) -> bool {
        let (is_open, pause) = (self.is_open(now), self.pause());
        if let (Some(throttle), Some(_)) = (&mut self.throttle, self.counters.period.slice) {
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

    /// Makes a client for which no scheduled start is left wait for the end of the load or, if several engines take
    /// turns in slices of time, for the end of this engine's slice.
    pub fn wait_for_deadline<O, A: Actions>(&mut self, client: &mut Client<O, A, S>) {
        client.state = ClientState::Yielding;
        self.timers.add(self.counters.start_deadline, client.index);
    }

    /// Stops counting the client as taking part in the slice. When the first client of a slice stops, the number of
    /// waiting transactions is recorded. Used only if several engines take turns in slices of time.
    pub fn leave_slice<O, A: Actions>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        if client.takes_part {
            self.note_queue(now, 1);
            self.counters.leave_slice(client, now);
        }
    }

    /// Records how many transactions wait for a client, and how many clients are busy, at the end of a period. Does
    /// nothing if this was already recorded for the period. `free` is the number of clients that have ended their
    /// transaction but do not wait for a timer yet; they must not be counted as busy. Used only with a rate.
    pub fn note_queue(&mut self, now: Nanos, free: usize) {
        let pause = self.pause();
        let now = if self.counters.period.slice.is_some() { now.min(self.counters.start_deadline) } else { now };
        let (Some(schedule), Some(throttle)) = (&mut self.counters.statistics.schedule, &self.throttle) else { return };
        let busy = self.active.saturating_sub(self.timers.len() + free) as u64;
        schedule.queue.get_or_insert_with(|| Queue { waiting: throttle.backlog(now.saturating_sub(pause)), busy });
    }

    /// Estimates how many transactions of this thread were scheduled to start by `now` but have got no client. Used
    /// only with a rate.
    pub fn waiting(&self, now: Nanos) -> u64 {
        let until = now.min(self.counters.start_deadline).saturating_sub(self.pause());
        self.throttle.as_ref().map_or(0, |throttle| throttle.backlog(until))
    }

    /// Returns the total length of the slices of other engines between the start of the load and this engine's current
    /// slice.
    fn pause(&self) -> Nanos {
        self.counters.schedule.pause(&self.counters.period)
    }
}
