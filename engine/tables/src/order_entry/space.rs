//! The disk space that the tables occupy, and the space that they would occupy after 60 days of the load (clause 4.2.3
//! of TPC-C).

use wire::session::Session;

use crate::error::LoadError;
use crate::session::query;

/// The disk space that the tables and their indexes occupy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Space {
    /// The size of all tables in bytes.
    pub bytes: f64,
    /// The size of the tables that grow during a load (`orders`, `order_line` and `history`), in bytes for each order.
    pub bytes_per_order: f64,
}

/// The minutes of a day in the specification, whose days have eight hours.
const MINUTES_PER_DAY: f64 = 8.0 * 60.0;
const DAYS: f64 = 60.0;

impl Space {
    /// Returns the size in bytes of the tables after 60 days of eight hours at the given number of new-order
    /// transactions a minute.
    pub fn after_60_days(&self, new_orders_per_minute: f64) -> f64 {
        self.bytes + DAYS * MINUTES_PER_DAY * new_orders_per_minute * self.bytes_per_order
    }
}

/// Asks the server for the space that the tables occupy. The number of orders is the planner's estimate, so that the
/// server does not have to read a table. Returns `None` if the server has no estimate.
pub fn space(session: &mut Session) -> Result<Option<Space>, LoadError> {
    const SQL: &str = "select sum(pg_catalog.pg_total_relation_size(c.oid)), \
        sum(pg_catalog.pg_total_relation_size(c.oid)) filter (where c.relname in ('orders', 'order_line', 'history')) \
          / nullif(sum(c.reltuples) filter (where c.relname = 'orders'), 0) \
        from pg_catalog.pg_class c where c.oid in (select pg_catalog.to_regclass(name)::oid from pg_catalog.unnest(\
          array['warehouse', 'district', 'customer', 'history', 'new_order', 'orders', 'order_line', 'item', 'stock']) as name)";
    let rows = query(session, SQL)?;
    let number = |index: usize| rows.first()?.get(index)?.as_ref()?.parse::<f64>().ok().filter(|number| *number > 0.0);
    Ok(number(0).zip(number(1)).map(|(bytes, bytes_per_order)| Space { bytes, bytes_per_order }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_days_are_of_eight_hours() {
        let space = Space { bytes: 1e9, bytes_per_order: 1000.0 };
        assert_eq!(space.after_60_days(10.0), 1e9 + 10.0 * 60.0 * 8.0 * 60.0 * 1000.0);
    }
}
