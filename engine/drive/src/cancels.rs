//! The cancel requests of a replay. A statement that was cancelled while it was recorded is cancelled in the replay
//! after the same running time, if it still runs then.
//!
//! A cancel request names a session and not a statement, so a request that arrives late would cancel the session's next
//! statement. A client therefore sends no statement while a request for its session is under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ground::clock::Nanos;

use crate::shell::Shell;
use crate::under_way::UnderWay;
use wire::Backend;

/// The time after which a statement that still runs is cancelled again. The server ignores a cancel request that
/// arrives before the statement has begun.
const REPEAT_AFTER: Nanos = 1_000_000_000;

/// The cancel requests of a thread.
#[derive(Default)]
pub struct Cancels {
    /// The requests that have still to be sent, ordered by time.
    planned: BinaryHeap<Reverse<(Nanos, RunningStatement)>>,
    /// The requests that were sent together: the clients of their sessions, and the mark of these requests.
    sent: Vec<(Vec<usize>, UnderWay)>,
}

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
        self.planned.push(Reverse((at, statement)));
    }

    /// Returns the time of the next planned cancel request, if there is one.
    pub fn next(&self) -> Option<Nanos> {
        self.planned.peek().map(|Reverse((at, _))| *at)
    }

    /// Sends the cancel requests that are due at `now`. `running` returns the server process that runs a statement, or
    /// `None` if the statement has ended.
    pub fn send<'b, S: Shell>(
        &mut self,
        now: Nanos,
        shell: &S,
        running: impl Fn(RunningStatement) -> Option<&'b Arc<Backend>>,
    ) {
        let (mut clients, mut backends) = (Vec::new(), Vec::new());
        while let Some(Reverse((at, statement))) = self.planned.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.planned.pop();
            if let Some(backend) = running(statement) {
                clients.push(statement.client);
                backends.push(Arc::clone(backend));
                self.add(at.max(now) + REPEAT_AFTER, statement);
            }
        }
        if !backends.is_empty() {
            self.sent.push((clients, shell.cancel_aside(backends)));
        }
    }

    /// Returns true if a cancel request for the client's session is under way. The server may then still cancel
    /// whatever the session executes.
    pub fn are_under_way(&mut self, client: usize) -> bool {
        self.sent.retain(|(_, request)| !request.is_over());
        self.sent.iter().any(|(clients, _)| clients.contains(&client))
    }
}
