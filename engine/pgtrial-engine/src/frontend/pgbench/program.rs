//! The name of this front end, and the version of PostgreSQL's pgbench that it imitates.

use crate::frontend::common::messages::FrontEnd;

/// The name of this front end in messages, the form of its messages, and its exit status if options are rejected or an
/// output could not be written.
pub const PGBENCH: FrontEnd = FrontEnd::as_client("pgbench", 1);

/// The version of pgbench whose behaviour this front end has.
pub const VERSION: &str = "18";
