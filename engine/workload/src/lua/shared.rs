//! The data that all states of a script share: how sysbench was called, the script's text, and the destination of its
//! messages.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::counters::Uncounted;
use super::search::Chunk;
use crate::program::Fatal;
use crate::sb_rand::Distributions;
use crate::settings::Settings;

/// The command line with which sysbench was called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program's name, then its arguments.
    pub argv: Vec<String>,
    /// The test as it was named; `None` if the script is read from standard input.
    pub test: Option<String>,
    pub command: Option<String>,
    /// The driver that scripts get without naming one; `None` is PostgreSQL's.
    pub driver: Option<String>,
}

/// The message for a script that asks for a MySQL connection.
pub const NO_MYSQL: &str = "pgtrial is for PostgreSQL: use --db-driver=pgsql, or sysbench itself for MySQL";

/// The data that all states of a script share.
pub struct SharedStates {
    pub invocation: Invocation,
    pub chunk: Chunk,
    pub voice: Arc<dyn Voice>,
    /// The options that were chosen. They are not known to a script's top level.
    pub settings: OnceLock<Arc<Settings>>,
    pub distributions: OnceLock<Arc<Distributions>>,
    /// The query of `--mark-by`, which scripts do not see.
    pub mark_by: OnceLock<String>,
    /// True if the script has called `sysbench.sql.driver` in any state, that is, if it uses a database.
    pub uses_sql: AtomicBool,
    pub uncounted: Uncounted,
}

impl SharedStates {
    /// Returns the script's name, as messages have it: a file's name without its path.
    pub fn name(&self) -> &str {
        let path = self.invocation.test.as_deref().unwrap_or("<stdin>");
        Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
    }
}

/// Writes the messages and the output of scripts: one for all threads, each text in one piece.
pub trait Voice: Send + Sync {
    /// Writes a message of the driver: a fatal error, or an alert.
    fn say(&self, is_fatal: bool, text: &str);

    /// Writes what a script prints, with the ends of lines.
    fn print(&self, text: &[u8]);
}

/// Makes the fatal error for an error of Lua itself, such as a lack of memory.
pub fn broken(error: mlua::Error) -> Fatal {
    Fatal::new(format!("Lua: {error}"))
}
