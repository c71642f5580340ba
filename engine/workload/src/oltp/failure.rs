//! sysbench's words for what cannot go on. It names the line of its script; we have no script, and name the test.

use wire::error::{ConnectionError, ServerError};

/// What an error of the server or of the connection says of itself.
pub struct SqlError<'a> {
    sqlstate: &'a str,
    message: String,
}

impl<'a> From<&'a ServerError> for SqlError<'a> {
    fn from(error: &'a ServerError) -> Self {
        Self { sqlstate: &error.sqlstate, message: error.message.clone() }
    }
}

impl<'a> From<&'a ConnectionError> for SqlError<'a> {
    fn from(error: &'a ConnectionError) -> Self {
        match error {
            ConnectionError::Server(error) => Self::from(&**error),
            other => Self { sqlstate: other.sqlstate(), message: other.to_string() },
        }
    }
}

/// The result that libpq gives a statement with an error (`PGRES_FATAL_ERROR`).
const FAILED: i32 = 7;

/// Longer statements are cut: those of bulk inserts have half a megabyte.
const LONGEST_QUERY: usize = 4096;

/// The last line: which function of the script could not go on, and why.
pub fn function_failed(function: &str, test: &str, reason: &str) -> String {
    format!("`{function}' function failed: {test}: {reason}")
}

/// There is no connection.
pub fn not_connected(function: &str, test: &str, reason: &str) -> Vec<String> {
    // libpq ends its message with a new line, and sysbench adds one.
    vec![
        format!("Connection to database failed: {reason}\n"),
        function_failed(function, test, "connection creation failed"),
    ]
}

/// A statement could not be prepared.
pub fn not_prepared(test: &str, error: &ServerError) -> Vec<String> {
    vec![format!("PQprepare() failed: {error}\n"), function_failed("thread_init", test, "SQL API error")]
}

/// A prepared statement could not be executed.
pub fn not_executed(function: &str, test: &str, error: &SqlError) -> Vec<String> {
    vec![format!("PQexecPrepared() failed: {FAILED} {}", error.message), sql_error(function, test, error)]
}

/// A statement that was sent as text could not be executed.
pub fn not_done(function: &str, test: &str, sql: &str, error: &SqlError) -> Vec<String> {
    let shown = match sql.char_indices().nth(LONGEST_QUERY) {
        Some((end, _)) => format!("{}...", &sql[..end]),
        None => sql.to_owned(),
    };
    vec![
        format!("PQexec() failed: {FAILED} {}", error.message),
        format!("failed query was: {shown}"),
        sql_error(function, test, error),
    ]
}

fn sql_error(function: &str, test: &str, error: &SqlError) -> String {
    let SqlError { sqlstate, message } = error;
    function_failed(function, test, &format!("SQL error, errno = 0, state = '{sqlstate}': {message}"))
}

/// Whether sysbench rolls back and starts the event again: after a deadlock, a failed serialization or a duplicate key.
pub fn is_ignorable(sqlstate: &str) -> bool {
    matches!(sqlstate, "40P01" | "40001" | "23505")
}
