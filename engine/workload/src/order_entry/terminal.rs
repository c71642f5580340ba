//! The terminal of a client. It belongs to a warehouse, and draws the inputs of the client's transactions.

use super::nurand::Constants;
use super::sizes::DISTRICTS;
use ground::random::Random;

/// The terminal of a client: its warehouse, its district, and the random generator from which it draws inputs.
pub struct Terminal {
    pub random: Random,
    pub constants: Constants,
    pub warehouses: i64,
    /// The home warehouse, at which all transactions of the terminal are entered.
    pub home: i64,
    /// The district whose stock the stock-level transactions of this terminal examine (clause 2.8.1.1).
    pub district: i64,
}

impl Terminal {
    /// Makes the terminal of client number `client` among the `clients` of the whole run. If there are fewer clients
    /// than warehouses, the home warehouses of the clients are evenly spread.
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

    /// Returns true with a probability of `percent` per cent.
    pub fn happens(&mut self, percent: i64) -> bool {
        self.random.range(1, 100) <= percent
    }

    /// Draws the number of a district; all districts of a warehouse are equally likely.
    pub fn any_district(&mut self) -> i64 {
        self.random.range(1, DISTRICTS)
    }

    /// Draws the number of a warehouse other than the home warehouse.
    pub fn other_warehouse(&mut self) -> i64 {
        let drawn = self.random.range(1, self.warehouses - 1);
        if drawn < self.home { drawn } else { drawn + 1 }
    }

    /// Draws a customer. In 60% of the cases the customer is identified by last name.
    pub fn customer(&mut self) -> Customer {
        if self.happens(60) {
            Customer::LastName(self.constants.last_name(&mut self.random))
        } else {
            Customer::Id(self.constants.customer(&mut self.random))
        }
    }
}

/// The way in which a transaction identifies a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Customer {
    Id(i64),
    /// By the last name. The field is the number of the name.
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
