//! Order entry: the five transactions of the TPC-C specification, revision 5.11, as a native program. Its results are
//! not TPC-C results, which need more than a load.
//!
//! Sizes, names and random numbers are also what the tables are filled with.

mod client;
mod load;
mod mix;
pub mod names;
pub mod nurand;
pub mod sizes;
mod statements;
mod terminal;
#[cfg(test)]
mod tests;
mod transactions;
mod values;

pub use load::{OrderEntry, TransactionStyle};
pub use mix::{MOST_NEW_ORDERS_PER_WAREHOUSE, TransactionKind, TransactionMix};
