//! Prints the lines that pgbench prints while a run is in progress: progress lines, the reasons why clients were
//! aborted, and other messages about the run.

use std::fmt::Write;
use std::time::Duration;

use super::program::PGBENCH;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::USER;
use crate::frontend::common::options::OutputOptions;
use crate::frontend::common::progress::{Progress, ProgressInterval};
use drive::plan::{Plan, ScriptOptions};
use drive::statistics::LoadStatistics;
use drive::{Abortion, Began, Cause, Observer, Tick};
use ground::clock::{Clock, Phase};
use wire::error::ConnectionError;
use workload::AbortReason;

/// The observer of a run, which the event loop calls once for each second and for each client that is aborted. It
/// prints the same lines as pgbench.
pub struct PgbenchObserver {
    clock: Clock,
    /// True if only the first aborted client is reported, because the run then ends (`--exit-on-abort`).
    only_first_abortion: bool,
    abortions: usize,
    progress: Progress,
    columns: Columns,
    /// The time since 1970 at which the run's clock shows 0. `None` unless progress lines contain the Unix time
    /// (`--progress-timestamp`).
    timestamps: Option<Duration>,
}

/// The values that only some progress lines have, depending on the options. Each field is true if the lines have the
/// value.
#[derive(Debug, Clone, Copy, Default)]
struct Columns {
    lag: bool,
    skipped: bool,
    retries: bool,
}

impl PgbenchObserver {
    /// Makes the observer for a run with this plan. `origin` is the time since 1970 at which the run's clock shows 0.
    pub fn new(options: &OutputOptions, plan: &Plan, clock: Clock, origin: Duration) -> Self {
        let lag = plan.interval_ns().is_some();
        let ScriptOptions { latency_limit, tries, .. } = plan.options;
        Self {
            clock,
            only_first_abortion: plan.exit_on_abort,
            abortions: 0,
            progress: Progress::new(options.progress, plan),
            columns: Columns { lag, skipped: lag && latency_limit.is_some(), retries: tries != Some(1) },
            timestamps: options.progress_timestamp.then_some(origin),
        }
    }
}

impl Observer for PgbenchObserver {
    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(|message| PGBENCH.warning(message));
    }

    fn tick(&mut self, tick: &Tick) {
        let Some(ProgressInterval { end_s, length_s, statistics }) = self.progress.add(tick) else { return };
        let time = match self.timestamps {
            Some(origin) => format!("{:.3}", origin.as_secs_f64() + self.clock.now() as f64 / 1e9),
            None => format!("{end_s:.1}"),
        };
        (USER.tell)(&progress_line(&time, length_s, &statistics, self.columns));
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.abortions += 1;
        if self.abortions == 1 || !self.only_first_abortion {
            PGBENCH.report(&describe(abortion));
        }
    }

    fn note(&mut self, text: &str) {
        PGBENCH.info(text);
    }
}

/// Returns a progress line as pgbench prints it. `time` is the first value on the line, and `since_s` is the length of
/// the time in which the counts of `statistics` were counted, in seconds.
fn progress_line(time: &str, since_s: f64, statistics: &LoadStatistics, columns: Columns) -> String {
    // The time may be 0: if engines take turns in slices, all clients may still run transactions that they began in an
    // earlier slice.
    let tps = if since_s > 0.0 { statistics.counts.transactions() as f64 / since_s } else { 0.0 };
    let (latency, stddev) = (statistics.counts.moments.mean() / 1000.0, statistics.counts.moments.stddev() / 1000.0);
    let failed = statistics.counts.failed();
    let mut line = format!("progress: {time} s, {tps:.1} tps, lat {latency:.3} ms stddev {stddev:.3}, {failed} failed");
    let counts = &statistics.counts;
    // Writing to a string cannot fail, so the result is ignored.
    if columns.lag {
        let _ = write!(line, ", lag {:.3} ms", counts.lag.mean() / 1000.0);
    }
    if columns.skipped {
        let _ = write!(line, ", {} skipped", counts.skipped);
    }
    if columns.retries {
        let _ = write!(line, ", {} retried, {} retries", counts.retried, counts.retries);
    }
    line
}

/// Returns pgbench's message about an aborted client. As in pgbench, it does not say why a connection was lost; the
/// events contain the reason.
fn describe(abortion: &Abortion) -> Failure {
    const DIED: &str = "perhaps the backend died while processing";
    let Abortion { client, script, command, cause } = abortion;
    let (last_word, query): (Option<&dyn std::fmt::Display>, u32) = match cause {
        Cause::Statement { error, query } => (Some(error), *query),
        // The client's thread has already printed the error of preparing the statement, so only the error of its
        // execution is reported here.
        Cause::Unprepared { execution, .. } => (Some(&execution.error), execution.query),
        Cause::Connection(ConnectionError::Server(error)) => (Some(error), 0),
        Cause::Connection(error @ ConnectionError::Violation { query, .. }) => (Some(error), *query),
        Cause::Connection(error @ ConnectionError::LostSync { .. }) => (Some(error), 0),
        Cause::Connection(_) | Cause::Connect(_) | Cause::Program(_) => (None, 0),
    };
    let one = |sentence: String| Failure::error(sentence);
    match (cause, last_word, command) {
        (Cause::Connect(error), ..) => {
            Failure::error(error).and(format_args!("client {client} aborted while establishing connection"))
        }
        (Cause::Connection(error @ ConnectionError::Copy), ..) => Failure::error(error),
        (Cause::Connection(error @ ConnectionError::NoResults), _, Some(command)) => {
            one(format!("client {client} command {command}: {error}"))
        }
        (Cause::Program(trouble), ..) => describe_trouble(*client, *script, trouble),
        (_, Some(error), Some(command)) => {
            one(format!("client {client} script {script} aborted in command {command} query {query}: {error}"))
        }
        (_, None, Some(command)) => {
            one(format!("client {client} aborted in command {command} (SQL) of script {script}; {DIED}"))
        }
        (_, last_word, None) => {
            let reason = last_word.map_or_else(|| DIED.to_owned(), ToString::to_string);
            one(format!("client {client} aborted while rolling back the transaction after an error; {reason}"))
        }
    }
}

/// Returns pgbench's message about a client that was aborted by an error in its script.
fn describe_trouble(client: usize, script: usize, trouble: &AbortReason) -> Failure {
    match trouble {
        AbortReason::Command { command, word, reason, detail } => {
            let aborted = format!("client {client} aborted in command {command} ({word}) of script {script}; {reason}");
            after(detail.as_deref(), aborted)
        }
        AbortReason::Rows { command, query, reason, detail } => {
            let failed = format!("client {client} script {script} command {command} query {query}: {reason}");
            after(detail.as_deref(), failed)
        }
        AbortReason::Script { .. } | AbortReason::Fatal(_) => {
            Failure::error(format!("client {client} aborted: {trouble}"))
        }
    }
}

/// Returns a failure with one or two errors: first the cause `detail`, if it is known, and then `error`.
fn after(detail: Option<&str>, error: String) -> Failure {
    match detail {
        Some(detail) => Failure::error(detail).and(error),
        None => Failure::error(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::StatementError;
    use wire::error::ServerError;

    #[test]
    fn the_progress_line_is_pgbenchs() {
        let mut statistics = LoadStatistics::default();
        (0..2750).for_each(|_| statistics.commit(3_770_000));
        statistics.counts.fail("40001");
        statistics.counts.fail("57P01");
        let always = "progress: 10.0 s, 275.0 tps, lat 3.770 ms stddev 0.000, 1 failed";
        assert_eq!(progress_line("10.0", 10.0, &statistics, Columns::default()), always);
        statistics.counts.lag.add(2500.0);
        statistics.counts.skipped = 4;
        statistics.counts.retried = 5;
        statistics.counts.retries = 6;
        assert_eq!(
            progress_line("10.0", 10.0, &statistics, Columns { lag: true, skipped: true, retries: true }),
            format!("{always}, lag 2.500 ms, 4 skipped, 5 retried, 6 retries")
        );
    }

    #[test]
    fn a_statement_that_cannot_be_prepared_is_told_with_the_error_of_its_execution() {
        let error = |message: &str| {
            Box::new(ServerError {
                severity: "ERROR".to_owned(),
                message: message.to_owned(),
                ..ServerError::default()
            })
        };
        let told = |cause| PGBENCH.describe(&describe(&Abortion { client: 3, script: 1, command: Some(4), cause }));
        assert_eq!(
            told(Cause::Statement { error: error("no"), query: 0 }),
            "pgbench: error: client 3 script 1 aborted in command 4 query 0: ERROR:  no"
        );
        let execution = StatementError { error: error("prepared statement \"P_4\" does not exist"), query: 0 };
        assert_eq!(
            told(Cause::Unprepared { error: error("no"), execution }),
            "pgbench: error: client 3 script 1 aborted in command 4 query 0: ERROR:  prepared statement \"P_4\" does not exist"
        );
    }

    #[test]
    fn a_lost_connection_is_told_with_the_servers_last_word_if_there_is_one() {
        let told = |command, cause| PGBENCH.describe(&describe(&Abortion { client: 3, script: 1, command, cause }));
        let server = || ConnectionError::Server(Box::default());
        assert_eq!(
            told(Some(4), Cause::Connection(ConnectionError::Closed)),
            "pgbench: error: client 3 aborted in command 4 (SQL) of script 1; perhaps the backend died while processing"
        );
        assert!(
            told(Some(4), Cause::Connection(server()))
                .starts_with("pgbench: error: client 3 script 1 aborted in command 4 query 0:")
        );
        assert_eq!(
            told(None, Cause::Connection(ConnectionError::Closed)),
            "pgbench: error: client 3 aborted while rolling back the transaction after an error; \
             perhaps the backend died while processing"
        );
    }
}
