//! The initial population (clause 4.3.3 of TPC-C): its size and its random generators. The same seed gives the same
//! rows.

use std::time::{SystemTime, UNIX_EPOCH};

use ground::random::{Random, splitmix64_at};
use workload::order_entry::sizes::{DISTRICTS, FEWEST_LINES, MOST_LINES, ORDERS};

/// The seconds from 1970 to 2000, PostgreSQL's epoch.
const EPOCH_2000_S: i64 = 946_684_800;

/// The size, seed and time that determine the rows with which the tables are filled.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub warehouses: i64,
    pub seed: u64,
    /// The time that all timestamps of the population have, in microseconds since 2000.
    pub now: i64,
}

/// The groups of values of the initial population. Each group has a random generator of its own, so that a table can be
/// filled without generating the others.
#[derive(Debug, Clone, Copy)]
pub enum RandomStream {
    Items,
    Warehouses,
    Districts,
    Stock,
    Customers,
    History,
    Orders,
    /// The number of lines of each order. The tables `orders` and `order_line` draw it from two equal generators, so
    /// that they agree although they are filled independently.
    OrderSizes,
    OrderLines,
}

/// The keys of a row of a table that has the same number of rows for each district.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowPlace {
    pub warehouse: i64,
    pub district: i64,
    /// The row's number in the district, counted from 1.
    pub number: i64,
}

impl Population {
    /// Returns the population of `warehouses` warehouses, with the current time in its timestamps.
    pub fn new(warehouses: u32, seed: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64;
        Self { warehouses: warehouses.into(), seed, now: now - EPOCH_2000_S * 1_000_000 }
    }

    /// Returns the random generator of a group of values (`stream`) for a district. Pass district 0 for values that
    /// belong to a whole warehouse.
    pub fn random(&self, stream: RandomStream, warehouse: i64, district: i64) -> Random {
        let number = (stream as u64) << 48 | (warehouse as u64) << 8 | district as u64;
        Random::seeded(splitmix64_at(self.seed, number))
    }

    /// Returns the keys of all rows of a table with `of_district` rows for each district, in ascending order.
    pub fn places(&self, of_district: i64) -> impl Iterator<Item = RowPlace> + Send + use<> {
        (0..self.warehouses * DISTRICTS * of_district).map(move |row| RowPlace {
            warehouse: row / (DISTRICTS * of_district) + 1,
            district: row / of_district % DISTRICTS + 1,
            number: row % of_district + 1,
        })
    }

    /// Returns the number of order lines of the whole population.
    pub fn order_lines(&self) -> u64 {
        let lines = self.places(1).map(|place| {
            let mut sizes = self.random(RandomStream::OrderSizes, place.warehouse, place.district);
            (0..ORDERS).map(|_| order_size(&mut sizes) as u64).sum::<u64>()
        });
        lines.sum()
    }
}

/// Draws the number of lines of the next order.
pub fn order_size(sizes: &mut Random) -> i64 {
    sizes.range(FEWEST_LINES, MOST_LINES)
}
