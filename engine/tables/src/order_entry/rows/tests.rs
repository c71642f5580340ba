//! Checks that the generated rows, decoded as the server decodes them, have the contents that the specification gives.
//! The tests in `tests/engine` count all rows on a server.

use std::collections::BTreeSet;

use super::*;
use crate::copy::read_back;
use crate::order_entry::population::Population;
use crate::row::RowSource;

const POPULATION: Population = Population { warehouses: 1, seed: 5, now: 0 };

/// Generates and decodes all rows of a table that has no NULLs, which the decoder does not support.
fn rows_of(table: fn(Population) -> RowSource) -> Vec<Vec<Vec<u8>>> {
    read_back(table(POPULATION)).1
}

fn integer(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

#[test]
fn customers_have_all_last_names_and_a_tenth_has_bad_credit() {
    let rows = rows_of(customers);
    assert_eq!(rows.len(), 30_000);
    let district: Vec<_> = rows.iter().filter(|row| integer(&row[1]) == 4).collect();
    assert_eq!(district.iter().map(|row| integer(&row[2])).collect::<Vec<_>>(), (1..=3000).collect::<Vec<_>>());
    assert_eq!((district[0][5].as_slice(), district[371][5].as_slice()), (&b"BARBARBAR"[..], &b"PRICALLYOUGHT"[..]));
    let first: BTreeSet<_> = district[..1000].iter().map(|row| &row[5]).collect();
    assert_eq!(first.len(), 1000);
    let bad = rows.iter().filter(|row| row[13] == b"BC").count() as f64;
    assert!((bad - 3000.0).abs() < 5.0 * (30_000.0f64 * 0.09).sqrt(), "{bad}");
    assert!(rows.iter().all(|row| (300..=500).contains(&row[20].len()) && row[11].len() == 16));
}

#[test]
fn stock_has_a_text_for_each_district() {
    let rows = rows_of(stock);
    assert_eq!(rows.len(), 100_000);
    assert!(rows.iter().all(|row| row[3..13].iter().all(|text| text.len() == 24)));
    let quantities: BTreeSet<_> = rows.iter().map(|row| integer(&row[2])).collect();
    assert_eq!(quantities, (10..=100).collect());
}

#[test]
fn the_last_900_orders_of_a_district_are_new() {
    let rows = rows_of(new_orders);
    let of = |district: i64| rows.iter().filter(move |row| integer(&row[1]) == district).map(|row| integer(&row[2]));
    assert!((1..=10).all(|district| of(district).eq(2101..=3000)));
}

#[test]
fn the_lines_are_as_many_as_the_orders_say() {
    let mut lines = 0;
    let mut next = order_lines(POPULATION);
    let mut out = Vec::new();
    while next(&mut out) {
        lines += 1;
        out.clear();
    }
    assert_eq!(lines, POPULATION.order_lines());
    // Each of the 30,000 orders has 5 to 15 lines, so the variance of the number of lines of an order is ten.
    assert!((lines as f64 - 300_000.0).abs() < 5.0 * (30_000.0f64 * 10.0).sqrt(), "{lines}");
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let first = |seed| {
        let mut out = Vec::new();
        items(Population { seed, ..POPULATION })(&mut out);
        out
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}
