//! Generates the rows of places and people. The numbers in brackets after a field are the `column` arguments of the
//! random draws that make the field.

use super::sizes::{PLACES, day_in_order, people};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::{RowDraws, spread};
use crate::suites::population::{Population, numbered};

/// The number of the table `people` in its suite. With the seed, it determines the table's random values.
const PEOPLE: u64 = 2;

const PLANS: [&str; 4] = ["free", "basic", "plus", "pro"];

/// Returns the rows of the table places. The fields are: place_id, zip, city, province, country. Each of these values
/// determines the next one.
pub fn place_rows(_: Population) -> RowSource {
    numbered(PLACES, |id, out| {
        let city = (id - 1) / 5;
        RowBuffer::new(out, 5)
            .int(id)
            .formatted(format_args!("{}", 10_000 + id))
            .formatted(format_args!("city {city:04}"))
            .formatted(format_args!("province {:03}", city / 10))
            .formatted(format_args!("country {:02}", city / 50));
    })
}

/// Returns the rows of the table people. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: person_id, place_id (0, 1), birth_year (2), income (3), plan (4, 5), referrer_id (6 to 8),
/// joined_on.
///
/// Most people live in a few places. Older people earn more, and people who earn more have a better plan.
pub fn people_rows(population: Population) -> RowSource {
    let (table, count) = (population.draws(PEOPLE), people(&population));
    numbered(count, move |id, out| {
        let draws = table.row(id);
        let birth_year = draws.between(2, 1940, 2004);
        let income = ((2004 - birth_year) / 7 + draws.between(3, -1, 3)).clamp(1, 10);
        let row = RowBuffer::new(out, 7)
            .int(id)
            .int(spread(draws.zipf(0, PLACES), PLACES))
            .small(birth_year)
            .small(income)
            .text(plan(draws, income).as_bytes());
        let row = if draws.is_one_of(6, 60) { row.null() } else { row.int(spread(draws.zipf(7, count), count)) };
        row.date(day_in_order(id, count));
    })
}

/// Returns the plan of a person. Nine of ten people have the plan that belongs to their income, the others a random
/// one.
fn plan(draws: RowDraws, income: i64) -> &'static str {
    if !draws.is_one_of(4, 90) {
        return draws.one(5, &PLANS);
    }
    PLANS[match income {
        ..=4 => 0,
        5..=7 => 1,
        8..=9 => 2,
        _ => 3,
    }]
}
