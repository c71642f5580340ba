//! sysbench's messages about failures that end a client. Where sysbench names the line of its script, these messages
//! name the test, because native tests have no script.

use wire::error::{ConnectionError, ServerError};

/// An error of the server or of the connection, with the parts that sysbench's messages contain.
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

/// The status that libpq gives a statement that failed (`PGRES_FATAL_ERROR`).
const FAILED: i32 = 7;

/// The greatest length of a statement in a message, in characters. Longer statements are shortened, since statements of
/// `bulk_insert` have half a megabyte.
const LONGEST_QUERY: usize = 4096;

/// Returns the last line of an error message. It says which function of the test failed, and why.
pub fn function_failed(function: &str, test: &str, reason: &str) -> String {
    format!("`{function}' function failed: {test}: {reason}")
}

/// Returns the lines of the message about a connection that could not be made.
pub fn not_connected(function: &str, test: &str, reason: &str) -> Vec<String> {
    // libpq ends its message with a line end, and sysbench adds another one.
    vec![
        format!("Connection to database failed: {reason}\n"),
        function_failed(function, test, "connection creation failed"),
    ]
}

/// Returns the lines of the message about a statement that could not be prepared.
pub fn not_prepared(test: &str, error: &ServerError) -> Vec<String> {
    vec![format!("PQprepare() failed: {error}\n"), function_failed("thread_init", test, "SQL API error")]
}

/// Returns the lines of the message about a prepared statement that failed.
pub fn not_executed(function: &str, test: &str, error: &SqlError) -> Vec<String> {
    vec![format!("PQexecPrepared() failed: {FAILED} {}", error.message), sql_error(function, test, error)]
}

/// Returns the lines of the message about a statement that was sent as text and failed.
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

/// True if sysbench rolls the event back and starts it again after an error with this SQLSTATE: a deadlock, a
/// serialization failure or a duplicate key.
pub fn is_ignorable(sqlstate: &str) -> bool {
    matches!(sqlstate, "40P01" | "40001" | "23505")
}
