//! The pgbench front end: pgbench's options in, pgbench's lines out, and events beside them when asked for.

mod benchmark;
mod help;
mod histogram;
mod initialize;
pub mod messages;
mod options;
mod progress;
mod results;
mod scripts;
mod survey;
mod values;

use std::process::ExitCode;
use std::sync::Arc;

use ground::output;
use messages::Failure;
use options::{Command, Options};
use wire::params;
use wire::params::{Given, ProcessEnvironment};
use wire::session::Session;
use wire::target::Target;

/// The version of pgbench whose behaviour this front end has.
pub const PGBENCH_VERSION: &str = "18";

/// Runs pgbench with `args` (without the program's name); the exit status is pgbench's: 0, 1 for what it refuses, 2 when
/// the run went wrong.
pub fn main(args: Vec<String>) -> ExitCode {
    let failure = match options::parse(args) {
        Ok(Command::Print(text)) => {
            output::print_stdout(text);
            return ExitCode::SUCCESS;
        }
        Ok(Command::List(text)) => {
            output::print_stderr(text);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Initialize(options)) => initialize::run(&options),
        Ok(Command::Benchmark(options)) => benchmark::run(*options),
        Err(failure) => Err(failure),
    };
    match failure {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            output::print_stderr(format_args!("{failure}\n"));
            ExitCode::from(1)
        }
    }
}

/// What a connection outside the run is for: `setup` or `initialization`, as it is called when it fails.
type Purpose = &'static str;

/// The server that the options and the environment name.
fn target(options: &Options, purpose: Purpose) -> Result<Arc<Target>, Failure> {
    let given = Given {
        host: options.host.clone(),
        port: options.port.clone(),
        user: options.user.clone(),
        dbname: options.dbname.clone(),
        fallback_application_name: "pgbench".to_owned(),
        ..Given::default()
    };
    let setup = |error: String| no_connection(&error, purpose);
    let params = params::resolve(&given, &ProcessEnvironment).map_err(|error| setup(error.to_string()))?;
    for warning in &params.warnings {
        output::print_stderr(format_args!("{warning}\n"));
    }
    Ok(Arc::new(Target::resolve(params)))
}

/// A session for the work outside the run.
fn session(target: &Arc<Target>, purpose: Purpose) -> Result<Session, Failure> {
    Session::open(target).map_err(|error| no_connection(&error.message, purpose))
}

fn no_connection(reason: &str, purpose: Purpose) -> Failure {
    Failure::lines(&[reason, &format!("could not create connection for {purpose}")])
}
