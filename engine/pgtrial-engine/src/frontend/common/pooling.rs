//! The options for loads in which applications run tasks (one transaction each), and all tasks of an application share
//! a pool of connections.

use std::time::Duration;

use super::sharing::{SharingError, check_enough};
use super::values::{ValueError, count_to};
use drive::plan::{Arrival, PoolPlan};
use ground::options::Argument;
use ground::shard::{Shard, TaskShare};
use ground::words::plural;
use thiserror::Error;

/// The greatest number of tasks (one transaction each) of one application.
const MAX_TASKS: u32 = 10_000_000;

/// The greatest number of connections of all pools together.
const MAX_CONNECTIONS: u32 = 100_000;

/// The highest rate at which tasks (one transaction each) may arrive, per second.
const HIGHEST_RATE: f64 = 1e9;

/// The default of `--pool-timeout`: a task that has got no connection in this time fails. It is a common default in
/// drivers that have connection pools.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// The reason why the options of connection pools are rejected. Each message is a whole sentence.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PoolError {
    #[error("tasks on pools of connections need both --tasks and --pool")]
    Incomplete,
    #[error(
        "all pools together (--apps x --pool) may have at most {MAX_CONNECTIONS} connections: choose a smaller --pool or \
         --apps"
    )]
    TooMany,
    #[error(transparent)]
    Sharing(#[from] SharingError),
    #[error(
        "{} of {size} connections may need {wanted} connections, but the server allows this user at most {most} \
         ({limit}): choose a smaller --pool or --apps, or raise {limit}",
        plural(*.apps, "pool")
    )]
    Limit { apps: usize, size: usize, wanted: usize, most: usize, limit: String },
}

/// The options of connection pools. A field is `None` if its option was not given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PoolOptions {
    pub apps: Option<usize>,
    pub tasks: Option<u32>,
    pub arrival: Option<Arrival>,
    pub size: Option<usize>,
    pub timeout: Option<Duration>,
    pub lifetime: Option<Duration>,
}

impl PoolOptions {
    /// Returns true if at least one option of pools is given.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the plan of the connection pools. If `shard` says that several engines share the load, the plan has this
    /// engine's share of the tasks and connections. Fails if `--tasks` or `--pool` is missing, or if there are too many
    /// connections or too few for all engines.
    pub fn plan(&self, shard: Shard) -> Result<PoolPlan, PoolError> {
        let (Some(tasks), Some(size)) = (self.tasks, self.size) else { return Err(PoolError::Incomplete) };
        let apps = self.apps.unwrap_or(1);
        if apps.saturating_mul(size) > MAX_CONNECTIONS as usize {
            return Err(PoolError::TooMany);
        }
        check_enough(shard, size, "connections of a pool (--pool)")?;
        check_enough(shard, tasks as usize, "tasks of an application (--tasks)")?;
        let task_share = TaskShare { shard, tasks, size };
        Ok(PoolPlan {
            apps,
            tasks: task_share.own_tasks(),
            arrival: self.arrival.unwrap_or(Arrival::AtOnce),
            size: task_share.own_slots(),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            lifetime: self.lifetime,
            task_share,
        })
    }
}

/// Reads a number of connections of a pool, or a number of applications or threads, which need as many connections.
pub fn connections(value: &Argument<'_>) -> Result<usize, ValueError> {
    count_to(value, MAX_CONNECTIONS).map(|number| number as usize)
}

/// Reads a number of tasks (one transaction each) of an application.
pub fn tasks(value: &Argument<'_>) -> Result<u32, ValueError> {
    count_to(value, MAX_TASKS)
}

/// Reads the value of `--arrival`, which says when tasks arrive: `at-once`, `RATE` or `poisson:RATE`, with a rate in
/// tasks per second.
pub fn arrival(value: &Argument<'_>) -> Result<Arrival, ValueError> {
    let rate = |digits: &str| {
        let rate = digits.trim().parse::<f64>().ok();
        rate.filter(|rate| *rate > 1e-6 && *rate <= HIGHEST_RATE)
    };
    let arrival = match value.text.strip_prefix("poisson:") {
        Some(digits) => rate(digits).map(Arrival::Poisson),
        None if value.text == "at-once" => Some(Arrival::AtOnce),
        None => rate(value.text).map(Arrival::Rate),
    };
    arrival.ok_or_else(|| ValueError::unexpected(value, "at-once, a rate in tasks per second, or poisson:RATE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read_as_they_are_shown() {
        let of = |text| Argument::new("--arrival=at-once|RATE|poisson:RATE", text);
        for text in ["at-once", "250", "0.5", "poisson:12.5"] {
            assert_eq!(arrival(&of(text)).unwrap().to_string(), text);
        }
        for text in ["", "poisson", "poisson:", "poisson:x", "-1", "0", "nan", "inf", "poisson:-3", "At-Once"] {
            assert!(
                arrival(&of(text)).unwrap_err().to_string().contains("option --arrival: it must be at-once"),
                "{text}"
            );
        }
    }
}
