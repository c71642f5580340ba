//! The program that this front end imitates.

use crate::frontend::common::messages::FrontEnd;

/// The name of pgbench, the form of its messages, and its exit status for what it rejects or could not write.
pub const PGBENCH: FrontEnd = FrontEnd::as_client("pgbench", 1);

/// The version of pgbench whose behaviour this front end has.
pub const VERSION: &str = "18";
