//! Replays: a client runs recorded sessions one after the other, each on a connection of its own. Statements start at
//! their recorded times, whether or not the server keeps up, or they run back to back. Each statement counts as a
//! transaction of the load.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cancels::{Cancels, RunningStatement};
use crate::client::{Awaited, Client, ClientState};
use crate::mode::{Asked, End, Mode};
use crate::outcome::Cause;
use crate::plan::{Plan, ReplayPlan, ReplayTiming};
use crate::report::Report;
use crate::shell::{Shell, TransportOf};
use crate::statistics::LoadStatistics;
use crate::statistics::replay::{ReplyRows, TransactionErrors};
use crate::thread::{Share, Thread};
use ground::clock::Nanos;
use wire::error::ConnectionError;
use wire::{Connection, OpenError};
use workload::recorded::{Expected, Recorded, Scheduled};
use workload::{ActionResult, RecordedRequest, ReplayActions, SessionStep};

/// The time between two attempts to connect if the server has too many connections (SQLSTATE 53300). The attempts are
/// repeated because the server processes of sessions that have disconnected may be about to end.
const RETRY: Nanos = 20_000_000;
/// The longest time for which a client repeats its attempts to connect if the server has too many connections.
const CONNECT_PATIENCE: Nanos = 10_000_000_000;
const TOO_MANY_CONNECTIONS: &str = "53300";

/// The time after which a client looks again whether the cancel request for its session is still under way.
const CANCEL_CHECK: Nanos = 500_000;

/// The greatest number of different unexpected errors that a thread reports.
const MOST_NOTES: usize = 100;

/// The state of a replay in one thread.
pub struct Replayed {
    timing: ReplayTiming,
    accounts: Arc<[String]>,
    /// The time at which the replay began.
    began: Nanos,
    cancels: Cancels,
    /// The errors that have been reported, by statement template and SQLSTATE. Errors of connections have no template.
    noted: BTreeSet<(Option<usize>, String)>,
}

/// The state of a client's recorded session.
#[derive(Default)]
pub struct ReplayClient {
    /// The recorded rows and errors of the current statement or, between statements, of the next one.
    expected: Expected,
    /// The number of statements and sessions that the client has begun.
    statements: u64,
    /// The errors of the current transaction.
    errors: TransactionErrors,
    /// True if the session has already executed a COMMIT or ROLLBACK.
    has_ended_block: bool,
    /// True if the connection broke while the session waited for its next statement.
    is_lost: bool,
    /// The time at which the server first refused the session's connection because it had too many connections. `None`
    /// if the server has not refused the connection for this reason.
    asks_since: Option<Nanos>,
    /// True if the session's next statement is due, and waits until the cancel request for the session has arrived.
    awaits_cancel: bool,
    /// True if the session was ended early because the time of the load is over.
    is_stopped: bool,
}

type ReplayThread<'a, S> = Thread<'a, Replayed, S>;
type SessionClient<S> = Client<ReplayClient, ReplayActions, S>;

impl<S: Shell> Mode<S> for Replayed {
    type Plan = ReplayPlan;
    type Actions = ReplayActions;
    type Client = ReplayClient;

    const READS_WHEN_IDLE: bool = true;

    fn new(_plan: &Plan, load: &ReplayPlan, _share: Share) -> (Self, LoadStatistics) {
        let mode = Self {
            timing: load.timing,
            accounts: Arc::clone(&load.accounts),
            began: 0,
            cancels: Cancels::default(),
            noted: BTreeSet::new(),
        };
        (mode, LoadStatistics { schedule: load.timing.has_schedule().then(Box::default), ..LoadStatistics::default() })
    }

    /// Does nothing, since a client connects at the recorded time of its session.
    fn prepare(_thread: &mut ReplayThread<'_, S>, _client: &mut SessionClient<S>) {}

    fn start(thread: &mut ReplayThread<'_, S>, clients: &mut [SessionClient<S>], at: Nanos) {
        thread.mode.began = at;
        clients.iter_mut().for_each(|client| thread.drive(client, at));
    }

    /// Always returns true: a recorded session's program itself determines when its next statement starts.
    fn next(_thread: &mut ReplayThread<'_, S>, _client: &mut SessionClient<S>, _now: Nanos) -> bool {
        true
    }

    fn due(thread: &mut ReplayThread<'_, S>, client: &mut SessionClient<S>, now: Nanos) {
        if std::mem::take(&mut client.own.is_lost) {
            return thread.drive(client, now);
        }
        if client.own.asks_since.is_some() {
            return thread.connect(client, now);
        }
        if thread.is_over(now) && client.status == b'I' {
            client.stop();
            return thread.drive(client, now);
        }
        client.transaction.scheduled = client.transaction.scheduled.min(now);
        if !std::mem::take(&mut client.own.awaits_cancel) {
            thread.counters.note_oversleep(now - client.transaction.scheduled);
        }
        if thread.await_cancel(client, now) {
            return;
        }
        client.transaction.began = now;
        thread.mode.begin_statement(client, now);
        thread.drive(client, now);
    }

    /// Compares the end of a statement with the recorded one, and counts it.
    fn ended(
        thread: &mut ReplayThread<'_, S>,
        client: &mut SessionClient<S>,
        end: End<'_>,
        now: Nanos,
    ) -> Option<Nanos> {
        let time = now - client.transaction.began;
        let expected = client.own.expected;
        match end {
            End::Completed => {
                let found = client.connection.as_ref().map_or_else(ReplyRows::default, |connection| {
                    let answered = connection.answered();
                    ReplyRows { rows: answered.rows, hash: answered.hash }
                });
                thread.counters.totals.replay.succeed(&expected, found, time, &mut client.own.errors);
                if expected.discards {
                    client.connection.as_mut().map(Connection::forget_prepared);
                }
                thread.counters.commit(client, now);
            }
            End::Failed(error) if expected.is_failure(&error.sqlstate) => {
                let totals = &mut thread.counters.totals.replay;
                totals.fail_as_recorded(&expected, &error.sqlstate, time, &mut client.own.errors);
                thread.counters.commit(client, now);
            }
            End::Failed(error) => thread.fail_statement(client, &error.sqlstate, &error.message),
        }
        thread.end_statement(client);
        Some(now)
    }

    fn connected(thread: &mut ReplayThread<'_, S>, client: &mut SessionClient<S>, now: Nanos) {
        thread.counters.totals.replay.sessions.begun += 1;
        client.status = b'I';
        (client.own.has_ended_block, client.own.asks_since) = (false, None);
        if let Some(connection) = &mut client.connection {
            connection.trim();
            client.program.complete(ActionResult::Done(connection.answered()));
        }
        thread.drive(client, now);
    }

    /// Called when the server has refused the session's connection. If the server had too many connections, the client
    /// tries again for a while. Otherwise the session counts as refused, and the client goes on with its next session.
    fn refused(thread: &mut ReplayThread<'_, S>, client: &mut SessionClient<S>, error: OpenError, now: Nanos) {
        let since = *client.own.asks_since.get_or_insert(now);
        if error.sqlstate == TOO_MANY_CONNECTIONS && now - since < CONNECT_PATIENCE && !thread.is_over(now) {
            return thread.wait_until(client, now + RETRY);
        }
        client.own.asks_since = None;
        thread.counters.totals.replay.sessions.refused += 1;
        thread.counters.fail(client, &error.sqlstate);
        thread.note_failure_of_session("a session got no connection", &error.sqlstate, &error);
        client.program.complete(ActionResult::Refused(&error));
        thread.drive(client, now);
    }

    /// Ends the session, because its connection was lost, and counts the current statement as failed. A session that
    /// waits for its next statement goes on with it when it is due.
    fn lost(
        thread: &mut ReplayThread<'_, S>,
        client: &mut SessionClient<S>,
        _command: Option<usize>,
        error: ConnectionError,
        now: Nanos,
    ) {
        if client.state == ClientState::Idle {
            client.own.is_lost = true;
            thread.note_failure_of_session("a session that waited lost its connection", error.sqlstate(), &error);
            return thread.lose_session(client, &error);
        }
        thread.fail_statement(client, error.sqlstate(), &error);
        thread.lose_session(client, &error);
        thread.drive(client, now);
    }

    fn stuck(thread: &mut ReplayThread<'_, S>, client: &mut SessionClient<S>, command: Option<usize>, cause: Cause) {
        thread.abort(client, command, cause);
        thread.exit_on_abort();
    }

    fn ask(
        thread: &mut ReplayThread<'_, S>,
        connection: &mut Connection<TransportOf<S>>,
        RecordedRequest { recorded, rows }: RecordedRequest<'_>,
    ) -> Asked {
        let sent = match recorded {
            Recorded::Query(text) => connection.send_query(text, rows),
            Recorded::Unnamed(text) => connection.send_unnamed(text, rows, &mut thread.sockets.scratch),
            Recorded::Values { statement, mode, values } => {
                connection.send(statement, mode, values, rows, &mut thread.sockets.scratch)
            }
        };
        (Awaited::Count { last: true }, sent.map(Some))
    }

    fn step(
        thread: &mut ReplayThread<'_, S>,
        client: &mut SessionClient<S>,
        step: SessionStep,
        now: Nanos,
    ) -> Option<Nanos> {
        match step {
            SessionStep::Schedule(scheduled) => thread.schedule(client, scheduled, now),
            SessionStep::Connect => {
                thread.connect(client, now);
                None
            }
            SessionStep::Disconnect => {
                let sessions = &mut thread.counters.totals.replay.sessions;
                sessions.finished += u64::from(!client.own.is_stopped);
                sessions.left_open += u64::from(client.status != b'I');
                client.disconnect();
                client.status = b'I';
                Some(now)
            }
            SessionStep::Leave => {
                thread.leave(client);
                None
            }
        }
    }

    fn tends_at(&self) -> Option<Nanos> {
        self.cancels.next()
    }

    /// Sends the cancel requests of the statements that are due to be cancelled.
    fn tend(thread: &mut ReplayThread<'_, S>, clients: &mut [SessionClient<S>]) {
        if thread.mode.cancels.next().is_none() {
            return;
        }
        let now = thread.shell.now();
        let running = |RunningStatement { client, number }| {
            let client = clients.get(client).filter(|client| client.own.statements == number)?;
            client.connection.as_ref()?.busy_backend()
        };
        thread.mode.cancels.send(now, &thread.shell, running);
    }
}

impl Replayed {
    /// Records that a client begins its next statement or session at `now`, and plans its cancel request if the
    /// recorded statement was cancelled.
    fn begin_statement<S: Shell>(&mut self, client: &mut SessionClient<S>, now: Nanos) {
        client.own.statements += 1;
        let Some(after) = client.own.expected.cancelled_after else { return };
        let statement = RunningStatement { client: client.index, number: client.own.statements };
        self.cancels.add(now.saturating_add(self.timing.length(after)), statement);
    }
}

impl<S: Shell> SessionClient<S> {
    /// Ends the client's session early because the time of the load is over.
    fn stop(&mut self) {
        self.own.is_stopped = true;
        self.program.stop();
    }
}

impl<S: Shell> ReplayThread<'_, S> {
    /// Makes a client wait for the recorded time of its next statement. Returns `now` if the client goes on at once,
    /// else `None`.
    fn schedule(
        &mut self,
        client: &mut SessionClient<S>,
        Scheduled { at, statement }: Scheduled,
        now: Nanos,
    ) -> Option<Nanos> {
        let is_over = self.is_over(now);
        if is_over && client.status == b'I' {
            client.stop();
            return Some(now);
        }
        client.own.expected = statement.unwrap_or_default();
        if let Some(expected) = statement {
            self.note_block(client, &expected);
        }
        let at = self.mode.timing.moment(self.mode.began, at).unwrap_or(now);
        client.transaction.tries = 1;
        client.transaction.began = now;
        if at > now && !is_over {
            client.transaction.scheduled = at;
            self.wait_until(client, at.min(self.counters.schedule.end));
            return None;
        }
        client.transaction.scheduled = at.min(now);
        if self.await_cancel(client, now) {
            return None;
        }
        self.mode.begin_statement(client, now);
        Some(now)
    }

    /// Counts the session as one whose first transaction began before the recording, if its first COMMIT or ROLLBACK
    /// has no transaction to end.
    fn note_block(&mut self, client: &mut SessionClient<S>, expected: &Expected) {
        if expected.ends_block && !std::mem::replace(&mut client.own.has_ended_block, true) && client.status == b'I' {
            self.counters.totals.replay.sessions.begun_before += 1;
        }
    }

    /// Makes a client wait if a cancel request for its session is under way, since the request would cancel its next
    /// statement. Returns true if the client waits.
    fn await_cancel(&mut self, client: &mut SessionClient<S>, now: Nanos) -> bool {
        client.own.awaits_cancel = self.mode.cancels.are_under_way(client.index);
        if client.own.awaits_cancel {
            self.wait_until(client, now + CANCEL_CHECK);
        }
        client.own.awaits_cancel
    }

    /// Ends a statement that the server has answered, and frees its buffers, since the session may now wait for a long
    /// time.
    fn end_statement(&mut self, client: &mut SessionClient<S>) {
        if client.status == b'I' {
            self.counters.totals.replay.transactions += 1;
            client.own.errors = TransactionErrors::default();
        }
        if let Some(connection) = &mut client.connection {
            connection.trim();
        }
    }

    /// Counts a statement that failed with an error that was not recorded. The error is reported unless it follows from
    /// an earlier error of the transaction.
    #[cold]
    fn fail_statement(&mut self, client: &mut SessionClient<S>, sqlstate: &str, error: &dyn std::fmt::Display) {
        let account = client.own.expected.account;
        let is_consequence = self.counters.totals.replay.fail(&client.own.expected, sqlstate, &mut client.own.errors);
        self.counters.fail(client, sqlstate);
        if !is_consequence && self.is_new((Some(account), sqlstate.to_owned())) {
            let (name, error) = (&self.mode.accounts[account], first_line(error));
            let text = format!("{name} failed with {sqlstate}, which was not recorded: {error}");
            self.counters.report(Report::Note(text));
        }
    }

    /// Ends the session of a client because its connection broke.
    #[cold]
    fn lose_session(&mut self, client: &mut SessionClient<S>, error: &ConnectionError) {
        self.counters.totals.replay.sessions.lost += 1;
        client.connection = None;
        client.status = b'I';
        client.own.errors = TransactionErrors::default();
        client.program.complete(ActionResult::Lost(error));
    }

    #[cold]
    fn note_failure_of_session(&mut self, what: &str, sqlstate: &str, error: &dyn std::fmt::Display) {
        if self.is_new((None, sqlstate.to_owned())) {
            self.counters.report(Report::Note(format!(
                "{what}: {} (further errors of this kind are only counted)",
                first_line(error)
            )));
        }
    }

    /// Returns true if an error is the first of its kind, so that it must be reported.
    fn is_new(&mut self, kind: (Option<usize>, String)) -> bool {
        self.mode.noted.len() < MOST_NOTES && self.mode.noted.insert(kind)
    }
}

fn first_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
