//! Marks the objects that a script's command makes. A statement that may make an object runs in one transaction with
//! the statements that mark the object. So no mark is missing if the engine ends early, and objects of other sessions
//! get no mark.

use std::collections::BTreeSet;

use super::request::{Answer, CoroutineRequest};
use crate::program::ActionResult;
use wire::Answered;

/// The first words of statements that make no objects.
const MAKE_NOTHING: &[&str] = &[
    "abort",
    "alter",
    "analyze",
    "begin",
    "checkpoint",
    "close",
    "cluster",
    "commit",
    "copy",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "drop",
    "end",
    "fetch",
    "grant",
    "insert",
    "listen",
    "lock",
    "move",
    "notify",
    "prepare",
    "reindex",
    "release",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "set",
    "show",
    "start",
    "truncate",
    "unlisten",
    "update",
    "vacuum",
];

/// The SQLSTATEs with which the server rejects statements that cannot run in a transaction block, such as CREATE INDEX
/// CONCURRENTLY or a CALL that commits.
const NEED_NO_TRANSACTION: &[&str] = &["25001", "2D000"];

/// The error for a text that ends the transaction around it.
const ENDS_ITSELF: &str = "the text commits by itself, so pgtrial cannot mark the objects that it makes, and will never \
                           drop them; send BEGIN and COMMIT as statements of their own";

/// The text that is sent next while the objects that a statement makes are being marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client is not marking the objects of any statement.
    Idle,
    Begin,
    /// The script's statement is sent next.
    Statement,
    /// The query that the user gave with `--mark-by` is sent next. It returns the statements that mark the new objects.
    Ask,
    Mark,
    Commit,
    /// ROLLBACK is sent next, because the statement or its marking has failed.
    Rollback,
    /// The script's statement is sent once more, now without a transaction around it.
    Alone,
}

/// Marks the database objects that the statements of one client make, by statements that the query of `--mark-by`
/// returns.
pub struct Marking {
    /// The query of `--mark-by`. It returns one value: the statements that mark what the current transaction has made.
    query: String,
    stage: Stage,
    /// The request for the script's statement whose objects are being marked.
    request: CoroutineRequest,
    /// True if the marking itself has begun the transaction around the script's statement; false if the script has
    /// begun it.
    is_own: bool,
    /// The connections on which the script has begun a transaction.
    open: BTreeSet<usize>,
    /// The marking statements that the query of `--mark-by` has returned.
    marks: String,
    /// The answer that the script gets when the objects of its statement are marked.
    answer: Answer,
}

impl Marking {
    /// Makes a marking that gets the statements which mark new objects from `query`, the query of `--mark-by`.
    pub fn new(query: String) -> Self {
        Self {
            query,
            stage: Stage::Idle,
            request: CoroutineRequest::Nothing,
            is_own: false,
            open: BTreeSet::new(),
            marks: String::new(),
            answer: Answer::Nothing,
        }
    }

    /// Begins to mark the objects that the script's next statement makes, if its `text` may make objects. Returns true
    /// if BEGIN must be sent before the statement.
    pub fn begin(&mut self, request: CoroutineRequest, connection: usize, text: &[u8]) -> bool {
        if self.stage != Stage::Idle || !may_make(text) {
            return false;
        }
        self.request = request;
        self.is_own = !self.open.contains(&connection);
        self.stage = if self.is_own { Stage::Begin } else { Stage::Statement };
        self.is_own
    }

    /// Returns the text to send next around the script's statement: BEGIN, the query of `--mark-by`, the marking
    /// statements, COMMIT or ROLLBACK. Returns `None` if the script's own statement comes next.
    pub fn text(&self) -> Option<&str> {
        Some(match self.stage {
            Stage::Begin => "BEGIN",
            Stage::Ask => &self.query,
            Stage::Mark => &self.marks,
            Stage::Commit => "COMMIT",
            Stage::Rollback => "ROLLBACK",
            Stage::Idle | Stage::Statement | Stage::Alone => return None,
        })
    }

    /// Processes the result of the script's statement. `answer` is the script's answer to it. Returns `answer` if
    /// nothing else has to be sent first. Otherwise keeps it until the objects of the statement are marked, and returns
    /// `None`.
    pub fn take_answer(
        &mut self,
        connection: Option<usize>,
        result: &ActionResult<'_>,
        answer: Answer,
    ) -> Option<Answer> {
        let is_marked = std::mem::replace(&mut self.stage, Stage::Idle) == Stage::Statement;
        let (next, answer) = match result {
            ActionResult::Done(answered) if is_marked && answered.in_transaction => (Stage::Ask, answer),
            ActionResult::Done(_) if is_marked && self.is_own => (Stage::Idle, Answer::failed("25001", ENDS_ITSELF)),
            ActionResult::Failed(_) if is_marked && self.is_own => (Stage::Rollback, answer),
            _ => (Stage::Idle, answer),
        };
        if !(is_marked && self.is_own) {
            self.note(connection, result);
        }
        if next == Stage::Idle {
            return Some(answer);
        }
        (self.stage, self.answer) = (next, answer);
        None
    }

    /// Processes the result of the text that [`Marking::text`] returned. Returns the answer for the script if the
    /// marking is complete, and the script's request if its statement has to be sent next.
    pub fn complete(&mut self, result: &ActionResult<'_>) -> (Option<Answer>, Option<CoroutineRequest>) {
        let failed = match result {
            ActionResult::Done(_) => None,
            ActionResult::Failed(error) => Some(Answer::rejected(error)),
            ActionResult::Lost(error) => Some(Answer::failed(error.sqlstate(), &error.to_string())),
            ActionResult::Refused(error) => Some(Answer::failed(&error.message, &error.message)),
        };
        if let Some(answer) = failed {
            return self.fail(answer, matches!(result, ActionResult::Failed(_)));
        }
        let after = if self.is_own { Stage::Commit } else { Stage::Idle };
        self.stage = match self.stage {
            Stage::Begin => Stage::Statement,
            Stage::Ask => match marks_in(result) {
                Some(marks) if marks.is_empty() => after,
                Some(marks) => {
                    self.marks = marks;
                    Stage::Mark
                }
                None => return self.fail(Answer::failed("22021", "a name is not valid UTF-8"), true),
            },
            Stage::Mark => after,
            Stage::Rollback if needs_no_transaction(&self.answer) => Stage::Alone,
            Stage::Rollback | Stage::Commit | Stage::Idle | Stage::Statement | Stage::Alone => Stage::Idle,
        };
        match self.stage {
            Stage::Idle => (Some(std::mem::take(&mut self.answer)), None),
            Stage::Statement | Stage::Alone => (None, Some(self.request)),
            _ => (None, None),
        }
    }

    /// Handles a failure of the marking statements or of the transaction around them. The script gets `answer`, as if
    /// its own statement had failed.
    fn fail(&mut self, answer: Answer, is_connected: bool) -> (Option<Answer>, Option<CoroutineRequest>) {
        let rolls_back = self.is_own && is_connected && matches!(self.stage, Stage::Ask | Stage::Mark);
        if rolls_back {
            (self.stage, self.answer) = (Stage::Rollback, answer);
            return (None, None);
        }
        self.stage = Stage::Idle;
        (Some(answer), None)
    }

    /// Records whether a connection is now in a transaction that the script has begun. A failed statement does not end
    /// such a transaction.
    fn note(&mut self, connection: Option<usize>, result: &ActionResult<'_>) {
        let Some(number) = connection else { return };
        match result {
            ActionResult::Done(answered) if answered.in_transaction => drop(self.open.insert(number)),
            ActionResult::Failed(_) => {}
            ActionResult::Done(_) | ActionResult::Lost(_) | ActionResult::Refused(_) => drop(self.open.remove(&number)),
        }
    }
}

/// True if a text may make objects: it has several statements, or its first word is not in [`MAKE_NOTHING`].
fn may_make(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let word = text.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default().to_ascii_lowercase();
    !text.is_empty() && (text.contains(&b';') || !MAKE_NOTHING.iter().any(|known| known.as_bytes() == word))
}

fn needs_no_transaction(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { sqlstate, .. } if NEED_NO_TRANSACTION.contains(&sqlstate.as_str()))
}

/// Returns the only value of the query's result. Returns an empty text if the value is NULL or there is no row, and
/// `None` if the value is not UTF-8.
fn marks_in(result: &ActionResult<'_>) -> Option<String> {
    let ActionResult::Done(Answered { data, .. }) = result else { return Some(String::new()) };
    // A DataRow message has its type and length, the number of values, and then the length and bytes of the first
    // value.
    let length = data.get(7..11).and_then(|length| length.try_into().ok()).map_or(-1, i32::from_be_bytes);
    let end = usize::try_from(length).map_or(11, |length| 11 + length);
    String::from_utf8(data.get(11..end).unwrap_or_default().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_make_something_is_told_by_its_first_word() {
        for text in [
            "CREATE TABLE t()",
            " select f()",
            "DO $$ $$",
            "-- a comment\ninsert",
            "with x as (select 1) select 1",
            "begin; create table t(); commit",
            "call p()",
        ] {
            assert!(may_make(text.as_bytes()), "{text}");
        }
        for text in ["", " ; ", "INSERT INTO t VALUES (1);", "vacuum t", "COMMIT", "drop table t ;"] {
            assert!(!may_make(text.as_bytes()), "{text}");
        }
    }
}
