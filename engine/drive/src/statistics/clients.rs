//! The totals of each client of a sysbench run. sysbench's reports show from them how evenly the clients shared the
//! work.

/// The totals of one client's transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientTotals {
    pub transactions: u64,
    /// The time that the client has spent in transactions, in nanoseconds.
    pub busy_ns: u64,
    /// The duration of the client's shortest transaction, in nanoseconds; 0 without any transaction.
    pub shortest_ns: u64,
    /// The duration of the client's longest transaction, in nanoseconds.
    pub longest_ns: u64,
}

impl ClientTotals {
    /// Counts a transaction that took `latency_ns` nanoseconds.
    #[inline]
    pub fn add(&mut self, latency_ns: u64) {
        self.merge(&Self { transactions: 1, busy_ns: latency_ns, shortest_ns: latency_ns, longest_ns: latency_ns });
    }

    #[inline]
    fn merge(&mut self, other: &ClientTotals) {
        if other.transactions == 0 {
            return;
        }
        let shortest = if self.transactions == 0 { other.shortest_ns } else { self.shortest_ns };
        self.shortest_ns = shortest.min(other.shortest_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.transactions += other.transactions;
        self.busy_ns += other.busy_ns;
    }
}

/// The totals of several clients with consecutive numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerClient {
    /// The number that the first client of these totals has among the clients of the engine, counted from 0.
    first: usize,
    totals: Vec<ClientTotals>,
}

impl PerClient {
    /// Makes empty totals of `count` clients, the first of which has the number `first`.
    pub fn new(first: usize, count: usize) -> Self {
        Self { first, totals: vec![ClientTotals::default(); count] }
    }

    /// Returns the totals in the order of the clients' numbers.
    pub fn totals(&self) -> &[ClientTotals] {
        &self.totals
    }

    /// Returns the totals, for tests that falsify them.
    #[cfg(test)]
    pub fn totals_mut(&mut self) -> &mut [ClientTotals] {
        &mut self.totals
    }

    /// Counts a transaction of the client `index`, which is 0 for the first client whose totals are kept here.
    #[inline]
    pub fn add(&mut self, index: usize, latency_ns: u64) {
        if let Some(totals) = self.totals.get_mut(index) {
            totals.add(latency_ns);
        }
    }

    /// Adds the totals of clients with any numbers to these totals, which then begin with the engine's client 0.
    pub(super) fn merge(&mut self, other: &PerClient) {
        let clients = (self.first + self.totals.len()).max(other.first + other.totals.len());
        let mine = std::mem::replace(self, Self::new(0, clients));
        for part in [&mine, other] {
            let own = self.totals[part.first..].iter_mut();
            own.zip(&part.totals).for_each(|(own, part)| own.merge(part));
        }
    }

    /// Makes the totals begin with the engine's client 0, even if only other clients have reported this period.
    pub(super) fn complete(&mut self) {
        self.merge(&Self::default());
    }

    /// Returns totals for the same clients, with all counts at zero.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.first, self.totals.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(first: usize, latencies: &[&[u64]]) -> PerClient {
        let mut clients = PerClient::new(first, latencies.len());
        for (index, latencies) in latencies.iter().enumerate() {
            latencies.iter().for_each(|latency| clients.add(index, *latency));
        }
        clients
    }

    #[test]
    fn pages_of_clients_add_up_in_any_order() {
        let pages = [
            clients(2, &[&[7, 3], &[]]),
            clients(0, &[&[4], &[]]),
            clients(0, &[&[], &[6]]),
            clients(2, &[&[5], &[9]]),
        ];
        let whole = clients(0, &[&[4], &[6], &[7, 3, 5], &[9]]);
        let mut forwards = PerClient::default();
        pages.iter().for_each(|page| forwards.merge(page));
        let mut backwards = PerClient::default();
        pages.iter().rev().for_each(|page| backwards.merge(page));
        assert_eq!((&forwards, &backwards), (&whole, &whole));
        let third = ClientTotals { transactions: 3, busy_ns: 15, shortest_ns: 3, longest_ns: 7 };
        assert_eq!(whole.totals()[2], third);
    }

    #[test]
    fn the_totals_of_a_period_begin_with_the_first_client_of_the_engine() {
        let mut alone = clients(2, &[&[5], &[9]]);
        alone.complete();
        assert_eq!(alone, clients(0, &[&[], &[], &[5], &[9]]));
    }
}
