//! Generates the rows of purchases and their lines. The numbers in brackets after a field are the `column` arguments of
//! the random draws that make the field.

use super::catalog::Catalog;
use super::sizes::{DAYS, FIRST_DAY, MOST_LINES, OFFERS_OF_PART, TODAY, buyers, clerks, purchases};
use super::words::{CARRIERS, HANDLINGS, URGENCIES, write_remark};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::{RowDraws, TableDraws};
use crate::suites::population::{Population, numbered};

/// The numbers of the tables of this file in their suite. With the seed, the number of a table determines its random
/// values.
const PURCHASES: u64 = 5;
const LINES: u64 = 6;

/// The number of row numbers that are reserved for the lines of each purchase when random values of a line are drawn:
/// line n of purchase p draws the values of row p * 8 + n.
const PLACES: i64 = 8;

/// The random values and the catalog of parts, from which the rows of the tables purchases and lines are made.
#[derive(Debug, Clone, Copy)]
struct Trade {
    catalog: Catalog,
    purchases: TableDraws,
    lines: TableDraws,
}

/// A line of a purchase.
struct Line {
    draws: RowDraws,
    part: i64,
    quantity: i64,
    /// The price of the line in cents: the price of the part, times the quantity.
    price: i64,
    /// The discount of the line in per cent.
    discount: i64,
    /// The tax on the line in per cent.
    tax: i64,
    /// The day on which the line is shipped, in days since 2000.
    shipped: i64,
}

impl Line {
    fn is_open(&self) -> bool {
        self.shipped > TODAY
    }

    /// Returns the charge in cents, rounded: the price minus the discount, plus the tax.
    fn charge(&self) -> i64 {
        (self.price * (100 - self.discount) * (100 + self.tax) + 5000) / 10_000
    }
}

impl Trade {
    fn new(population: &Population) -> Self {
        let (purchases, lines) = (population.draws(PURCHASES), population.draws(LINES));
        Self { catalog: Catalog::new(population), purchases, lines }
    }

    /// Returns the day of a purchase in days since 2000. It is made from the random number of the purchase whose
    /// `column` argument is 1.
    fn day(self, purchase: i64) -> i64 {
        FIRST_DAY + self.purchases.row(purchase).below(1, DAYS)
    }

    /// Returns the number of lines of a purchase. It is made from the random number of the purchase whose `column`
    /// argument is 2.
    fn size(self, purchase: i64) -> i64 {
        self.purchases.row(purchase).between(2, 1, MOST_LINES)
    }

    /// Returns line number `line` of a purchase, counted from 1. In brackets are the `column` arguments of the random
    /// draws that make a value. The values are: part (0), quantity (1), discount (2), tax (3), days until it is shipped
    /// (4).
    fn line(self, purchase: i64, day: i64, line: i64) -> Line {
        let draws = self.lines.row(purchase * PLACES + line);
        let part = draws.between(0, 1, self.catalog.count);
        let quantity = draws.between(1, 1, 50);
        Line {
            draws,
            part,
            quantity,
            price: quantity * self.catalog.price(part),
            discount: draws.below(2, 11),
            tax: draws.below(3, 9),
            shipped: day + draws.between(4, 1, 120),
        }
    }
}

/// Returns the number of lines of all purchases.
pub fn lines(population: &Population) -> i64 {
    let trade = Trade::new(population);
    (1..=purchases(population)).map(|purchase| trade.size(purchase)).sum()
}

/// Returns the rows of the table purchases. In brackets are the `column` arguments of the random draws that make a
/// field. The fields are: purchase_id, buyer_id (0), state, total, purchased_on (1), urgency (3), clerk (4), remark (5,
/// 6).
///
/// The buyers whose numbers are multiples of 4, a quarter of all, have no purchase.
pub fn purchase_rows(population: Population) -> RowSource {
    let trade = Trade::new(&population);
    let (active, clerks) = (buyers(&population) / 4 * 3, clerks(&population));
    numbered(purchases(&population), move |id, out| {
        let draws = trade.purchases.row(id);
        let (day, size) = (trade.day(id), trade.size(id));
        let (mut total, mut open) = (0, 0);
        for line in 1..=size {
            let line = trade.line(id, day, line);
            total += line.charge();
            open += i64::from(line.is_open());
        }
        let state: &[u8] = match open {
            0 => b"closed",
            _ if open == size => b"open",
            _ => b"partial",
        };
        let buyer = draws.below(0, active);
        RowBuffer::new(out, 8)
            .int(id)
            .int(buyer / 3 * 4 + buyer % 3 + 1)
            .text(state)
            .money(total)
            .date(day)
            .text(draws.one(3, &URGENCIES).as_bytes())
            .int(draws.between(4, 1, clerks))
            .written(|out| write_remark([draws.bits(6), 0], draws.between(5, 4, 10), out));
    })
}

/// Returns the rows of the table lines. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: purchase_id, line, part_id (0), supplier_id (5), quantity (1), price, discount (2), tax (3), outcome
/// (8), state, shipped_on (4), promised_on (6), received_on (7), carrier (9), handling (10), remark (11, 12).
pub fn line_rows(population: Population) -> RowSource {
    let trade = Trade::new(&population);
    let mut ids = 1..=purchases(&population);
    let (mut id, mut line, mut size) = (0, 0, 0);
    Box::new(move |out| {
        if line == size {
            let Some(next) = ids.next() else { return false };
            (id, line, size) = (next, 0, trade.size(next));
        }
        line += 1;
        let day = trade.day(id);
        let row = trade.line(id, day, line);
        let draws = row.draws;
        let received = row.shipped + draws.between(7, 1, 30);
        let outcome: &[u8] = match draws.below(8, 4) {
            _ if received > TODAY => b"open",
            0 => b"returned",
            _ => b"kept",
        };
        RowBuffer::new(out, 16)
            .int(id)
            .small(line)
            .int(row.part)
            .int(trade.catalog.supplier(row.part, draws.below(5, OFFERS_OF_PART)))
            .small(row.quantity)
            .money(row.price)
            .money(row.discount)
            .money(row.tax)
            .text(outcome)
            .text(if row.is_open() { b"open" } else { b"shipped" })
            .date(row.shipped)
            .date(day + draws.between(6, 30, 90))
            .date(received)
            .text(draws.one(9, &CARRIERS).as_bytes())
            .text(draws.one(10, &HANDLINGS).as_bytes())
            .written(|out| write_remark([draws.bits(12), 0], draws.between(11, 1, 4), out));
        true
    })
}
