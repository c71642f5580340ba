//! The command `order-entry check`: checks whether the consistency conditions of the TPC-C specification hold in the
//! tables.

use super::options::ORDER_ENTRY;
use crate::frontend::common::connection::connect;
use crate::frontend::common::failure::Failure;
use ground::output::print_stdout;
use tables::order_entry::conditions::{CONDITIONS, Condition, Violation, begin};
use tables::order_entry::find;
use wire::params::Given;

/// The exit status if at least one condition does not hold.
const VIOLATED: u8 = 2;

/// The purpose of the connection that checks the tables, as error messages name it: `could not create connection for
/// checking`.
const PURPOSE: &str = "checking";

/// Checks all conditions and prints a line about each condition. Returns the exit status.
pub fn run(server: &Given) -> Result<u8, Failure> {
    let (target, mut session, _) = connect(server, "pgtrial order-entry", PURPOSE)?;
    find(&mut session, &target.params.dbname)?;
    begin(&mut session).map_err(Failure::error)?;
    let mut status = 0;
    for condition in &CONDITIONS {
        let found = condition.check(&mut session);
        let found = found
            .map_err(|error| Failure::error(format!("condition {} could not be checked: {error}", condition.number)))?;
        match found {
            None => print_stdout(format_args!("condition {}: holds ({})\n", condition.number, condition.text)),
            Some(violation) => {
                ORDER_ENTRY.error(sentence(condition, &violation));
                status = VIOLATED;
            }
        }
    }
    Ok(status)
}

/// Returns a sentence about a violated condition: the number of the condition, the first warehouse, district, order or
/// customer for which it does not hold, and the two values that differ.
fn sentence(condition: &Condition, violation: &Violation) -> String {
    let Violation { place, left, right, places } = violation;
    format!(
        "condition {} does not hold for {place}: {}, but {left} is not {right} (number of warehouses, \
         districts, orders or customers for which it does not hold: {places})",
        condition.number, condition.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_told_with_its_place_and_both_values() {
        let violation = Violation {
            place: "warehouse 3".to_owned(),
            left: "300000.00".to_owned(),
            right: "300010.00".to_owned(),
            places: "1".to_owned(),
        };
        assert_eq!(
            sentence(&CONDITIONS[0], &violation),
            "condition 1 does not hold for warehouse 3: W_YTD = sum(D_YTD), but 300000.00 is not 300010.00 \
             (number of warehouses, districts, orders or customers for which it does not hold: 1)"
        );
    }
}
