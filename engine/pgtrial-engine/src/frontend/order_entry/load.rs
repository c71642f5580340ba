//! The command `order-entry load`, which makes the tables and their rows.

use super::options::OrderEntryOptions;
use crate::frontend::common::connection::{LOADING, connect};
use crate::frontend::common::failure::Failure;
use tables::order_entry::{load, make_procedures};
use tables::refuse_read_only;

/// Makes the tables according to the options. Returns the exit status.
pub fn run(options: &OrderEntryOptions) -> Result<u8, Failure> {
    let (target, mut session, _) = connect(&options.run.server, "pgtrial order-entry", LOADING)?;
    refuse_read_only(&mut session, "load makes tables")?;
    if options.procedures {
        make_procedures(&mut session)?;
    }
    load(session, &target, options.tables(), options.jobs)?;
    Ok(0)
}
