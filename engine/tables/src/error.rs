//! The errors that occur while tables are made, or while a load looks for the tables that it needs.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;
use wire::OpenError;
use wire::error::ConnectionError;
use wire::session::CopyError;

/// The reason for which making tables failed.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A statement failed. The message has only the server's error, not the statement.
    #[error("{error}")]
    Query { sql: String, error: ConnectionError },
    #[error("{0}")]
    Copy(CopyError),
    /// A further connection to the server could not be opened.
    #[error("{0}")]
    Connect(OpenError),
    /// A thread that loads data has panicked.
    #[error("a loading thread ended unexpectedly")]
    ThreadLost,
}

/// The reason for which the tables that a load needs cannot be found or made. Each message says what is missing or
/// wrong, and where. If no statement of this program failed, it also says what to do.
#[derive(Debug, Error)]
pub enum TablesError {
    /// The query that looks for the tables which the load needs has failed.
    #[error(transparent)]
    Look(#[from] LoadError),
    #[error("could not make {what}: {error}")]
    Make { what: &'static str, error: LoadError },
    #[error(
        "could not make {what}: {message}; name a database in which this user may create tables, or \
         grant it the right to create tables"
    )]
    Denied { what: &'static str, message: String },
    #[error("{0}")]
    Foreign(Foreign),
    #[error("the server is a read-only standby, and {0}; connect to the primary")]
    Standby(&'static str),
    #[error("transactions of this user are read-only (default_transaction_read_only), and {0}; set it to off")]
    ReadOnly(&'static str),
    #[error(
        "there is no unfinished table_a of {threads} x {rows} rows in database \"{dbname}\"; begin with --init-steps=t"
    )]
    NotBegun { threads: u32, rows: u32, dbname: String },
    #[error("there is no table_a in database \"{dbname}\"; make it with \"{command}\"")]
    NoTable { dbname: String, command: String },
    #[error("table_a in database \"{dbname}\" was not finished; make it again with \"{command}\"")]
    Unfinished { dbname: String, command: String },
    #[error(
        "{option} is {given}, but table_a was made with {made}; leave the option out, or \
         make the table again with --initialize"
    )]
    OtherShape { option: &'static str, given: u32, made: u32 },
    #[error("there are no tables of order entry in database \"{dbname}\"; make them with \"{command}\"")]
    NoOrderEntry { dbname: String, command: String },
    #[error(
        "table {table} in database \"{dbname}\" was not made by {program}; make the tables of order \
         entry with \"{command}\" in another database"
    )]
    OtherTable { table: String, dbname: String, program: &'static str, command: String },
    #[error("the tables of order entry in database \"{dbname}\" are not complete; make them again with \"{command}\"")]
    Incomplete { dbname: String, command: String },
    #[error("--procedures needs PostgreSQL 11 or later, and this server is {server}; run {program} without it")]
    OldServer { server: String, program: &'static str },
    #[error(
        "the procedure {signature} was not made by {program}, and does not do the same as the \
         program's own procedure; rename it, or name another database"
    )]
    OtherProcedure { signature: String, program: &'static str },
}

/// A table that occupies a name which this program needs, but which this program did not make.
#[derive(Debug)]
pub struct Foreign {
    pub dbname: String,
    /// The kind and the name of the table: `table warehouse`.
    pub table: String,
    pub program: &'static str,
    /// True if the table is a copy of a table that the program made, for example because a dump was restored. The
    /// message then advises to drop or rename it; it advises only to rename a table of somebody else.
    pub is_copy: bool,
}

impl Display for Foreign {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { dbname, table, program, is_copy } = self;
        write!(f, "database \"{dbname}\" has a {table} that ")?;
        let cure = if *is_copy {
            write!(f, "is a copy of one that {program} made")?;
            "drop or rename it"
        } else {
            write!(f, "was not made by {program}")?;
            "rename it"
        };
        write!(f, "; {cure}, or name another database")
    }
}
