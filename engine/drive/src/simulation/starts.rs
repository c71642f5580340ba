//! The scheduled starts of a load with a rate: which client takes which start, and the process from which they must come.

use ground::clock::Nanos;
use ground::random::Random;

/// The starts that the clients of one thread have taken from the thread's schedule.
#[derive(Debug, Default)]
pub struct Starts {
    /// The process from which the starts must come. `None` if several engines take turns in slices of time: starts that
    /// were put back then come again.
    process: Option<Process>,
    /// True if starts that are too late are skipped, so that a client may take several starts for one transaction.
    skips: bool,
    /// True if nothing but a time keeps a client from beginning its transaction: it has a connection, and it is not the
    /// slice of another engine.
    pub is_punctual: bool,
    /// The index of the client that has begun to choose its script last.
    last: Option<usize>,
    /// A start that was taken last. It is not known yet which client has taken it.
    taken: Option<TakenStart>,
}

/// A scheduled start that a client has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenStart {
    pub start: Nanos,
    /// The time that the thread had read from its clock when the start was taken.
    pub at: Nanos,
}

/// A Poisson process. Its times are computed as sums of the distances, unlike those of the engine, which are computed
/// in whole nanoseconds.
#[derive(Debug)]
pub struct Process {
    random: Random,
    mean: f64,
    sum: f64,
}

impl Process {
    /// Makes the process that `random` determines. `mean` is the mean time between two starts, in nanoseconds.
    pub fn new(random: Random, mean: f64) -> Self {
        Self { random, mean, sum: 0.0 }
    }

    /// Returns the next time, in nanoseconds from the start of the process.
    pub fn next(&mut self) -> f64 {
        self.sum -= (1.0 - self.random.unit()).ln() * self.mean;
        self.sum
    }
}

impl Starts {
    pub fn new(process: Option<Process>, skips: bool, is_punctual: bool) -> Self {
        Self { process, skips, is_punctual, last: None, taken: None }
    }

    /// Records that a client has taken `start`, when the thread had read `at` from its clock. The load began at `begun`.
    /// A start that was taken before is returned with the index of its client, if that client went on without choosing a
    /// script: it has skipped a start. A start that does not come from the process is described.
    pub fn take(&mut self, start: Nanos, begun: Nanos, at: Nanos) -> (Option<(usize, TakenStart)>, Option<String>) {
        let before = self.taken.replace(TakenStart { start, at }).filter(|_| self.skips);
        let expected = self.process.as_mut().map(|process| begun as f64 + process.next());
        let is_wrong = |expected: &f64| (start as f64 - expected).abs() > 2.0 + 1e-9 * expected;
        let defect = expected.filter(is_wrong).map(|expected| {
            format!("the schedule has the start {start} ns instead of {expected} ns, which the rate and the seed give")
        });
        (self.last.zip(before), defect)
    }

    /// Records that a client begins to choose its script. Returns the start that it has taken before.
    pub fn begin(&mut self, client: usize) -> Option<TakenStart> {
        self.last = Some(client);
        self.taken.take()
    }

    /// Records that a client begins its transaction. Returns the start that it has taken since it chose its script.
    pub fn start(&mut self, client: usize) -> Option<TakenStart> {
        self.taken.take_if(|_| self.skips && self.last == Some(client))
    }
}
