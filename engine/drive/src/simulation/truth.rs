//! The record of what really happened in a simulated run, as its programs and servers saw it. The tests compare the
//! engine's counts with it.

use std::collections::BTreeMap;

use ground::clock::Nanos;

/// The record of what really happened in a simulated run. Clients are identified by the index of their thread and their
/// index in the thread.
#[derive(Debug, Default)]
pub struct Truth {
    pub clients: BTreeMap<(usize, usize), ClientTruth>,
    /// The index of the thread for whose clients programs are being made, and the number of programs that it has so
    /// far.
    pub making: (usize, usize),
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
    pub fn place(&mut self, number: usize) -> (usize, usize) {
        let place = self.making;
        self.making.1 += 1;
        self.clients.insert(place, ClientTruth { number, ..ClientTruth::default() });
        place
    }

    pub fn client(&mut self, place: (usize, usize)) -> &mut ClientTruth {
        self.clients.entry(place).or_default()
    }

    /// Records that the last answer of a transaction has been read, so that the transaction is committed.
    pub fn commit(&mut self, thread: usize, token: usize, service: Nanos) {
        let client = self.client((thread, token));
        client.service_so_far += service;
        client.commit();
    }

    /// Records that the engine asks a client's program for an action of a transaction at `now`. The first such action
    /// begins the transaction.
    pub fn start(&mut self, place: (usize, usize), now: Nanos) {
        let client = self.client(place);
        if !client.is_open {
            client.start();
            self.starts.push(now);
        }
    }

    /// Records that a client uses its connection at `now`.
    pub fn note_activity(&mut self, place: (usize, usize), now: Nanos) {
        self.last_activity = self.last_activity.max(now);
        self.client(place).last_activity = now;
    }

    /// Returns the sum of a number over all clients.
    pub fn sum(&self, of: impl Fn(&ClientTruth) -> u64) -> u64 {
        self.clients.values().map(of).sum()
    }
}

impl ClientTruth {
    /// Records that the program is about to begin a transaction.
    pub fn begin(&mut self) {
        self.given_up += u64::from(std::mem::take(&mut self.is_open));
        (self.tries, self.is_last, self.service_so_far) = (0, false, 0);
    }

    /// Records that the client's transaction has begun.
    fn start(&mut self) {
        self.is_open = true;
    }

    pub fn retry(&mut self) {
        self.tries += 1;
        self.retries += 1;
        self.most_tries = self.most_tries.max(self.tries);
        (self.is_last, self.service_so_far) = (false, 0);
    }

    /// Records that the client takes no further part in the load. Its current transaction is not counted.
    pub fn leave(&mut self) {
        self.is_open = false;
    }

    /// Records that the current transaction is committed.
    pub fn commit(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.committed += 1;
            self.service += self.service_so_far;
        }
    }

    /// Adds the time that the server has taken for a statement that does not end the transaction.
    pub fn serve(&mut self, service: Nanos) {
        self.service_so_far += service;
    }
}
