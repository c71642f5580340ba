//! The state of a session, as its log records show it, until it ends.

use crate::error::CaptureError;
use crate::format::{RecordedStatement, SessionId, Writer};
use crate::left_out::{LeftOuts, Reason};
use crate::log::Record;
use crate::message::Names;
use crate::sql::tokens::Backslashes;
use crate::time::Micros;
use crate::transactions::{Completed, Transactions};

/// A session whose end has not been reached in the logs.
#[derive(Default)]
pub struct OpenSession {
    pub id: Option<SessionId>,
    pub session_id: String,
    /// The time at which the session connected, if the logs show it.
    pub connected: Option<Micros>,
    pub user: String,
    pub database: String,
    pub application: String,
    /// The statement that was logged when it began and whose end is not known yet.
    pub pending: Option<Pending>,
    pub transactions: Transactions,
    /// The template of the session's last statement.
    pub template: Option<u32>,
    /// The time at which the session's last statement ended, or began if its duration is not known. The next statement
    /// cannot have begun before this time.
    pub free: Micros,
    /// The line on which a statement was bound that has not been executed yet.
    pub bound: Option<u64>,
    /// The number of durations that were logged without a statement since the session's last statement, and the line of
    /// the first of them.
    pub durations: Option<(u64, u64)>,
    /// The name of the log that has the session's last record.
    pub source: String,
    /// True if the last statement was not captured, so that its duration has to be ignored too.
    pub is_left_out: bool,
    /// The meaning of backslashes in strings, if the session has set `standard_conforming_strings`; `None` if the
    /// server's configuration decides it.
    pub backslashes: Option<Backslashes>,
}

/// A statement that was logged when it began, and that is written when its end is known.
pub struct Pending {
    pub completed: Completed,
    /// The number of the line on which the statement was logged.
    pub line: u64,
    /// A hash of the statement's text. A later error message with the same statement belongs to this statement.
    pub hash: u64,
    /// The statement's text. It is kept only if the capture will be anonymized, for the case that an error shows that
    /// the server could not parse it.
    pub text: Option<String>,
}

impl OpenSession {
    /// Makes the state of a new session from its first record.
    pub fn of(record: &Record) -> Self {
        Self { session_id: record.session_id.clone(), ..Self::default() }
    }

    /// True if a record belongs to another session that has the same process number, because its session identifier,
    /// user or database differs.
    pub fn is_another(&self, record: &Record) -> bool {
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        differ(&self.session_id, &record.session_id)
            || differ(&self.user, &record.user)
            || differ(&self.database, &record.database)
    }

    /// Writes the statement that was logged when it began, if there is one.
    pub fn write_pending(&mut self, writer: &mut Writer, left_out: &mut LeftOuts) -> Result<(), CaptureError> {
        let Some(Pending { completed, line, .. }) = self.pending.take() else { return Ok(()) };
        let RecordedStatement { start, duration, .. } = completed.statement;
        let id = match self.id {
            Some(id) => id,
            None => *self.id.insert(writer.begin_session(self.connected.unwrap_or(start).min(start))?),
        };
        self.free = start.saturating_add(duration.unwrap_or(0));
        if self.transactions.write(completed, id, writer)? {
            left_out.add(Reason::BeginAdded, &self.source, line);
        }
        Ok(())
    }

    /// Remembers the names that a record contains. The application may change its name during the session; the capture
    /// gets the last one.
    pub fn learn(&mut self, names: &Names<'_>) {
        for (known, name) in [
            (&mut self.user, names.user),
            (&mut self.database, names.database),
            (&mut self.application, names.application),
        ] {
            if !name.is_empty() && known != name {
                Record::set(known, name);
            }
        }
    }
}
