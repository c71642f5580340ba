//! The command `order-entry load`, which makes the tables and their rows.

use super::options::TableOptions;
use crate::frontend::common::connection::{LOADING, session, target};
use crate::frontend::common::failure::Failure;
use ground::interrupt;
use tables::order_entry::{Made, load, make_procedures};
use tables::refuse_read_only;

/// Makes the tables according to the options. Returns the exit status.
pub fn run(options: &TableOptions) -> Result<u8, Failure> {
    let target = target(&options.server, "pgtrial order-entry", LOADING)?;
    let mut session = session(&target, LOADING)?;
    target.obey(&interrupt::catch()?);
    refuse_read_only(&mut session, "load makes tables")?;
    let made = Made {
        warehouses: options.warehouses,
        seed: options.seed,
        fillfactor: options.fillfactor,
        foreign_keys: options.foreign_keys,
    };
    if options.procedures {
        make_procedures(&mut session)?;
    }
    load(session, &target, made, options.jobs)?;
    Ok(0)
}
