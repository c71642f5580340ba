//! A benchmark run: from the options to the exit status.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::messages::{self, Failure};
use super::options::{Events, Options};
use super::progress::Watcher;
use super::{PGBENCH_VERSION, results, session, target};
use crate::connection::error::ConnectionError;
use crate::connection::session::Session;
use crate::connection::target::{Target, plain_io_message};
use crate::event::{EventWriter, Hello};
use crate::plan::{Limit, Plan, Seeds};
use crate::program::pgbench::{Scripts, Source};
use crate::reactor::{self, Clock, Outcome, RunError};

/// Exit status of a run that an interrupt ended.
const INTERRUPTED: u8 = 130;

/// Exit status when events could not be written, whatever became of the run.
const EVENTS_LOST: u8 = 1;

/// What the first connection is for.
const PURPOSE: &str = "setup";

/// How many transactions each client runs when neither `-t` nor `-T` is given.
const DEFAULT_TRANSACTIONS: u64 = 10;

/// What the database says before a run.
pub struct Facts {
    pub scale: u32,
    /// Partitioning of pgbench_accounts: method and number.
    pub partitions: Option<(String, u32)>,
}

/// Runs the benchmark; the exit status is pgbench's.
pub fn run(options: &Options) -> Result<u8, Failure> {
    let clock = Clock::start();
    let target = target(options, PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let to_stdout = options.events != Some(Events::Stdout);
    if to_stdout {
        print_version(&session.server.version);
    }
    let facts = survey(&mut session, options, &target)?;
    let plan = make_plan(options, &facts, Arc::clone(&target))?;
    let mut events = open_events(options, &plan, &facts, clock, &session)?;
    vacuum(&mut session, options);
    drop(session);

    let interrupt = catch_interrupt()?;
    let mut watcher = Watcher::new(options, clock, events.as_mut(), &interrupt);
    let outcome = reactor::run(&plan, clock, &interrupt, &mut watcher).map_err(describe_run_error)?;
    let status = exit_status(&outcome);
    watcher.done(&outcome, status);
    let status = if watcher.events_lost() { EVENTS_LOST } else { status };
    if to_stdout {
        messages::print(results::report(options, &plan, &facts, &outcome));
    }
    if outcome.aborted > 0 {
        messages::error("Run was aborted; the above results are incomplete.");
    }
    if outcome.interrupted && to_stdout {
        let seconds = outcome.elapsed_s;
        messages::error(format!("interrupted after {seconds:.1} s; the above results are of that time"));
    }
    Ok(status)
}

fn exit_status(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.aborted) {
        (true, _) => INTERRUPTED,
        (false, 0) => 0,
        (false, _) => 2,
    }
}

/// The line that names the versions: one version if client and server are of the same major.
fn print_version(server: &str) {
    let same = server.split('.').next() == Some(PGBENCH_VERSION);
    if same {
        messages::print(format_args!("pgbench ({PGBENCH_VERSION})\n"));
    } else {
        messages::print(format_args!("pgbench ({PGBENCH_VERSION}, server {server})\n"));
    }
}

/// Asks the database for the scale and for partitions.
fn survey(session: &mut Session, options: &Options, target: &Target) -> Result<Facts, Failure> {
    let rows = session.query("select count(*) from pgbench_branches").map_err(|error| {
        let mut failure = Failure::error(format!("could not count number of branches: {error}"));
        if matches!(&error, ConnectionError::Server(server) if server.sqlstate == "42P01") {
            let dbname = &target.params.dbname;
            failure = failure
                .hint(format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{dbname}\"."));
        }
        failure
    })?;
    let count = rows.first().and_then(|row| row.first()?.clone()).unwrap_or_default();
    let scale = count
        .parse()
        .ok()
        .filter(|scale| *scale <= i32::MAX as u32)
        .ok_or_else(|| Failure::error(format!("invalid count(*) from pgbench_branches: \"{count}\"")))?;
    if options.scale.is_some() {
        messages::warning(format!("scale option ignored, using count from pgbench_branches table ({scale})"));
    }
    Ok(Facts { scale, partitions: partitions(session, &target.params.dbname)? })
}

fn partitions(session: &mut Session, dbname: &str) -> Result<Option<(String, u32)>, Failure> {
    let sql = "select p.partstrat, pg_catalog.count(i.inhparent) \
               from pg_catalog.pg_class as c \
               left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) \
               left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) \
               where c.oid = pg_catalog.to_regclass('pgbench_accounts') group by 1";
    let rows = session.query(sql).map_err(Failure::error)?;
    let Some([strategy, count]) = rows.first().map(Vec::as_slice) else {
        return Err(Failure::error("no pgbench_accounts table found in \"search_path\"")
            .hint(format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{dbname}\".")));
    };
    let method = match strategy.as_deref() {
        None => return Ok(None),
        Some("r") => "range",
        Some("h") => "hash",
        Some(other) => return Err(Failure::error(format!("unexpected partition method: \"{other}\""))),
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Some((method.to_owned(), count)))
}

fn make_plan(options: &Options, facts: &Facts, target: Arc<Target>) -> Result<Plan, Failure> {
    let sources: Vec<_> = options
        .builtins
        .iter()
        .map(|(builtin, weight)| Source {
            description: builtin.description.to_owned(),
            weight: *weight,
            text: builtin.text.to_owned(),
        })
        .collect();
    let variables = [("scale", i64::from(facts.scale)), ("random_seed", options.seed as i64)];
    let scripts = Scripts::compile(&sources, &variables, options.report_per_command).map_err(Failure::error)?;
    Ok(Plan {
        target,
        workload: Arc::new(Arc::new(scripts)),
        clients: options.clients,
        jobs: options.jobs,
        mode: options.mode,
        limit: match options.duration {
            Some(duration) => Limit::Time(duration),
            None => Limit::Transactions(options.transactions.unwrap_or(DEFAULT_TRANSACTIONS)),
        },
        warmup: options.warmup,
        reconnect: options.reconnect,
        timed_commands: options.report_per_command,
        seeds: Seeds::derive(options.seed, options.clients, options.jobs),
    })
}

fn open_events(
    options: &Options,
    plan: &Plan,
    facts: &Facts,
    clock: Clock,
    session: &Session,
) -> Result<Option<EventWriter>, Failure> {
    let reason = |error: std::io::Error| plain_io_message(&error);
    let mut writer = match &options.events {
        None => return Ok(None),
        Some(Events::Stdout) => EventWriter::stdout(),
        Some(Events::File(path)) => EventWriter::file(path).map_err(|error| {
            Failure::error(format!("could not open events file \"{}\": {}", path.display(), reason(error)))
        })?,
    };
    let hello =
        Hello { frontend: "pgbench", plan, scale: facts.scale, seed: options.seed, server: &session.server.version };
    writer
        .hello(clock, &hello)
        .map_err(|error| Failure::error(format!("could not write events: {}", reason(error))))?;
    Ok(Some(writer))
}

/// Tidies up before the run; a table that cannot be is told of and left as it is.
fn vacuum(session: &mut Session, options: &Options) {
    let mut try_to = |sql: &str| {
        if let Err(error) = session.query(sql) {
            messages::error(format_args!("{error}\npgbench: detail: (ignoring this error and continuing anyway)"));
        }
    };
    if !options.no_vacuum {
        messages::tell("starting vacuum...");
        for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
            try_to(sql);
        }
        messages::tell("end.\n");
        if options.vacuum_all {
            messages::tell("starting vacuum pgbench_accounts...");
            try_to("vacuum analyze pgbench_accounts");
            messages::tell("end.\n");
        }
    }
}

/// The first Ctrl-C ends the run with what was measured so far; the second one kills as usual.
fn catch_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|error| Failure::error(format!("could not set signal handler: {error}")))?;
    }
    Ok(flag)
}

fn describe_run_error(error: RunError) -> Failure {
    match error {
        RunError::Connect { client, error } => {
            Failure::lines(&[&error.message, &format!("could not create connection for client {client}")])
        }
        RunError::System(message) => Failure::error(message),
    }
}
