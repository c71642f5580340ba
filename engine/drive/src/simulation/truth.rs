//! The truth about a simulated run: what really happened, as its programs and servers saw it. The engine's counts are
//! compared with it.

use std::collections::BTreeMap;

use ground::clock::Nanos;

/// The clients by thread and index there.
#[derive(Debug, Default)]
pub struct Truth {
    pub clients: BTreeMap<(usize, usize), ClientTruth>,
    /// The thread whose clients' programs are being made, and how many it has.
    pub making: (usize, usize),
    /// The last moment at which something happened on a connection.
    pub last_activity: Nanos,
    /// The time at which the load was to start, and the times at which its transactions did.
    pub start: Nanos,
    pub starts: Vec<Nanos>,
    /// The number of scheduled starts that clients of threads that have ended got and did not give back. Used only with
    /// a rate.
    pub taken: u64,
    /// The lines that threads printed.
    pub lines: Vec<String>,
    /// Transactions that programs have counted themselves, and statements.
    pub more_events: u64,
    pub more_queries: u64,
    pub replay: ReplayTruth,
    /// Descriptions of the errors that were found.
    pub defects: Vec<String>,
}

/// The transactions of one client.
#[derive(Debug, Clone, Default)]
pub struct ClientTruth {
    /// The client's number in the whole run.
    pub number: usize,
    /// The last moment at which the client used its connection.
    pub last_activity: Nanos,
    pub committed: u64,
    /// Transactions that were not committed, and after which the client began another one.
    pub given_up: u64,
    pub retries: u64,
    /// True if a transaction is under way.
    pub is_open: bool,
    /// The number of tries of the transaction under way beyond the first.
    tries: u64,
    pub most_tries: u64,
    /// True if the next statement that the client sends is the last one of its transaction.
    pub is_last: bool,
    /// True if each statement counts as a transaction of the client, even within an open transaction block, as in
    /// replays.
    pub ends_anywhere: bool,
    /// The time that servers took for committed transactions.
    pub service: Nanos,
    service_so_far: Nanos,
    /// The number of readings of the clock at the time when the last answer was read.
    pub readings: Option<u64>,
    /// The connection that its program uses now, if it has several.
    pub line: Option<usize>,
}

/// The truth about recorded sessions and statements, as their programs saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayTruth {
    pub begun: u64,
    pub finished: u64,
    pub refused: u64,
    pub lost: u64,
    pub succeeded: u64,
    /// Statements that failed as recorded, otherwise, and not though it was recorded; those with other rows.
    pub expected: u64,
    pub unexpected: u64,
    pub missing: u64,
    pub other_rows: u64,
    /// Unexpected errors that follow from an earlier error.
    pub consequences: u64,
}

impl Truth {
    /// Registers the program of client `number`, which is made next, and returns its place among the programs.
    pub fn place(&mut self, number: usize) -> (usize, usize) {
        let place = self.making;
        self.making.1 += 1;
        self.clients.insert(place, ClientTruth { number, ..ClientTruth::default() });
        place
    }

    pub fn client(&mut self, place: (usize, usize)) -> &mut ClientTruth {
        self.clients.entry(place).or_default()
    }

    /// Notes that the last answer of a transaction has been read.
    pub fn commit(&mut self, strand: usize, token: usize, service: Nanos) {
        let client = self.client((strand, token));
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

    /// Notes that a client uses its connection.
    pub fn note_activity(&mut self, place: (usize, usize), now: Nanos) {
        self.last_activity = self.last_activity.max(now);
        self.client(place).last_activity = now;
    }

    /// Returns the sum over the clients.
    pub fn sum(&self, of: impl Fn(&ClientTruth) -> u64) -> u64 {
        self.clients.values().map(of).sum()
    }
}

impl ClientTruth {
    /// Notes that the program is about to begin a transaction.
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

    /// Notes that the client leaves: its transaction does not count.
    pub fn leave(&mut self) {
        self.is_open = false;
    }

    /// Notes that the transaction under way is committed.
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
