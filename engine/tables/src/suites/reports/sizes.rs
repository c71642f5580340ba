//! The numbers of rows of the tables, and the dates of the purchases.

use crate::suites::population::Population;

/// The number of rows of the table nations.
pub const NATIONS_COUNT: i64 = 25;

/// The number of suppliers that offer each part.
pub const OFFERS_OF_PART: i64 = 4;

/// The greatest number of lines of a purchase.
pub const MOST_LINES: i64 = 7;

/// The day of the first purchases, 2018-01-01, in days since 2000.
pub const FIRST_DAY: i64 = 6575;

/// The number of days with purchases. The last one is 2024-08-02, so that all lines are received within 2024.
pub const DAYS: i64 = 2406;

/// The day 2024-03-31 in days since 2000, which the generated data treat as the present day. Lines that are shipped
/// later have the state open, and lines that are received later have the outcome open.
pub const TODAY: i64 = 8856;

pub fn suppliers(population: &Population) -> i64 {
    population.at_scale(10_000)
}

pub fn parts(population: &Population) -> i64 {
    population.at_scale(200_000)
}

pub fn buyers(population: &Population) -> i64 {
    population.at_scale(150_000)
}

pub fn purchases(population: &Population) -> i64 {
    population.at_scale(1_500_000)
}

pub fn clerks(population: &Population) -> i64 {
    population.at_scale(1_000)
}
