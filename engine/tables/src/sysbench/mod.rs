//! The tables of sysbench's tests: the commands `prepare`, `prewarm` and `cleanup`.
//!
//! Each table is made in one transaction over one connection: the transaction creates the table, fills it by COPY with
//! FREEZE (which only the transaction that has created the table may use) and then makes its keys. Each connection
//! makes other tables, and no two connections fill the same table. An interrupted transaction leaves no table behind.

mod table;

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::thread;

use ground::output::print_stdout;
use ground::random::Random;
use ground::shard::Shard;
use wire::session::{CopyError, Session};
use wire::target::Target;
use workload::Fatal;
use workload::oltp::failure::{self, SqlError};
use workload::oltp::parameters::TestParameters;
use workload::oltp::{OltpTest, TestKind};
use workload::sb_rand;
use workload::sb_rand::Distributions;
use workload::settings::Settings;

use crate::copy::{CopyFormat, NEVER, copy_rows};
use crate::error::LoadError;
use crate::mark::mark_made;
use crate::progress::{ProgressStyle, TableProgress};
use crate::session::{MAX_SORT_MEMORY_KB, execute, raise_sort_memory};
use table::{RowGenerator, SysbenchTable, create_for_bulk};

/// The function of sysbench 1.0 that runs a command. Its name is in sysbench's error messages.
const COMMAND: &str = "sysbench.cmdline.call_command";

const LOST: &str = "a thread that made tables died";

/// Makes the tables of a test over as many connections as the option `threads` says, but no more than there are tables,
/// and prints the name of each table on standard output. The tables of `bulk_insert` and of the test of sysbench 0.5
/// are made one after another.
///
/// As in sysbench, a connection stops at the first table that it cannot make, while the other connections continue. The
/// error has the lines of all failures. If several engines share the work, the tables are assigned to them round-robin,
/// and the rows are the same as if one engine made them.
pub fn prepare(test: &OltpTest, settings: &Settings, shard: Shard, target: &Arc<Target>) -> Result<(), Fatal> {
    if test.kind == TestKind::BulkInsert {
        return prepare_bulk(test, settings, shard, target);
    }
    let (kind, parameters) = (test.kind, &TestParameters::read(test.kind, settings)?);
    let distributions = &Distributions::new(settings)?;
    let mut seeds = sb_rand::generator(settings);
    let all = (1..=parameters.tables).map(|number| (SysbenchTable { kind, parameters, number }, seeds.derive()));
    let tables: Vec<_> = all.filter(|(table, _)| shard.has_turn(table.number - 1)).collect();
    let rows = tables.iter().map(|(table, _)| u64::from(table.rows())).sum();
    let style = if rows > 0 && stderr().is_terminal() { ProgressStyle::Bar } else { ProgressStyle::Hidden };
    let progress = &TableProgress::new("sbtest", rows, style, target.user);
    let connections =
        if kind == TestKind::Legacy { 1 } else { shard.turns(parameters.threads).min(tables.len()).max(1) };
    let mark_by = settings.text("mark_by");
    let work = Work { test, parameters, distributions, target, progress, connections, mark_by };
    let failures: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|first| {
                let (work, tables) = (&work, &tables);
                // sysbench assigns the tables to its threads in the same way.
                let make = move || work.make(tables.iter().skip(first).step_by(connections));
                thread::Builder::new().spawn_scoped(scope, make)
            })
            .collect();
        let made = threads.into_iter().map(|thread| match thread.map(|thread| thread.join()) {
            Ok(Ok(made)) => made,
            Ok(Err(_)) => Err(Fatal::new(LOST)),
            Err(error) => Err(Fatal::new(format_args!("could not create thread: {error}"))),
        });
        made.filter_map(Result::err).flat_map(|fatal| fatal.lines).collect()
    });
    progress.clear();
    if failures.is_empty() { Ok(()) } else { Err(Fatal { lines: failures }) }
}

/// Always fails, because sysbench's `prewarm` does nothing on PostgreSQL.
pub fn prewarm(test: &OltpTest, _settings: &Settings, target: &Arc<Target>) -> Result<(), Fatal> {
    open(COMMAND, test, target)?;
    let line = failure::function_failed(COMMAND, test.name, "prewarm is currently MySQL only");
    Err(Fatal { lines: vec![line] })
}

/// Drops the tables of a test as far as they exist, and prints the name of each table on standard output.
pub fn cleanup(test: &OltpTest, settings: &Settings, target: &Arc<Target>) -> Result<(), Fatal> {
    let function = "cleanup";
    let (kind, parameters) = (test.kind, &TestParameters::read(test.kind, settings)?);
    if kind.has_own_part() && parameters.tables != 1 {
        let reason = "this benchmark does not support --tables > 1";
        return Err(Fatal::new(failure::function_failed(function, test.name, reason)));
    }
    let is_bulk = kind == TestKind::BulkInsert;
    let tables = if is_bulk { parameters.threads as u64 } else { parameters.tables };
    let mut session = open_silent(function, test, target)?;
    for number in 1..=tables {
        let table = SysbenchTable { kind, parameters, number };
        print_stdout(format_args!("Dropping table '{}'...\n", table.name()));
        execute(&mut session, &table.drop()).map_err(|error| fatal(function, test, error))?;
    }
    Ok(())
}

fn prepare_bulk(test: &OltpTest, settings: &Settings, shard: Shard, target: &Arc<Target>) -> Result<(), Fatal> {
    let function = "prepare";
    let parameters = TestParameters::read(test.kind, settings)?;
    let mut session = open_silent(function, test, target)?;
    for number in (1..=parameters.threads).filter(|number| shard.has_turn(*number as u64 - 1)) {
        print_stdout(format_args!("Creating table 'sbtest{number}'...\n"));
        let made = make_for_bulk(&mut session, number, settings.text("mark_by"));
        made.map_err(|error| fatal(function, test, error))?;
    }
    Ok(())
}

/// Makes a table of `bulk_insert`. Fails if the table exists and tables are to be marked (`mark_by`), because this
/// program must not mark a table that it has not made.
fn make_for_bulk(session: &mut Session, number: usize, mark_by: Option<&str>) -> Result<(), LoadError> {
    let create = create_for_bulk(number);
    if mark_by.is_none() {
        return execute(session, &create);
    }
    execute(session, "begin")?;
    execute(session, &create.replace("IF NOT EXISTS ", ""))?;
    mark_made(session, mark_by)?;
    execute(session, "commit")
}

fn open(function: &str, test: &OltpTest, target: &Arc<Target>) -> Result<Session, Fatal> {
    Session::connect(target).map_err(|error| fatal(function, test, LoadError::Connect(error)))
}

/// Opens a session that ignores notices, such as the notice that a table to drop does not exist, because sysbench does
/// not print them.
fn open_silent(function: &str, test: &OltpTest, target: &Arc<Target>) -> Result<Session, Fatal> {
    let mut session = open(function, test, target)?;
    session.silence();
    Ok(session)
}

/// Returns the lines that sysbench prints for this error.
fn fatal(function: &str, test: &OltpTest, error: LoadError) -> Fatal {
    let name = test.name;
    Fatal {
        lines: match &error {
            LoadError::Query { sql, error } => failure::not_done(function, name, sql, &SqlError::from(error)),
            LoadError::Connect(error) => failure::not_connected(function, name, &error.message),
            LoadError::Copy(error) => vec![error.to_string()],
            LoadError::ThreadLost => vec![LOST.to_owned()],
        },
    }
}

/// The data that all connections which make tables use.
struct Work<'a> {
    test: &'a OltpTest,
    parameters: &'a TestParameters,
    distributions: &'a Distributions,
    target: &'a Arc<Target>,
    progress: &'a TableProgress,
    /// The number of connections that make tables.
    connections: usize,
    /// The query that the user gave with `--mark-by`, if any. It returns statements that mark new objects, for example
    /// by a comment.
    mark_by: Option<&'a str>,
}

impl Work<'_> {
    /// Makes the tables one after another over one connection, until all are made or one fails.
    fn make<'t>(&self, tables: impl Iterator<Item = &'t (SysbenchTable<'t>, Random)>) -> Result<(), Fatal> {
        let function = if self.test.kind == TestKind::Legacy { "prepare" } else { COMMAND };
        let fatal = |error| fatal(function, self.test, error);
        let mut session = open(function, self.test, self.target)?;
        for (table, random) in tables {
            self.make_table(&mut session, table, random.clone()).map_err(fatal)?;
        }
        Ok(())
    }

    fn make_table(&self, session: &mut Session, table: &SysbenchTable, random: Random) -> Result<(), LoadError> {
        self.print(&format!("Creating table '{}'...", table.name()));
        if !table.is_for_postgresql() {
            // The server rejects this statement, and its error tells the user the reason.
            return execute(session, &table.create());
        }
        let max_kb = MAX_SORT_MEMORY_KB / self.connections as u64;
        let raise = raise_sort_memory(session, self.parameters.table_size.unsigned_abs(), max_kb)?;
        execute(session, "begin")?;
        raise.iter().try_for_each(|sql| execute(session, sql))?;
        let created = session.query(&table.create_without_key());
        created.map_err(|error| LoadError::Query { sql: table.create(), error })?;
        if let Some(line) = table.inserting() {
            self.print(&line);
        }
        self.fill(session, table, random)?;
        execute(session, &table.add_key())?;
        if self.parameters.create_secondary {
            self.print(&table.creating_index());
            execute(session, &table.create_index())?;
        }
        if let Some(sql) = table.set_sequence() {
            execute(session, &sql)?;
        }
        mark_made(session, self.mark_by)?;
        execute(session, "commit")?;
        // VACUUM ANALYZE makes statistics for the planner, and writes the visibility map and hint bits now, so that the
        // first reader of a page does not have to write it.
        execute(session, &format!("vacuum analyze {}", table.name()))
    }

    fn fill(&self, session: &mut Session, table: &SysbenchTable, random: Random) -> Result<(), LoadError> {
        let count = table.rows();
        if count == 0 {
            return Ok(());
        }
        let mut rows = RowGenerator::new(count, self.distributions.over(1, self.parameters.table_size), random);
        let sql = format!("copy {} (id, k, c, pad) from stdin with (format binary, freeze on)", table.name());
        copy_rows(session, &sql, CopyFormat::Binary, |out| rows.write_next(out), self.progress, &NEVER)
            .map_err(|(CopyError::Refused(error) | CopyError::Failed(error))| LoadError::Query { sql, error })
    }

    fn print(&self, line: &str) {
        self.progress.clear();
        print_stdout(format_args!("{line}\n"));
    }
}
