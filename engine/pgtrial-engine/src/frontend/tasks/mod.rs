//! The tasks front end: the published application. A few applications share nothing but the server; each has a bounded pool
//! of connections and thousands of tasks of one SELECT and one UPDATE.

mod help;
mod lines;
mod options;
mod run;
mod summary;
mod table;
mod watcher;

use std::process::ExitCode;
use std::sync::Arc;

use ground::output::{print_stderr, print_stdout};
use options::{Command, Options};
use wire::params;
use wire::params::{Given, ProcessEnvironment};
use wire::session::Session;
use wire::target::Target;

/// What this front end is called in messages.
const NAME: &str = "pgtrial-engine tasks";

/// Runs the tasks with `args` (without the program's name). The exit status is 0 when the run is complete, whatever became
/// of the tasks; 1 for what is refused, and when something that was asked for could not be written; 130 after an interrupt.
pub fn main(args: Vec<String>) -> ExitCode {
    let done = match options::parse(args) {
        Ok(Command::Print(text)) => {
            print_stdout(text);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(options)) => perform(&options),
        Err(message) => Err(message),
    };
    super::ended(NAME, done)
}

fn perform(options: &Options) -> Result<u8, String> {
    let target = target(options)?;
    let mut session = Session::open(&target).map_err(|error| error.message)?;
    table::refuse_read_only(&mut session)?;
    if options.initializes {
        let (steps, shard) = (options.init_steps, options.part.shard);
        table::make(&mut session, options.shape(), steps, shard, &target.params.dbname)?;
        if !options.runs {
            return Ok(0);
        }
    }
    let shape = table::find(&mut session, options, &target.params.dbname)?;
    run::run(options, shape, &target, session)
}

/// The server that the options and the environment name.
fn target(options: &Options) -> Result<Arc<Target>, String> {
    let given = Given {
        host: options.host.clone(),
        port: options.port.clone(),
        user: options.user.clone(),
        dbname: options.dbname.clone(),
        fallback_application_name: "pgtrial tasks".to_owned(),
        ..Given::default()
    };
    let params = params::resolve(&given, &ProcessEnvironment).map_err(|error| error.to_string())?;
    for warning in &params.warnings {
        print_stderr(format_args!("{warning}\n"));
    }
    Ok(Arc::new(Target::resolve(params)))
}
