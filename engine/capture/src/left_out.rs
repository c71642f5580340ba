//! Counts, by reason, the statements and lines of the logs that a capture does not contain, and the statements that it
//! contains although a replay of them may do something else than they did on the server.

use std::collections::BTreeMap;

use crate::format::{LeftOut, LogPlace};
use crate::log::Unreadable;

/// The reason for which a statement or a line is left out of a capture, or for which its replay is doubtful. Reports
/// list the reasons in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    OtherLanguage,
    ParametersMissing,
    CopyData,
    CursorFetch,
    FunctionCall,
    DurationAlone,
    NotExecuted,
    ErrorAlone,
    ValuesCut,
    ReplacedWhole,
    CancelledUnknown,
    BeginAdded,
    BatchUnknown,
    TypesUnknown,
    Plan,
    Unreadable(Problem),
    Damaged,
    UnknownDatabase,
    OtherDatabase,
    OtherApplication,
    OtherTime,
    OtherCommand,
    ValuesUnknown,
    HiddenText,
}

/// The reason for which lines of a log cannot be read. Reports list the reasons in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    Format,
    Encoding,
    CutShort,
}

impl From<Unreadable> for Reason {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(match why {
            Unreadable::Format => Problem::Format,
            Unreadable::Encoding => Problem::Encoding,
            Unreadable::CutShort => Problem::CutShort,
        })
    }
}

impl Reason {
    /// Returns the reason's name in `capture.json`, which stays the same from release to release.
    fn name(self) -> &'static str {
        match self {
            Self::OtherLanguage => "other-language",
            Self::ParametersMissing => "parameters-missing",
            Self::CopyData => "copy-data",
            Self::CursorFetch => "cursor-fetch",
            Self::FunctionCall => "function-call",
            Self::DurationAlone => "duration-alone",
            Self::NotExecuted => "not-executed",
            Self::ErrorAlone => "error-alone",
            Self::ValuesCut => "values-cut",
            Self::ReplacedWhole => "replaced-whole",
            Self::CancelledUnknown => "cancelled-unknown",
            Self::BeginAdded => "begin-added",
            Self::BatchUnknown => "batch-unknown",
            Self::TypesUnknown => "types-unknown",
            Self::Unreadable(Problem::Format) => "unreadable",
            Self::Unreadable(Problem::Encoding) => "not-utf8",
            Self::Unreadable(Problem::CutShort) => "cut-short",
            Self::Damaged => "damaged",
            Self::Plan => "plan",
            Self::UnknownDatabase => "unknown-database",
            Self::OtherDatabase => "other-database",
            Self::OtherApplication => "other-application",
            Self::OtherTime => "other-time",
            Self::OtherCommand => "other-command",
            Self::ValuesUnknown => "values-unknown",
            Self::HiddenText => "hidden-text",
        }
    }

    /// Returns the text that follows the count in messages. It says what was left out, why, and what the user can
    /// change.
    fn why(self) -> &'static str {
        match self {
            Self::OtherLanguage => "messages in another language than English: set lc_messages = 'C' and log again",
            Self::ParametersMissing => {
                "statements without the values of their parameters: set log_parameter_max_length = -1, and for failed ones \
                 log_parameter_max_length_on_error = -1"
            }
            Self::CopyData => "COPY commands from or to the client: their rows are not in a log",
            Self::CursorFetch => {
                "fetches of further rows of a statement in the extended protocol, or executions of a statement named \"fetch from ...\""
            }
            Self::FunctionCall => "function calls over the fast-path interface",
            Self::DurationAlone => {
                "durations of statements whose text is not logged: set log_statement = 'all' or log_min_duration_statement = 0"
            }
            Self::NotExecuted => {
                "statements that were bound, and whose execution is not logged: set log_min_duration_statement = 0"
            }
            Self::ErrorAlone => "errors of statements whose text is not logged: set log_min_error_statement = error",
            Self::ValuesCut => {
                "values that end in \"...\" and are replayed like that: log_parameter_max_length \
                 may have cut them; set it to -1"
            }
            Self::ReplacedWhole => {
                "statements that are replaced by tokens as a whole and fail when they are replayed: their quotes \
                 do not pair, or they failed because the server could not read them, so it is not certain which parts of them are values"
            }
            Self::CancelledUnknown => {
                "statements that were cancelled, without the time at which they began, so that a replay cannot cancel them in \
                 time: set log_statement = 'all' too"
            }
            Self::BeginAdded => {
                "transactions of several statements whose BEGIN is not in the log, such as batches: they are replayed between \
                 BEGIN and COMMIT"
            }
            Self::BatchUnknown => {
                "statements that write, each right behind an equal statement: they may have been a batch, but each is \
                 replayed as a transaction of its own; log with %v, or as csvlog or jsonlog"
            }
            Self::TypesUnknown => {
                "statements whose bound parameters need a type, as in functions or arithmetic, which is not in a log: in a replay \
                 they may fail or return something else; write casts into the statements, such as $1::int"
            }
            Self::Plan => {
                "plans of auto_explain: statements are taken from the lines of log_min_duration_statement or log_statement alone"
            }
            Self::Damaged => {
                "compressed parts of a log that are cut off or damaged: their text may be wrong, and the log behind them is missing"
            }
            Self::Unreadable(Problem::Format) => "lines that do not have the log's format",
            Self::Unreadable(Problem::Encoding) => {
                "messages that are not UTF-8: log a database with another encoding on its own"
            }
            Self::Unreadable(Problem::CutShort) => "messages that are cut off at the end of a log",
            Self::UnknownDatabase => {
                "statements whose database is not in the log: log with %d or log_connections, or capture without --database"
            }
            Self::OtherDatabase => "statements in other databases",
            Self::OtherApplication => {
                "statements of other applications, or of applications whose names are not in the log: log with %a or log_connections"
            }
            Self::OtherTime => "statements before --from or after --to",
            Self::OtherCommand => {
                "calls of commands other than SELECT, INSERT, UPDATE, DELETE and MERGE, such as BEGIN: the server does not \
                 count which statements were in one transaction"
            }
            Self::ValuesUnknown => {
                "calls of statements with a value that is not compared with a column, or with a column of an unknown type"
            }
            Self::HiddenText => "calls of statements whose text the role may not see: grant it pg_read_all_stats",
        }
    }
}

/// The counts of each reason, with the first line that was counted for it.
#[derive(Debug, Default)]
pub struct LeftOuts {
    counts: BTreeMap<Reason, (u64, LogPlace)>,
}

impl LeftOuts {
    /// Counts one statement or line for a reason. It was found in line `line` of the log `source`.
    pub fn add(&mut self, reason: Reason, source: &str, line: u64) {
        self.add_many(reason, 1, source, line);
    }

    /// Counts `more` statements or lines for a reason. The first of them was found in line `line` of the log `source`.
    pub fn add_many(&mut self, reason: Reason, more: u64, source: &str, line: u64) {
        let count = self.counts.entry(reason);
        let place = || LogPlace { source: source.to_owned(), line };
        count.or_insert_with(|| (0, place())).0 += more;
    }

    /// Returns the number of statements and lines that were counted for a reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts.get(&reason).map_or(0, |(count, _)| *count)
    }

    pub fn list(&self) -> Vec<LeftOut> {
        let entry = |(reason, (count, first)): (&Reason, &(u64, LogPlace))| LeftOut {
            reason: reason.name().to_owned(),
            why: reason.why().to_owned(),
            count: *count,
            first: first.clone(),
        };
        self.counts.iter().map(entry).collect()
    }
}
