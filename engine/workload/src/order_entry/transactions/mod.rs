//! The five transactions (clauses 2.4 to 2.8 of TPC-C).

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;
mod transaction;

pub use transaction::{ClientTransaction, StatementRequest};

/// Returns the five transactions for a client, in the order of the weights of a `TransactionMix`.
pub fn all() -> [Box<dyn ClientTransaction>; 5] {
    [
        Box::<new_order::NewOrder>::default(),
        Box::<payment::Payment>::default(),
        Box::<order_status::OrderStatus>::default(),
        Box::<delivery::Delivery>::default(),
        Box::<stock_level::StockLevel>::default(),
    ]
}
