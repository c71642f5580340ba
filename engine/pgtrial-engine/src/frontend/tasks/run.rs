//! The run: from the options to the exit status.

use std::time::{SystemTime, UNIX_EPOCH};

use super::lines::{LineFormat, Lines};
use super::options::TasksOptions;
use super::summary::summary;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::options::pooling;
use crate::frontend::pgbench::plan::plan;
use crate::frontend::pgbench::server::{session, target};
use crate::frontend::self_check;
use drive::{Began, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use ground::options::ERROR;
use ground::output::{CouldNot, OutputFile, print_stderr, print_stdout};
use tables::refuse_read_only;
use tables::tasks;
use tables::tasks::NAME;
use workload::pgbench::parse;

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

/// Makes the table if asked to, and runs the tasks on it; the exit status.
pub fn run(mut options: TasksOptions) -> Result<u8, Failure> {
    let target = target(&options.load.server, "pgtrial tasks", "setup")?;
    let mut session = session(&target, "setup")?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    refuse_read_only(&mut session, "tasks update a table")?;
    if options.initialize || options.initialize_only {
        let (shape, steps, shard) = (options.shape(), &options.init_steps, options.table_shard);
        tasks::make(&mut session, shape, steps, shard, &target.params.dbname)?;
        if options.initialize_only {
            return Ok(0);
        }
    }
    let shape = tasks::find(&mut session, options.threads_in_table, options.rows, &target.params.dbname)?;

    let (clock, origin) = (Clock::start(), SystemTime::now());
    let Some(pools) = options.load.pools else { unreachable!("tasks have preset pools") };
    pooling::check_limit(&mut session, &pools)?;
    options.load.scripts = vec![parse(DESCRIPTION, 1, SCRIPT.as_bytes()).map_err(Failure::error)?];
    let variables = [("threads", shape.threads.into()), ("rows", shape.rows.into())];
    let since_1970 = origin.duration_since(UNIX_EPOCH).unwrap_or_default();
    let plan = plan(&options.load, target, &variables, since_1970)?;
    let lines = open_lines(&options, origin)?;
    let server = Some(session.server.version.as_str());
    let seed = options.load.seed;
    let hello =
        RunDescription { frontend: "tasks", plan: &plan, scale: None, seed, server, replay: None, lost_status: ERROR };
    let only_events = options.load.output.has_only_events();
    let option = options.load.output.events.as_ref();
    let mut events = RunEvents::open(option, clock, &hello, &interrupt, report_error)?;
    drop(session);
    let mut writer = TaskWriter { lines, has_lost: false };
    writer.each_lines(Lines::begin);
    let outcome = events.run(&plan, clock, &mut writer).map_err(Failure::error)?;
    Ok(finish(&outcome, &mut events, writer.has_lost, only_events))
}

/// Writes everything that is known at the end; the exit status.
fn finish(outcome: &Outcome, events: &mut RunEvents<'_>, has_lost_lines: bool, only_events: bool) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = if outcome.interrupted { interrupt::STATUS } else { 0 };
    let status = if has_lost_lines { ERROR } else { status };
    let status = events.done(outcome, status, &warnings);
    if !only_events {
        print_stdout(summary(outcome));
    }
    warnings.iter().map(|warning| &warning.message).for_each(warn);
    if outcome.interrupted {
        let seconds = outcome.elapsed_s;
        print_stderr(format_args!("{NAME}: interrupted after {seconds:.1} s; the results are of that time\n"));
    }
    status
}

fn open_lines(options: &TasksOptions, origin: SystemTime) -> Result<Vec<Lines>, CouldNot> {
    let to_stdout = !options.quiet && options.log.is_none() && !options.load.output.has_only_events();
    let mut lines = Vec::new();
    if to_stdout {
        lines.push(Lines { form: LineFormat::Text, out: OutputFile::stdout("standard output"), origin });
    }
    for (form, path) in [(LineFormat::Text, &options.log), (LineFormat::Csv, &options.csv)] {
        if let Some(path) = path {
            lines.push(Lines { form, out: OutputFile::create("", &ground::text::path(path))?, origin });
        }
    }
    Ok(lines)
}

/// Writes the lines of the tasks while they run.
struct TaskWriter {
    lines: Vec<Lines>,
    /// Whether some could not be written; they were not tried again.
    has_lost: bool,
}

impl TaskWriter {
    /// Writes to all files of lines. One that cannot be written to is reported once and given up.
    fn each_lines(&mut self, write: impl Fn(&mut Lines) -> Result<(), CouldNot>) {
        let before = self.lines.len();
        self.lines.retain_mut(|lines| {
            let written = write(lines);
            if let Err(error) = &written {
                report_error(&error.to_string());
            }
            written.is_ok()
        });
        self.has_lost |= self.lines.len() < before;
    }
}

impl Observer for TaskWriter {
    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(warn);
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(pooled) = &tick.tally.pooled {
            self.each_lines(|lines| lines.write(&pooled.tasks));
        }
    }

    fn note(&mut self, text: &str) {
        print_stderr(format_args!("{NAME}: {text}\n"));
    }
}

fn warn(message: &String) {
    print_stderr(format_args!("{NAME}: warning: {message}\n"));
}

fn report_error(message: &str) {
    print_stderr(format_args!("{NAME}: error: {message}\n"));
}
