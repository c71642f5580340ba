//! The numbers of rows of the tables (clause 1.2.1 of TPC-C, revision 5.11).

pub const ITEMS: i64 = 100_000;
/// The number of districts of a warehouse. A warehouse also has a row of `stock` for each item.
pub const DISTRICTS: i64 = 10;
/// The number of customers of a district.
pub const CUSTOMERS: i64 = 3000;
/// The number of orders of a district in the initial population: one for each customer.
pub const ORDERS: i64 = CUSTOMERS;
/// The number of the first order of a district that is not delivered. This order and all later ones have a row in
/// `new_order`.
pub const FIRST_NEW_ORDER: i64 = 2101;
/// The smallest number of lines of an order.
pub const FEWEST_LINES: i64 = 5;

/// The greatest number of lines of an order.
pub const MOST_LINES: i64 = 15;

/// The greatest number of warehouses that a load supports.
pub const MOST_WAREHOUSES: u32 = 10_000;
