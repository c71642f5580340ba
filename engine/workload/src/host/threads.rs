//! The test `threads`: many times, an event takes a lock, yields the processor and releases the lock. Successive events
//! use the locks in turn, so that threads compete for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::client::Work;
use super::load::{MachineLoad, allocate, number};
use crate::program::Fatal;
use crate::settings::{OptionSpec, OptionValue, Settings};
use crate::statistics::{Hooks, Introduction};

/// The number of times that an event takes its lock before the client returns to its event loop. By default this is a
/// whole event.
const PART: u64 = 1000;

pub fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::new("thread-yields", "number of yields to do per request", OptionValue::Int(1000)),
        OptionSpec::new("thread-locks", "number of locks per thread", OptionValue::Int(8)),
    ]
}

pub fn load(settings: &Settings) -> Result<MachineLoad, Fatal> {
    let (yields, count) = (number(settings, "thread-yields", 0)?, number(settings, "thread-locks", 1)?);
    let locks = Arc::new(allocate(count, Mutex::default, "Memory allocation failure!")?);
    let events = Arc::new(AtomicUsize::new(0));
    let work = move |_, _| Yields { locks: Arc::clone(&locks), events: Arc::clone(&events), yields, lock: 0, left: 0 };
    Ok(MachineLoad::new("threads", Threads { yields, locks: count }, work))
}

struct Threads {
    yields: u64,
    locks: u64,
}

impl Hooks for Threads {
    fn introduction(&self) -> Introduction {
        let details = vec![
            "Doing thread subsystem performance test".to_owned(),
            format!("Thread yields per test: {} Locks used: {}", self.yields, self.locks),
        ];
        Introduction { details, ..Introduction::default() }
    }

    fn uses_sql(&self) -> bool {
        false
    }
}

/// The work that the test `threads` does in one thread.
struct Yields {
    locks: Arc<Vec<Mutex<()>>>,
    /// The number of events that all threads together have begun.
    events: Arc<AtomicUsize>,
    /// The number of times that an event takes its lock and yields.
    yields: u64,
    /// The index of the lock that the current event uses.
    lock: usize,
    /// The number of times that the current event still has to take its lock and yield.
    left: u64,
}

impl Work for Yields {
    fn begin(&mut self) {
        self.lock = self.events.fetch_add(1, Ordering::Relaxed) % self.locks.len();
        self.left = self.yields;
    }

    fn go_on(&mut self) -> bool {
        let part = self.left.min(PART);
        for _ in 0..part {
            let held = self.locks[self.lock].lock().unwrap_or_else(PoisonError::into_inner);
            thread::yield_now();
            drop(held);
        }
        self.left -= part;
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_turns_at_the_locks_and_have_all_their_yields() {
        let locks: Arc<Vec<Mutex<()>>> = Arc::new((0..3).map(|_| Mutex::default()).collect());
        let mut work = Yields { locks, events: Arc::default(), yields: 2 * PART + 1, lock: 0, left: 0 };
        let turns = [0, 1, 2, 0].map(|_| {
            work.begin();
            assert_eq!([work.go_on(), work.go_on(), work.go_on()], [false, false, true]);
            work.lock
        });
        assert_eq!(turns, [0, 1, 2, 0]);
        work.yields = 0;
        work.begin();
        assert!(work.go_on());
    }
}
