//! The test `mutex`: each thread runs one event, which takes randomly chosen locks of an array and runs an empty loop
//! before each of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::client::Work;
use super::load::{MachineLoad, allocate, number};
use crate::program::Fatal;
use crate::settings::{OptionSpec, OptionValue, Settings};
use crate::statistics::{Hooks, Introduction};
use ground::random::Random;

/// The number of steps that an event does before the client returns to its event loop. Taking a lock counts as a step,
/// and so does a round of the empty loop.
const PART: u64 = 10_000_000;

pub fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::new("mutex-num", "total size of mutex array", OptionValue::Int(4096)),
        OptionSpec::new("mutex-locks", "number of mutex locks to do per thread", OptionValue::Int(50_000)),
        OptionSpec::new("mutex-loops", "number of empty loops to do outside mutex lock", OptionValue::Int(10_000)),
    ]
}

pub fn load(settings: &Settings) -> Result<MachineLoad, Fatal> {
    let count = number(settings, "mutex-num", 1)?;
    let locks_each = number(settings, "mutex-locks", 1)?;
    let loops = number(settings, "mutex-loops", 0)?;
    let shared = Arc::new(Shared {
        locks: allocate(count, Apart::default, "Memory allocation failure!")?,
        counter: AtomicU64::new(0),
    });
    let work = move |_, random| Locking { shared: Arc::clone(&shared), random, locks_each, loops, left: 0 };
    Ok(MachineLoad { events_each: Some(1), ..MachineLoad::new("mutex", Mutexes, work) })
}

struct Mutexes;

impl Hooks for Mutexes {
    fn introduction(&self) -> Introduction {
        let details = vec!["Doing mutex performance test".to_owned()];
        Introduction { details, ..Introduction::default() }
    }

    fn uses_sql(&self) -> bool {
        false
    }
}

/// The locks and the counter that all threads share.
struct Shared {
    locks: Vec<Apart>,
    /// The approximate number of locks taken so far. Threads that hold different locks may overwrite each other's
    /// update.
    counter: AtomicU64,
}

/// A lock that shares no cache line with its neighbours in the array.
#[derive(Default)]
#[repr(align(256))]
struct Apart(Mutex<()>);

/// The work that the test `mutex` does in one thread.
struct Locking {
    shared: Arc<Shared>,
    random: Random,
    /// The number of locks that an event takes.
    locks_each: u64,
    /// The number of rounds of the empty loop before each lock.
    loops: u64,
    /// The number of locks that the current event still has to take.
    left: u64,
}

impl Work for Locking {
    fn begin(&mut self) {
        self.left = self.locks_each;
    }

    fn go_on(&mut self) -> bool {
        let Shared { locks, counter } = &*self.shared;
        let part = self.left.min((PART / (self.loops + 1)).max(1));
        for _ in 0..part {
            let lock = &locks[(self.random.next_u64() % locks.len() as u64) as usize];
            for step in 0..self.loops {
                black_box(step);
            }
            let held = lock.0.lock().unwrap_or_else(PoisonError::into_inner);
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            drop(held);
        }
        self.left -= part;
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs an event. Returns the number of locks that it took, and the number of its parts.
    fn done(locks_each: u64, loops: u64) -> (u64, u64) {
        let locks = (0..4).map(|_| Apart::default()).collect();
        let shared = Arc::new(Shared { locks, counter: AtomicU64::new(0) });
        let random = Random::seeded(7);
        let mut work = Locking { shared: Arc::clone(&shared), random, locks_each, loops, left: 0 };
        work.begin();
        let mut parts = 1;
        while !work.go_on() {
            parts += 1;
        }
        (shared.counter.load(Ordering::Relaxed), parts)
    }

    #[test]
    fn an_event_takes_all_its_locks_in_parts_of_about_as_many_steps() {
        assert_eq!((done(7, 0), done(7, 100)), ((7, 1), (7, 1)));
        assert_eq!(done(3, PART / 2 - 1), (3, 2));
        assert_eq!(done(2, PART + 1), (2, 2));
    }
}
