//! Makes the table, runs the tasks (transactions of applications on their pools of connections), and reports the
//! results.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use super::lines::{LineFormat, TaskLines};
use super::options::{TASKS, TasksOptions};
use super::summary::summary;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::common::connection::{self, SETUP, check_limit};
use crate::frontend::common::end::status_of_run;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::EngineShare;
use crate::frontend::common::scripts::ScriptSources;
use crate::frontend::common::self_check;
use drive::{Began, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::output::{CouldNot, OutputFile, print_stdout};
use tables::refuse_read_only;
use tables::tasks;
use wire::params::Given;
use wire::session::Session;
use wire::target::Target;
use workload::pgbench::parse;

/// The name of the script in the report and the events.
const DESCRIPTION: &str = "<builtin: tasks>";

/// The script of a task. The UPDATE sets the column to the value that it has already, so that every task of every run
/// finds the same rows. The server nevertheless writes a new version of the row.
const SCRIPT: &str = "\
\\set thread_id random(1, :threads)
\\set a_value random(1, :rows)
SELECT a_value FROM table_a WHERE thread_id = :thread_id AND a_value = :a_value;
\\set thread_id random(1, :threads)
\\set a_value random(1, :rows)
UPDATE table_a SET a_value = :a_value WHERE thread_id = :thread_id AND a_value = :a_value;
";

/// Makes the table. Returns the exit status.
pub fn initialize(options: &TasksOptions) -> Result<u8, Failure> {
    let (target, mut session, _interrupt) = connect(&options.run.server)?;
    make(&mut session, options, &target)?;
    Ok(0)
}

/// Makes the table, if the options ask for that, and runs this engine's share of the tasks. Returns the exit status.
pub fn run(options: &TasksOptions, share: &EngineShare) -> Result<u8, Failure> {
    let TasksOptions { run, threads_in_table, rows, .. } = options;
    let (target, mut session, interrupt) = connect(&run.server)?;
    if options.initialize {
        make(&mut session, options, &target)?;
    }
    let shape = tasks::find(&mut session, *threads_in_table, *rows, &target.params.dbname)?;

    let (clock, origin) = (Clock::start(), SystemTime::now());
    if let Some(pools) = &share.pools {
        check_limit(&mut session, pools)?;
    }
    let script = parse(DESCRIPTION, 1, SCRIPT.as_bytes()).map_err(Failure::error)?;
    let sources = ScriptSources { scripts: vec![script], ..ScriptSources::default() };
    let seeds = run.seeds(share, None);
    let variables = [("threads", shape.threads.into()), ("rows", shape.rows.into())];
    let workload = sources.link(run, &variables, seeds.hashes)?;
    let since_1970 = origin.duration_since(UNIX_EPOCH).unwrap_or_default();
    let plan = run.plan(TASKS, target, Arc::new(workload), share, seeds, since_1970)?;
    let lines = open_lines(options, origin)?;
    let hello = RunDescription {
        server: Some(&session.server.version),
        ..RunDescription::new("tasks", &plan, run.seed.number, TASKS.failed)
    };
    let only_events = run.output.has_only_events();
    let complain = |problem: &str| TASKS.error(problem);
    let mut events = RunEvents::open(run.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    drop(session);
    let mut writer = TaskWriter { lines, has_lost: false };
    writer.each_lines(TaskLines::begin);
    let outcome = events.run(&plan, clock, &mut writer).map_err(Failure::error)?;
    Ok(finish(&outcome, &mut events, writer.has_lost, only_events))
}

/// Opens a session before the run, and checks that the server accepts writes. Also returns the flag that an interrupt
/// sets.
fn connect(server: &Given) -> Result<(Arc<Target>, Session, Arc<AtomicBool>), Failure> {
    let (target, mut session, interrupt) = connection::connect(server, "pgtrial tasks", SETUP)?;
    refuse_read_only(&mut session, "tasks update a table")?;
    Ok((target, session, interrupt))
}

fn make(session: &mut Session, options: &TasksOptions, target: &Target) -> Result<(), Failure> {
    Ok(tasks::make(session, options.shape(), &options.init_steps, options.run.shard, target)?)
}

/// Writes the last event, the summary, and the warnings. Returns the exit status.
fn finish(outcome: &Outcome, events: &mut RunEvents<'_>, has_lost_lines: bool, only_events: bool) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = if has_lost_lines { TASKS.failed } else { status_of_run(outcome) };
    let status = events.done(outcome, status, &warnings);
    if !only_events {
        print_stdout(summary(outcome));
    }
    TASKS.qualify_results(outcome, &warnings);
    status
}

fn open_lines(
    TasksOptions { run, lines: options, .. }: &TasksOptions,
    origin: SystemTime,
) -> Result<Vec<TaskLines>, CouldNot> {
    let to_stdout = !options.quiet && options.log.is_none() && !run.output.has_only_events();
    let mut lines = Vec::new();
    if to_stdout {
        lines.push(TaskLines { form: LineFormat::Text, out: OutputFile::stdout("standard output"), origin });
    }
    for (form, path) in [(LineFormat::Text, &options.log), (LineFormat::Csv, &options.csv)] {
        if let Some(path) = path {
            lines.push(TaskLines { form, out: OutputFile::create("", &ground::text::path(path))?, origin });
        }
    }
    Ok(lines)
}

/// The observer of a run, which the event loop calls once for each second. It writes a line for each task (one
/// transaction of an application) that ended in this second.
struct TaskWriter {
    lines: Vec<TaskLines>,
    /// True if lines could not be written to an output. After such an error, nothing more is written to that output.
    has_lost: bool,
}

impl TaskWriter {
    /// Calls `write` for each output. If writing to an output fails, the error is printed and the output is not used
    /// any more.
    fn each_lines(&mut self, write: impl Fn(&mut TaskLines) -> Result<(), CouldNot>) {
        let before = self.lines.len();
        self.lines.retain_mut(|lines| {
            let written = write(lines);
            if let Err(error) = &written {
                TASKS.error(error);
            }
            written.is_ok()
        });
        self.has_lost |= self.lines.len() < before;
    }
}

impl Observer for TaskWriter {
    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(|message| TASKS.warning(message));
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(pooled) = tick.statistics.of_mode.tasks() {
            self.each_lines(|lines| lines.write(&pooled.tasks));
        }
    }

    fn note(&mut self, text: &str) {
        TASKS.info(text);
    }
}
