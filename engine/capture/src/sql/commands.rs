//! Finds out from the first words of a statement what it does to its session: it begins or ends a transaction block,
//! drops prepared statements, or writes rows.

use ground::sql;

/// The effect of a statement on the transaction block of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockStep {
    /// The statement begins a block, such as BEGIN.
    Begin,
    /// The statement ends the block, such as COMMIT.
    End,
    /// The statement rolls back to a savepoint, so that errors since the savepoint do not abort the block any more.
    RollBackToSavepoint,
    #[default]
    Stay,
}

/// Returns what a statement does to the transaction block of its session. PREPARE TRANSACTION also ends a block, but is
/// so rare that it is ignored here.
pub fn block_step(text: &str) -> BlockStep {
    let [first, second, third] = first_words(text);
    let is = |word: &str, keyword: &str| word.eq_ignore_ascii_case(keyword);
    let is_first = |keywords: &[&str]| keywords.iter().any(|keyword| is(first, keyword));
    if is_first(&["begin"]) || is_first(&["start"]) && is(second, "transaction") {
        return BlockStep::Begin;
    }
    // The command is ROLLBACK [WORK | TRANSACTION] TO SAVEPOINT.
    if is_first(&["rollback", "abort"]) && (is(second, "to") || is(third, "to")) {
        return BlockStep::RollBackToSavepoint;
    }
    if is_first(&["commit", "rollback"]) && is(second, "prepared") {
        return BlockStep::Stay;
    }
    if is_first(&["commit", "end", "rollback", "abort"]) { BlockStep::End } else { BlockStep::Stay }
}

/// True if a statement drops all prepared statements of the session.
pub fn discards(text: &str) -> bool {
    let [first, second, third] = first_words(text).map(str::to_ascii_lowercase);
    match (&*first, &*second) {
        ("discard" | "deallocate", "all") => true,
        ("deallocate", "prepare") => third == "all",
        _ => false,
    }
}

/// True if a statement is an INSERT, UPDATE, DELETE or MERGE.
pub fn writes(text: &str) -> bool {
    let [first, ..] = first_words(text);
    ["insert", "update", "delete", "merge"].iter().any(|keyword| first.eq_ignore_ascii_case(keyword))
}

/// Returns the first three words of a statement. Comments are skipped, and reading ends at the first character that
/// does not belong to a word. Missing words are empty.
fn first_words(text: &str) -> [&str; 3] {
    let mut rest = text.as_bytes();
    let mut words = [""; 3];
    for word in &mut words {
        rest = rest.trim_ascii_start();
        while let Some(end) = sql::comment_end(rest, 0) {
            rest = rest[end..].trim_ascii_start();
        }
        let at = text.len() - rest.len();
        let length = rest.iter().take_while(|byte| sql::is_name(**byte)).count();
        // All bytes of letters outside of ASCII are accepted, because such letters occur in names.
        *word = text.get(at..at + length).unwrap_or_default();
        if length == 0 {
            break;
        }
        rest = &rest[length..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_blocks_are_recognized_by_their_words() {
        for (texts, step) in [
            (
                &["BEGIN", " begin;", "-- now\nStart transaction", "begin isolation level serializable"][..],
                BlockStep::Begin,
            ),
            (
                &["COMMIT", " end;", "-- now\nRollback", "/* a */ abort work", "commit and chain", "ROLLBACK;"],
                BlockStep::End,
            ),
            (&["rollback to a", "ROLLBACK TRANSACTION TO SAVEPOINT a"], BlockStep::RollBackToSavepoint),
            (
                &[
                    "",
                    "select 1",
                    "start",
                    "commit prepared 'x'",
                    "rollback prepared 'x'",
                    "update end set a = 1",
                    "commits",
                    "'end'",
                    "é commit",
                ],
                BlockStep::Stay,
            ),
        ] {
            for text in texts {
                assert_eq!(block_step(text), step, "{text}");
            }
        }
    }

    #[test]
    fn what_drops_all_prepared_statements_is_recognized() {
        let found =
            ["DISCARD ALL", "deallocate all;", "DEALLOCATE PREPARE ALL", "discard plans", "deallocate a", "all"]
                .map(discards);
        assert_eq!(found, [true, true, true, false, false, false]);
    }

    #[test]
    fn what_writes_is_recognized() {
        let found = ["INSERT INTO a", "/* x */ update a", "select 1", "with a as (select 1) select"].map(writes);
        assert_eq!(found, [true, true, false, false]);
    }
}
