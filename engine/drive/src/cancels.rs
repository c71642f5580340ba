//! The cancel requests of a replay. A statement that was cancelled while it was recorded is cancelled in the replay
//! after the same running time, if it still runs then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ground::clock::Nanos;

use crate::shell::Shell;
use wire::Backend;

/// The time after which a statement that still runs is cancelled again. The server ignores a cancel request that
/// arrives before the statement has begun.
const REPEAT_AFTER: Nanos = 1_000_000_000;

/// The cancel requests that a thread has still to send, ordered by time.
#[derive(Default)]
pub struct Cancels(BinaryHeap<Reverse<(Nanos, RunningStatement)>>);

/// One statement of a client, for which a cancel request is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunningStatement {
    /// The client's index among the thread's clients.
    pub client: usize,
    /// The number of the statement among the statements of its client.
    pub number: u64,
}

impl Cancels {
    /// Plans to cancel a statement at `at` if it still runs then.
    pub fn add(&mut self, at: Nanos, statement: RunningStatement) {
        self.0.push(Reverse((at, statement)));
    }

    /// Returns the time of the next planned cancel request, if there is one.
    pub fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Sends the cancel requests that are due at `now`. `running` returns the server process that runs a statement, or
    /// `None` if the statement has ended.
    pub fn send<'b, S: Shell>(
        &mut self,
        now: Nanos,
        shell: &S,
        running: impl Fn(RunningStatement) -> Option<&'b Arc<Backend>>,
    ) {
        let mut backends = Vec::new();
        while let Some(Reverse((at, statement))) = self.0.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.0.pop();
            if let Some(backend) = running(statement) {
                backends.push(Arc::clone(backend));
                self.add(at.max(now) + REPEAT_AFTER, statement);
            }
        }
        if !backends.is_empty() {
            shell.cancel_aside(backends);
        }
    }
}
