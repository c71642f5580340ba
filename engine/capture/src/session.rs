//! A session as its records show it, until it ends.

use crate::error::CaptureError;
use crate::format::{RecordedStatement, SessionId, Writer};
use crate::left_out::{LeftOuts, Reason};
use crate::log::Record;
use crate::message::Names;
use crate::sql::tokens::Backslashes;
use crate::time::Micros;
use crate::transactions::{Completed, Transactions};

/// A session that has not ended yet.
#[derive(Default)]
pub struct OpenSession {
    pub id: Option<SessionId>,
    pub session_id: String,
    /// The time at which the session connected, if that is in the logs.
    pub connected: Option<Micros>,
    pub user: String,
    pub database: String,
    pub application: String,
    /// A statement that was logged when it began.
    pub pending: Option<Pending>,
    pub transactions: Transactions,
    /// The template of the last statement.
    pub template: Option<u32>,
    /// The time at which the statement before ended, or began if its duration is not known.
    pub free: Micros,
    /// The line of a statement that was bound and not executed yet.
    pub bound: Option<u64>,
    /// The number of durations without a statement that the log has had since the session's last statement, and the
    /// line of the first of them.
    pub durations: Option<(u64, u64)>,
    /// The log of the session's last record.
    pub source: String,
    /// True if the last statement was left out: its duration is left out too.
    pub is_left_out: bool,
    /// The meaning of backslashes in strings that the session has chosen; `None` if the server's settings decide it.
    pub backslashes: Option<Backslashes>,
}

/// A statement that was logged when it began.
pub struct Pending {
    pub completed: Completed,
    /// The line on which the statement was logged.
    pub line: u64,
    /// The hash of the statement's text, with which an error in the log is assigned to its statement.
    pub hash: u64,
    /// The statement's text, if values are replaced afterwards and an error may show that the text cannot be read.
    pub text: Option<String>,
}

impl OpenSession {
    /// Makes the session of a record.
    pub fn of(record: &Record) -> Self {
        Self { session_id: record.session_id.clone(), ..Self::default() }
    }

    /// Returns true if a record cannot belong to this session although it has the same process number.
    pub fn is_another(&self, record: &Record) -> bool {
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        differ(&self.session_id, &record.session_id)
            || differ(&self.user, &record.user)
            || differ(&self.database, &record.database)
    }

    /// Completes the statement that was logged when it began, if there is one.
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

    /// Takes over names that are known. The application may change during the session; the last one counts.
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
