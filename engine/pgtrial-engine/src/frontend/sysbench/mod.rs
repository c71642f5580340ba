//! The front end `sysbench`, which behaves as sysbench 1.0.20: it has the same options and prints the same lines. A few
//! more options are pgtrial's own.

mod commands;
mod config;
mod help;
mod host;
mod log;
pub mod options;
mod plan;
mod report;
mod test;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use crate::frontend::common::messages::USER;
use commands::CommandContext;
use ground::clock::Clock;
use ground::output::print_stdout;
pub use help::manual;
use log::{Level, Log, SysbenchError};
use options::command_line::CommandLine;
use options::values::{Numbers, OptionKind};
use options::{Chosen, Declared, Unknown, check};
use test::{Test, TestProgram};
use workload::lua::Invocation;
use workload::settings::{OptionValue, Settings};

/// The version of sysbench that this front end imitates.
pub const SYSBENCH_VERSION: &str = "1.0.20";

/// Runs the front end with the command line `args` (without the program's name). The exit status is the same as
/// sysbench's: 0, 1 if the options are rejected or the command fails, and 2 if a run took too long to begin or to end.
/// After an interrupt it is 130.
pub fn main(args: Vec<String>) -> ExitCode {
    let mut log = Log::stdout();
    match invoke(&args, &mut log) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            error.write(&mut log);
            ExitCode::from(1)
        }
    }
}

fn invoke(args: &[String], log: &mut Log) -> Result<u8, SysbenchError> {
    let clock = Clock::start();
    let line = CommandLine::read(args, &|name| ground::trust::read_file(&ground::text::path(name)), &mut |line| {
        (USER.tell)(line)
    })?;
    if line.is_on("help") {
        print_stdout(help::text());
        return Ok(0);
    }
    if line.is_on("version") {
        let ours = env!("CARGO_PKG_VERSION");
        print_stdout(format_args!("sysbench {SYSBENCH_VERSION} (pgtrial {ours})\n"));
        return Ok(0);
    }
    let checked = check(&line, &mut |text| log.text(Level::Warning, text))?;
    log.limit(checked.int("verbosity"));
    if line.is_text("jsonl", "-") {
        log.stand_aside();
    }
    log.text(Level::Notice, banner());

    let invocation = invocation(args, &line)?;
    if invocation.test.is_none() && std::io::stdin().is_terminal() {
        log.text(Level::Notice, "Reading the script from the standard input:\n");
    }
    let executors = plan::executors(&general(&line, &checked));
    let test = Test::load(&invocation, log.voice(), executors, &mut |text| log.text(Level::Warning, text))?;
    let Some(command) = command(&test, &invocation)? else {
        return Ok(0);
    };
    let chosen = settle(&line, &checked, &test)?;
    for option in &chosen.ignored {
        log.text(Level::Warning, format_args!("the test '{}' has no option {option}", test.name));
    }
    if let TestProgram::Script(script) = &test.program {
        script.configure(Arc::new(chosen.script), plan::shard(&chosen.all)?)?;
        if let Some(query) = chosen.all.text("mark_by") {
            script.mark_by(query);
        }
    }
    CommandContext { test: &test, settings: Arc::new(chosen.all), log, clock }.execute(&command)
}

/// Returns the first line of every output, with the versions of sysbench and pgtrial.
fn banner() -> String {
    let ours = env!("CARGO_PKG_VERSION");
    format!("sysbench {SYSBENCH_VERSION} (pgtrial {ours}, using bundled LuaJIT 2.1)\n")
}

/// Returns those values of the command line that Lua scripts can read. If the name of the test is `-`, the script is
/// read from standard input, and `test` is `None`.
fn invocation(args: &[String], line: &CommandLine) -> Result<Invocation, SysbenchError> {
    let driver = match line.value("db-driver", OptionKind::Text)? {
        Some(OptionValue::Text(name)) => name,
        _ => None,
    };
    Ok(Invocation {
        argv: std::iter::once("sysbench".to_owned()).chain(args.iter().cloned()).collect(),
        test: line.test.clone().filter(|name| name != "-"),
        command: line.command.clone(),
        driver,
    })
}

/// Returns the command to be executed, or `None` if the script only has to be loaded. Built-in tests need a command. A
/// script from standard input never has a command.
fn command(test: &Test, invocation: &Invocation) -> Result<Option<String>, SysbenchError> {
    match (&test.program, &invocation.command) {
        (TestProgram::Host(test), None) => Err(SysbenchError::error(format_args!(
            "The '{0}' test requires a command argument. See 'sysbench {0} help'",
            test.name
        ))),
        (TestProgram::Native(native), None) => Err(SysbenchError::fatal(format_args!(
            "Command is required. Supported commands: {}",
            Test::commands(native).join(", ")
        ))),
        (_, None) => Ok(None),
        (_, Some(command)) => Ok(invocation.test.is_some().then(|| command.clone())),
    }
}

/// Returns the general options for code at the top level of a script. This code may connect to the server before the
/// options of the script itself are known. Invalid options are ignored here, and reported later when the test is known.
fn general(line: &CommandLine, checked: &Settings) -> Arc<Settings> {
    let nothing = Declared { options: &[], unknown: Unknown::Ignored, numbers: Numbers::Plain };
    Arc::new(line.settle(checked, nothing).map_or_else(|_| checked.clone(), |chosen| chosen.all))
}

/// Checks all options, including the options that the test declares, and returns their values. For a script in the old
/// style, which declares no options, the option `test` is set to the name of the test.
fn settle(line: &CommandLine, checked: &Settings, test: &Test) -> Result<Chosen, SysbenchError> {
    let (options, unknown) = (test.options(), test.unknown_options());
    let declared = Declared { options: &options, unknown, numbers: test.numbers() };
    let mut chosen = line.settle(checked, declared)?;
    if unknown == Unknown::Taken {
        chosen.script.set("test", OptionValue::Text(line.test.clone()));
    }
    Ok(chosen)
}
