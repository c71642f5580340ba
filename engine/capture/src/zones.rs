//! Converts abbreviations of time zones to offsets with the time zone database, so that times stay in order in a log
//! that covers the beginning or end of daylight saving time.

use std::collections::HashMap;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::error::{UnknownZone, Unplaced};
use crate::log::Record;
use crate::time::{Abbreviation, Timestamp, iso, signed_offset};

/// The knowledge about the time zone of the logs.
///
/// Several time zones may have the abbreviations of a log. If the offsets in these zones differ from each other by a
/// constant, the intervals between the log's times are still known, and captures need no more than that.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    /// The zone that the user has named.
    given: Option<TimeZone>,
    /// True if the times are compared with times from another source, such as the user. Then the intervals between them
    /// are not enough: the offset itself must be known.
    exact: bool,
    /// The zones that have all abbreviations seen so far; empty before the first abbreviation.
    possible: Vec<Candidate>,
    /// The offset of each abbreviation seen so far, in seconds east of UTC.
    offsets: HashMap<Abbreviation, i64>,
    /// The offset that was assumed for the first abbreviation.
    taken: i64,
    /// True if some times had no abbreviation of a zone, such as times with an offset. They can be compared with the
    /// others only if the offset is certain.
    others: bool,
}

/// A zone that may be the zone of the logs.
#[derive(Debug, Clone)]
struct Candidate {
    zone: TimeZone,
    /// The zone's offset at the log's first abbreviation, in seconds east of UTC.
    first: i64,
    /// The zone's offset at the abbreviation that is being looked up, in seconds east of UTC.
    offset: i64,
}

impl Zones {
    /// Returns what is known about logs in the zone `name`: a name of the time zone database, or an offset such as
    /// `+05:30`.
    pub fn of(name: &str) -> Result<Self, UnknownZone> {
        let offset = || signed_offset(&name.replace(':', "")).filter(|_| name.starts_with(['+', '-']));
        let fixed = || Offset::from_seconds(offset()?.try_into().ok()?).ok().map(TimeZone::fixed);
        let zone = TimeZone::get(name).ok().or_else(fixed);
        let given = zone.ok_or_else(|| UnknownZone(name.to_owned()))?;
        Ok(Self { given: Some(given), ..Self::default() })
    }

    /// Returns the same knowledge about the zone, marked for logs whose times are compared with times from another
    /// source.
    #[must_use]
    pub fn exact(self) -> Self {
        Self { exact: true, ..self }
    }

    /// Converts the times of a record to UTC.
    pub fn place(&mut self, record: &mut Record) -> Result<(), Unplaced> {
        let Record { time, session_start, session_id, .. } = record;
        if let Some(start) = session_start {
            // A session identifier begins with the session's start in seconds since 1970, which proves the offset.
            let proven = session_id.split_once('.').and_then(|(start, _)| i64::from_str_radix(start, 16).ok());
            self.place_time(start, proven.map(|proven| (start.wall / 1_000_000) as i64 - proven))?;
        }
        self.place_time(time, None)
    }

    /// Converts to UTC a time that does not belong to a record, such as a time that the user gave.
    pub fn place_alone(&mut self, time: &mut Timestamp) -> Result<(), Unplaced> {
        self.place_time(time, None)
    }

    fn place_time(&mut self, time: &mut Timestamp, proven: Option<i64>) -> Result<(), Unplaced> {
        let Some(abbreviation) = time.zone else {
            self.others = true;
            return if self.is_certain() { Ok(()) } else { Err(self.beside()) };
        };
        let offset = match self.offsets.get(&abbreviation) {
            Some(known) => *known,
            None => self.find(&abbreviation, *time, proven)?,
        };
        time.place(offset);
        Ok(())
    }

    /// True if all possible zones have the offset that was assumed.
    fn is_certain(&self) -> bool {
        self.possible.iter().all(|candidate| candidate.first == self.taken)
    }

    /// Returns a description of the possible zones if they have different offsets; otherwise `None`.
    pub fn several(&self) -> Option<String> {
        let zones = || candidates(self.possible.iter().map(|known| (&known.zone, known.first)));
        (!self.is_certain()).then(zones)
    }

    /// Returns the error for a time without an abbreviation, such as a time with an offset, after times with
    /// abbreviations of uncertain offsets. The two cannot be compared.
    fn beside(&self) -> Unplaced {
        Unplaced::OtherNotation(self.several().unwrap_or_default())
    }

    fn find(&mut self, abbreviation: &Abbreviation, time: Timestamp, proven: Option<i64>) -> Result<i64, Unplaced> {
        let (name, wall) = (abbreviation.name(), clock(time)?);
        let before = (!self.offsets.is_empty()).then_some(self.taken);
        let mut found = match &self.given {
            Some(zone) => matching([(zone, before)], name, wall),
            None => matching(self.possible.iter().map(|known| (&known.zone, Some(known.first))), name, wall),
        };
        if found.is_empty() && self.given.is_none() {
            if !self.is_certain() {
                return Err(self.beside());
            }
            found = matching(all().iter().map(|zone| (zone, before)), name, wall);
        }
        if found.iter().any(|candidate| Some(candidate.offset) == proven) {
            found.retain(|candidate| Some(candidate.offset) == proven);
        }
        let offset = match (&self.given, found.first()) {
            (Some(zone), None) => {
                return Err(Unplaced::NotInZone { name: name.to_owned(), zone: name_of(zone).to_owned() });
            }
            (None, None) => match proven {
                Some(offset) => offset,
                None => return Err(Unplaced::InNoZone(name.to_owned())),
            },
            (_, Some(one)) => self.offset_of(one, &found).ok_or_else(|| {
                let zones = candidates(found.iter().map(|one| (&one.zone, one.offset)));
                Unplaced::Ambiguous { name: name.to_owned(), zones }
            })?,
        };
        self.possible = found;
        self.offsets.insert(*abbreviation, offset);
        Ok(offset)
    }

    /// Returns the offset that gives a time the right distance from earlier times of the log; `None` if the possible
    /// zones disagree about that distance.
    fn offset_of(&mut self, one: &Candidate, found: &[Candidate]) -> Option<i64> {
        let is_one = found.iter().all(|other| (other.first, other.offset) == (one.first, one.offset));
        if (self.exact || self.others) && !is_one {
            return None;
        }
        if self.offsets.is_empty() {
            self.taken = one.first;
        }
        let from_first = |candidate: &Candidate| candidate.offset - candidate.first;
        let is_same = found.iter().all(|other| from_first(other) == from_first(one));
        is_same.then(|| self.taken + from_first(one))
    }
}

fn all() -> Vec<TimeZone> {
    jiff::tz::db().available().filter_map(|name| TimeZone::get(name.as_str()).ok()).collect()
}

/// Returns the date and time that a log shows, without its zone.
fn clock(time: Timestamp) -> Result<DateTime, Unplaced> {
    let text = iso(time.wall);
    text.trim_end_matches('Z').parse().map_err(|_| Unplaced::NoTime(text))
}

/// Returns the zones in which clocks showed this time with this abbreviation, with their offsets at that time. Each
/// element of `zones` has a zone and the zone's offset at the log's first abbreviation. That offset is `None` if the
/// present abbreviation is the first one.
fn matching<'a>(
    zones: impl IntoIterator<Item = (&'a TimeZone, Option<i64>)>,
    abbreviation: &str,
    wall: DateTime,
) -> Vec<Candidate> {
    let offset_in = |zone: &TimeZone| {
        if let Ok(fixed) = zone.to_fixed_offset() {
            let is_named = zone.iana_name().is_some();
            return (!is_named || has(zone, fixed, wall, abbreviation)).then(|| i64::from(fixed.seconds()));
        }
        let (one, other) = match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset, offset),
            AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => (before, after),
        };
        [one, other]
            .into_iter()
            .find(|offset| has(zone, *offset, wall, abbreviation))
            .map(|offset| i64::from(offset.seconds()))
    };
    let candidate = |(zone, first): (&TimeZone, Option<i64>)| {
        let offset = offset_in(zone)?;
        Some(Candidate { zone: zone.clone(), first: first.unwrap_or(offset), offset })
    };
    zones.into_iter().filter_map(candidate).collect()
}

fn has(zone: &TimeZone, offset: Offset, wall: DateTime, abbreviation: &str) -> bool {
    offset.to_timestamp(wall).is_ok_and(|time| {
        let info = zone.to_offset_info(time);
        info.offset() == offset && info.abbreviation() == abbreviation
    })
}

/// The zones that serve as examples of an offset in messages. If none of them has the offset, the example is the first
/// possible zone by name.
const WELL_KNOWN: [&str; 10] = [
    "America/Chicago",
    "America/Denver",
    "America/Halifax",
    "America/Havana",
    "America/Los_Angeles",
    "America/New_York",
    "Asia/Jerusalem",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Europe/London",
];

/// Returns a list of offsets with an example of a zone for each: `+01 in Europe/Dublin, +02 in Asia/Jerusalem or +05:30
/// in Asia/Kolkata`.
fn candidates<'a>(zones: impl Iterator<Item = (&'a TimeZone, i64)>) -> String {
    let zones: Vec<_> = zones.collect();
    let mut offsets: Vec<i64> = zones.iter().map(|(_, offset)| *offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let name = |offset: &i64| {
        let names = || zones.iter().filter(|(_, its)| its == offset).map(|(zone, _)| name_of(zone));
        let known = names()
            .find(|name| WELL_KNOWN.contains(name))
            .or_else(|| names().min_by_key(|name| (!name.contains('/'), *name)));
        format!("{} in {}", written(*offset), known.unwrap_or_default())
    };
    let mut named: Vec<String> = offsets.iter().map(name).collect();
    let last = named.pop().unwrap_or_default();
    format!("{} or {last}", named.join(", "))
}

fn name_of(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("that offset")
}

/// Formats an offset as PostgreSQL does: `+01`, `-03:30`.
fn written(offset: i64) -> String {
    let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
    let minutes = if minutes == 0 { String::new() } else { format!(":{minutes:02}") };
    format!("{}{hours:02}{minutes}", if offset < 0 { '-' } else { '+' })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::take(text).unwrap().0
    }

    /// Returns for each time the offset in hours that it gets, or the reason for which it gets none.
    fn offsets(zones: &mut Zones, times: &[&str]) -> Vec<Result<f64, String>> {
        let placed = times.iter().map(|text| {
            let mut time = time(text);
            zones.place_alone(&mut time).map(|()| (time.wall as f64 - time.utc as f64) / 3.6e9)
        });
        placed.map(|placed| placed.map_err(|why| why.to_string())).collect()
    }

    #[test]
    fn both_sides_of_a_change_of_the_clock_are_known() {
        for (zone, times, expected) in [
            (None, ["2026-04-05 02:30:00 NZDT", "2026-04-05 02:30:00 NZST"], [13.0, 12.0]),
            (None, ["2026-10-25 02:30:00 CEST", "2026-10-25 02:30:00 CET"], [2.0, 1.0]),
            (None, ["2026-03-08 01:30:00 EST", "2026-03-08 03:30:00 EDT"], [-5.0, -4.0]),
            (None, ["2026-10-25 01:30:00 IDT", "2026-10-25 01:30:00 IST"], [3.0, 2.0]),
            (None, ["2026-03-29 00:30:00 GMT", "2026-03-29 02:30:00 BST"], [0.0, 1.0]),
            (None, ["2026-04-05 02:30:00 AEDT", "2026-04-05 02:30:00 AEST"], [11.0, 10.0]),
            (Some("America/Chicago"), ["2026-11-01 01:30:00 CDT", "2026-11-01 01:30:00 CST"], [-5.0, -6.0]),
        ] {
            let mut zones = zone.map_or(Ok(Zones::default()), Zones::of).unwrap();
            assert_eq!(offsets(&mut zones, &times), expected.map(Ok), "{times:?}");
        }
    }

    #[test]
    fn an_abbreviation_of_several_zones_is_refused_with_them() {
        for (text, expected) in [
            ("2026-07-01 12:00:00 IST", "IST, which is +01 in Europe/Dublin or +05:30 in Asia/Kolkata"),
            ("2026-01-01 12:00:00 IST", "IST, which is +02 in Asia/Jerusalem or +05:30 in Asia/Kolkata"),
            (
                "2026-01-01 12:00:00 CST",
                "CST, which is -06 in America/Chicago, -05 in America/Havana or +08 in Asia/Shanghai",
            ),
            ("2026-01-01 12:00:00 BST", "BST, which no time zone has on that day"),
            ("2026-01-01 12:00:00 XYZ", "XYZ, which no time zone has on that day"),
        ] {
            assert_eq!(offsets(&mut Zones::default().exact(), &[text]), [Err(expected.to_owned())]);
        }
        let all = [
            "2026-07-01 12:00:00 JST",
            "2026-07-01 12:00:00 MSK",
            "2026-07-01 12:00:00 UTC",
            "2026-07-01 12:00:00 GMT",
        ];
        for (text, hours) in all.iter().zip([9.0, 3.0, 0.0, 0.0]) {
            assert_eq!(offsets(&mut Zones::default(), &[text]), [Ok(hours)], "{text}");
        }
    }

    #[test]
    fn distances_are_known_where_all_zones_of_an_abbreviation_have_the_same() {
        for (times, hours) in [
            (["2026-03-08 01:59:59 PST", "2026-03-08 03:00:00 PDT"], 1.0),
            (["2026-03-08 01:59:59 CST", "2026-03-08 03:00:00 CDT"], 1.0),
            (["2026-11-01 01:59:59 CDT", "2026-11-01 01:00:00 CST"], -1.0),
            (["2026-03-27 01:59:59 IST", "2026-03-27 03:00:00 IDT"], 1.0),
            (["2026-07-01 12:00:00 CST", "2026-07-02 12:00:00 CST"], 0.0),
        ] {
            let placed = offsets(&mut Zones::default(), &times);
            let [Ok(first), Ok(second)] = placed[..] else { panic!("{times:?}: {placed:?}") };
            assert_eq!(second - first, hours, "{times:?}");
        }
    }

    #[test]
    fn times_of_other_notations_need_a_zone_that_is_certain() {
        let several = "-06 in America/Chicago, -05 in America/Havana or +08 in Asia/Shanghai";
        let (cst, utc, cet) = ("2026-01-01 12:00:00 CST", "2026-01-01 12:00:00 UTC", "2026-01-01 12:00:00 CET");
        let beside = Err(format!("another notation than earlier times, whose zone may be {several}"));
        for other in [utc, cet] {
            assert_eq!(offsets(&mut Zones::default(), &[cst, other])[1], beside, "{other}");
            assert_eq!(offsets(&mut Zones::default(), &[other, cst])[1], Err(format!("CST, which is {several}")));
        }
        let mut chicago = Zones::of("America/Chicago").unwrap();
        assert_eq!(offsets(&mut chicago, &[utc, cst, "2026-07-01 12:00:00 CDT"]), [Ok(0.0), Ok(-6.0), Ok(-5.0)]);
    }

    #[test]
    fn the_zone_that_the_user_names_is_believed() {
        for (zone, text, hours) in [
            ("Asia/Kolkata", "2026-07-01 12:00:00 IST", 5.5),
            ("Europe/Dublin", "2026-07-01 12:00:00 IST", 1.0),
            ("+05:30", "2026-07-01 12:00:00 XYZ", 5.5),
            ("-03", "2026-07-01 12:00:00 XYZ", -3.0),
        ] {
            assert_eq!(offsets(&mut Zones::of(zone).unwrap(), &[text]), [Ok(hours)], "{zone}");
        }
        let other = offsets(&mut Zones::of("America/Chicago").unwrap(), &["2026-07-01 12:00:00 CEST"]);
        assert_eq!(other, [Err("CEST, which America/Chicago does not have on that day".to_owned())]);
        let error = Zones::of("IST").unwrap_err().to_string();
        assert_eq!(error, "\"IST\" is not a time zone. Give a name such as Europe/Berlin, or an offset such as +05:30");
    }

    #[test]
    fn the_start_in_a_sessions_identifier_proves_the_zone() {
        // 2026-11-23 08:00 UTC is 6b03f280 seconds (hexadecimal) since 1970.
        for (start, hours) in [("13:30:00", 5.5), ("10:00:00", 2.0)] {
            let mut record = Record {
                time: time(&format!("2026-11-23 {start} IST")),
                session_start: Some(time(&format!("2026-11-23 {start} IST"))),
                session_id: "6b03f280.4d".to_owned(),
                ..Record::default()
            };
            Zones::default().place(&mut record).unwrap();
            assert_eq!((record.time.wall as f64 - record.time.utc as f64) / 3.6e9, hours);
        }
    }
}
