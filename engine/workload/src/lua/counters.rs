//! sysbench's counters, which scripts read and increment through LuaJIT's `ffi`. They are the counters of the client
//! whose coroutine is running.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::random::CFunction;
use crate::program::Management;
use crate::queries::Queries;
use wire::QueryKind;

/// The counters of sysbench. The value of a variant is the counter's number in sysbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    Other,
    Read,
    Write,
    Event,
    Error,
    Reconnect,
}

impl From<QueryKind> for Counter {
    fn from(kind: QueryKind) -> Self {
        match kind {
            QueryKind::Read => Self::Read,
            QueryKind::Write => Self::Write,
            QueryKind::Other => Self::Other,
            QueryKind::Nothing => Self::Error,
        }
    }
}

/// The counts of a client since it began. The index of a count is the counter's number in sysbench.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters([u64; 6]);

thread_local! {
    static CURRENT: Cell<Counters> = const { Cell::new(Counters([0; 6])) };
}

impl Counters {
    /// Adds one to a counter, for a statement or an event that the event loop counts too.
    pub fn add(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    /// Makes the counters accessible to the script that is about to run in this thread.
    pub fn lend(&self) {
        CURRENT.set(*self);
    }

    /// Takes the counters back after the script has run. Returns what the script itself has added to them; `None` if it
    /// has added nothing.
    pub fn take_back(&mut self) -> Option<Management> {
        let before = std::mem::replace(self, CURRENT.get());
        self.since(&before)
    }

    /// Returns what was counted since `before`; `None` if nothing was counted.
    pub fn since(&self, before: &Self) -> Option<Management> {
        if self == before {
            return None;
        }
        let [others, reads, writes, events, errors, reconnects] =
            std::array::from_fn(|number| self.0[number].wrapping_sub(before.0[number]));
        Some(Management::Count { queries: Queries { reads, writes, others, errors, reconnects }, events })
    }
}

/// The counts of the Lua states of the main thread that no client has reported to the event loop yet.
#[derive(Debug, Default)]
pub struct Uncounted {
    is_some: AtomicBool,
    counts: Mutex<(Queries, u64)>,
}

impl Uncounted {
    /// Adds what a state of the main thread has counted: the difference between its counters now and its earlier
    /// counters `before`.
    pub fn add(&self, counters: &Counters, before: &Counters) {
        let Some(Management::Count { queries, events }) = counters.since(before) else { return };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.0.merge(&queries);
        counts.1 += events;
        self.is_some.store(true, Ordering::Relaxed);
    }

    /// Returns the counts as an action with which a client reports them to the event loop, and sets the counts to zero.
    /// Returns `None` if nothing was counted.
    pub fn take(&self) -> Option<Management> {
        if !self.is_some.load(Ordering::Relaxed) {
            return None;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_some.store(false, Ordering::Relaxed);
        let (queries, events) = std::mem::take(&mut *counts);
        Some(Management::Count { queries, events })
    }
}

/// Implements sysbench's C function `sb_counter_inc`. It always increments the counter of the client that calls it,
/// even if the script names another thread.
extern "C" fn increment(_thread: i32, counter: u32) {
    let mut counters = CURRENT.get();
    if let Some(count) = counters.0.get_mut(counter as usize) {
        *count += 1;
        CURRENT.set(counters);
    }
}

/// Implements sysbench's C function `sb_counter_val`, which returns the value of a counter.
extern "C" fn value(_thread: i32, counter: u32) -> u64 {
    CURRENT.get().0.get(counter as usize).copied().unwrap_or(0)
}

/// Returns the C functions for the counters.
pub fn c_functions() -> [CFunction; 2] {
    [
        ("sb_counter_inc", "void (*)(int, sb_counter_type)", increment as *const () as usize),
        ("sb_counter_val", "uint64_t (*)(int, sb_counter_type)", value as *const () as usize),
    ]
}
