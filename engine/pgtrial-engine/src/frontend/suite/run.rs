//! Runs the queries of a suite one after the other. Each query runs once, in random order, before any query runs again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::options::{Query, SuiteOptions};
use super::output::Output;
use crate::frontend::common::connection::{Purpose, session, target};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::self_check;
use capture::sql::tokens::Tokens;
use drive::CpuTime;
use events::{ClientError, ClientUsage, Done, Drain, Measurement, PauseRecord, QueryRecord, Summary};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use ground::random::Random;
use ground::stdin;
use wire::error::{ConnectionError, ServerError};
use wire::session::Session;
use wire::target::Target;
use wire::{QueryKind, Rows};

/// The purpose of the connection, as error messages name it: `could not create connection for queries`.
const PURPOSE: Purpose = "queries";

/// The longest time until the engine notices an interrupt while it waits for a line on standard input.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// The exit status if the connection is lost.
const LOST: u8 = 2;

/// The kind of failure if a file contains no statement. In events it stands where other failures have an SQLSTATE.
const EMPTY: &str = "empty";

/// Runs the queries. Returns the exit status.
pub fn run(options: &SuiteOptions) -> Result<u8, Failure> {
    let clock = Clock::start();
    let queries = options.queries()?;
    let target = target(&options.server, "pgtrial suite", PURPOSE)?;
    let began = Instant::now();
    let session = session(&target, PURPOSE)?;
    let connect_s = began.elapsed().as_secs_f64();
    let flag = interrupt::catch()?;
    target.obey(&flag);
    let mut output = Output::open(options, &queries, &session.server.version, clock)?;
    output.connected(connect_s);
    let mut runner = Runner {
        options,
        queries: &queries,
        target: &target,
        session: Some(session).filter(|_| !options.pauses),
        output,
        random: Random::seeded(options.seed),
        measured: Measured::default(),
        lost: false,
    };
    let warmup = options.warms_up.then(|| runner.phase(Phase::Warmup, 1));
    let measure = (!runner.is_over()).then(|| runner.phase(Phase::Measure, options.runs));
    Ok(runner.finish(warmup.flatten(), measure.flatten(), connect_s))
}

/// The measurements of the warm-up or of the measured part.
#[derive(Default)]
struct Measured {
    measurement: Measurement,
    /// The sum of the times that all queries took, also of failed and cancelled queries.
    spent: Duration,
    /// The CPU time that the engine used during the queries.
    cpu: CpuTime,
}

/// A run of a suite of queries that is in progress.
struct Runner<'a> {
    options: &'a SuiteOptions,
    queries: &'a [Query],
    target: &'a Arc<Target>,
    session: Option<Session>,
    output: Output,
    random: Random,
    /// The measurements of the current phase.
    measured: Measured,
    lost: bool,
}

/// The outcome of one run of a query.
struct Ended {
    took: Duration,
    outcome: Result<Answer, QueryFailure>,
    /// True if the query was cancelled at the limit.
    over_limit: bool,
    /// True if the session can be used for the next query. If false, the next query gets a new session.
    is_usable: bool,
}

struct Answer {
    rows: u64,
    hash: Option<u64>,
}

struct QueryFailure {
    /// The SQLSTATE, or `empty` if the file contains no statement.
    kind: String,
    message: String,
    is_lost: bool,
}

impl Runner<'_> {
    fn is_over(&self) -> bool {
        self.lost || self.output.is_lost || self.target.is_interrupted() == Some(true)
    }

    /// Runs all queries `runs` times, each time in a new random order. Returns the totals of the phase, or `None` if no
    /// query ran.
    fn phase(&mut self, phase: Phase, runs: u32) -> Option<Summary> {
        self.output.phase(phase);
        self.measured = Measured::default();
        for run in 1..=runs {
            for index in self.order() {
                if self.is_over() {
                    break;
                }
                self.query(index, phase, run);
            }
        }
        let Measured { measurement, spent, .. } = &self.measured;
        (!spent.is_zero()).then(|| measurement.summary(spent.as_secs_f64()))
    }

    /// Returns the indexes of all queries in random order (Fisher-Yates).
    fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.queries.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.random.range(0, last as i64) as usize);
        }
        order
    }

    fn query(&mut self, index: usize, phase: Phase, run: u32) {
        let query = &self.queries[index];
        if self.options.pauses {
            self.session = None;
            self.output.pause(PauseRecord { query: query.name.clone(), phase, run });
            if !wait_for_line(self.target) {
                if self.target.is_interrupted() == Some(true) {
                    return;
                }
                self.lose(
                    index,
                    "connect",
                    "08001",
                    "standard input ended while the engine waited there for a line before a query (--pause)".to_owned(),
                );
                return;
            }
        }
        if self.session.is_none() {
            match Session::connect(self.target) {
                Ok(session) => self.session = Some(session),
                Err(error) => return self.lose(index, "connect", &error.sqlstate, error.message),
            }
        }
        let Some(session) = &mut self.session else { return };
        let before = CpuTime::of_thread().unwrap_or_default();
        let Ended { took, outcome, over_limit, is_usable } = execute(session, &query.text, self.options.limit);
        let cpu = CpuTime::of_thread().unwrap_or_default() - before;
        if !is_usable {
            self.session = None;
        }
        if self.target.is_interrupted() == Some(true) {
            return;
        }
        let time_us = match (&outcome, over_limit) {
            (_, true) => Some(self.options.limit.as_secs_f64() * 1e6),
            (Ok(_), false) => Some(took.as_secs_f64() * 1e6),
            (Err(_), false) => None,
        };
        self.count(time_us, outcome.as_ref().err(), took, cpu);
        let answer = outcome.as_ref().ok().filter(|_| !over_limit);
        let failure = outcome.as_ref().err().filter(|_| !over_limit);
        self.output.query(QueryRecord {
            query: query.name.clone(),
            phase,
            run,
            time_us,
            over_limit,
            rows: answer.map_or(0, |answer| answer.rows),
            rows_hash: answer.and_then(|answer| answer.hash).map(|hash| format!("{hash:016x}")),
            sqlstate: failure.map(|failure| failure.kind.clone()),
            message: failure.map(|failure| failure.message.clone()),
        });
        match outcome {
            Err(QueryFailure { kind, message, is_lost: true }) if !over_limit => {
                self.lose(index, "connection", &kind, message);
            }
            _ => {}
        }
    }

    /// Adds the result of a query to the measurements of the phase. `took` is the time that the query really took, and
    /// `time_us` is the time in microseconds that counts for it, which is the limit if the query was cancelled.
    fn count(&mut self, time_us: Option<f64>, failure: Option<&QueryFailure>, took: Duration, cpu: CpuTime) {
        let Measured { measurement, spent, cpu: sum } = &mut self.measured;
        *spent += took;
        sum.user += cpu.user;
        sum.system += cpu.system;
        match (time_us, failure) {
            (Some(time_us), _) => {
                measurement.counts.transactions.0 += 1;
                measurement.moments.add(time_us);
                measurement.latencies.record((time_us * 1000.0) as u64);
            }
            (None, Some(failure)) => measurement.counts.failures.entry(failure.kind.clone()).or_default().0 += 1,
            (None, None) => {}
        }
    }

    fn lose(&mut self, script: usize, kind: &'static str, sqlstate: &str, message: String) {
        self.lost = true;
        let sqlstate = Some(sqlstate.to_owned());
        self.output.error(ClientError { client: 0, script, command: None, kind, sqlstate, message });
    }

    /// Writes the last event. Returns the exit status.
    fn finish(mut self, warmup: Option<Summary>, measure: Option<Summary>, connect_s: f64) -> u8 {
        let interrupted = self.target.is_interrupted() == Some(true);
        let status = match (interrupted, self.lost) {
            (true, _) => interrupt::STATUS,
            (false, true) => LOST,
            (false, false) => 0,
        };
        // If the run was interrupted in its warm-up, `self.measured` still has the measurements of the warm-up, which
        // must not be reported as those of the measured part.
        let measured = if measure.is_some() { std::mem::take(&mut self.measured) } else { Measured::default() };
        let Measured { measurement, spent, cpu } = &measured;
        let share = if spent.is_zero() { 0.0 } else { cpu.total().as_secs_f64() / spent.as_secs_f64() };
        let executions = measurement.counts.transactions.0;
        let client = ClientUsage {
            cpu_user_s: cpu.user.as_secs_f64(),
            cpu_system_s: cpu.system.as_secs_f64(),
            busiest_thread_share: share,
            cpu_per_transaction_us: (executions > 0).then(|| cpu.total().as_secs_f64() * 1e6 / executions as f64),
            warnings: self_check::reading_rows(share).into_iter().collect(),
        };
        self.output.done(Done {
            status,
            interrupted,
            clients_aborted: u64::from(self.lost).into(),
            connect_s,
            warmup,
            measure,
            drain: Drain { duration_s: 0.0, transactions: 0.into(), failures: [].into() },
            scripts: Vec::new(),
            client,
            tasks: None,
            replay: None,
            machines: None,
        });
        if self.output.is_lost { super::options::SUITE.failed } else { status }
    }
}

/// Sends a query and reads its result, and then undoes changes that the query made to its session. The query is
/// cancelled if it runs longer than `limit`.
fn execute(session: &mut Session, text: &[u8], limit: Duration) -> Ended {
    let began = Instant::now();
    let reply = session.ask_until(began + limit, |connection| connection.send_query(text, Rows::Hashed));
    let took = began.elapsed();
    let (reply, was_cancelled) = match reply {
        Ok(reply) => reply,
        Err(error) => return Ended { took, outcome: Err(lost(&error)), over_limit: false, is_usable: false },
    };
    let outcome = match reply.error {
        Some(failed) => Err(refused(*failed.error)),
        None => match session.answered() {
            answered if answered.kind == QueryKind::Nothing => {
                let message = "the file has no statement".to_owned();
                Err(QueryFailure { kind: EMPTY.to_owned(), message, is_lost: false })
            }
            answered => {
                let hash = (answered.kind == QueryKind::Read).then_some(answered.hash);
                Ok(Answer { rows: answered.rows, hash })
            }
        },
    };
    let is_usable = !was_cancelled && !changes_session_for_good(text) && put_back(session, reply.status).is_ok();
    Ended { took, outcome, over_limit: was_cancelled, is_usable }
}

/// Undoes changes that a query may have made to its session: an open transaction, settings and the role, temporary
/// tables, prepared statements, cursors, and advisory locks. The next query then finds the session as if it were new,
/// except that the server has already cached entries of the system catalogs.
fn put_back(session: &mut Session, status: u8) -> Result<(), ConnectionError> {
    if status != b'I' {
        session.query("ROLLBACK")?;
    }
    session.query("DISCARD ALL")?;
    // DISCARD ALL makes the session's user the current role, even if the session began with another role (a `role`
    // setting of the user or the database). RESET ROLE restores the role with which the session began.
    session.query("RESET ROLE").map(drop)
}

/// True if a query calls a function whose effect on the session `DISCARD ALL` does not undo: the seed of `random()`, or
/// the connections of dblink. The next query then needs a new session.
fn changes_session_for_good(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    Tokens::of(&text).any(|token| ["setseed", "dblink_connect"].iter().any(|word| token.is_word(word)))
}

fn refused(error: ServerError) -> QueryFailure {
    QueryFailure { kind: error.sqlstate.clone(), message: error.to_string(), is_lost: false }
}

fn lost(error: &ConnectionError) -> QueryFailure {
    QueryFailure { kind: error.sqlstate().to_owned(), message: error.to_string(), is_lost: true }
}

/// Waits for a line on standard input. Returns false if standard input has ended, or if the run was interrupted.
fn wait_for_line(target: &Target) -> bool {
    while target.is_interrupted() != Some(true) {
        match stdin::read(INTERRUPT_CHECK) {
            Ok(Some(byte)) if byte == b"\n" => return true,
            Ok(Some(byte)) if byte.is_empty() => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}
