//! The run: from the options to the exit status.

use std::time::{SystemTime, UNIX_EPOCH};

use super::lines::{LineFormat, Lines};
use super::options::TasksOptions;
use super::summary::summary;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::options::pooling;
use crate::frontend::pgbench::plan::{link, plan, seeds};
use crate::frontend::pgbench::server::{session, target};
use crate::frontend::self_check;
use drive::{Abortion, Began, Observer, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use ground::output::{print_stderr, print_stdout};
use tables::tasks;
use tables::tasks::NAME;
use workload::pgbench::parse;

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

/// Makes the table if asked to, and runs the tasks on it; the exit status.
pub fn run(mut options: TasksOptions) -> Result<u8, Failure> {
    let target = target(&options.load.server, "pgtrial tasks", "setup")?;
    let mut session = session(&target, "setup")?;
    tasks::refuse_read_only(&mut session)?;
    if options.initialize || options.initialize_only {
        let (shape, steps, shard) = (options.shape(), options.init_steps, options.table_shard);
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
    let seeds = seeds(&options.load);
    let variables = [("threads", shape.threads.into()), ("rows", shape.rows.into())];
    let workload = link(&options.load, &variables, seeds.hashes)?;
    let since_1970 = origin.duration_since(UNIX_EPOCH).unwrap_or_default();
    let plan = plan(&options.load, target, workload, seeds, since_1970);
    let interrupt = interrupt::catch()?;
    let lines = open_lines(&options, origin)?;
    let server = Some(session.server.version.as_str());
    let hello = RunDescription { frontend: "tasks", plan: &plan, scale: None, seed: options.load.seed, server };
    let only_events = options.load.output.has_only_events();
    let events = options.load.output.events.as_ref().map(|events| events.open(clock, &hello)).transpose()?;
    drop(session);
    let events = RunEvents::new(events, &interrupt, report_error);
    let mut writer = TaskWriter { lines, events, has_lost_lines: false };
    writer.each_lines(Lines::begin);
    let outcome = drive::run(&plan, clock, &interrupt, &mut writer).map_err(Failure::error)?;
    Ok(finish(&outcome, &mut writer, only_events))
}

/// Writes everything that is known at the end; the exit status.
fn finish(outcome: &Outcome, writer: &mut TaskWriter<'_>, only_events: bool) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = if outcome.interrupted { interrupt::STATUS } else { 0 };
    let status = if writer.has_lost() { OUTPUT_LOST } else { status };
    writer.events.done(outcome, status, &warnings);
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
    if writer.has_lost() { OUTPUT_LOST } else { status }
}

fn open_lines(options: &TasksOptions, origin: SystemTime) -> Result<Vec<Lines>, String> {
    let to_stdout = !options.quiet && options.log.is_none() && !options.load.output.has_only_events();
    let mut lines: Vec<_> = to_stdout.then(|| Lines::stdout(origin)).into_iter().collect();
    for (form, path) in [(LineFormat::Text, &options.log), (LineFormat::Csv, &options.csv)] {
        if let Some(path) = path {
            lines.push(Lines::file(form, path.as_ref(), origin)?);
        }
    }
    Ok(lines)
}

/// Writes the lines of the tasks and the events while the tasks run.
struct TaskWriter<'a> {
    lines: Vec<Lines>,
    events: RunEvents<'a>,
    has_lost_lines: bool,
}

impl TaskWriter<'_> {
    /// Whether anything could not be written; it was not tried again.
    fn has_lost(&self) -> bool {
        self.has_lost_lines || self.events.is_lost()
    }

    /// Writes to all files of lines. One that cannot be written to is reported once and given up.
    fn each_lines(&mut self, write: impl Fn(&mut Lines) -> Result<(), String>) {
        let before = self.lines.len();
        self.lines.retain_mut(|lines| {
            let written = write(lines);
            if let Err(message) = &written {
                report_error(message);
            }
            written.is_ok()
        });
        self.has_lost_lines |= self.lines.len() < before;
    }
}

impl Observer for TaskWriter<'_> {
    fn connected(&mut self, clients: usize, seconds: f64) {
        self.events.connected(clients, seconds);
    }

    fn ready(&mut self, clients: usize, seconds: f64) {
        self.events.ready(clients, seconds);
    }

    fn phase(&mut self, phase: Phase, began: Option<&Began>) {
        self.events.phase(phase, began);
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(pooled) = &tick.tally.pooled {
            self.each_lines(|lines| lines.write(&pooled.tasks));
        }
        self.events.tick(tick);
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.events.aborted(abortion);
    }

    fn note(&mut self, text: &str) {
        print_stderr(format_args!("{NAME}: {text}\n"));
    }
}

fn report_error(message: &str) {
    print_stderr(format_args!("{NAME}: error: {message}\n"));
}
