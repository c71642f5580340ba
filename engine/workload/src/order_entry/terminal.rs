//! The terminal of a client: it has a home warehouse, and draws the inputs of its transactions.

use super::nurand::Constants;
use super::sizes::DISTRICTS;
use ground::random::Random;

/// A client's home and its generator.
pub struct Terminal {
    pub random: Random,
    pub constants: Constants,
    pub warehouses: i64,
    /// The warehouse of all its transactions.
    pub home: i64,
    /// The district whose stock levels it looks at (clause 2.8.1.1).
    pub district: i64,
}

impl Terminal {
    /// Makes the terminal of client number `client` of the `clients` of the whole run. If there are fewer clients than
    /// warehouses, their home warehouses are spread evenly.
    pub fn new(client: usize, clients: usize, warehouses: i64, constants: Constants, random: Random) -> Self {
        let number = client as i64;
        let spread = if (clients as i64) < warehouses { number * warehouses / clients as i64 } else { number };
        Self {
            random,
            constants,
            warehouses,
            home: spread % warehouses + 1,
            district: number / warehouses % DISTRICTS + 1,
        }
    }

    /// Returns true with a probability of `percent` percent.
    pub fn happens(&mut self, percent: i64) -> bool {
        self.random.range(1, 100) <= percent
    }

    /// Draws any district of a warehouse.
    pub fn any_district(&mut self) -> i64 {
        self.random.range(1, DISTRICTS)
    }

    /// Draws any warehouse except the home.
    pub fn other_warehouse(&mut self) -> i64 {
        let drawn = self.random.range(1, self.warehouses - 1);
        if drawn < self.home { drawn } else { drawn + 1 }
    }

    /// Draws a customer, who is named by last name in 60% of the cases.
    pub fn customer(&mut self) -> Customer {
        if self.happens(60) {
            Customer::LastName(self.constants.last_name(&mut self.random))
        } else {
            Customer::Id(self.constants.customer(&mut self.random))
        }
    }
}

/// The way in which a customer is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Customer {
    Id(i64),
    /// The customer is named by the number of the last name.
    LastName(i64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(clients: usize, warehouses: i64) -> Vec<(i64, i64)> {
        let constants = Constants::of_run(1, 1);
        let terminal = |client| Terminal::new(client, clients, warehouses, constants, Random::seeded(1));
        (0..clients).map(terminal).map(|terminal| (terminal.home, terminal.district)).collect()
    }

    #[test]
    fn homes_are_spread_over_all_warehouses_and_then_over_the_districts() {
        assert_eq!(homes(2, 10), [(1, 1), (6, 1)]);
        assert_eq!(homes(5, 2), [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]);
        let all = homes(20, 2);
        assert!((1..=2).all(|home| (1..=10).all(|district| all.contains(&(home, district)))));
    }

    #[test]
    fn another_warehouse_is_never_the_home() {
        let mut terminal = Terminal::new(2, 5, 5, Constants::of_run(1, 1), Random::seeded(1));
        let drawn: Vec<_> = (0..1000).map(|_| terminal.other_warehouse()).collect();
        assert_eq!(terminal.home, 3);
        assert!([1, 2, 4, 5].iter().all(|other| drawn.contains(other)) && !drawn.contains(&3));
    }
}
