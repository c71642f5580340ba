//! `pgbench -i`.

use super::messages::Failure;
use super::options::Options;
use super::{session, target};
use crate::load::{self, Load, Step};

/// Makes the tables as the options say.
pub fn run(options: &Options) -> Result<u8, Failure> {
    const PURPOSE: &str = "initialization";
    let target = target(options, PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let load = Load { scale: options.scale.unwrap_or(1), fillfactor: options.fillfactor, quiet: options.quiet };
    let steps: Vec<_> = options.init_steps.chars().filter_map(Step::from_letter).collect();
    load::run(&mut session, &load, &steps).map_err(|failed| {
        Failure::error(format!("query failed: {}", failed.error)).detail(format!("Query was: {}", failed.sql))
    })?;
    Ok(0)
}
