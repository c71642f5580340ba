//! Loading: makes pgbench's four tables, with the same contents as pgbench, and says how far it is; and those of
//! sysbench's tests (`sbtest/`). Several engines can fill the same tables, each with its share of the rows (`shared.rs`).

mod generate;
mod hash_partition;
mod keys;
mod layout;
mod partitions;
mod progress;
mod rows;
pub mod sbtest;
mod shared;
mod side_by_side;
mod tables;

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ground::shard::Shard;
use progress::say;
use wire::OpenError;
use wire::error::ConnectionError;
use wire::session::{CopyError, Session};
use wire::target::Target;

/// What to make.
#[derive(Debug, Clone)]
pub struct Load {
    /// One branch, ten tellers and 100,000 accounts each.
    pub scale: u32,
    /// Percent, 10 to 100.
    pub fillfactor: u32,
    /// A progress line every five seconds instead of every 100,000 rows.
    pub quiet: bool,
    /// Where the tables are to be, and the indexes of their keys; else where the server puts them.
    pub tablespace: Option<String>,
    pub index_tablespace: Option<String>,
    pub unlogged: bool,
    /// The partitions of accounts; 0 is an ordinary table.
    pub partitions: u32,
    pub partition_method: PartitionMethod,
    /// The most connections to load over; else as many as help.
    pub jobs: Option<usize>,
    /// Whose rows are generated. Of several engines' none makes or empties tables: that is done before all.
    pub shard: Shard,
}

impl Load {
    /// The accounts that this engine generates; the one numbered n from 0 is account n + 1.
    fn accounts(&self) -> Range<u64> {
        self.shard.range(tables::ACCOUNTS * u64::from(self.scale))
    }
}

impl Default for Load {
    fn default() -> Self {
        Self {
            scale: 1,
            fillfactor: 100,
            quiet: false,
            tablespace: None,
            index_tablespace: None,
            unlogged: false,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            jobs: None,
            shard: Shard::WHOLE,
        }
    }
}

/// How accounts are dealt out to partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    /// As the option and the statement name it.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }
    }
}

/// One step of the initialization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    DropTables,
    CreateTables,
    Generate,
    GenerateOnServer,
    Vacuum,
    PrimaryKeys,
    ForeignKeys,
}

impl Step {
    /// The step of a letter of `--init-steps`.
    pub fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'd' => Step::DropTables,
            't' => Step::CreateTables,
            'g' => Step::Generate,
            'G' => Step::GenerateOnServer,
            'v' => Step::Vacuum,
            'p' => Step::PrimaryKeys,
            'f' => Step::ForeignKeys,
            _ => return None,
        })
    }

    /// What is said when the step begins.
    fn announcement(self) -> &'static str {
        match self {
            Step::DropTables => "dropping old tables...",
            Step::CreateTables => "creating tables...",
            Step::Generate => "generating data (client-side)...",
            Step::GenerateOnServer => "generating data (server-side)...",
            Step::Vacuum => "vacuuming...",
            Step::PrimaryKeys => "creating primary keys...",
            Step::ForeignKeys => "creating foreign keys...",
        }
    }

    /// Its name in the sum at the end.
    fn name(self) -> &'static str {
        match self {
            Step::DropTables => "drop tables",
            Step::CreateTables => "create tables",
            Step::Generate => "client-side generate",
            Step::GenerateOnServer => "server-side generate",
            Step::Vacuum => "vacuum",
            Step::PrimaryKeys => "primary keys",
            Step::ForeignKeys => "foreign keys",
        }
    }
}

/// Why loading ended early.
#[derive(Debug)]
pub enum Failed {
    /// A statement failed.
    Query { sql: String, error: ConnectionError },
    /// The server took no data.
    Refused(ConnectionError),
    /// The server did not take all data.
    Copy(ConnectionError),
    /// There is no further connection.
    Open(OpenError),
    /// A thread of ours ended without a word.
    Lost,
}

impl From<CopyError> for Failed {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Refused(error) => Failed::Refused(error),
            CopyError::Failed(error) => Failed::Copy(error),
        }
    }
}

/// What tells one of the server's processes from all others, on this server and any other: its number and its start.
const BACKEND: &str = "pid || '@' || extract(epoch from backend_start)";

/// The server's processes that load, for whoever wants to cancel them.
#[derive(Debug, Clone, Default)]
pub struct Backends(Arc<Mutex<Vec<String>>>);

impl Backends {
    fn add(&self, session: &mut Session) -> Result<(), Failed> {
        let sql = format!("select {BACKEND} from pg_catalog.pg_stat_activity where pid = pg_catalog.pg_backend_pid()");
        let rows = session.query(&sql).map_err(|error| Failed::Query { sql, error })?;
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.extend(rows.into_iter().flatten().flatten());
        Ok(())
    }

    /// Has the server cancel what they are doing.
    pub fn cancel(&self, target: &Arc<Target>) -> Result<(), String> {
        let mut session = Session::open(target).map_err(|error| error.message)?;
        let known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(",");
        let sql = format!(
            "select pg_catalog.pg_cancel_backend(pid) from pg_catalog.pg_stat_activity \
             where {BACKEND} = any ('{{{known}}}'::text[])"
        );
        session.query(&sql).map(drop).map_err(|error| error.to_string())
    }
}

/// Everything that a step needs.
struct Loader<'a> {
    target: &'a Arc<Target>,
    session: &'a mut Session,
    load: &'a Load,
    backends: &'a Backends,
}

/// Runs the steps in their order, telling of each on standard error; ends with the times of all. `backends` is told of
/// every connection that is used.
pub fn run(
    target: &Arc<Target>,
    session: &mut Session,
    load: &Load,
    steps: &[Step],
    backends: &Backends,
) -> Result<(), Failed> {
    backends.add(session)?;
    let mut loader = Loader { target, session, load, backends };
    let (mut total, mut times) = (0.0, Vec::new());
    for step in steps {
        let began = Instant::now();
        say(step.announcement());
        perform(&mut loader, *step)?;
        let seconds = began.elapsed().as_secs_f64();
        times.push(format!("{} {seconds:.2} s", step.name()));
        total += seconds;
    }
    say(format_args!("done in {total:.2} s ({}).", times.join(", ")));
    Ok(())
}

fn perform(loader: &mut Loader, step: Step) -> Result<(), Failed> {
    let statements = tables::statements(step, loader.load);
    let all =
        |session: &mut Session, statements: &[String]| statements.iter().try_for_each(|sql| execute(session, sql));
    match step {
        Step::Generate => generate::generate(loader),
        Step::Vacuum => partitions::vacuum(loader),
        Step::PrimaryKeys => keys::make(loader),
        Step::CreateTables => {
            all(loader.session, &statements)?;
            if loader.load.partitions > 0 {
                say(format_args!("creating {} partitions...", loader.load.partitions));
            }
            all(loader.session, &tables::partitions(loader.load))
        }
        _ => all(loader.session, &statements),
    }
}

fn execute(session: &mut Session, sql: &str) -> Result<(), Failed> {
    session.query(sql).map(drop).map_err(|error| Failed::Query { sql: sql.to_owned(), error })
}
