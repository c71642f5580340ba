//! Chooses the kind of the next transaction, and the times for which a terminal waits before and after it.

use std::time::Duration;

use ground::random::Random;

/// A kind of transaction. The variants are in the order in which reports and events list the kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionKind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
    /// A new-order transaction that is rolled back, as the specification requires for 1% of them. It is counted
    /// separately.
    RolledBack,
}

/// The kinds with their names, their keying times and their mean think times, both in seconds (clause 5.2.5.7 of
/// TPC-C).
const KINDS: [(TransactionKind, &str, u64, f64); 6] = [
    (TransactionKind::NewOrder, "new-order", 18, 12.0),
    (TransactionKind::Payment, "payment", 3, 12.0),
    (TransactionKind::OrderStatus, "order-status", 2, 10.0),
    (TransactionKind::Delivery, "delivery", 2, 5.0),
    (TransactionKind::StockLevel, "stock-level", 2, 5.0),
    (TransactionKind::RolledBack, "new-order, rolled back", 18, 12.0),
];

/// The greatest think time, as a multiple of the mean.
const LONGEST_THINK: f64 = 10.0;

/// The greatest number of new-order transactions a minute for each warehouse, if terminals wait for the keying and
/// think times. A warehouse has ten terminals, and 45% of the transactions of each are new-orders.
pub const MOST_NEW_ORDERS_PER_WAREHOUSE: f64 = 12.86;

impl TransactionKind {
    /// Returns all kinds in the order of reports.
    pub fn all() -> [Self; KINDS.len()] {
        KINDS.map(|(kind, ..)| kind)
    }

    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Returns the keying time: how long a terminal waits before a transaction of this kind.
    pub fn keying(self) -> Duration {
        Duration::from_secs(KINDS[self as usize].2)
    }

    /// Draws the think time: how long a terminal waits after a transaction of this kind. Think times have an
    /// exponential distribution, cut off at [`LONGEST_THINK`].
    pub fn think(self, random: &mut Random) -> Duration {
        let mean = KINDS[self as usize].3;
        let drawn = -(1.0 - random.unit()).ln();
        Duration::from_secs_f64(mean * drawn.min(LONGEST_THINK))
    }
}

/// The shares of the five transactions in the load, as weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionMix {
    weights: [u32; 5],
}

impl Default for TransactionMix {
    /// Returns the mix of the specification (clause 5.2.3): payment, order-status, delivery and stock-level have their
    /// minimum shares, and new-order has the rest.
    fn default() -> Self {
        Self { weights: [45, 43, 4, 4, 4] }
    }
}

impl TransactionMix {
    /// Makes a mix of the weights for new-order, payment, order-status, delivery and stock-level. Returns `None` if all
    /// are zero.
    pub fn new(weights: [u32; 5]) -> Option<Self> {
        weights.iter().any(|weight| *weight > 0).then_some(Self { weights })
    }

    /// Returns the weight of a kind. New-orders that are rolled back have the weight 0, because they are a part of the
    /// new-orders.
    pub fn weight(&self, kind: TransactionKind) -> u64 {
        self.weights.get(kind as usize).copied().unwrap_or(0).into()
    }

    /// Draws the index of a transaction among the five.
    pub fn choose(&self, random: &mut Random) -> usize {
        let total: u64 = self.weights.iter().copied().map(u64::from).sum();
        let mut left = random.range(0, total as i64 - 1);
        let chosen = self.weights.iter().position(|weight| {
            left -= i64::from(*weight);
            left < 0
        });
        chosen.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    #[test]
    fn transactions_are_as_frequent_as_their_weights_say() {
        for weights in [[45, 43, 4, 4, 4], [10, 10, 1, 1, 1], [0, 0, 1, 0, 0]] {
            let (mix, mut random) = (TransactionMix::new(weights).unwrap(), Random::seeded(5));
            let mut counts = [0usize; 5];
            (0..DRAWS).for_each(|_| counts[mix.choose(&mut random)] += 1);
            let total: u32 = weights.iter().sum();
            for (weight, count) in weights.iter().zip(counts) {
                let share = f64::from(*weight) / f64::from(total);
                let spread = (DRAWS as f64 * share * (1.0 - share)).sqrt();
                assert!((count as f64 - DRAWS as f64 * share).abs() <= 5.0 * spread, "{weights:?}: {counts:?}");
            }
        }
        assert_eq!(TransactionMix::new([0; 5]), None);
    }

    #[test]
    fn think_times_have_their_mean_and_their_limit() {
        let mut random = Random::seeded(5);
        let times: Vec<_> = (0..DRAWS).map(|_| TransactionKind::NewOrder.think(&mut random).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / DRAWS as f64;
        // The standard deviation of an exponential distribution equals its mean.
        assert!((mean - 12.0).abs() < 5.0 * 12.0 / (DRAWS as f64).sqrt(), "{mean}");
        assert!(times.iter().all(|time| (0.0..=120.0).contains(time)));
        assert!(times.iter().any(|time| *time > 60.0));
    }

    #[test]
    fn kinds_stand_at_their_places() {
        assert!(KINDS.iter().enumerate().all(|(place, (kind, ..))| *kind as usize == place));
    }
}
