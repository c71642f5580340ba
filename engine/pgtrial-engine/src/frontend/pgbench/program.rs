//! The name and the version of pgbench, which this front end imitates.

use crate::frontend::common::messages::FrontEnd;

/// The name of pgbench, the form of its messages, and its exit status for rejected options and for output that could
/// not be written.
pub const PGBENCH: FrontEnd = FrontEnd::as_client("pgbench", 1);

/// The version of pgbench whose behaviour this front end has.
pub const VERSION: &str = "18";
