//! Generates the rows of regions, nations, suppliers and buyers. The numbers in brackets after a field are the `column`
//! arguments of the random draws that make the field.

use super::sizes::{NATIONS_COUNT, buyers, suppliers};
use super::words::{FIRST_NAMES, LAST_NAMES, NATIONS, REGIONS, SEGMENTS, STREETS, WAYS, write_remark};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::RowDraws;
use crate::suites::population::{Population, numbered};

/// The numbers of the tables of this file in their suite. With the seed, the number of a table determines its random
/// values.
const SUPPLIERS: u64 = 1;
const BUYERS: u64 = 4;

/// Returns the rows of the table regions. The fields are: region_id, region.
pub fn region_rows(_: Population) -> RowSource {
    numbered(REGIONS.len() as i64, |id, out| {
        RowBuffer::new(out, 2).int(id).text(REGIONS[id as usize - 1].as_bytes());
    })
}

/// Returns the rows of the table nations. The fields are: nation_id, region_id, nation.
pub fn nation_rows(_: Population) -> RowSource {
    numbered(NATIONS_COUNT, |id, out| {
        let region = (id - 1) % REGIONS.len() as i64 + 1;
        RowBuffer::new(out, 3).int(id).int(region).text(NATIONS[id as usize - 1].as_bytes());
    })
}

/// Returns the rows of the table suppliers. In brackets are the `column` arguments of the random draws that make a
/// field. The fields are: supplier_id, supplier (0, 1), nation_id (2), address (3 to 5), phone (6), balance (7), remark
/// (8, 9).
pub fn supplier_rows(population: Population) -> RowSource {
    let table = population.draws(SUPPLIERS);
    numbered(suppliers(&population), move |id, out| {
        let draws = table.row(id);
        let (one, other) = (draws.one(0, &LAST_NAMES), draws.one(1, &LAST_NAMES));
        let row = RowBuffer::new(out, 7).int(id).formatted(format_args!("{one} & {other} no. {id}"));
        party(row, draws).written(|out| write_remark([draws.bits(9), 0], draws.between(8, 4, 10), out));
    })
}

/// Returns the rows of the table buyers. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: buyer_id, buyer (0, 1), nation_id (2), address (3 to 5), phone (6), balance (7), segment (10),
/// remark (8, 9).
pub fn buyer_rows(population: Population) -> RowSource {
    let table = population.draws(BUYERS);
    numbered(buyers(&population), move |id, out| {
        let draws = table.row(id);
        let (first, last) = (draws.one(0, &FIRST_NAMES), draws.one(1, &LAST_NAMES));
        let row = RowBuffer::new(out, 8).int(id).formatted(format_args!("{first} {last}"));
        party(row, draws)
            .text(draws.one(10, &SEGMENTS).as_bytes())
            .written(|out| write_remark([draws.bits(9), 0], draws.between(8, 4, 10), out));
    })
}

/// Appends the fields that the tables suppliers and buyers have in common: nation_id, address, phone and balance. The
/// phone number begins with the code of the nation. The balance is from -1000.00 to 9999.99.
fn party(row: RowBuffer<'_>, draws: RowDraws) -> RowBuffer<'_> {
    let nation = draws.between(2, 1, NATIONS_COUNT);
    let (house, street, way) = (draws.between(3, 1, 999), draws.one(4, &STREETS), draws.one(5, &WAYS));
    let phone = draws.below(6, 10_000_000);
    row.int(nation)
        .formatted(format_args!("{house} {street} {way}"))
        .formatted(format_args!("+{} {:03} {:04}", 30 + nation, phone / 10_000, phone % 10_000))
        .money(draws.between(7, -100_000, 999_999))
}
