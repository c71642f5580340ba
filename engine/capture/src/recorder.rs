//! Makes sessions and statements from the records of logs, and writes them into a capture.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::doubts::{Doubts, Logged};
use crate::error::CaptureError;
use crate::format::{Protocol, RecordedStatement, StatementFailure, Writer};
use crate::left_out::{LeftOuts, Reason};
use crate::log::{Record, Severity, language_of};
use crate::message::{self, Names, Said};
use crate::selection::Selection;
use crate::session::{OpenSession, Pending};
use crate::sql::commands::block_step;
use crate::sql::literals::highest_parameter;
use crate::sql::reading::chosen_backslashes;
use crate::sql::tokens::{SqlToken, Tokens};
use crate::statement_template::{SentText, TemplateMaker, Templated};
use crate::time::{Micros, Timestamp};
use crate::transactions::Completed;

/// Makes sessions and statements from records, which it receives in the order of the logs.
pub struct Recorder {
    writer: Writer,
    selection: Selection,
    left_out: LeftOuts,
    server_version: Option<String>,
    /// The open session of each process. A process serves one session at a time.
    sessions: HashMap<u32, OpenSession>,
    templates: TemplateMaker,
    doubts: Doubts,
    /// True if the capture will be anonymized. A statement whose values cannot be recognized with certainty is then
    /// replaced by a token as a whole.
    conceals: bool,
    /// The time of the first record of all logs.
    first: Option<Micros>,
    /// The times of the first and of the last record of all logs.
    range: Option<(Timestamp, Timestamp)>,
    /// Errors of processes that may be parallel workers, with the names of their logs. They are kept for a while,
    /// because the leader of a parallel query repeats the error of its worker.
    repeated: Vec<(Record, String)>,
}

/// The number of durations that log_duration writes in the extended protocol before the duration of the execution: one
/// for parsing and one for binding.
const STEPS_BEFORE: u64 = 2;

/// The time in microseconds for which pgtrial remembers an error that the leader of a parallel query may repeat.
const REPEATED: Micros = 10_000_000;

/// The greatest error of a log's timestamps in microseconds, with a margin. Times of `%t` are cut to whole seconds.
const COARSEST: Micros = 2_000_000;

impl Recorder {
    /// Makes a recorder that records the selected statements. `conceals` is true if the capture will be anonymized, so
    /// that statements whose values cannot be recognized with certainty are replaced as a whole.
    pub fn new(writer: Writer, selection: Selection, conceals: bool) -> Self {
        Self {
            writer,
            selection,
            left_out: LeftOuts::default(),
            server_version: None,
            sessions: HashMap::new(),
            templates: TemplateMaker::new(conceals),
            doubts: Doubts::default(),
            conceals,
            first: None,
            range: None,
            repeated: Vec::new(),
        }
    }

    /// Ends all sessions and writes their pending statements. Returns the writer, and the facts about the logs that
    /// were found, such as what is left out.
    pub fn finish(mut self) -> Result<Finished, CaptureError> {
        self.take_unrepeated(Micros::MAX, None)?;
        let mut processes: Vec<u32> = self.sessions.keys().copied().collect();
        processes.sort_unstable();
        processes.into_iter().try_for_each(|pid| self.end_session(pid, None))?;
        let outside = self.range.and_then(|range| self.selection.outside(range));
        Ok(Finished { writer: self.writer, left_out: self.left_out, server_version: self.server_version, outside })
    }

    /// Counts a statement or a line that the capture does not contain.
    pub fn leave_out(&mut self, reason: Reason, source: &str, line: u64) -> Result<(), CaptureError> {
        self.left_out.add(reason, source, line);
        Ok(())
    }

    /// Processes a record of the log `source`.
    pub fn take(&mut self, record: &Record, source: &str) -> Result<(), CaptureError> {
        self.first.get_or_insert(record.time.utc);
        self.range.get_or_insert((record.time, record.time)).1 = record.time;
        if !self.repeated.is_empty() {
            self.take_unrepeated(record.time.utc, Some(record.pid))?;
        }
        if record.language.is_some() || language_of(&record.message).is_some() {
            return self.leave_out(Reason::OtherLanguage, source, record.line);
        }
        match record.severity {
            // auto_explain may log plans with another severity than LOG.
            Severity::Other if matches!(message::read(&record.message), Said::Plan) => {
                self.leave_out(Reason::Plan, source, record.line)
            }
            Severity::Other => Ok(()),
            Severity::Error | Severity::Fatal => self.error(record, source),
            Severity::Log => self.log(record, source),
        }
    }

    fn log(&mut self, record: &Record, source: &str) -> Result<(), CaptureError> {
        match message::read(&record.message) {
            Said::Starting(version) => {
                self.server_version = Some(version.to_owned());
                Ok(())
            }
            Said::Other => Ok(()),
            _ if !is_client(record) => Ok(()),
            Said::Statement { protocol, text, duration } => {
                // The simple protocol has no bound parameters, even if a damaged log seems to show some.
                let is_bound = protocol != Protocol::Simple;
                let parameters = message::detail_parameters(&record.detail).filter(|_| is_bound);
                self.statement(record, source, &Sent { protocol, text, parameters, duration, failure: None })
            }
            Said::Duration(duration) => self.duration(record, source, duration),
            Said::Bound => {
                let open = self.session(record)?;
                let before = open.bound.replace(record.line);
                before.map_or(Ok(()), |line| self.leave_out(Reason::NotExecuted, source, line))
            }
            Said::Connection => {
                self.end_session(record.pid, None)?;
                let connected = self.selection.has_time(record.time).then_some(record.time.utc);
                self.sessions.insert(record.pid, OpenSession { connected, ..OpenSession::of(record) });
                Ok(())
            }
            Said::Authorized(names) => {
                check_names(record, source, &names)?;
                self.session(record)?.learn(&names);
                Ok(())
            }
            Said::Disconnection => {
                self.session(record)?;
                let end = self.selection.has_time(record.time).then_some(record.time.utc);
                self.end_session(record.pid, end)
            }
            Said::Plan => self.leave_out(Reason::Plan, source, record.line),
            Said::Fetch => self.leave_out(Reason::CursorFetch, source, record.line),
            Said::FunctionCall => self.leave_out(Reason::FunctionCall, source, record.line),
        }
    }

    /// Returns the session to which a record belongs, and begins it if necessary. An earlier session with the same
    /// process number is ended first.
    fn session(&mut self, record: &Record) -> Result<&mut OpenSession, CaptureError> {
        if self.sessions.get(&record.pid).is_some_and(|open| open.is_another(record)) {
            self.end_session(record.pid, None)?;
        }
        let (first, selection) = (self.first.unwrap_or_default(), &self.selection);
        let open = self.sessions.entry(record.pid).or_insert_with(|| {
            // For a session that connected before the logs begin, the capture uses the start of its first statement.
            let started = record.session_start.filter(|start| start.utc >= first && selection.has_time(*start));
            OpenSession { connected: started.map(|start| start.utc), ..OpenSession::of(record) }
        });
        open.learn(&Names { user: &record.user, database: &record.database, application: &record.application });
        Ok(open)
    }

    fn end_session(&mut self, pid: u32, end: Option<Micros>) -> Result<(), CaptureError> {
        let source = self.sessions.get(&pid).map(|open| open.source.clone()).unwrap_or_default();
        self.count_evidence(pid, &source, None);
        let Some(mut open) = self.sessions.remove(&pid) else { return Ok(()) };
        open.write_pending(&mut self.writer, &mut self.left_out)?;
        let Some(id) = open.id else { return Ok(()) };
        open.transactions.end(id, &mut self.writer)?;
        let session = self.writer.session_mut(id);
        session.end = session.end.max(end.unwrap_or(0));
        let name = |name: String| Some(name).filter(|name| !name.is_empty());
        (session.user, session.database) = (name(open.user), name(open.database));
        session.application = name(open.application);
        Ok(self.writer.end_session(id)?)
    }

    /// Processes a duration that was logged without a statement. It belongs to the statement that was logged before, or
    /// to a statement that is not in the log.
    fn duration(&mut self, record: &Record, source: &str, duration: Micros) -> Result<(), CaptureError> {
        self.session(record)?;
        let open = self.sessions.get_mut(&record.pid).expect("its session is open");
        let Some(pending) = &mut open.pending else {
            if std::mem::take(&mut open.is_left_out) {
                return Ok(());
            }
            let (count, line) = open.durations.unwrap_or((0, record.line));
            open.durations = Some((count + 1, line));
            Record::set(&mut open.source, source);
            return Ok(());
        };
        pending.completed.statement.duration = Some(duration);
        open.write_pending(&mut self.writer, &mut self.left_out)
    }

    /// Counts statements that are not in the log although the session's other messages prove that they ran. This is
    /// called before each statement, whose protocol is `next`, and at the session's end.
    fn count_evidence(&mut self, pid: u32, source: &str, next: Option<Protocol>) {
        let Some(open) = self.sessions.get_mut(&pid) else { return };
        let durations = open.durations.take();
        let steps = if next.is_some_and(|next| next != Protocol::Simple) { STEPS_BEFORE } else { 0 };
        if let Some((count, line)) = durations.filter(|(count, _)| *count > steps) {
            self.left_out.add_many(Reason::DurationAlone, count - steps, source, line);
        }
        let bound = open.bound.take();
        if let Some(line) = bound.filter(|_| next.is_none_or(|next| next == Protocol::Simple)) {
            self.left_out.add(Reason::NotExecuted, source, line);
        }
    }

    /// Processes an error message. It is either the result of the pending statement, or the first message about a
    /// statement.
    fn error(&mut self, record: &Record, source: &str) -> Result<(), CaptureError> {
        if !is_client(record) || record.has_no_user {
            return Ok(());
        }
        // A parallel worker logs its error before the leader repeats it. If the log has neither the type of the process
        // nor the user, only the leader's context shows that the earlier error was a worker's.
        if record.context.ends_with("parallel worker") {
            self.repeated.retain(|(error, _)| error.message != record.message || error.statement != record.statement);
        }
        let may_be_repeated = record.backend_type.is_empty() && record.user.is_empty();
        if may_be_repeated && !record.statement.is_empty() && !self.sessions.contains_key(&record.pid) {
            self.repeated.push((record.clone(), source.to_owned()));
            return Ok(());
        }
        self.own_error(record, source)
    }

    /// Processes the remembered errors of parallel workers that no leader has repeated. An error is processed when its
    /// process logs something else, or when it is old enough that no leader will repeat it.
    fn take_unrepeated(&mut self, now: Micros, pid: Option<u32>) -> Result<(), CaptureError> {
        let is_over = |error: &Record| pid.is_none_or(|pid| pid == error.pid) || error.time.utc + REPEATED < now;
        let (over, kept) = std::mem::take(&mut self.repeated).into_iter().partition(|(error, _)| is_over(error));
        self.repeated = kept;
        let over: Vec<(Record, String)> = over;
        over.iter().try_for_each(|(error, source)| self.own_error(error, source))
    }

    /// Processes an error of a client's session.
    fn own_error(&mut self, record: &Record, source: &str) -> Result<(), CaptureError> {
        let cancellation = message::cancellation(&record.message);
        let failure = record
            .sqlstate
            .or(cancellation)
            .map_or(StatementFailure::Unstated, |code| StatementFailure::of(code, cancellation.is_some()));
        let hash = hash_of(&record.statement);
        // Without log_min_error_statement, an error message does not contain the statement that failed. An ERROR then
        // belongs to the pending statement, but a FATAL error does not surely, since it may occur while the session is
        // idle.
        let is_its = |pending: &Pending| match record.statement.is_empty() {
            true => record.severity == Severity::Error,
            false => pending.hash == hash,
        };
        let open = self.sessions.get_mut(&record.pid).filter(|open| !open.is_another(record));
        match open.map(|open| (open.pending.as_mut().is_some_and(|pending| is_its(pending)), open)) {
            Some((true, open)) => {
                if let Some(Pending { completed: Completed { statement, parameters, .. }, text, .. }) =
                    &mut open.pending
                {
                    statement.duration = Some(record.time.utc.saturating_sub(statement.start));
                    statement.failure = Some(failure);
                    if let Some(text) = text.as_deref().filter(|_| could_not_be_read(record)) {
                        let whole = self.templates.whole(text, &mut self.writer)?;
                        (statement.template, *parameters) = (whole.template, whole.parameters);
                        statement.failure = Some(StatementFailure::Unstated);
                        self.left_out.add(Reason::ReplacedWhole, source, record.line);
                    }
                }
                open.write_pending(&mut self.writer, &mut self.left_out)
            }
            _ if record.statement.is_empty() && record.severity == Severity::Error => {
                self.leave_out(Reason::ErrorAlone, source, record.line)
            }
            _ if record.statement.is_empty() => Ok(()),
            _ => self.failed_statement(record, source, failure),
        }
    }

    fn failed_statement(
        &mut self,
        record: &Record,
        source: &str,
        failure: StatementFailure,
    ) -> Result<(), CaptureError> {
        let text = record.statement.as_str();
        let parameters = message::context_parameters(&record.context);
        let is_extended = parameters.is_some() || highest_parameter(text) > 0;
        let protocol = if is_extended { Protocol::Extended } else { Protocol::Simple };
        self.statement(record, source, &Sent { protocol, text, parameters, duration: None, failure: Some(failure) })
    }

    fn statement(&mut self, record: &Record, source: &str, sent: &Sent<'_>) -> Result<(), CaptureError> {
        self.session(record)?;
        self.count_evidence(record.pid, source, Some(sent.protocol));
        let open = self.sessions.get_mut(&record.pid).expect("its session is open");
        Record::set(&mut open.source, source);
        open.is_left_out = sent.duration.is_none() && sent.failure.is_none();
        open.write_pending(&mut self.writer, &mut self.left_out)?;
        let free = open.free;
        if let Some(reason) = self.selection.excludes(record.time, &open.database, &open.application) {
            return self.leave_out(reason, source, record.line);
        }
        if is_copy_with_client(sent.text) {
            return self.leave_out(Reason::CopyData, source, record.line);
        }
        // A lock timeout ends the statement in the replay too if the session has set it, and another session's lock ends.
        let may_run_on = |failure: StatementFailure| failure.is_cancelled() && failure.code() != Some(LOCK_TIMEOUT);
        if sent.failure.is_some_and(may_run_on) {
            return self.leave_out(Reason::CancelledUnknown, source, record.line);
        }
        let backslashes = open.backslashes;
        open.backslashes = chosen_backslashes(sent.text).unwrap_or(backslashes);
        let text = SentText { protocol: sent.protocol, text: sent.text, parameters: sent.parameters, backslashes };
        let is_unparsed = self.conceals && sent.failure.is_some() && could_not_be_read(record);
        let made = match is_unparsed {
            true => Some(self.templates.whole(sent.text, &mut self.writer)?),
            false => self.templates.make(&text, &mut self.writer)?,
        };
        let Some(Templated { template, parameters, is_whole }) = made else {
            return self.leave_out(Reason::ParametersMissing, source, record.line);
        };
        // A text that was replaced by a token fails with another error in a replay, so the original SQLSTATE is
        // dropped.
        let failure = sent.failure.map(|failure| if is_whole { StatementFailure::Unstated } else { failure });
        if is_whole {
            self.left_out.add(Reason::ReplacedWhole, source, record.line);
        }
        let logged = record.time.utc.saturating_sub(sent.duration.unwrap_or(0));
        // Logs cut times to milliseconds or seconds, so a statement seems to begin before the previous one has ended.
        // It then begins at that end.
        let start = if logged < free && free - logged < COARSEST { free } else { logged };
        let statement = RecordedStatement { start, duration: sent.duration, template, failure, rows: None };
        let open = self.sessions.get_mut(&record.pid).expect("its session is open");
        open.is_left_out = false;
        let text = (self.conceals && !is_whole).then(|| sent.text.to_owned());
        let is_repeated = open.template.replace(template) == Some(template);
        let logged = Logged {
            protocol: sent.protocol,
            text: sent.text,
            template,
            bound: sent.parameters.map(|_| &parameters),
            may_continue_batch: is_repeated && record.transaction.is_none() && !open.transactions.is_in_block(),
        };
        for reason in self.doubts.of(&logged) {
            self.left_out.add(reason, source, record.line);
        }
        let step = block_step(sent.text);
        let completed = Completed { statement, parameters, transaction: record.transaction, step };
        open.pending = Some(Pending { completed, line: record.line, hash: hash_of(sent.text), text });
        let has_ended = sent.duration.is_some() || sent.failure.is_some();
        if has_ended { open.write_pending(&mut self.writer, &mut self.left_out) } else { Ok(()) }
    }
}

/// The result of recording: the writer of the capture, what is left out of it, the version of the server, and whether
/// the selection and the logs have a time in common.
pub struct Finished {
    pub writer: Writer,
    pub left_out: LeftOuts,
    pub server_version: Option<String>,
    /// A sentence that says why the selection and the logs have no time in common; `None` if they have.
    pub outside: Option<String>,
}

/// A statement as the log shows it.
struct Sent<'a> {
    protocol: Protocol,
    text: &'a str,
    /// The list of bound parameters in the log.
    parameters: Option<&'a str>,
    duration: Option<Micros>,
    failure: Option<StatementFailure>,
}

/// True if a record belongs to the session of a client, as far as the log shows that. Parallel workers are excluded,
/// since their leader repeats their errors.
fn is_client(record: &Record) -> bool {
    // While a session connects, the type of its process is "not initialized".
    matches!(record.backend_type.as_str(), "" | "client backend" | "not initialized")
}

/// True if a statement failed before the server had read the whole of it. What looks like a name in its text may then be
/// a value, such as `"Anna"` or `anna.example`, so an anonymized capture must not keep any of the text.
fn could_not_be_read(record: &Record) -> bool {
    let message = &record.message;
    // The server reports a position within the text for the errors that it finds while it reads the text.
    let position = message.rsplit_once(" at character ").map(|(_, position)| position);
    if record.has_position || position.is_some_and(|position| position.bytes().all(|c| c.is_ascii_digit())) {
        return true;
    }
    match record.sqlstate.as_ref() {
        Some(IN_FAILED_TRANSACTION) => true,
        Some(code) => code.starts_with(SYNTAX_AND_NAMES) && code != INSUFFICIENT_PRIVILEGE,
        None => {
            let is_unknown_column = message.starts_with("column ") && message.contains(" does not exist");
            let is_ignored = message.starts_with("current transaction is aborted");
            let is_unparsed = message.contains(" at or near \"") || message.contains(" at end of input");
            is_unparsed || is_unknown_column || is_ignored
        }
    }
}

const LOCK_TIMEOUT: &[u8; 5] = b"55P03";
const IN_FAILED_TRANSACTION: &[u8; 5] = b"25P02";
/// The class of the errors in the syntax of a statement and in its names.
const SYNTAX_AND_NAMES: &[u8] = b"42";
/// An error of that class which the server reports only when it executes the statement.
const INSUFFICIENT_PRIVILEGE: &[u8; 5] = b"42501";

/// Fails if the names that were read from the prefix differ from the names in the message about an authorized
/// connection, because the prefix is then wrong.
fn check_names(record: &Record, source: &str, names: &Names<'_>) -> Result<(), CaptureError> {
    let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
    if !differ(&record.user, names.user) && !differ(&record.database, names.database) {
        return Ok(());
    }
    Err(CaptureError::OtherNames {
        line: record.line,
        log: source.to_owned(),
        by_prefix: format!("{}@{}", record.user, record.database),
        by_message: format!("{}@{}", names.user, names.database),
    })
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// True if a text contains a COPY command whose rows the client sends or receives.
fn is_copy_with_client(text: &str) -> bool {
    if !text.as_bytes().windows(3).any(|word| word.eq_ignore_ascii_case(b"std")) {
        return false;
    }
    let mut is_start = true;
    let mut is_copy = false;
    for token in Tokens::of(text).filter(|token| !token.is_blank()) {
        let is_client = |token: &SqlToken<'_>| token.is_word("stdin") || token.is_word("stdout");
        is_copy = if is_start { token.is_word("copy") } else { is_copy };
        is_start = token.is_symbol(";");
        if is_copy && is_client(&token) {
            return true;
        }
    }
    false
}
