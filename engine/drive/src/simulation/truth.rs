//! The record of what really happened in a simulated run, as its programs and servers saw it. The tests compare the
//! engine's counts with it.

use std::collections::BTreeMap;
use std::mem::take;

use super::ended::{Bounds, Commit, Failure};
use super::starts::{Starts, TakenStart};
use ground::clock::Nanos;

/// The index of a client's thread, and the client's index in the thread.
pub type Place = (usize, usize);

/// The SQLSTATE of a connection that broke.
pub const BROKEN: &str = "08006";

/// The SQLSTATE with which the server ends a session. The client may read it before the transaction begins whose request
/// is the first to find the session ended.
const DISMISSED: &str = "57P01";

/// The record of what really happened in a simulated run. Clients are identified by the index of their thread and their
/// index in the thread.
#[derive(Debug, Default)]
pub struct Truth {
    pub clients: BTreeMap<Place, ClientTruth>,
    threads: Vec<ThreadTruth>,
    /// The committed transactions, in the order in which their last answers were read.
    pub commits: Vec<Commit>,
    /// The transactions that were not committed, and after which their clients began others.
    pub failures: Vec<Failure>,
    /// The index of the thread for whose clients programs are being made, and the number of programs that it has so
    /// far.
    pub making: Place,
    /// The last moment at which something happened on a connection.
    pub last_activity: Nanos,
    /// The time at which the load was planned to start.
    pub start: Nanos,
    /// The times at which the transactions of the load started.
    pub starts: Vec<Nanos>,
    /// The number of scheduled starts that clients took and did not put back, in the threads that have ended. Used only
    /// with a rate.
    pub taken: u64,
    /// The lines that threads printed.
    pub lines: Vec<String>,
    /// The number of transactions that programs have counted by themselves.
    pub more_events: u64,
    /// The number of statements that programs have counted by themselves.
    pub more_queries: u64,
    pub replay: ReplayTruth,
    /// Descriptions of the errors of the engine that were found.
    pub defects: Vec<String>,
}

/// The record of what one thread has read from its clock.
#[derive(Debug, Default)]
struct ThreadTruth {
    /// The time that the thread has read last.
    reading: Nanos,
    /// The beginning of the thread's current round of the event loop: the time at which its last wait for events ended.
    /// In the first round it is the start of the load.
    round: Nanos,
    /// The beginning of the round before.
    last_round: Nanos,
    /// The starts that the thread's clients have taken from the schedule of a load with a rate.
    starts: Starts,
    /// The indexes of the clients that have read an answer since the thread read its clock.
    answered: Vec<usize>,
    /// The indexes in [`Truth::commits`] of the transactions that have ended since the thread read its clock.
    ended: Vec<usize>,
}

/// The record of what really happened to the transactions of one client.
#[derive(Debug, Clone, Default)]
pub struct ClientTruth {
    /// The client's number in the whole run.
    pub number: usize,
    /// The last moment at which the client used its connection.
    pub last_activity: Nanos,
    pub committed: u64,
    /// The number of transactions that were not committed, and after which the client began another transaction.
    pub given_up: u64,
    pub retries: u64,
    /// True if a transaction has begun and has not ended.
    pub is_open: bool,
    /// The index of the script that the program has chosen for the current transaction.
    pub script: usize,
    /// The bounds of the time at which the current transaction began.
    began: Bounds,
    /// The time for which the current transaction was planned, as in [`Commit::planned`].
    pub planned: Option<u64>,
    /// The time at which the client should go on, if it waits for a time before its transaction.
    due: Option<Nanos>,
    /// True if an answer has been read since the current transaction began.
    has_read: bool,
    /// The first time that the thread read from its clock after the client had read from its connection. `None` if the
    /// thread has not read its clock since then.
    answered_at: Option<Nanos>,
    /// The SQLSTATEs of the errors that were read since the current try began.
    pub errors: Vec<String>,
    /// The number of tries of the current transaction beyond its first try.
    tries: u64,
    pub most_tries: u64,
    /// True if the next statement that the client sends is the last one of its transaction.
    pub is_last: bool,
    /// True if each statement counts as a transaction of the client, even within an open transaction block. This holds
    /// for replays.
    pub ends_anywhere: bool,
    /// The total time that servers took for the committed transactions.
    pub service: Nanos,
    service_so_far: Nanos,
    /// The number of times that the thread had read the clock when it read the last answer.
    pub readings: Option<u64>,
    /// The number of the connection that the program uses now, if the program has several connections.
    pub line: Option<usize>,
}

/// The record of what really happened to recorded sessions and statements, as their programs saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayTruth {
    pub begun: u64,
    pub finished: u64,
    pub refused: u64,
    pub lost: u64,
    pub succeeded: u64,
    /// The number of statements that failed as recorded.
    pub expected: u64,
    /// The number of statements that failed with an error that was not recorded.
    pub unexpected: u64,
    /// The number of statements whose recorded error did not happen.
    pub missing: u64,
    /// The number of statements with a different number of rows than recorded.
    pub other_rows: u64,
    /// The number of unexpected errors that follow from an earlier error of the same transaction.
    pub consequences: u64,
}

impl Truth {
    /// Registers the program of client `number`, which is made next. Returns the indexes of its thread and of the
    /// client in the thread.
    pub fn place(&mut self, number: usize) -> Place {
        let place = self.making;
        self.making.1 += 1;
        self.clients.insert(place, ClientTruth { number, ..ClientTruth::default() });
        place
    }

    pub fn client(&mut self, place: Place) -> &mut ClientTruth {
        self.clients.entry(place).or_default()
    }

    fn thread(&mut self, thread: usize) -> &mut ThreadTruth {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, ThreadTruth::default);
        }
        &mut self.threads[thread]
    }

    /// Records that a thread begins its load, which was planned to start at `at`.
    pub fn begin_load(&mut self, thread: usize, at: Nanos) {
        self.start = at;
        self.thread(thread).round = at;
    }

    /// Records that a thread's wait for events has ended at `now`.
    pub fn begin_round(&mut self, thread: usize, now: Nanos) {
        let record = self.thread(thread);
        (record.last_round, record.round) = (record.round, now);
    }

    /// Sets the schedule that the thread `thread` is expected to follow in a load with a rate.
    pub fn expect_starts(&mut self, thread: usize, starts: Starts) {
        self.thread(thread).starts = starts;
    }

    /// Records that a client of a thread has taken the scheduled start `start`.
    pub fn take_start(&mut self, thread: usize, start: Nanos) {
        let (begun, record) = (self.start, self.thread(thread));
        let reading = record.reading;
        let (owner, defect) = record.starts.take(start, begun, reading);
        self.defects.extend(defect);
        if let Some((index, taken)) = owner {
            self.client((thread, index)).plan(taken);
        }
    }

    /// Records that a client waits for a think time of `pause` before its transaction.
    pub fn think(&mut self, place: Place, pause: Nanos) {
        let reading = self.thread(place.0).reading;
        let client = self.client(place);
        // A client that thinks after an answer counts its think time from the time that was read for this answer.
        client.due = (client.answered_at == Some(reading)).then_some(reading + pause);
    }

    /// Records that a thread has read the time `now` from its clock. What the thread's clients have read from their
    /// connections since it read its clock before ended at this time, because the event loop has no other.
    pub fn note_time(&mut self, thread: usize, now: Nanos) {
        let record = self.thread(thread);
        record.reading = now;
        let (answered, ended) = (take(&mut record.answered), take(&mut record.ended));
        answered.into_iter().for_each(|index| self.client((thread, index)).answered_at = Some(now));
        ended.into_iter().for_each(|number| self.commits[number].ended = now);
    }

    /// Records that a client has read from its connection, or has learned that the connection is closed.
    pub fn note_read(&mut self, place: Place) {
        let client = self.client(place);
        (client.has_read, client.answered_at) = (true, None);
        self.thread(place.0).answered.push(place.1);
    }

    /// Records that the last answer of a transaction has been read, so that the transaction is committed.
    pub fn commit(&mut self, place: Place, service: Nanos) {
        let client = self.client(place);
        client.service_so_far += service;
        (client.has_read, client.answered_at) = (true, None);
        self.end(place);
    }

    /// Records that the program of a client has committed its transaction, if that was not recorded with the server's
    /// answer.
    pub fn end(&mut self, place: Place) {
        let client = self.client(place);
        if !take(&mut client.is_open) {
            return;
        }
        client.committed += 1;
        client.service += client.service_so_far;
        let ended = client.answered_at.filter(|_| client.has_read);
        let commit = Commit {
            place,
            script: client.script,
            planned: client.planned,
            began: client.began,
            ended: ended.unwrap_or(Nanos::MAX),
            retries: client.tries,
        };
        self.commits.push(commit);
        if ended.is_none() {
            let number = self.commits.len() - 1;
            self.thread(place.0).ended.push(number);
        }
    }

    /// Records that the transaction of a client has failed, if one is open.
    pub fn fail(&mut self, place: Place) {
        let client = self.client(place);
        let failure = client.failure(place);
        client.given_up += u64::from(failure.is_some());
        client.is_open = false;
        self.failures.extend(failure);
    }

    /// Records that the program of a client is about to begin a transaction. If its last transaction is still open,
    /// that one has failed.
    pub fn begin(&mut self, place: Place) {
        self.fail(place);
        let client = self.client(place);
        client.errors.retain(|sqlstate| sqlstate == DISMISSED);
        (client.tries, client.is_last, client.service_so_far) = (0, false, 0);
        (client.planned, client.due) = (None, None);
        if let Some(taken) = self.thread(place.0).starts.begin(place.1) {
            self.client(place).plan(taken);
        }
    }

    /// Records that the engine asks a client's program for an action of a transaction at `now`. The first such action
    /// begins the transaction.
    pub fn start(&mut self, place: Place, now: Nanos) {
        let record = self.thread(place.0);
        let (reading, round, last_round) = (record.reading, record.round, record.last_round);
        let taken = record.starts.start(place.1);
        let is_punctual = record.starts.is_punctual;
        let client = self.client(place);
        if client.is_open {
            return;
        }
        if let Some(taken) = taken {
            client.plan(taken);
        }
        // A client that goes on after an answer begins at the time that was read for this answer. A client that was
        // woken begins at the time that was read for all clients of the round.
        let least = if client.answered_at == Some(reading) { reading } else { round };
        client.began = Bounds { least, most: reading };
        (client.is_open, client.has_read) = (true, false);
        let due = client.due.take().filter(|due| is_punctual && (reading < *due || last_round >= *due));
        self.starts.push(now);
        self.defects.extend(due.map(|due| {
            format!("a client that waited until {due} began at {least} to {reading}, not in the first round after that")
        }));
    }

    /// Records that a client uses its connection at `now`.
    pub fn note_activity(&mut self, place: Place, now: Nanos) {
        self.last_activity = self.last_activity.max(now);
        self.client(place).last_activity = now;
    }

    /// Returns the sum of a number over all clients.
    pub fn sum(&self, of: impl Fn(&ClientTruth) -> u64) -> u64 {
        self.clients.values().map(of).sum()
    }
}

impl ClientTruth {
    /// Plans the current transaction for a scheduled start.
    fn plan(&mut self, taken: TakenStart) {
        self.planned = Some(taken.start);
        self.due = Some(taken.start).filter(|start| *start > taken.at);
    }

    pub fn retry(&mut self) {
        self.tries += 1;
        self.retries += 1;
        self.most_tries = self.most_tries.max(self.tries);
        (self.is_last, self.service_so_far) = (false, 0);
        self.errors.retain(|sqlstate| sqlstate == DISMISSED);
    }

    /// Returns the failure of the current transaction, if it has failed. `place` has the indexes of the client's thread
    /// and of the client in the thread. Returns `None` if no transaction is open.
    pub fn failure(&self, place: Place) -> Option<Failure> {
        let at = self.answered_at.unwrap_or(Nanos::MAX).max(self.began.most);
        let (began, sqlstates) = (self.began, self.errors.clone());
        self.is_open.then_some(Failure { place, began, at, sqlstates, retries: self.tries })
    }

    /// Records that the client takes no further part in the load. Its current transaction is not counted.
    pub fn leave(&mut self) {
        self.is_open = false;
    }

    /// Adds the time that the server has taken for a statement that does not end the transaction.
    pub fn serve(&mut self, service: Nanos) {
        self.service_so_far += service;
    }
}
