//! Generates the rows of each table as clause 4.3.3.1 of TPC-C specifies them.

mod customers;
mod orders;
mod warehouses;

pub use customers::{customers, history};
pub use orders::{new_orders, order_lines, orders};
pub use warehouses::{districts, items, stock, warehouses};

#[cfg(test)]
mod tests;
