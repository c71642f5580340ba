//! How many rows there are, and their days.

use crate::suites::population::Population;

/// Rows of places, at any scale: five in each city, ten cities in a province, five provinces in a country.
pub const PLACES: i64 = 5000;

/// Rows of coupons, at any scale.
pub const COUPONS: i64 = 500;

pub const DEPARTMENTS_OF_SHOP: [&str; 8] = ["books", "music", "films", "games", "sport", "garden", "kitchen", "travel"];

/// Categories of each department.
pub const CATEGORIES: i64 = 16;

/// 2016-01-01, days since 2000.
pub const FIRST_DAY: i64 = 5844;

/// Days with sales, visits and reviews.
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

/// The day of a row of a table that is filled in the order of time, days since 2000.
pub fn day_in_order(number: i64, count: i64) -> i64 {
    FIRST_DAY + (number - 1) * DAYS / count
}
