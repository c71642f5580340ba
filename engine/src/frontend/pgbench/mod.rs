//! The pgbench front end: pgbench's options in, pgbench's lines out, and events beside them when asked for.

mod benchmark;
mod help;
mod initialize;
mod messages;
mod options;
mod progress;
mod results;

use std::process::ExitCode;
use std::sync::Arc;

use crate::connection::params::{self, Given, ProcessEnvironment};
use crate::connection::session::Session;
use crate::connection::target::Target;
use messages::Failure;
use options::{Command, Options};

/// The version of pgbench whose behaviour this front end has.
pub const PGBENCH_VERSION: &str = "18";

/// Runs pgbench with `args` (without the program's name); the exit status is pgbench's: 0, 1 for what it refuses, 2 when
/// the run went wrong.
pub fn main(args: Vec<String>) -> ExitCode {
    let failure = match options::parse(args) {
        Ok(Command::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Command::List(text)) => {
            eprint!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Command::Initialize(options)) => initialize::run(&options),
        Ok(Command::Benchmark(options)) => benchmark::run(&options),
        Err(failure) => Err(failure),
    };
    match failure {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(1)
        }
    }
}

/// The server that the options and the environment name.
fn target(options: &Options) -> Result<Arc<Target>, Failure> {
    let given = Given {
        host: options.host.clone(),
        port: options.port.clone(),
        user: options.user.clone(),
        dbname: options.dbname.clone(),
        fallback_application_name: "pgbench".to_owned(),
    };
    let setup = |error: String| Failure::lines(&[&error, "could not create connection for setup"]);
    let params = params::resolve(&given, &ProcessEnvironment).map_err(|error| setup(error.to_string()))?;
    for warning in &params.warnings {
        eprintln!("{warning}");
    }
    Ok(Arc::new(Target::resolve(params).map_err(|error| setup(error.to_string()))?))
}

/// A session for the work around the run.
fn setup_session(target: &Arc<Target>) -> Result<Session, Failure> {
    Session::open(target).map_err(|error| Failure::lines(&[&error.message, "could not create connection for setup"]))
}
