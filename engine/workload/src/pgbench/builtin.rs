//! pgbench's built-in scripts, as in PostgreSQL 18.

use thiserror::Error;

/// The error for a name that does not determine a built-in script.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum BuiltinError {
    #[error("no builtin script found for name \"{0}\"")]
    Unknown(String),
    #[error("ambiguous builtin name: {found} builtin scripts found for prefix \"{name}\"")]
    Ambiguous { name: String, found: usize },
}

/// A script that is built into pgbench.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub description: &'static str,
    pub text: &'static str,
}

/// All built-in scripts, in the order in which `-b list` prints them.
pub const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: "\\set aid random(1, 100000 * :scale)\n\
               \\set bid random(1, 1 * :scale)\n\
               \\set tid random(1, 10 * :scale)\n\
               \\set delta random(-5000, 5000)\n\
               BEGIN;\n\
               UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
               SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
               UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
               UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
               INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
               END;\n",
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: "\\set aid random(1, 100000 * :scale)\n\
               \\set bid random(1, 1 * :scale)\n\
               \\set tid random(1, 10 * :scale)\n\
               \\set delta random(-5000, 5000)\n\
               BEGIN;\n\
               UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
               SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
               INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
               END;\n",
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)\n\
               SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

/// Returns the only built-in script whose name starts with `name`. Fails if there is none, or more than one.
pub fn find(name: &str) -> Result<&'static Builtin, BuiltinError> {
    let found: Vec<_> = BUILTINS.iter().filter(|b| b.name.starts_with(name)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(BuiltinError::Unknown(name.to_owned())),
        _ => Err(BuiltinError::Ambiguous { name: name.to_owned(), found: found.len() }),
    }
}

/// Returns the text that `-b list` prints.
pub fn listing() -> String {
    let lines: String = BUILTINS.iter().map(|b| format!("  {:>13}: {}\n", b.name, b.description)).collect();
    format!("Available builtin scripts:\n{lines}\n")
}
