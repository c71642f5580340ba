//! Recognizes the messages of a server that captures need, such as statements and durations. Source:
//! `src/backend/tcop/postgres.c` and `src/backend/utils/init/postinit.c` of PostgreSQL 9.6 to 18.

use crate::format::{Protocol, SqlState};
use crate::sql::tokens::{SqlToken, Tokens};
use crate::time::Micros;

/// The meaning of a message of severity LOG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// A statement. `duration` is the time that it took if it was logged after its end, and `None` if it was logged
    /// before.
    Statement {
        protocol: Protocol,
        text: &'a str,
        duration: Option<Micros>,
    },
    /// The time that a statement took, without its text. The text was logged before, or is not in the log.
    Duration(Micros),
    /// The client bound a statement (Bind of the extended protocol). Its execution has a message of its own.
    Bound,
    /// The client fetched more rows of a statement that had returned only a part of them.
    Fetch,
    /// The plan of a statement, logged by auto_explain.
    Plan,
    /// The client called a function over the fast-path interface (the protocol's message FunctionCall).
    FunctionCall,
    Connection,
    Authorized(Names<'a>),
    Disconnection,
    /// The server has started. The field is its version.
    Starting(&'a str),
    Other,
}

/// The names in the message about an authorized connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names<'a> {
    pub user: &'a str,
    pub database: &'a str,
    pub application: &'a str,
}

/// Returns the meaning of a message of severity LOG.
pub fn read(message: &str) -> Said<'_> {
    if let Some(rest) = message.strip_prefix("duration: ") {
        return timed(rest).unwrap_or(Said::Other);
    }
    if let Some(said) = statement(message, None) {
        return said;
    }
    if message.starts_with("connection received: ") {
        return Said::Connection;
    }
    if let Some(rest) = message.strip_prefix("connection authorized: ") {
        return Said::Authorized(names(rest));
    }
    if message.starts_with("disconnection: ") {
        return Said::Disconnection;
    }
    if let Some(version) = message.strip_prefix("starting PostgreSQL ") {
        return Said::Starting(version);
    }
    Said::Other
}

/// True if a message contains the text of a statement.
pub fn has_statement(message: &str) -> bool {
    matches!(read(message), Said::Statement { .. } | Said::Fetch)
}

/// Parses the text behind `duration: `, which contains the duration and may contain a statement.
fn timed(text: &str) -> Option<Said<'_>> {
    let (number, rest) = text.split_once(" ms")?;
    let duration = (number.parse::<f64>().ok()? * 1000.0).round() as Micros;
    match rest.strip_prefix("  ") {
        None if rest.is_empty() => Some(Said::Duration(duration)),
        None => None,
        Some(rest) if rest.starts_with("plan:\n") => Some(Said::Plan),
        // Parsing and binding are logged with durations of their own. Both belong to the execution that follows.
        Some(rest) => statement(rest, Some(duration)),
    }
}

fn statement(text: &str, duration: Option<Micros>) -> Option<Said<'_>> {
    if let Some(text) = text.strip_prefix("statement: ") {
        return Some(Said::Statement { protocol: Protocol::Simple, text, duration });
    }
    if text.starts_with("fastpath function call: ") {
        return Some(Said::FunctionCall);
    }
    if text.starts_with("bind ") {
        return Some(Said::Bound);
    }
    let named = text.strip_prefix("execute ")?;
    if named.starts_with("fetch from ") {
        return Some(Said::Fetch);
    }
    let (name, text) = split_name(named)?;
    // The name of a portal may follow the statement's name behind a slash.
    let is_unnamed = name == "<unnamed>" || name.starts_with("<unnamed>/");
    let protocol = if is_unnamed { Protocol::Extended } else { Protocol::Prepared };
    Some(Said::Statement { protocol, text, duration })
}

/// Splits a text into the name of a prepared statement and the statement. The name may itself contain a colon and a
/// space, so it ends at the first colon and space behind which an SQL command begins; if no command follows any of
/// them, at the first colon and space.
fn split_name(named: &str) -> Option<(&str, &str)> {
    let ends = memchr::memmem::find_iter(named.as_bytes(), b": ").take(MOST_COLONS);
    let begins_command =
        |end: &usize| Tokens::of(&named[end + 2..]).find(|token| !token.is_blank()).is_some_and(is_command);
    let mut ends = ends.peekable();
    let first = *ends.peek()?;
    let end = ends.find(begins_command).unwrap_or(first);
    Some((&named[..end], &named[end + 2..]))
}

/// The greatest number of colons, each with a space, that a name can have: a name has at most 63 bytes.
const MOST_COLONS: usize = 32;

fn is_command(token: SqlToken<'_>) -> bool {
    token.is_symbol("(") || COMMANDS.iter().any(|command| token.is_word(command))
}

/// The first words of all commands that can be prepared or that are logged as executed (`gram.y`, `stmt`).
#[rustfmt::skip]
const COMMANDS: [&str; 53] = [
    "select", "insert", "update", "delete", "merge", "with", "values", "table", "call", "begin", "start", "commit", "end",
    "rollback", "abort", "savepoint", "release", "set", "reset", "show", "discard", "prepare", "execute", "deallocate", "declare",
    "fetch", "move", "close", "copy", "create", "alter", "drop", "truncate", "comment", "grant", "revoke", "reassign", "lock",
    "analyze", "analyse", "vacuum", "cluster", "reindex", "checkpoint", "explain", "listen", "notify", "unlisten", "load", "do",
    "refresh", "import", "security",
];

/// Parses names such as `user=me database=shop application_name=psql SSL enabled (...)`. The values may contain spaces.
fn names(text: &str) -> Names<'_> {
    let value = |key: &str| {
        let Some(at) = text.find(key) else { return "" };
        let rest = &text[at + key.len()..];
        let ends = [" database=", " application_name=", " SSL enabled", " GSS ("];
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        &rest[..end]
    };
    Names { user: value("user="), database: value("database="), application: value("application_name=") }
}

/// Returns the SQLSTATE of an error with which a statement ends that was cancelled (see
/// [`crate::format::StatementFailure`]). Returns `None` for other errors. Source: `ProcessInterrupts` in
/// `src/backend/tcop/postgres.c`.
pub fn cancellation(message: &str) -> Option<SqlState> {
    const MESSAGES: [(&str, &SqlState); 8] = [
        ("canceling statement due to user request", b"57014"),
        ("canceling statement due to statement timeout", b"57014"),
        ("canceling statement due to lock timeout", b"55P03"),
        ("canceling statement due to conflict with recovery", b"40001"),
        ("terminating connection due to conflict with recovery", b"40001"),
        ("terminating connection due to transaction timeout", b"25P04"),
        ("terminating connection due to administrator command", b"57P01"),
        ("connection to client lost", b"08006"),
    ];
    MESSAGES.iter().find(|(text, _)| message == *text).map(|(_, code)| **code)
}

/// Returns the list of parameters in the detail of an executed statement.
pub fn detail_parameters(detail: &str) -> Option<&str> {
    // Since PostgreSQL 16 the word begins with a capital letter.
    detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
}

/// Returns the list of parameters in the context of an error. log_parameter_max_length_on_error makes the server log
/// it.
pub fn context_parameters(context: &str) -> Option<&str> {
    let line = context.rfind(" with parameters: $1 = ")?;
    Some(&context[line + " with parameters: ".len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_protocol() {
        for (message, protocol, text, duration) in [
            ("statement: select 1", Protocol::Simple, "select 1", None),
            ("statement: ", Protocol::Simple, "", None),
            ("execute <unnamed>: select $1", Protocol::Extended, "select $1", None),
            ("execute <unnamed>/C_3: select $1", Protocol::Extended, "select $1", None),
            ("execute P0_1: select ': '", Protocol::Prepared, "select ': '", None),
            ("execute users: by id: SELECT $1::int", Protocol::Prepared, "SELECT $1::int", None),
            (
                "execute a: b: c: /* d: e */ with x as (select 1)",
                Protocol::Prepared,
                "/* d: e */ with x as (select 1)",
                None,
            ),
            ("execute a: explode: 1", Protocol::Prepared, "explode: 1", None),
            ("duration: 1234.567 ms  statement: a\nb", Protocol::Simple, "a\nb", Some(1_234_567)),
            ("duration: 0.004 ms  execute <unnamed>: a", Protocol::Extended, "a", Some(4)),
        ] {
            assert_eq!(read(message), Said::Statement { protocol, text, duration }, "{message}");
        }
    }

    #[test]
    fn further_messages_are_known() {
        for (message, said) in [
            ("duration: 0.250 ms", Said::Duration(250)),
            ("duration: 0.250 ms  parse <unnamed>: select 1", Said::Other),
            ("duration: 0.250 ms  bind <unnamed>: select 1", Said::Bound),
            ("duration: 0.250 ms  plan:\nQuery Text: a", Said::Plan),
            ("execute fetch from C_3: select $1", Said::Fetch),
            ("duration: 0.1 ms  execute fetch from C_3: select $1", Said::Fetch),
            ("fastpath function call: \"lo_open\" (OID 952)", Said::FunctionCall),
            ("connection received: host=[local]", Said::Connection),
            ("disconnection: session time: 0:00:00.01 user=me database=db host=[local]", Said::Disconnection),
            ("starting PostgreSQL 18.1 on x86_64", Said::Starting("18.1 on x86_64")),
            ("checkpoint starting: time", Said::Other),
        ] {
            assert_eq!(read(message), said, "{message}");
        }
    }

    #[test]
    fn names_of_a_connection_may_have_spaces() {
        for (message, user, database, application) in [
            ("user=me database=shop", "me", "shop", ""),
            (
                "user=me database=my shop application_name=my app SSL enabled (protocol=TLSv1.3)",
                "me",
                "my shop",
                "my app",
            ),
            ("user=me application_name=pg_receivewal", "me", "", "pg_receivewal"),
        ] {
            assert_eq!(
                read(&format!("connection authorized: {message}")),
                Said::Authorized(Names { user, database, application })
            );
        }
    }

    #[test]
    fn parameters_stand_in_the_detail_or_the_context() {
        assert_eq!(detail_parameters("parameters: $1 = 'a'"), Some("$1 = 'a'"));
        assert_eq!(detail_parameters("Parameters: $1 = 'a'"), Some("$1 = 'a'"));
        assert_eq!(detail_parameters("prepare: PREPARE a AS select 1"), None);
        for context in ["unnamed portal with parameters: $1 = 'a'", "x\nportal \"b\" with parameters: $1 = 'a'"] {
            assert_eq!(context_parameters(context), Some("$1 = 'a'"));
        }
        assert_eq!(context_parameters("PL/pgSQL function f() line 1"), None);
    }
}
