//! The numbers of rows of the tables, and the dates that their rows contain.

use crate::suites::population::Population;

/// The number of rows of places, which is the same at any scale: five in each city, ten cities in a province, five
/// provinces in a country.
pub const PLACES: i64 = 5000;

/// The number of rows of the table coupons, which is the same at any scale.
pub const COUPONS: i64 = 500;

pub const DEPARTMENTS_OF_SHOP: [&str; 8] = ["books", "music", "films", "games", "sport", "garden", "kitchen", "travel"];

/// The number of categories of each department.
pub const CATEGORIES: i64 = 16;

/// The first day from which dates are drawn, 2016-01-01, in days since 2000.
pub const FIRST_DAY: i64 = 5844;

/// The number of days over which the dates of people, products, sales, visits and reviews are spread. A sale may be up
/// to two days later.
pub const DAYS: i64 = 2900;

pub fn people(population: &Population) -> i64 {
    population.at_scale(100_000)
}

pub fn products(population: &Population) -> i64 {
    population.at_scale(20_000)
}

pub fn sales(population: &Population) -> i64 {
    population.at_scale(2_000_000)
}

pub fn visits(population: &Population) -> i64 {
    population.at_scale(1_000_000)
}

pub fn reviews(population: &Population) -> i64 {
    population.at_scale(500_000)
}

/// Returns the date of row `number` of `count` rows in a table whose rows are in the order of time, in days since 2000.
pub fn day_in_order(number: i64, count: i64) -> i64 {
    FIRST_DAY + (number - 1) * DAYS / count
}
