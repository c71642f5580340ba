//! The list of the connection pools that a round of the event loop has to visit: pools in which something has happened,
//! such as the end of a task, and pools whose next task or time limit is due. The other pools of the thread, of which
//! there may be thousands, cost nothing.

use std::collections::BTreeSet;

use ground::clock::Nanos;

/// The list of a thread's connection pools that must be visited, and the time at which each of the other pools must be
/// visited next. Pools are named by their numbers, counted from 0.
pub struct Agenda {
    /// Pools in which something has happened since the event loop last visited them. Each pool is in this list at most
    /// once.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// For each pool, the time at which it must be visited even if nothing happens in it before: the next task arrives,
    /// the first task of the queue has waited too long, or the pool may try again to connect. `None` if there is no
    /// such time.
    due: Vec<Option<Nanos>>,
    times: BTreeSet<(Nanos, usize)>,
}

impl Agenda {
    /// Makes the list for this number of pools. The first round of the event loop visits all of them.
    pub fn new(pools: usize) -> Self {
        Self {
            touched: (0..pools).collect(),
            is_touched: vec![true; pools],
            due: vec![None; pools],
            times: BTreeSet::new(),
        }
    }

    /// Records that something has happened in a pool, so that the next round of the event loop visits it.
    #[inline]
    pub fn touch(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.is_touched[pool], true) {
            self.touched.push(pool);
        }
    }

    /// Returns the pools that must be visited at `now`, in ascending order. The caller must call [`Agenda::settle`] for
    /// each pool that it has visited.
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

    /// Records that a pool was visited. `next` is the time at which it must be visited again even if nothing happens in
    /// it.
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

    /// Takes back the list that [`Agenda::visits`] returned, so that the next list reuses its memory.
    pub fn take_back(&mut self, mut visits: Vec<usize>) {
        visits.clear();
        if self.touched.is_empty() {
            self.touched = visits;
        }
    }

    /// Returns the pools in which something has happened since the event loop last visited them.
    pub fn touched(&self) -> &[usize] {
        &self.touched
    }

    /// Returns the earliest time at which a pool must be visited although nothing has happened in it.
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
