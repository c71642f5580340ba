//! Collects the counts for the progress lines of pgbench and order entry.

use super::elapsed::Elapsed;
use drive::Tick;
use drive::plan::Plan;
use drive::statistics::LoadStatistics;
use ground::clock::Phase;

/// The counts since the last progress line.
pub struct Progress {
    /// The time between progress lines, in seconds. `None` if no progress lines are printed.
    every: Option<u64>,
    clients: usize,
    elapsed: Elapsed,
    since: LoadStatistics,
    /// The length of the time in which `since` was counted, in seconds.
    since_s: f64,
}

/// The interval between two progress lines.
pub struct ProgressInterval {
    /// The elapsed time of the measured part at the end of the interval, in seconds.
    pub end_s: f64,
    /// The time in seconds by which counts are divided for rates. It is the length of the interval or, if engines take
    /// turns in slices of time, the average time for which a client took part.
    pub length_s: f64,
    pub statistics: LoadStatistics,
}

impl Progress {
    /// Begins to collect for lines every `every` seconds of the measured part.
    pub fn new(every: Option<u32>, plan: &Plan) -> Self {
        Self {
            every: every.map(u64::from),
            clients: plan.clients,
            elapsed: Elapsed::new(plan),
            since: LoadStatistics::default(),
            since_s: 0.0,
        }
    }

    /// Adds the counts of a tick. Returns the interval if it is complete, and begins the next one. The warm-up is not
    /// counted, and there is no interval for an incomplete one at the end of a run.
    pub fn add(&mut self, tick: &Tick) -> Option<ProgressInterval> {
        let every = self.every.filter(|_| tick.phase != Phase::Warmup)?;
        self.since.merge(&tick.statistics);
        self.since_s += tick.seconds;
        if !self.elapsed.add(tick).any(|second| second % every == 0) {
            return None;
        }
        let (statistics, since_s) = (std::mem::take(&mut self.since), std::mem::take(&mut self.since_s));
        let length_s = statistics.slice_time_s(self.clients).unwrap_or(since_s);
        Some(ProgressInterval { end_s: self.elapsed.seconds(), length_s, statistics })
    }
}
