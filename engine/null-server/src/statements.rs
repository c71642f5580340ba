//! Recognises by the words of a statement which kind of answer it needs. No statement is executed.

use std::borrow::Cow;

use ground::sql;

/// The kind of a statement: its effect on the session, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// The statement consists of blanks and comments only.
    Empty,
    /// The statement is BEGIN or START TRANSACTION. The field is its command tag.
    Begin(&'static str),
    /// The statement is COMMIT or END.
    Commit,
    Rollback,
    /// The statement is ROLLBACK TO SAVEPOINT, after which the transaction goes on.
    RollbackTo,
    /// The statement returns one row.
    Rows(KnownRow, CommandTag),
    CopyIn,
    CopyOut,
    /// The statement returns no rows.
    Done(CommandTag),
}

/// The fixed rows with which the server answers queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownRow {
    /// The column `abalance` with the value 0. It answers all queries that are not recognised.
    Balance,
    /// The number of rows in `pgbench_branches`.
    Branches,
    /// The answer to pgbench's query for partitions before a run: the strategy and the number of partitions.
    Partitions,
    /// The answer to pgbench's query for partitions before a run, in its form with the position in the search path
    /// before the strategy and the number of partitions.
    PlacedPartitions,
}

/// The command tag in a CommandComplete message.
pub type CommandTag = Cow<'static, [u8]>;

/// Returns true if a client such as pgbench sends this statement before a run to inspect the tables. Such a statement
/// has no delay.
pub fn is_survey(kind: &StatementKind) -> bool {
    use KnownRow::{Branches, Partitions, PlacedPartitions};
    matches!(kind, StatementKind::Rows(Branches | Partitions | PlacedPartitions, _))
}

/// Returns the kind of one statement.
pub fn classify(text: &[u8]) -> StatementKind {
    use StatementKind::{Begin, Commit, CopyIn, CopyOut, Done, Empty, Rollback, RollbackTo, Rows};
    let text = skip_blanks(text);
    if text.is_empty() {
        return Empty;
    }
    let (first, rest) = word(text);
    let second_is = |name: &str| word(rest).0.eq_ignore_ascii_case(name.as_bytes());
    let done = |tag: &'static str| Done(Cow::Borrowed(tag.as_bytes()));
    let rows = |tag: &'static str| Rows(KnownRow::Balance, Cow::Borrowed(tag.as_bytes()));
    let change = |tag| if contains(rest, b"returning") { rows(tag) } else { done(tag) };
    match &*first.to_ascii_lowercase() {
        b"select" => Rows(known_row(text), Cow::Borrowed(b"SELECT 1")),
        b"begin" => Begin("BEGIN"),
        b"start" => Begin("START TRANSACTION"),
        b"end" => Commit,
        b"commit" if !second_is("prepared") => Commit,
        b"rollback" | b"abort" if second_is("to") || contains(rest, b" to ") => RollbackTo,
        b"rollback" | b"abort" => Rollback,
        b"update" => change("UPDATE 1"),
        b"insert" => change("INSERT 0 1"),
        b"delete" => change("DELETE 1"),
        b"merge" => change("MERGE 1"),
        b"" | b"with" | b"values" | b"table" => rows("SELECT 1"),
        b"show" => rows("SHOW"),
        b"explain" => rows("EXPLAIN"),
        b"copy" if contains(rest, b"stdin") => CopyIn,
        b"copy" => CopyOut,
        b"truncate" => done("TRUNCATE TABLE"),
        b"create" | b"drop" | b"alter" => Done(capitals(&[first, word(rest).0].join(&b' '))),
        _ => Done(capitals(first)),
    }
}

fn capitals(words: &[u8]) -> CommandTag {
    Cow::Owned(words.trim_ascii_end().to_ascii_uppercase())
}

/// Splits a text after its first statement. Returns the statement without its semicolon, and the rest of the text. A
/// semicolon in quotes or in a comment does not end a statement.
pub fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < text.len() {
        at = match text[at] {
            b';' => return (&text[..at], &text[at + 1..]),
            b'\'' if at > 0 && matches!(text[at - 1], b'e' | b'E') => sql::escape_string_end(text, at),
            b'\'' | b'"' => sql::quoted_end(text, at),
            b'-' | b'/' => sql::comment_end(text, at).unwrap_or(at + 1),
            b'$' => sql::dollar_quoted_end(text, at).unwrap_or(at + 1),
            _ => at + 1,
        };
    }
    (text, b"")
}

/// Returns the highest number among the parameters `$1`, `$2`, ... of a statement.
pub fn parameters(text: &[u8]) -> u16 {
    let mut highest = 0;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'$') {
        at += found + 1;
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count().min(6);
        let number = text[at..at + digits].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        highest = highest.max(number.min(u32::from(u16::MAX)) as u16);
    }
    highest
}

/// Returns the fixed row with which the server answers a SELECT.
fn known_row(text: &[u8]) -> KnownRow {
    if contains(text, b"pgbench_branches") && contains(text, b"count(*)") {
        KnownRow::Branches
    } else if !contains(text, b"pg_partitioned_table") {
        KnownRow::Balance
    } else if contains(text, b"o.n") {
        KnownRow::PlacedPartitions
    } else {
        KnownRow::Partitions
    }
}

/// Splits the first word from a text, after blanks. Returns the word, which is empty if there is none, and the rest of
/// the text.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = skip_blanks(text);
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(text.len());
    text.split_at(end)
}

fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        match sql::comment_end(text, 0) {
            Some(end) => text = &text[end..],
            None => return text,
        }
    }
}

/// Returns true if `wanted` occurs in the text, ignoring case.
fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|bytes| bytes.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(text: &str) -> String {
        match classify(text.as_bytes()) {
            StatementKind::Done(tag) | StatementKind::Rows(_, tag) => String::from_utf8(tag.into_owned()).unwrap(),
            other => format!("{other:?}"),
        }
    }

    fn statements(text: &str) -> Vec<String> {
        let mut rest = text.as_bytes();
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (statement, after) = split(rest);
            found.push(String::from_utf8(statement.to_vec()).unwrap());
            rest = after;
        }
        found
    }

    #[test]
    fn transactions_begin_and_end() {
        assert_eq!(classify(b" begin isolation level serializable"), StatementKind::Begin("BEGIN"));
        assert_eq!(classify(b"START TRANSACTION"), StatementKind::Begin("START TRANSACTION"));
        assert_eq!(classify(b"/* a /* b */ c */ end -- now"), StatementKind::Commit);
        assert_eq!(classify(b"-- no\nROLLBACK"), StatementKind::Rollback);
        assert_eq!(classify(b"rollback work to savepoint a"), StatementKind::RollbackTo);
        assert_eq!(classify(b"rollback to a"), StatementKind::RollbackTo);
        assert_eq!(classify(b" -- nothing"), StatementKind::Empty);
    }

    #[test]
    fn rows_are_the_balance_unless_a_run_is_surveyed() {
        let table = |text: &str| match classify(text.as_bytes()) {
            StatementKind::Rows(table, _) => table,
            other => panic!("{other:?}"),
        };
        assert_eq!(table("select abalance from pgbench_accounts where aid = 1"), KnownRow::Balance);
        assert_eq!(table("(select 1)"), KnownRow::Balance);
        assert_eq!(table("update t set a = 1 returning a"), KnownRow::Balance);
        assert_eq!(table("select count(*) from pgbench_branches"), KnownRow::Branches);
        assert_eq!(
            table("select o.n, p.partstrat from pg_catalog.pg_partitioned_table as p"),
            KnownRow::PlacedPartitions
        );
        assert_eq!(table("select p.partstrat from pg_catalog.pg_partitioned_table as p"), KnownRow::Partitions);
    }

    #[test]
    fn tags_are_the_servers() {
        for (text, expected) in [
            ("UPDATE a SET b = 1", "UPDATE 1"),
            ("insert into a values (1)", "INSERT 0 1"),
            ("create table a (b int)", "CREATE TABLE"),
            ("vacuum analyze a", "VACUUM"),
            ("truncate a", "TRUNCATE TABLE"),
            ("set a = 1", "SET"),
        ] {
            assert_eq!(tag(text), expected);
        }
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_end_a_statement() {
        assert_eq!(statements("a; b ;c"), ["a", " b ", "c"]);
        assert_eq!(
            statements("';''' ; \";\" ; e'\\';' /* ; /* */ ; */ -- ;\n ; $$;$$ $a$;$$;$a$"),
            ["';''' ", " \";\" ", " e'\\';' /* ; /* */ ; */ -- ;\n ", " $$;$$ $a$;$$;$a$"]
        );
        assert_eq!(statements("$1;2"), ["$1", "2"]);
    }

    #[test]
    fn parameters_are_counted_by_their_highest_number() {
        for (text, expected) in [("", 0), ("$1 $10 $2", 10), ("$", 0), ("$999999999", u16::MAX)] {
            assert_eq!(parameters(text.as_bytes()), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_its_bytes(text in "[a-e \\\\'\"$/*;0-9\n-]{0,60}") {
            let mut rest = text.as_bytes();
            let mut joined = Vec::new();
            while !rest.is_empty() {
                let (statement, after) = split(rest);
                classify(statement);
                joined.extend_from_slice(statement);
                if statement.len() < rest.len() {
                    joined.push(b';');
                }
                rest = after;
            }
            prop_assert_eq!(joined, text.into_bytes());
        }
    }
}
