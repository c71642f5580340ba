//! Times of logs and captures, in microseconds since 1970-01-01 00:00 UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time, or a duration, in microseconds.
pub type Micros = u64;

/// A second in microseconds.
pub const SECOND: Micros = 1_000_000;

const DAY: i64 = 86_400 * SECOND as i64;

/// A time that was read from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp {
    /// The time since 1970-01-01 00:00 UTC. If the log has an abbreviation of the zone, the value is valid only after
    /// [`Self::place`] was called.
    pub utc: Micros,
    /// The time as the log shows it, in microseconds since 1970-01-01 00:00 of the same clock.
    pub wall: Micros,
    /// The abbreviation of a zone whose offset is not known; `None` if the log has an offset, `UTC` or no zone.
    pub zone: Option<Abbreviation>,
}

/// The abbreviation of a time zone, such as `CET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Abbreviation([u8; Self::LONGEST]);

impl Abbreviation {
    /// The greatest length in bytes. The longest abbreviation of the time zone database has 5 bytes, but a keyword of
    /// the message may follow it without a space.
    const LONGEST: usize = 24;

    fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; Self::LONGEST];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self(bytes))
    }

    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters are text").trim_end_matches('\0')
    }
}

impl Timestamp {
    /// Returns a timestamp for a time in UTC.
    pub fn at_utc(utc: Micros) -> Self {
        Self { utc, wall: utc, zone: None }
    }

    /// Reads a time at the beginning of a text: `2026-11-23 08:00:00`, with or without a fraction of a second, and with
    /// or without a zone (`UTC`, `CET`, `+02`, `-0330`, `Z`). Returns the time, the rest of the text, and whether there
    /// was a zone.
    pub fn take(text: &str) -> Option<(Self, &str, bool)> {
        let mut digits = Digits { rest: text };
        let (year, month, day) = (digits.take(4, "-")?, digits.take(2, "-")?, digits.take(2, "")?);
        digits.rest = digits.rest.strip_prefix([' ', 'T'])?;
        let (hour, minute, second) = (digits.take(2, ":")?, digits.take(2, ":")?, digits.take(2, "")?);
        let (fraction, rest) = take_fraction(digits.rest);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let days = days_since_1970(year, month, day);
        let wall = days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND as i64 + fraction;
        let (zone, rest) = take_zone(rest);
        let (offset, name) = match zone {
            Zone::Unknown => (0, None),
            Zone::Offset(offset) => (offset, None),
            Zone::Name(name) => (0, Some(name)),
        };
        let utc = wall - offset * SECOND as i64;
        let time = Self { utc: utc.try_into().ok()?, wall: wall.try_into().ok()?, zone: name };
        Some((time, rest, zone != Zone::Unknown))
    }

    /// Computes `utc` from the offset of the zone, in seconds east of UTC.
    pub fn place(&mut self, offset: i64) {
        self.utc = self.wall.saturating_add_signed(-offset * SECOND as i64);
        self.zone = None;
    }
}

struct Digits<'a> {
    rest: &'a str,
}

impl Digits<'_> {
    /// Reads a number of `count` digits and the separator behind it, and removes both from the text.
    fn take(&mut self, count: usize, separator: &str) -> Option<i64> {
        let (number, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest.strip_prefix(separator)?;
        number.bytes().all(|c| c.is_ascii_digit()).then(|| number.parse().ok())?
    }
}

/// Reads a fraction such as `.123` at the beginning of a text. Returns it in microseconds, without further digits, and
/// the rest of the text.
fn take_fraction(text: &str) -> (i64, &str) {
    let Some(rest) = text.strip_prefix('.') else { return (0, text) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = rest[..count].bytes().chain(std::iter::repeat(b'0')).take(6);
    (fraction.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')), &rest[count..])
}

/// The zone behind a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Unknown,
    /// The offset in seconds east of UTC.
    Offset(i64),
    Name(Abbreviation),
}

/// Reads a zone at the beginning of a text. Returns it and the rest of the text.
fn take_zone(text: &str) -> (Zone, &str) {
    let zone = text.strip_prefix(' ').unwrap_or(text);
    let is_signed = zone.starts_with(['+', '-']);
    let length = if is_signed {
        1 + zone[1..].bytes().take_while(u8::is_ascii_digit).count()
    } else {
        zone.bytes().take_while(u8::is_ascii_alphabetic).count()
    };
    let (name, rest) = zone.split_at(length);
    let found = match () {
        () if is_signed => signed_offset(name).map(Zone::Offset),
        () if length == 0 => None,
        () if matches!(name, "UTC" | "Z") => Some(Zone::Offset(0)),
        () => Abbreviation::new(name).map(Zone::Name),
    };
    found.map_or((Zone::Unknown, text), |zone| (zone, rest))
}

/// Parses an offset such as `+02` or `-0330`, and returns it in seconds.
pub fn signed_offset(text: &str) -> Option<i64> {
    let (hours, minutes) = text[1..].split_at_checked(2)?;
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    let seconds = (hours.parse::<i64>().ok()? * 60 + minutes) * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar. Source: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// Returns the year, month and day of the date that is `days` days after 1970-01-01. Source: the same as of
/// [`days_since_1970`], `civil_from_days`.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Formats a time as `2026-11-23T08:00:00Z`.
pub fn iso(utc: Micros) -> String {
    let seconds = (utc / SECOND) as i64;
    let (year, month, day) = date_of(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats a time as a log shows it and a user writes it: `2026-11-23 08:00:00`.
pub fn clock(wall: Micros) -> String {
    iso(wall).trim_end_matches('Z').replace('T', " ")
}

/// Returns the current time, in microseconds since 1970.
pub fn now() -> Micros {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as Micros
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-23 08:00 UTC, in microseconds since 1970.
    const EIGHT: Micros = 1_795_420_800_000_000;

    #[test]
    fn times_of_logs_are_read() {
        for (text, utc, wall, rest) in [
            ("2026-11-23 08:00:00.123 UTC [1]", EIGHT + 123_000, EIGHT + 123_000, " [1]"),
            ("2026-11-23 08:00:00 UTC:10.0.0.1(5):", EIGHT, EIGHT, ":10.0.0.1(5):"),
            ("2026-11-23 04:30:00.5 -0330 x", EIGHT + 500_000, EIGHT - 12_600_000_000 + 500_000, " x"),
            ("2026-11-23 13:30:00 +0530:", EIGHT, EIGHT + 19_800_000_000, ":"),
            ("2026-11-23T08:00:00.123456789Z", EIGHT + 123_456, EIGHT + 123_456, ""),
            ("2026-11-23 08:00:00 UTC-5f.1a-", EIGHT, EIGHT, "-5f.1a-"),
        ] {
            let (time, left, has_zone) = Timestamp::take(text).unwrap();
            assert_eq!((time, left, has_zone), (Timestamp { utc, wall, zone: None }, rest, true), "{text}");
        }
        let (mut time, rest, has_zone) = Timestamp::take("2026-11-23 09:00:00 CET,").unwrap();
        assert_eq!((time.zone.unwrap().name(), rest, has_zone), ("CET", ",", true));
        time.place(3600);
        assert_eq!(time, Timestamp { utc: EIGHT, wall: EIGHT + 3_600_000_000, zone: None });
        assert_eq!(Timestamp::take("2026-11-23 08:00:00 [5]"), Some((Timestamp::at_utc(EIGHT), " [5]", false)));
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in
            ["", "2026-11-23", "2026-13-01 00:00:00", "2026-11-23 24:00:00", "23.11.2026 08:00", "2026-11-23 08:00:0x"]
        {
            assert_eq!(Timestamp::take(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(iso(EIGHT), "2026-11-23T08:00:00Z");
        assert_eq!(iso(951_782_400_000_000), "2000-02-29T00:00:00Z");
    }

    proptest! {
        #[test]
        fn dates_come_back(days in -100_000_i64..100_000) {
            let (year, month, day) = date_of(days);
            prop_assert_eq!(days_since_1970(year, month, day), days);
        }
    }
}
