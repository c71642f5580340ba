//! The run: from the options to the exit status.

use std::sync::Arc;
use std::time::SystemTime;

use super::NAME;
use super::lines::{Form, Lines};
use super::options::Options;
use super::summary::summary;
use super::table::Shape;
use super::watcher::Watcher;
use crate::event::{EventWriter, Hello};
use crate::frontend::events::Events;
use crate::frontend::{pooling, self_check};
use drive;
use drive::Outcome;
use drive::plan::{Load, Plan, ScriptOptions};
use ground::clock::Clock;
use ground::interrupt;
use ground::output::{print_stderr, print_stdout};
use wire::session::Session;
use wire::target::Target;
use workload::Workload;
use workload::pgbench::{Environment, Scripts, parse};
use workload::seeds::Seeds;

/// Exit status when something that was asked for could not be written.
const OUTPUT_LOST: u8 = 1;

/// What the report and the events call the script.
const DESCRIPTION: &str = "<builtin: tasks>";

/// One task. The record keeps its value, so that every record is there for every task of every run; the server writes
/// the new version of the row all the same.
const SCRIPT: &str = "\
\\set thread_id random(1, :threads)
\\set a_value random(1, :rows)
SELECT a_value FROM table_a WHERE thread_id = :thread_id AND a_value = :a_value;
\\set thread_id random(1, :threads)
\\set a_value random(1, :rows)
UPDATE table_a SET a_value = :a_value WHERE thread_id = :thread_id AND a_value = :a_value;
";

/// Runs the tasks on the present table; the exit status.
pub fn run(options: &Options, shape: Shape, target: &Arc<Target>, mut session: Session) -> Result<u8, String> {
    let (clock, origin) = (Clock::start(), SystemTime::now());
    pooling::check_limit(&mut session, &options.pools)?;
    let plan = make_plan(options, shape, Arc::clone(target))?;
    let interrupt = interrupt::catch()?;
    let lines = open_lines(options, origin)?;
    let events = open_events(options, &plan, clock, &session)?;
    drop(session);
    let only_events = options.events == Some(Events::Stdout);
    let mut watcher = Watcher::new(clock, lines, events, only_events, &interrupt);
    watcher.each_lines(Lines::begin);
    let outcome = drive::run(&plan, clock, &interrupt, &mut watcher).map_err(|error| error.to_string())?;
    let status = if outcome.interrupted { interrupt::STATUS } else { 0 };
    Ok(finish(&outcome, &mut watcher, status, only_events))
}

/// Writes everything that is known at the end; the exit status.
fn finish(outcome: &Outcome, watcher: &mut Watcher<'_>, status: u8, only_events: bool) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = if watcher.has_lost() { OUTPUT_LOST } else { status };
    watcher.done(outcome, status, &warnings);
    if !only_events {
        print_stdout(summary(outcome));
    }
    for warning in &warnings {
        print_stderr(format_args!("{NAME}: warning: {}\n", warning.message));
    }
    if outcome.interrupted {
        let seconds = outcome.elapsed_s;
        print_stderr(format_args!("{NAME}: interrupted after {seconds:.1} s; the results are of that time\n"));
    }
    if watcher.has_lost() { OUTPUT_LOST } else { status }
}

fn make_plan(options: &Options, shape: Shape, target: Arc<Target>) -> Result<Plan, String> {
    let seeds = Seeds::derive(options.seed, &options.part, options.pools.apps, options.jobs, None);
    let value = |number: u32| wire::value::Value::Int(number.into());
    let environment = Environment {
        mode: options.mode,
        timed: false,
        variables: vec![("threads".to_owned(), value(shape.threads)), ("rows".to_owned(), value(shape.rows))],
        default_seed: seeds.hashes as i64,
    };
    let script = parse(DESCRIPTION, 1, SCRIPT.as_bytes()).map_err(|error| error.to_string())?;
    let scripts = Scripts::link(vec![script], &environment).map_err(|error| error.to_string())?;
    let workload: Arc<dyn Workload> = Arc::new(Arc::new(scripts));
    let load = Load::Pooled(options.pools, ScriptOptions { continue_on_error: true, ..ScriptOptions::default() });
    Ok(Plan {
        start: options.start,
        jobs: options.jobs,
        mode: options.mode,
        ..Plan::new(target, workload, options.part, seeds, load)
    })
}

fn open_lines(options: &Options, origin: SystemTime) -> Result<Vec<Lines>, String> {
    let to_stdout = !options.quiet && options.log.is_none() && options.events != Some(Events::Stdout);
    let mut lines: Vec<_> = to_stdout.then(|| Lines::stdout(origin)).into_iter().collect();
    for (form, path) in [(Form::Text, &options.log), (Form::Csv, &options.csv)] {
        if let Some(path) = path {
            lines.push(Lines::file(form, path, origin)?);
        }
    }
    Ok(lines)
}

fn open_events(options: &Options, plan: &Plan, clock: Clock, session: &Session) -> Result<Option<EventWriter>, String> {
    let server = Some(session.server.version.as_str());
    let hello = Hello { frontend: "tasks", plan, scale: None, seed: options.seed, server };
    options.events.as_ref().map(|events| events.open(clock, &hello)).transpose()
}
