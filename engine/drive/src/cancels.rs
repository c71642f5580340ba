//! The cancel requests of a replay: statements that were cancelled when they were recorded are cancelled after the same
//! time, if they still run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ground::clock::Nanos;

use crate::shell::Shell;
use wire::Backend;

/// The time after which a statement is cancelled again if it still runs: the server may not have begun it when the first
/// request came.
const REPEAT_AFTER: Nanos = 1_000_000_000;

/// The statements of a thread that will be cancelled.
#[derive(Default)]
pub struct Cancels(BinaryHeap<Reverse<(Nanos, RunningStatement)>>);

/// A statement of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunningStatement {
    /// The client's index among the thread's clients.
    pub client: usize,
    /// The number of the statement among those of the client.
    pub number: u64,
}

impl Cancels {
    /// Cancels a statement at `at`, if it still runs.
    pub fn add(&mut self, at: Nanos, statement: RunningStatement) {
        self.0.push(Reverse((at, statement)));
    }

    /// Returns the time at which the next statement must be cancelled, if there is one.
    pub fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Sends the requests whose time has come at `now`. `running` returns the server process of a statement, or nothing
    /// if the statement has ended.
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
