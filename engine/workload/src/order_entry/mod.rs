//! Order entry: the five transactions of the TPC-C specification, revision 5.11, as a native program. Results of this
//! load are not TPC-C results, because TPC-C requires more than a load.
//!
//! The sizes, names and random numbers in this module are also used to fill the tables (crate `tables`).

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
