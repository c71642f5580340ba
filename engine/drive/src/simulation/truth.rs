//! What really happened in a simulated run, as its programs and servers saw it: the measure of what the engine counts.

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
    /// When the load was to start, and when its transactions did.
    pub start: Nanos,
    pub starts: Vec<Nanos>,
    /// With a rate: scheduled starts that clients of threads that have ended got and did not give back.
    pub taken: u64,
    /// What threads printed.
    pub lines: Vec<String>,
    /// Transactions that programs have counted themselves, and statements.
    pub more_events: u64,
    pub more_queries: u64,
    pub replay: ReplayTruth,
    /// What was seen that must not be.
    pub defects: Vec<String>,
}

/// One client's transactions.
#[derive(Debug, Clone, Default)]
pub struct ClientTruth {
    /// Its number in the whole run.
    pub number: usize,
    /// The last moment at which it used its connection.
    pub last_activity: Nanos,
    pub committed: u64,
    /// Those that were followed by another one though they were not committed.
    pub given_up: u64,
    pub retries: u64,
    /// Whether one is under way.
    pub is_open: bool,
    /// Tries of the one under way beyond the first.
    tries: u64,
    pub most_tries: u64,
    /// Whether the answer to the statement that is sent next ends a transaction.
    pub is_last: bool,
    /// Whether a transaction of its ends in an open transaction block, too.
    pub ends_anywhere: bool,
    /// The servers' time of committed transactions.
    pub service: Nanos,
    service_so_far: Nanos,
    /// How often the clock had been read when the last answer was.
    pub readings: Option<u64>,
    /// The connection that its program uses now, if it has several.
    pub line: Option<usize>,
}

/// What became of recorded sessions and statements, as their programs saw it.
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
    /// Unexpected errors that follow from an error before.
    pub consequences: u64,
}

impl Truth {
    /// The place of the next program that is made, that of client `number`.
    pub fn place(&mut self, number: usize) -> (usize, usize) {
        let place = self.making;
        self.making.1 += 1;
        self.clients.insert(place, ClientTruth { number, ..ClientTruth::default() });
        place
    }

    pub fn client(&mut self, place: (usize, usize)) -> &mut ClientTruth {
        self.clients.entry(place).or_default()
    }

    /// The last answer of a transaction has been read.
    pub fn commit(&mut self, strand: usize, token: usize, service: Nanos) {
        let client = self.client((strand, token));
        client.service_so_far += service;
        client.commit();
    }

    /// A client's program is asked for an action of a transaction at `now`.
    pub fn start(&mut self, place: (usize, usize), now: Nanos) {
        let client = self.client(place);
        if !client.is_open {
            client.start();
            self.starts.push(now);
        }
    }

    /// A client uses its connection.
    pub fn note_activity(&mut self, place: (usize, usize), now: Nanos) {
        self.last_activity = self.last_activity.max(now);
        self.client(place).last_activity = now;
    }

    /// The sum over the clients.
    pub fn sum(&self, of: impl Fn(&ClientTruth) -> u64) -> u64 {
        self.clients.values().map(of).sum()
    }
}

impl ClientTruth {
    /// The program is to begin a transaction.
    pub fn begin(&mut self) {
        self.given_up += u64::from(std::mem::take(&mut self.is_open));
        (self.tries, self.is_last, self.service_so_far) = (0, false, 0);
    }

    /// The first action of the transaction is asked for.
    fn start(&mut self) {
        self.is_open = true;
    }

    pub fn retry(&mut self) {
        self.tries += 1;
        self.retries += 1;
        self.most_tries = self.most_tries.max(self.tries);
        (self.is_last, self.service_so_far) = (false, 0);
    }

    /// The client leaves: its transaction does not count.
    pub fn leave(&mut self) {
        self.is_open = false;
    }

    /// The transaction under way is committed.
    pub fn commit(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.committed += 1;
            self.service += self.service_so_far;
        }
    }

    /// The server has taken some time for a statement that does not end the transaction.
    pub fn serve(&mut self, service: Nanos) {
        self.service_so_far += service;
    }
}
