//! Loading: makes pgbench's four tables, with the same contents as pgbench, and says how far it is.

mod generate;
mod tables;

use std::time::Instant;

use crate::connection::error::ConnectionError;
use crate::connection::session::Session;

/// What to make.
#[derive(Debug, Clone)]
pub struct Load {
    /// One branch, ten tellers and 100,000 accounts each.
    pub scale: u32,
    /// Percent, 10 to 100.
    pub fillfactor: u32,
    /// A progress line every five seconds instead of every 100,000 rows.
    pub quiet: bool,
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

/// A statement that failed.
#[derive(Debug)]
pub struct Failed {
    pub sql: String,
    pub error: ConnectionError,
}

/// Runs the steps in their order, telling of each on standard error; ends with the times of all.
pub fn run(session: &mut Session, load: &Load, steps: &[Step]) -> Result<(), Failed> {
    let (mut total, mut times) = (0.0, Vec::new());
    for step in steps {
        let began = Instant::now();
        eprintln!("{}", step.announcement());
        match step {
            Step::Generate => generate::generate(session, load)?,
            other => {
                for sql in tables::statements(*other, load) {
                    execute(session, &sql)?;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        times.push(format!("{} {seconds:.2} s", step.name()));
        total += seconds;
    }
    eprintln!("done in {total:.2} s ({}).", times.join(", "));
    Ok(())
}

fn execute(session: &mut Session, sql: &str) -> Result<(), Failed> {
    session.query(sql).map(drop).map_err(|error| Failed { sql: sql.to_owned(), error })
}
