//! The clients of a thread that wait: some for a time, others until the rest of the thread's clients have been served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ground::clock::Nanos;

/// The clients of one thread that wait.
#[derive(Default)]
pub struct Timers {
    moments: BinaryHeap<Reverse<(Nanos, usize)>>,
    turns: Vec<usize>,
}

impl Timers {
    /// Adds client `index`, which must be woken at `at`.
    pub fn add(&mut self, at: Nanos, index: usize) {
        self.moments.push(Reverse((at, index)));
    }

    /// Returns the number of clients that wait for a time.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Returns the time at which the next client must be woken, if any client waits for a time.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.moments.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the next client whose time has come at `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<usize> {
        let Reverse((at, index)) = *self.moments.peek()?;
        (at <= now).then(|| {
            self.moments.pop();
            index
        })
    }

    /// Makes clients that wait for a time later than `at` wake at `at`, if `may` returns true for them.
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

    /// Removes and returns the clients that waited until the other clients of the thread had been served.
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
