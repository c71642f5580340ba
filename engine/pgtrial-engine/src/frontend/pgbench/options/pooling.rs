//! Tasks on pools of connections: the values of their options, and the pools that follow from them. Each error is one
//! sentence.

use std::time::Duration;

use crate::frontend::connections::connection_limit;
use crate::frontend::sharing::check_enough;
use drive::plan::{Arrival, PoolPlan};
use ground::options::Argument;
use ground::shard::{Shard, TaskShare};
use ground::words::plural;
use wire::session::Session;

/// The most tasks of an application, and the most connections of all pools.
pub const MAX_TASKS: u32 = 10_000_000;
pub const MAX_CONNECTIONS: u32 = 100_000;

/// The longest time, seconds: a day.
const LONGEST_S: f64 = 86_400.0;

/// The highest rate, tasks per second.
const HIGHEST_RATE: f64 = 1e9;

/// After how long a task without a connection fails, unless `--pool-timeout` says otherwise: the common default of drivers
/// that have pools.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// Options as far as they were given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pooling {
    pub apps: Option<usize>,
    pub tasks: Option<u32>,
    pub arrival: Option<Arrival>,
    pub size: Option<usize>,
    pub timeout: Option<Duration>,
    pub lifetime: Option<Duration>,
}

impl Pooling {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// A shard's part of so many tasks on pools of this size.
    pub fn plan(&self, shard: Shard, apps: usize, tasks: u32, size: usize) -> Result<PoolPlan, String> {
        if apps.saturating_mul(size) > MAX_CONNECTIONS as usize {
            return Err(format!("all pools together (--apps x --pool) may have at most {MAX_CONNECTIONS} connections"));
        }
        check_enough(shard, size, "connections of a pool (--pool)")?;
        check_enough(shard, tasks as usize, "tasks of an application (--tasks)")?;
        let deal = TaskShare { shard, tasks, size };
        Ok(PoolPlan {
            apps,
            tasks: deal.own_tasks(),
            arrival: self.arrival.unwrap_or(Arrival::AtOnce),
            size: deal.own_slots(),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            lifetime: self.lifetime,
            deal,
        })
    }
}

/// A whole number from 1 to `max`.
pub fn count(value: &Argument<'_>, max: u32) -> Result<u32, String> {
    let number = value.text.trim().parse::<u32>().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| invalid(value, &format!("a whole number from 1 to {max}")))
}

/// A time in seconds, with decimals.
pub fn seconds(value: &Argument<'_>) -> Result<Duration, String> {
    let seconds = value.text.trim().parse::<f64>().ok().filter(|seconds| (0.001..=LONGEST_S).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| invalid(value, &format!("seconds from 0.001 to {LONGEST_S}")))
}

/// The message for a value that an option does not take.
pub fn invalid(value: &Argument<'_>, expected: &str) -> String {
    format!("invalid value \"{}\" for option {}: it takes {expected}", value.text, value.option())
}

/// When tasks arrive: `at-once`, `RATE` or `poisson:RATE`.
pub fn arrival(text: &str) -> Result<Arrival, String> {
    let rate = |digits: &str| {
        let rate = digits.trim().parse::<f64>().ok();
        rate.filter(|rate| *rate > 1e-6 && *rate <= HIGHEST_RATE)
    };
    let arrival = match text.strip_prefix("poisson:") {
        Some(digits) => rate(digits).map(Arrival::Poisson),
        None if text == "at-once" => Some(Arrival::AtOnce),
        None => rate(text).map(Arrival::Rate),
    };
    arrival.ok_or_else(|| {
        format!(
            "invalid value \"{text}\" for option --arrival: it takes at-once, a rate in tasks per second, or poisson:RATE"
        )
    })
}

/// Rejects pools that need more connections than the server allows this user; the connections of all engines count. If the
/// server does not report a limit, any size is accepted.
pub fn check_limit(session: &mut Session, pools: &PoolPlan) -> Result<(), String> {
    let size = pools.deal.size;
    let wanted = pools.apps * size;
    match connection_limit(session) {
        Some((most, what)) if wanted > most => Err(format!(
            "{} of {size} connections may need {wanted}, but the server gives this user at most {most} ({what}): \
             choose a smaller --pool or --apps, or raise that limit",
            plural(pools.apps, "pool"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read_as_they_are_shown() {
        for text in ["at-once", "250", "0.5", "poisson:12.5"] {
            assert_eq!(arrival(text).unwrap().to_string(), text);
        }
        for text in ["", "poisson", "poisson:", "poisson:x", "-1", "0", "nan", "inf", "poisson:-3", "At-Once"] {
            assert!(arrival(text).unwrap_err().contains("--arrival"), "{text}");
        }
    }

    #[test]
    fn numbers_and_times_have_their_ranges() {
        let of = |text| Argument::new("--pool-timeout=SECONDS", text);
        assert_eq!(count(&of("5000"), MAX_TASKS), Ok(5000));
        assert!(count(&of("0"), MAX_TASKS).unwrap_err().contains("from 1 to 10000000"));
        assert!(count(&of("1e3"), MAX_CONNECTIONS).is_err());
        assert_eq!(seconds(&of("0.2")), Ok(Duration::from_millis(200)));
        for text in ["0", "-1", "nan", "1e9", "x"] {
            assert!(seconds(&of(text)).is_err(), "{text}");
        }
    }
}
