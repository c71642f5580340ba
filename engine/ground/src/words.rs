//! Phrases of messages and reports.

use std::fmt::Display;

/// Returns a number with the noun that it counts, whose plural ends in s: `1 client`, `8 clients`.
pub fn plural(count: impl Display + PartialEq + From<u8>, noun: &str) -> String {
    let end = if count == 1.into() { "" } else { "s" };
    format!("{count} {noun}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([plural(0u64, "row"), plural(1u64, "row"), plural(2u64, "row")], ["0 rows", "1 row", "2 rows"]);
    }
}
