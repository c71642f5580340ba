//! The test `cpu`: an event finds the prime numbers below a limit by trial division.

use std::hint::black_box;

use super::client::Work;
use super::load::MachineLoad;
use crate::program::Fatal;
use crate::settings::{OptionSpec, OptionValue, Settings};
use crate::statistics::{Hooks, Introduction, Statistics};

/// The first number that an event tests for being prime.
const FIRST: u64 = 3;

/// The number of candidates that are tested before the client returns to its event loop. With the default limit this is
/// a whole event.
const PART: u64 = 10_000;

pub fn options() -> Vec<OptionSpec> {
    vec![OptionSpec::new("cpu-max-prime", "upper limit for primes generator", OptionValue::Int(10_000))]
}

pub fn load(settings: &Settings) -> Result<MachineLoad, Fatal> {
    let given = settings.int("cpu_max_prime");
    match u64::try_from(given) {
        Ok(limit @ 1..) => {
            Ok(MachineLoad::new("cpu", Cpu { limit }, move |_, _| Primes { limit, next: FIRST, found: 0 }))
        }
        _ => Err(Fatal::new(format_args!("Invalid value of cpu-max-prime: {given}."))),
    }
}

struct Cpu {
    limit: u64,
}

impl Hooks for Cpu {
    fn introduction(&self) -> Introduction {
        Introduction {
            details: vec!["Doing CPU performance benchmark\n".to_owned()],
            parameters: vec![format!("Prime numbers limit: {}\n", self.limit)],
        }
    }

    fn results(&self, statistics: &Statistics) -> Vec<String> {
        let rate = statistics.per_second(statistics.events as f64);
        vec!["CPU speed:".to_owned(), format!("    events per second: {rate:8.2}")]
    }

    fn uses_sql(&self) -> bool {
        false
    }
}

/// The work that the test `cpu` does in one thread: the search for primes.
struct Primes {
    limit: u64,
    /// The number that will be tested next.
    next: u64,
    found: u64,
}

impl Work for Primes {
    fn begin(&mut self) {
        (self.next, self.found) = (FIRST, 0);
    }

    fn go_on(&mut self) -> bool {
        let end = self.limit.min(self.next + PART);
        self.found += (self.next..end).filter(|number| is_prime(*number)).count() as u64;
        self.next = end;
        black_box(self.found);
        end == self.limit
    }
}

/// True if no number from 2 up to the square root divides `number`.
fn is_prime(number: u64) -> bool {
    let root = (number as f64).sqrt() as u64;
    (2..=root).all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of primes below `limit` that an event finds, and the number of the event's parts.
    fn found(limit: u64) -> (u64, u64) {
        let mut primes = Primes { limit, next: 0, found: 0 };
        primes.begin();
        let mut parts = 1;
        while !primes.go_on() {
            parts += 1;
        }
        (primes.found, parts)
    }

    #[test]
    fn an_event_finds_the_odd_primes_below_the_limit() {
        assert_eq!([1, 3, 4, 10].map(|limit| found(limit).0), [0, 0, 1, 3]);
        assert_eq!((found(10_000), found(30_000)), ((1228, 1), (3244, 3)));
    }

    #[test]
    fn the_report_begins_with_the_speed() {
        let statistics = Statistics { events: 7, time_interval: 2.0, ..Statistics::default() };
        let cpu = Cpu { limit: 10_000 };
        assert_eq!(cpu.results(&statistics), ["CPU speed:", "    events per second:     3.50"]);
        assert_eq!(cpu.results(&Statistics::default())[1], "    events per second:     0.00");
    }
}
