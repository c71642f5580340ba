//! The waiting clients of a thread: clients that wait for a point in time, in the order of these times, and clients
//! that wait until the other clients have been served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ground::clock::Nanos;

/// The waiting clients of one thread.
#[derive(Default)]
pub struct Timers {
    moments: BinaryHeap<Reverse<(Nanos, usize)>>,
    turns: Vec<usize>,
}

impl Timers {
    /// Wakes client `index` at `at`.
    pub fn add(&mut self, at: Nanos, index: usize) {
        self.moments.push(Reverse((at, index)));
    }

    /// Returns the number of clients that wait for a moment.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Returns the time at which the next client must be woken, if any client waits for a point in time.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.moments.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns the next client whose time has come at `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<usize> {
        let Reverse((at, index)) = *self.moments.peek()?;
        (at <= now).then(|| {
            self.moments.pop();
            index
        })
    }

    /// Wakes those clients that `may` be woken earlier at `at`, if they would be later.
    pub fn hasten(&mut self, at: Nanos, may: impl Fn(usize) -> bool) {
        let moments = std::mem::take(&mut self.moments).into_iter();
        self.moments = moments
            .map(|Reverse((then, index))| Reverse((if may(index) { then.min(at) } else { then }, index)))
            .collect();
    }

    /// Makes client `index` wait until the other clients of the thread have been served.
    pub fn yield_turn(&mut self, index: usize) {
        self.turns.push(index);
    }

    /// Returns the number of clients that wait until the other clients of the thread have been served.
    #[cfg(test)]
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Returns true if a client waits until the other clients of the thread have been served.
    #[inline]
    pub fn have_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Removes and returns the clients that waited for the other clients of the thread to be served.
    pub fn take_turns(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_woken_in_the_order_of_their_times_and_not_before() {
        let mut timers = Timers::default();
        for (at, index) in [(30, 0), (10, 1), (20, 2), (10, 3)] {
            timers.add(at, index);
        }
        assert_eq!((timers.next(), timers.pop(9)), (Some(10), None));
        assert_eq!((timers.pop(20), timers.pop(20), timers.pop(20), timers.pop(20)), (Some(1), Some(3), Some(2), None));
        assert_eq!(timers.next(), Some(30));
        timers.add(40, 4);
        timers.add(5, 5);
        timers.hasten(20, |index| index != 0);
        assert_eq!((timers.pop(20), timers.pop(20), timers.pop(29), timers.pop(30)), (Some(5), Some(4), None, Some(0)));
    }
}
