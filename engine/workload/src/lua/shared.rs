//! The data that all Lua states of a script share: sysbench's command line, the script's text, the options, and the
//! destination of messages.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::counters::Uncounted;
use super::search::Chunk;
use crate::program::Fatal;
use crate::sb_rand::Distributions;
use crate::settings::Settings;

/// The command line with which the user called sysbench.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The name of the program and its arguments.
    pub argv: Vec<String>,
    /// The test as the user named it; `None` if the script is read from standard input.
    pub test: Option<String>,
    pub command: Option<String>,
    /// The database driver that a script gets if it does not name one; `None` stands for PostgreSQL's.
    pub driver: Option<String>,
}

/// The error for a script that asks for a connection to MySQL.
pub const NO_MYSQL: &str = "pgtrial is for PostgreSQL: use --db-driver=pgsql, or sysbench itself for MySQL";

/// The data that all Lua states of a script share.
pub struct SharedStates {
    pub invocation: Invocation,
    pub chunk: Chunk,
    pub voice: Arc<dyn Voice>,
    /// The chosen options. They are not set yet when the script's top level first runs.
    pub settings: OnceLock<Arc<Settings>>,
    pub distributions: OnceLock<Arc<Distributions>>,
    /// The query that the user gave with `--mark-by`, which returns statements that mark new objects. Scripts cannot
    /// see it.
    pub mark_by: OnceLock<String>,
    /// True if the script has called `sysbench.sql.driver` in any of its Lua states, which shows that it uses a
    /// database.
    pub uses_sql: AtomicBool,
    pub uncounted: Uncounted,
}

impl SharedStates {
    /// Returns the script's name in messages: the name of its file without the path.
    pub fn name(&self) -> &str {
        let path = self.invocation.test.as_deref().unwrap_or("<stdin>");
        Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
    }
}

/// The destination of the messages and the output of scripts. All threads write to the same voice, and texts of
/// different threads are not mixed.
pub trait Voice: Send + Sync {
    /// Writes a message of sysbench's database driver. `is_fatal` is true for a fatal error and false for an alert.
    fn say(&self, is_fatal: bool, text: &str);

    /// Writes what a script prints. The text includes the line ends.
    fn print(&self, text: &[u8]);
}

/// Converts an error of Lua itself, such as a lack of memory, to a fatal error.
pub fn broken(error: mlua::Error) -> Fatal {
    Fatal::new(format!("Lua: {error}"))
}
