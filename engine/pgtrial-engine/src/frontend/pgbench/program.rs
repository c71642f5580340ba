//! The name of the front end `pgbench`, and the version of PostgreSQL's pgbench that it imitates.

use crate::frontend::common::messages::FrontEnd;

/// The front end's name, with which its messages begin. Failures are printed as PostgreSQL's client programs print
/// them: a line for each error, detail and hint. The exit status is 1 if options are rejected or an output could not be
/// written.
pub const PGBENCH: FrontEnd = FrontEnd::as_client("pgbench", 1);

/// The version of pgbench whose behaviour this front end has.
pub const VERSION: &str = "18";
