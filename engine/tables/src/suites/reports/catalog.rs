//! Generates the rows of parts and of the suppliers' offers. The numbers in brackets after a field are the `column`
//! arguments of the random draws that make the field.

use super::sizes::{OFFERS_OF_PART, parts, suppliers};
use super::words::{CLASSES, DEPARTMENTS, FINISHES, MATERIALS, OBJECTS, PACKING_FORMS, PACKING_SIZES, write_remark};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::{RowDraws, TableDraws};
use crate::suites::population::{Population, numbered};

/// The numbers of the tables of this file in their suite. With the seed, the number of a table determines its random
/// values.
const PARTS: u64 = 2;
const OFFERS: u64 = 3;

/// The prices and suppliers of parts, which the rows of purchases contain too.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    parts: TableDraws,
    pub count: i64,
    suppliers: i64,
}

impl Catalog {
    pub fn new(population: &Population) -> Self {
        Self { parts: population.draws(PARTS), count: parts(population), suppliers: suppliers(population) }
    }

    fn part(self, part: i64) -> RowDraws {
        self.parts.row(part)
    }

    /// Returns the price of a part in cents, from 100 to 200,000. It is made from the random number of the part whose
    /// `column` argument is 8.
    pub fn price(self, part: i64) -> i64 {
        self.part(part).between(8, 100, 200_000)
    }

    /// Returns the supplier of a part's offer number `offer`, counted from 0. Two random numbers of the part determine
    /// its suppliers: the number with the `column` argument 9 the first supplier, and that with 10 the distance from
    /// each supplier to the next.
    pub fn supplier(self, part: i64, offer: i64) -> i64 {
        let draws = self.part(part);
        let step = 1 + draws.below(10, (self.suppliers - 1) / (OFFERS_OF_PART - 1));
        (draws.below(9, self.suppliers) + offer * step) % self.suppliers + 1
    }
}

/// Returns the rows of the table parts. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: part_id, part (0 to 2), maker (3), brand (4), kind (5, 6), size (7), packing (11, 12), price (8),
/// remark (13, 14).
pub fn part_rows(population: Population) -> RowSource {
    let catalog = Catalog::new(&population);
    numbered(catalog.count, move |id, out| {
        let draws = catalog.part(id);
        let maker = draws.below(3, 6);
        let letter = char::from(b'A' + maker as u8);
        RowBuffer::new(out, 9)
            .int(id)
            .words(&[draws.one(0, &FINISHES), draws.one(1, &MATERIALS), draws.one(2, &OBJECTS)], b' ')
            .formatted(format_args!("maker {letter}"))
            .formatted(format_args!("{letter}{}", draws.between(4, 1, 5)))
            .words(&[draws.one(5, &DEPARTMENTS), draws.one(6, &CLASSES)], b'/')
            .small(draws.between(7, 1, 60))
            .words(&[draws.one(11, &PACKING_SIZES), draws.one(12, &PACKING_FORMS)], b' ')
            .money(catalog.price(id))
            .written(|out| write_remark([draws.bits(14), 0], draws.between(13, 2, 5), out));
    })
}

/// Returns the rows of the table offers. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: part_id, supplier_id, available (0), cost (1), remark (2 to 4). The cost is 40 to 95% of the price.
pub fn offer_rows(population: Population) -> RowSource {
    let (catalog, table) = (Catalog::new(&population), population.draws(OFFERS));
    numbered(catalog.count * OFFERS_OF_PART, move |number, out| {
        let (part, offer) = ((number - 1) / OFFERS_OF_PART + 1, (number - 1) % OFFERS_OF_PART);
        let draws = table.row(number);
        RowBuffer::new(out, 5)
            .int(part)
            .int(catalog.supplier(part, offer))
            .int(draws.between(0, 1, 9999))
            .money(catalog.price(part) * draws.between(1, 40, 95) / 100)
            .written(|out| write_remark([draws.bits(3), draws.bits(4)], draws.between(2, 12, 20), out));
    })
}
