//! The tables of sysbench's tests: `prepare`, `prewarm` and `cleanup`.
//!
//! Each table is made in one transaction: created, filled by COPY with FREEZE, which only the transaction that has
//! created it may do, then its keys. So the connections share the tables, never the rows of one; within one, the server
//! makes the keys in parallel. What is interrupted leaves nothing behind.

mod console;
mod rows;
mod tables;

use std::sync::Arc;
use std::thread;

use super::{Failed, execute, keys};
use console::Console;
use ground::random::Random;
use ground::shard::Shard;
use rows::Rows;
use tables::Table;
use wire::session::{CopyError, Fill, Session};
use wire::target::Target;
use workload::Fatal;
use workload::oltp::failure;
use workload::oltp::failure::SqlError;
use workload::oltp::parameters::Parameters;
use workload::oltp::{Test, TestKind};
use workload::sb_rand;
use workload::sb_rand::Distributions;
use workload::settings::Settings;

/// The function of sysbench that a command of 1.0 runs in.
const COMMAND: &str = "sysbench.cmdline.call_command";

const LOST: &str = "a thread that made tables died";

/// Makes a test's tables and tells of each on standard output, over as many connections as there are `threads`; those
/// of `bulk_insert` and 0.5's one after another. A connection ends with the first table that it cannot make; the others
/// make theirs, as in sysbench, and all failures are told of in the end. Engines that share the work take turns at the
/// tables, whose rows are those that one engine would make.
pub fn prepare(test: &Test, settings: &Settings, shard: Shard, target: &Arc<Target>) -> Result<(), Fatal> {
    if test.kind() == TestKind::BulkInsert {
        return prepare_bulk(test, settings, shard, target);
    }
    let parameters = Parameters::read(test.kind(), settings)?;
    let distributions = Distributions::new(settings)?;
    let mut seeds = sb_rand::generator(settings);
    let all = (1..=parameters.tables).map(|number| (number, seeds.derive()));
    let tables: Vec<_> = all.filter(|(number, _)| shard.has_turn(number - 1)).collect();
    let rows = tables.iter().map(|(number, _)| u64::from(table(test, &parameters, *number).rows())).sum();
    let console = Console::new(rows);
    let connections =
        if test.kind() == TestKind::Legacy { 1 } else { shard.turns(parameters.threads).min(tables.len()).max(1) };
    let (parameters, distributions, console) = (&parameters, &distributions, &console);
    let work = Work { test, parameters, distributions, target, console, connections };
    let failures: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|first| {
                let (work, tables) = (&work, &tables);
                // As sysbench deals them.
                let share = move || work.make(tables.iter().skip(first).step_by(connections));
                thread::Builder::new().spawn_scoped(scope, share)
            })
            .collect();
        let made = threads.into_iter().map(|thread| match thread.map(|thread| thread.join()) {
            Ok(Ok(made)) => made,
            Ok(Err(_)) => Err(Fatal::new(LOST)),
            Err(error) => Err(Fatal::new(format_args!("could not create thread: {error}"))),
        });
        made.filter_map(Result::err).flat_map(|fatal| fatal.lines).collect()
    });
    console.finish();
    if failures.is_empty() { Ok(()) } else { Err(Fatal { lines: failures }) }
}

/// Refuses: there is nothing that it would do on PostgreSQL.
pub fn prewarm(test: &Test, _settings: &Settings, target: &Arc<Target>) -> Result<(), Fatal> {
    open(COMMAND, test, target)?;
    let line = failure::function_failed(COMMAND, test.name(), "prewarm is currently MySQL only");
    Err(Fatal { lines: vec![line] })
}

/// Drops a test's tables, as far as they are there, and tells of each.
pub fn cleanup(test: &Test, settings: &Settings, target: &Arc<Target>) -> Result<(), Fatal> {
    let function = "cleanup";
    let parameters = Parameters::read(test.kind(), settings)?;
    if matches!(test.kind(), TestKind::RandomPoints | TestKind::RandomRanges) && parameters.tables != 1 {
        let reason = "this benchmark does not support --tables > 1";
        return Err(Fatal::new(failure::function_failed(function, test.name(), reason)));
    }
    let is_bulk = test.kind() == TestKind::BulkInsert;
    let tables = if is_bulk { parameters.threads as u64 } else { parameters.tables };
    let (mut session, console) = (open(function, test, target)?, Console::new(0));
    silence(&mut session);
    for number in 1..=tables {
        let table = table(test, &parameters, number);
        console.say(&table.dropping());
        execute(&mut session, &table.drop()).map_err(|failed| fatal(function, test, failed))?;
    }
    Ok(())
}

fn prepare_bulk(test: &Test, settings: &Settings, shard: Shard, target: &Arc<Target>) -> Result<(), Fatal> {
    let function = "prepare";
    let parameters = Parameters::read(test.kind(), settings)?;
    let (mut session, console) = (open(function, test, target)?, Console::new(0));
    silence(&mut session);
    for number in (1..=parameters.threads).filter(|number| shard.has_turn(*number as u64 - 1)) {
        console.say(&format!("Creating table 'sbtest{number}'..."));
        execute(&mut session, &tables::create_for_bulk(number)).map_err(|failed| fatal(function, test, failed))?;
    }
    Ok(())
}

fn table<'a>(test: &Test, parameters: &'a Parameters, number: u64) -> Table<'a> {
    Table { kind: test.kind(), parameters, number }
}

fn open(function: &str, test: &Test, target: &Arc<Target>) -> Result<Session, Fatal> {
    Session::connect(target)
        .map_err(|error| Fatal { lines: failure::not_connected(function, test.name(), &error.message) })
}

/// sysbench shows no notices: that a table is not there, or is there already.
fn silence(session: &mut Session) {
    // Without it there are notices, and nothing else is wrong.
    let _ = session.query("set client_min_messages = error");
}

/// sysbench's lines.
fn fatal(function: &str, test: &Test, failed: Failed) -> Fatal {
    let name = test.name();
    Fatal {
        lines: match &failed {
            Failed::Query { sql, error } => failure::not_done(function, name, sql, &SqlError::from(error)),
            Failed::Open(error) => failure::not_connected(function, name, &error.message),
            Failed::Refused(error) | Failed::Copy(error) => vec![error.to_string()],
            Failed::Lost => vec![LOST.to_owned()],
        },
    }
}

/// What the connections share.
struct Work<'a> {
    test: &'a Test,
    parameters: &'a Parameters,
    distributions: &'a Distributions,
    target: &'a Arc<Target>,
    console: &'a Console,
    /// How many.
    connections: usize,
}

impl Work<'_> {
    fn function(&self) -> &'static str {
        if self.test.kind() == TestKind::Legacy { "prepare" } else { COMMAND }
    }

    /// Makes tables over one connection, up to the first that cannot be made.
    fn make<'t>(&self, tables: impl Iterator<Item = &'t (u64, Random)>) -> Result<(), Fatal> {
        let failed = |failed| fatal(self.function(), self.test, failed);
        let mut session = open(self.function(), self.test, self.target)?;
        let most = keys::MOST_KB / self.connections.max(1) as u64;
        keys::give_memory(&mut session, self.parameters.table_size.unsigned_abs(), most).map_err(failed)?;
        for (number, random) in tables {
            let table = table(self.test, self.parameters, *number);
            self.make_table(&mut session, &table, random.clone()).map_err(failed)?;
        }
        Ok(())
    }

    fn make_table(&self, session: &mut Session, table: &Table, random: Random) -> Result<(), Failed> {
        self.console.say(&table.creating());
        if !table.has_usual_key() {
            return execute(session, &table.create());
        }
        execute(session, "begin")?;
        execute(session, &table.create_without_key()).map_err(|failed| match failed {
            Failed::Query { error, .. } => Failed::Query { sql: table.create(), error },
            other => other,
        })?;
        if let Some(line) = table.inserting() {
            self.console.say(&line);
        }
        self.fill(session, table, random)?;
        execute(session, &table.add_key())?;
        if self.parameters.create_secondary {
            self.console.say(&table.creating_index());
            execute(session, &table.create_index())?;
        }
        if let Some(sql) = table.set_sequence() {
            execute(session, &sql)?;
        }
        execute(session, "commit")?;
        // Statistics for the planner, and no page that the first read would write.
        execute(session, &format!("vacuum analyze {}", table.name()))
    }

    fn fill(&self, session: &mut Session, table: &Table, random: Random) -> Result<(), Failed> {
        let count = table.rows();
        if count == 0 {
            return Ok(());
        }
        let mut rows = Rows::new(count, self.distributions.over(1, self.parameters.table_size), random);
        let sql = format!("copy {} (id, k, c, pad) from stdin with (format binary, freeze on)", table.name());
        let copied = session.copy_in(&sql, |out| {
            let (count, more) = rows.fill(out);
            self.console.advance(count);
            if more { Fill::More } else { Fill::Done }
        });
        copied.map_err(|failed| match failed {
            CopyError::Refused(error) | CopyError::Failed(error) => Failed::Query { sql, error },
        })
    }
}
