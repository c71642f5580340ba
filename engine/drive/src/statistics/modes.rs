//! Counters that only one mode of the load has: those of a period, and the totals of a run.

use super::clients::PerClient;
use super::replay::ReplayTotals;
use super::tasks::{PooledTasks, Task, Tasks};

/// The counters of a period (one second, or one round of slices) that only one mode of the load has.
#[derive(Debug, Clone, Default)]
pub enum ModeCounts {
    /// Closed loops and replays have no such counters. Counters to which no thread has been added yet are empty, too.
    #[default]
    None,
    /// The transactions of each client of a sysbench load.
    Clients(PerClient),
    /// The tasks of a load with connection pools.
    Tasks(PooledTasks),
}

impl ModeCounts {
    /// Returns the counters of a sysbench load.
    pub fn clients(&self) -> Option<&PerClient> {
        if let Self::Clients(clients) = self { Some(clients) } else { None }
    }

    /// Returns the counters of a load with connection pools.
    pub fn tasks(&self) -> Option<&PooledTasks> {
        if let Self::Tasks(tasks) = self { Some(tasks) } else { None }
    }

    /// Counts a transaction of the client `index` that took `latency_ns` nanoseconds, in a sysbench load.
    #[inline]
    pub(crate) fn add_of_client(&mut self, index: usize, latency_ns: u64) {
        if let Self::Clients(clients) = self {
            clients.add(index, latency_ns);
        }
    }

    /// Counts a task that has ended, in a load with connection pools.
    pub(crate) fn add_task(&mut self, task: Task) {
        if let Self::Tasks(tasks) = self {
            tasks.add(task);
        }
    }

    /// Adds the counters of another thread or period of the same load.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::None) => {}
            (Self::Clients(mine), Self::Clients(theirs)) => mine.merge(theirs),
            (Self::Tasks(mine), Self::Tasks(theirs)) => mine.merge(theirs),
            // These counters are still empty, since a load has one mode.
            (mine, theirs) => *mine = theirs.clone(),
        }
    }

    /// Returns counters of the same mode in which all counts are zero.
    pub(crate) fn emptied(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Clients(clients) => Self::Clients(clients.emptied()),
            Self::Tasks(_) => Self::Tasks(PooledTasks::default()),
        }
    }

    /// Finishes the counters of a period that all threads have reported: puts clients and tasks into their order.
    pub(crate) fn complete(&mut self) {
        match self {
            Self::None => {}
            Self::Clients(clients) => clients.complete(),
            Self::Tasks(tasks) => tasks.complete(),
        }
    }
}

/// The totals of a run that only one mode of the load has.
#[derive(Debug, Default)]
pub enum ModeTotals {
    /// Closed loops and sysbench loads have no such totals.
    #[default]
    None,
    /// The tasks of a load with connection pools.
    Tasks(Tasks),
    /// The sessions and statements of a replay.
    Replay(ReplayTotals),
}

impl ModeTotals {
    /// Returns the totals of a load with connection pools.
    pub fn tasks(&self) -> Option<&Tasks> {
        if let Self::Tasks(tasks) = self { Some(tasks) } else { None }
    }

    /// Returns the totals of a replay.
    pub fn replay(&self) -> Option<&ReplayTotals> {
        if let Self::Replay(replay) = self { Some(replay) } else { None }
    }

    /// Adds the totals of a thread of a replay.
    pub(crate) fn add_replay(&mut self, of_thread: &ReplayTotals) {
        if let Self::Replay(replay) = self {
            replay.merge(of_thread);
        }
    }

    /// Moves the tasks out of the counters of a period into these totals.
    pub(crate) fn drain_tasks(&mut self, period: &mut ModeCounts) {
        if let (Self::Tasks(totals), ModeCounts::Tasks(pooled)) = (self, period) {
            totals.drain(pooled);
        }
    }
}
