//! `pgbench -i`.

use super::messages::Failure;
use super::options::Options;
use super::{setup_session, target};
use crate::load::{self, Load, Step};

/// Makes the tables as the options say.
pub fn run(options: &Options) -> Result<u8, Failure> {
    let target = target(options)?;
    let mut session = setup_session(&target)?;
    let load = Load { scale: options.scale.unwrap_or(1), fillfactor: options.fillfactor, quiet: options.quiet };
    let steps: Vec<_> = options.init_steps.chars().filter_map(Step::from_letter).collect();
    load::run(&mut session, &load, &steps).map_err(|error| Failure::error(format!("query failed: {error}")))?;
    Ok(0)
}
