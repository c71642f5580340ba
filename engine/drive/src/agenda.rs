//! The pools that a round of the event loop has to visit: those that something has happened to, and those whose time has
//! come. The other pools, of which there may be thousands, cost nothing.

use std::collections::BTreeSet;

use ground::clock::Nanos;

/// The pools of a thread, by their numbers, and when each has something to do.
pub struct Agenda {
    /// Pools that something has happened to since they were visited last, each once.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// The time at which each pool has something to do by itself.
    due: Vec<Option<Nanos>>,
    times: BTreeSet<(Nanos, usize)>,
}

impl Agenda {
    /// Makes the agenda of a number of pools, all of which must be visited.
    pub fn new(pools: usize) -> Self {
        Self {
            touched: (0..pools).collect(),
            is_touched: vec![true; pools],
            due: vec![None; pools],
            times: BTreeSet::new(),
        }
    }

    /// Notes that something has happened to a pool.
    #[inline]
    pub fn touch(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.is_touched[pool], true) {
            self.touched.push(pool);
        }
    }

    /// Returns the pools to visit at `now`, in their order. Each must be [settled](Agenda::settle) afterwards.
    pub fn visits(&mut self, now: Nanos) -> Vec<usize> {
        for (_, pool) in self.times.range(..=(now, usize::MAX)) {
            if !std::mem::replace(&mut self.is_touched[*pool], true) {
                self.touched.push(*pool);
            }
        }
        let mut visits = std::mem::take(&mut self.touched);
        visits.sort_unstable();
        visits
    }

    /// Notes that a pool was visited, and the time at which it next has something to do by itself.
    pub fn settle(&mut self, pool: usize, next: Option<Nanos>) {
        self.is_touched[pool] = false;
        let before = std::mem::replace(&mut self.due[pool], next);
        if before != next {
            if let Some(at) = before {
                self.times.remove(&(at, pool));
            }
            self.times.extend(next.map(|at| (at, pool)));
        }
    }

    /// Takes the list of a round's visits back, so that the next list has its room.
    pub fn take_back(&mut self, mut visits: Vec<usize>) {
        visits.clear();
        if self.touched.is_empty() {
            self.touched = visits;
        }
    }

    /// Returns the pools that something has happened to since they were visited last.
    pub fn touched(&self) -> &[usize] {
        &self.touched
    }

    /// Returns the earliest time at which a pool has something to do by itself.
    pub fn next(&self) -> Option<Nanos> {
        self.times.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pools_that_have_something_to_do_are_visited() {
        let mut agenda = Agenda::new(2000);
        assert_eq!(agenda.visits(0).len(), 2000);
        (0..2000).for_each(|pool| agenda.settle(pool, Some(100 + pool as Nanos)));
        assert_eq!((agenda.next(), agenda.visits(99)), (Some(100), vec![]));
        agenda.touch(1500);
        agenda.touch(7);
        agenda.touch(7);
        assert_eq!(agenda.touched(), [1500, 7]);
        assert_eq!(agenda.visits(101), [0, 1, 7, 1500]);
        for (pool, next) in [(0, None), (1, Some(5000)), (7, Some(107)), (1500, None)] {
            agenda.settle(pool, next);
        }
        assert_eq!((agenda.next(), agenda.visits(102)), (Some(102), vec![2]));
        agenda.settle(2, None);
        let later = agenda.visits(1_000_000);
        assert_eq!((later.len(), later.contains(&1500), later.contains(&1)), (1997, false, true));
    }
}
