//! Abbreviations of time zones as offsets, by the time zone database, so that a log over a change of the clock stays in order.

use std::cell::RefCell;
use std::collections::HashMap;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

thread_local! {
    static ZONES: RefCell<Zones> = RefCell::default();
}

/// Seconds east of UTC of an abbreviation such as `NZDT` on a clock that shows this time; `None` if no zone has it then.
///
/// Some abbreviations belong to several zones (`IST`: Israel, India, Ireland). Zones that have all those seen so far come first,
/// then the offset that most zones have.
pub fn offset_of(abbreviation: &str, wall: DateTime) -> Option<i64> {
    ZONES.with_borrow_mut(|zones| zones.offset_of(abbreviation, wall))
}

/// What is known of the zone of the logs.
#[derive(Default)]
struct Zones {
    /// Those that have all abbreviations so far; none before the first.
    possible: Vec<TimeZone>,
    offsets: HashMap<String, Option<i64>>,
}

impl Zones {
    fn offset_of(&mut self, abbreviation: &str, wall: DateTime) -> Option<i64> {
        if let Some(known) = self.offsets.get(abbreviation) {
            return *known;
        }
        let mut found = matching(std::mem::take(&mut self.possible), abbreviation, wall);
        if found.is_empty() {
            let all = jiff::tz::db().available().filter_map(|name| TimeZone::get(name.as_str()).ok()).collect();
            found = matching(all, abbreviation, wall);
        }
        let offset = commonest(&found);
        self.possible = found.into_iter().filter(|(_, its)| Some(*its) == offset).map(|(zone, _)| zone).collect();
        self.offsets.insert(abbreviation.to_owned(), offset);
        offset
    }
}

/// The zones that have an abbreviation on a clock that shows this time, with its offset there.
fn matching(zones: Vec<TimeZone>, abbreviation: &str, wall: DateTime) -> Vec<(TimeZone, i64)> {
    let offset_in = |zone: &TimeZone| {
        let (one, other) = match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset, offset),
            AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => (before, after),
        };
        [one, other]
            .into_iter()
            .find(|offset| has(zone, *offset, wall, abbreviation))
            .map(|offset| i64::from(offset.seconds()))
    };
    zones.into_iter().filter_map(|zone| offset_in(&zone).map(|offset| (zone, offset))).collect()
}

fn has(zone: &TimeZone, offset: Offset, wall: DateTime, abbreviation: &str) -> bool {
    offset.to_timestamp(wall).is_ok_and(|time| {
        let info = zone.to_offset_info(time);
        info.offset() == offset && info.abbreviation() == abbreviation
    })
}

/// The offset that most zones have; of several the smallest one.
fn commonest(zones: &[(TimeZone, i64)]) -> Option<i64> {
    let count = |offset: i64| zones.iter().filter(|(_, its)| *its == offset).count();
    zones.iter().map(|(_, offset)| *offset).max_by_key(|offset| (count(*offset), -offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn offsets(seen: &[(&str, DateTime)]) -> Vec<Option<i64>> {
        let mut zones = Zones::default();
        seen.iter().map(|(abbreviation, wall)| zones.offset_of(abbreviation, *wall)).collect()
    }

    const fn hours(number: i64) -> Option<i64> {
        Some(number * 3600)
    }

    #[test]
    fn both_sides_of_a_change_of_the_clock_are_known() {
        let at = |month, day, hour| date(2026, month, day).at(hour, 30, 0, 0);
        for (before, after, expected) in [
            (("NZDT", at(4, 5, 2)), ("NZST", at(4, 5, 2)), [hours(13), hours(12)]),
            (("CEST", at(10, 25, 2)), ("CET", at(10, 25, 2)), [hours(2), hours(1)]),
            (("EST", at(3, 8, 1)), ("EDT", at(3, 8, 3)), [hours(-5), hours(-4)]),
            (("IDT", at(10, 25, 1)), ("IST", at(10, 25, 1)), [hours(3), hours(2)]),
            (("GMT", at(3, 29, 0)), ("BST", at(3, 29, 2)), [hours(0), hours(1)]),
            (("AEDT", at(4, 5, 2)), ("AEST", at(4, 5, 2)), [hours(11), hours(10)]),
        ] {
            assert_eq!(offsets(&[before, after]), expected, "{before:?}");
        }
    }

    #[test]
    fn zones_without_changes_and_unknown_ones() {
        let wall = date(2026, 7, 1).at(12, 0, 0, 0);
        assert_eq!(
            offsets(&[("JST", wall), ("MSK", wall), ("UTC", wall), ("XYZ", wall)]),
            [hours(9), hours(3), hours(0), None]
        );
        assert_eq!(offsets(&[("CST", date(2026, 1, 1).at(0, 0, 0, 0)), ("CDT", wall)]), [hours(-6), hours(-5)]);
    }
}
