//! The life of a client, from its connection to its last transaction: the client connects, begins a transaction, carries
//! out what its program asks for, receives the answers of the server, ends the transaction or tries it again, and leaves
//! the load. Read from top to bottom, the functions follow a client in this order.
//!
//! A client waits in one of the states of [`ClientState`]. The event loop calls [`Thread::ready`] when the client's
//! socket is ready, and [`Thread::act`] when a time has come. When a transaction starts, and what its end means, is
//! decided by the [`Mode`] of the load.

use ground::poll::Token;

use crate::client::{Awaited, ClientState, TransactionFailure};
use crate::mode::{Asked, ClientOf, End, Mode};
use crate::outcome::{Abortion, Cause};
use crate::report::Report;
use crate::shell::{Shell, TransportOf};
use crate::statistics::log::FailureKind;
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::error::{ConnectionError, ServerError};
use wire::statement::QueryMode;
use wire::{Answered, Connection, Reply, Rows, Sent, StatementError};
use workload::{AbortReason, Action, ActionResult, ScriptActions, ScriptStep, StartPipeline};

/// The SQLSTATE with which the server rejects the execution of a statement that was not prepared.
const NO_SUCH_STATEMENT: &str = "26000";

/// These functions wake a client, and make its connection.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Reads or writes a client's socket that is ready.
    #[inline(always)]
    pub fn ready(&mut self, client: &mut ClientOf<M, S>) {
        if let ClientState::Awaiting(awaited) = client.state {
            return self.receive(client, awaited);
        }
        self.ready_otherwise(client);
    }

    #[inline(never)]
    fn ready_otherwise(&mut self, client: &mut ClientOf<M, S>) {
        match client.state {
            ClientState::Awaiting(awaited) => self.receive(client, awaited),
            ClientState::Connecting => self.go_on_connecting(client),
            ClientState::Idle if M::READS_WHEN_IDLE => self.receive_idle(client),
            ClientState::Idle
            | ClientState::Yielding
            | ClientState::Pausing
            | ClientState::Sleeping { .. }
            | ClientState::Finished => {}
        }
    }

    /// Goes on with a client whose timer has expired, or that has waited for the other clients to be served.
    pub fn act(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        self.end_periods(now);
        match client.state {
            ClientState::Idle => M::due(self, client, now),
            ClientState::Yielding => self.begin_transaction(client, now),
            ClientState::Pausing => self.drive(client, now),
            ClientState::Sleeping { command } => {
                self.account_command(client, command, now);
                self.drive(client, now);
            }
            ClientState::Connecting | ClientState::Awaiting(_) | ClientState::Finished => {}
        }
    }

    /// Puts the client into the queue of clients for which a connection has to be made.
    pub fn connect(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        client.state = ClientState::Connecting;
        client.transaction.command_began = now;
        self.sockets.enqueue(client.index);
    }

    /// Goes on with the making of a client's connection.
    pub fn go_on_connecting(&mut self, client: &mut ClientOf<M, S>) {
        let Some(connection) = &mut client.connection else { return };
        let progress = self.sockets.advance(connection, self.shell.network(), client.index);
        if matches!(progress, Ok(false)) {
            return;
        }
        let now = self.read_clock();
        match progress {
            Ok(_) => {
                self.counters.totals.reconnect_ns += now - client.transaction.command_began;
                M::connected(self, client, now);
            }
            Err(error) => {
                client.connection = None;
                M::refused(self, client, error, now);
            }
        }
    }
}

/// These functions begin a client's transaction.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Starts a client's next transaction, unless the client has to wait or has finished.
    pub fn begin_transaction(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        self.counters.enter_slice(client, now);
        if M::next(self, client, now) {
            self.drive(client, now);
        }
    }

    /// Asks the client's program to choose the script of its next transaction.
    #[inline]
    pub fn choose_script(&mut self, client: &mut ClientOf<M, S>) {
        client.transaction.script = client.program.begin(&mut self.choose);
        client.transaction.tries = 1;
        client.transaction.was_answered = false;
        if self.options.notes.steps {
            self.note_script(client);
        }
    }

    /// Makes the client wait until `at`.
    pub fn wait_until(&mut self, client: &mut ClientOf<M, S>, at: Nanos) {
        client.state = ClientState::Idle;
        self.timers.add(at, client.index);
    }

    /// Makes a client that must not begin a transaction at `now` wait for its engine's next slice, or for the end of
    /// the load.
    pub fn await_slice(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        client.state = ClientState::Yielding;
        self.timers.add(self.counters.next_slice(now), client.index);
    }
}

/// These functions carry out what the client's program asks for, and send its requests.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Carries out the actions that the client's program asks for, until the client has to wait or ends.
    #[inline(never)]
    pub fn drive(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        self.carry_out(client, Some(now));
    }

    /// Does the work of [`Thread::drive`], and is inlined into the event loop. Between the queries of a transaction the
    /// time is not needed: `now` is then `None`, and the clock is read only if an action follows that needs the time.
    #[inline(always)]
    fn carry_out(&mut self, client: &mut ClientOf<M, S>, mut now: Option<Nanos>) {
        let options = self.options;
        loop {
            if options.timed_commands {
                client.transaction.command_began = self.time(now);
            }
            let action = client.program.next_action();
            // This most frequent action is compared first, so that it needs no jump table.
            if let Action::Query { command, statement, values, rows, last } = action {
                let Some(connection) = &mut client.connection else {
                    return self.query_without_connection(client);
                };
                let sent = connection.send(statement, self.plan.mode, values, rows, &mut self.sockets.scratch);
                if options.notes.steps {
                    self.note_sending(client.number, connection, statement);
                }
                client.state = ClientState::Awaiting(Awaited::of_query(rows, command, last));
                match sent {
                    Ok(Sent::Whole) => return,
                    Ok(Sent::Collected) => {
                        let began = self.time(now);
                        now = Some(self.finish_command(client, command, began));
                    }
                    sent => return self.sent_in_part(client, sent),
                }
                continue;
            }
            let began = self.time(now);
            let goes_on = match action {
                // Carried out above.
                Action::Query { .. } => None,
                Action::End => self.end_transaction(client, began),
                Action::Pause => {
                    client.state = ClientState::Pausing;
                    return self.timers.yield_turn(client.index);
                }
                Action::Sleep { command, time } => {
                    client.state = ClientState::Sleeping { command };
                    let until = self.shell.now().saturating_add(time.as_nanos() as Nanos);
                    return self.timers.add(until, client.index);
                }
                Action::Request(request) => {
                    let Some(connection) = &mut client.connection else {
                        return self.query_without_connection(client);
                    };
                    match M::ask(self, connection, request) {
                        (Awaited::Prepared { command }, Ok(None)) => Some(self.start_pipeline(client, command, began)),
                        (_, Ok(None)) => {
                            client.program.complete(ActionResult::Done(&Answered::default()));
                            Some(began)
                        }
                        (awaited, sent) => self.sent(client, awaited, sent.transpose()),
                    }
                }
                Action::Step(step) => M::step(self, client, step, began),
                Action::Abort(reason) => {
                    let cause = Cause::Program(reason.clone());
                    return M::stuck(self, client, None, cause);
                }
            };
            let Some(next) = goes_on else { return };
            if self.shared.is_ended() {
                // A program that never waits must not keep the thread from ending.
                return;
            }
            now = Some(next);
        }
    }

    /// Handles a request after as much of it was sent as the socket accepted. `sent` is `None` if the client had no
    /// connection on which to send it. Always returns `None`, which means that the client waits.
    #[inline]
    fn sent(
        &mut self,
        client: &mut ClientOf<M, S>,
        awaited: Awaited,
        sent: Option<Result<Sent, ConnectionError>>,
    ) -> Option<Nanos> {
        client.state = ClientState::Awaiting(awaited);
        match sent {
            Some(Ok(Sent::Whole)) => {}
            Some(sent) => self.sent_in_part(client, sent),
            None => self.query_without_connection(client),
        }
        None
    }

    /// Waits until the socket accepts the rest of the request. If the connection broke while the request was sent, the
    /// client reads once from the broken connection, since the socket may still hold the server's last message.
    #[cold]
    fn sent_in_part(&mut self, client: &mut ClientOf<M, S>, sent: Result<Sent, ConnectionError>) {
        let Some(connection) = &mut client.connection else { return };
        let (network, token) = (self.shell.network(), Token(client.index));
        let watched = sent.and_then(|_| Ok(connection.watch_unsent(network, token)?));
        if let (Err(_), ClientState::Awaiting(awaited)) = (watched, client.state) {
            self.receive(client, awaited);
        }
    }

    /// Reports a missing connection to the client's program. The program may try further queries without a connection;
    /// to keep it from blocking the thread, it goes on only after the other clients of the thread have been served.
    #[cold]
    fn query_without_connection(&mut self, client: &mut ClientOf<M, S>) {
        client.program.complete(ActionResult::Lost(&ConnectionError::Closed));
        client.state = ClientState::Pausing;
        self.timers.yield_turn(client.index);
    }

    fn start_pipeline(&mut self, client: &mut ClientOf<M, S>, command: usize, now: Nanos) -> Nanos {
        client.connection.as_mut().map(Connection::start_pipeline);
        self.finish_command(client, command, now)
    }

    /// Ends a command that needs no answer of the server. Returns the time, which is read again only if commands are
    /// timed.
    fn finish_command(&mut self, client: &mut ClientOf<M, S>, command: usize, now: Nanos) -> Nanos {
        if !self.options.timed_commands {
            return now;
        }
        let now = self.shell.now();
        self.account_command(client, command, now);
        now
    }

    /// Adds the time of a command that ended at `now` to the command's counters, if commands are timed.
    #[inline]
    fn account_command(&mut self, client: &ClientOf<M, S>, command: usize, now: Nanos) {
        if self.options.timed_commands {
            let account = &mut self.counters.totals.scripts[client.transaction.script].commands[command];
            account.moments.add((now - client.transaction.command_began) as f64 / 1000.0);
        }
    }

    /// Returns the time that was read before, or reads the clock now.
    #[inline(always)]
    fn time(&mut self, read: Option<Nanos>) -> Nanos {
        read.unwrap_or_else(|| self.read_clock())
    }
}

/// These functions carry out the actions that only programs of pgbench scripts ask for: pipelines, and commands that the
/// engine executes without asking the server.
impl<M: Mode<S, Actions = ScriptActions>, S: Shell> Thread<'_, M, S> {
    /// Asks the server, in prepared mode, to prepare the statements of a pipeline before the pipeline begins.
    pub fn prepare_pipeline(
        &mut self,
        connection: &mut Connection<TransportOf<S>>,
        StartPipeline { command, statements }: StartPipeline<'_>,
    ) -> Asked {
        let statements = if self.plan.mode == QueryMode::Prepared { statements } else { &[] };
        (Awaited::Prepared { command }, connection.prepare(statements))
    }

    /// Carries out a step of a script, which is an action without a statement: the end of a pipeline, or the beginning
    /// or end of a command that the engine executes itself. Returns the current time if the client goes on at once,
    /// else `None`.
    pub fn step_script(&mut self, client: &mut ClientOf<M, S>, step: ScriptStep, now: Nanos) -> Option<Nanos> {
        match step {
            ScriptStep::SyncPipeline { command } => {
                client.connection.as_mut().map(Connection::sync_pipeline);
                Some(self.finish_command(client, command, now))
            }
            ScriptStep::EndPipeline { command } => {
                let sent = client.connection.as_mut().map(Connection::end_pipeline);
                self.note_receiving(client.number);
                self.sent(client, Awaited::Statement { command, last: false }, sent)
            }
            ScriptStep::Announce { command } => {
                self.note_command(client, command);
                Some(now)
            }
            ScriptStep::Local { command } => Some(self.finish_command(client, command, now)),
        }
    }
}

/// These functions receive the server's answer, and give it to the client's program.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Reads what the server has sent. If the answer is complete, the client goes on.
    #[inline(always)]
    fn receive(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited) {
        let Some(connection) = &mut client.connection else { return };
        match connection.receive(&mut self.sockets.buffer, self.shell.network(), Token(client.index)) {
            Ok(Some(Reply { status, error: None })) => self.answered(client, awaited, status),
            Ok(None) => {}
            Ok(Some(Reply { status, error: Some(error) })) => self.rejected(client, awaited, status, error),
            Err(error) => self.lose(client, awaited.command(), error),
        }
    }

    /// Reads what the server has sent to a client that waits for its next transaction. In most cases it ends the
    /// session.
    #[cold]
    fn receive_idle(&mut self, client: &mut ClientOf<M, S>) {
        let Some(connection) = &mut client.connection else { return };
        let received = connection.receive(&mut self.sockets.buffer, self.shell.network(), Token(client.index));
        match received {
            Ok(_) if !connection.is_dismissed() => {}
            Ok(_) => self.lose(client, None, ConnectionError::Closed),
            Err(error) => self.lose(client, None, error),
        }
    }

    /// Lets the client go on after the server has executed its request.
    #[inline(always)]
    fn answered(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited, status: u8) {
        client.note_answer(status);
        let Awaited::Statement { command, last } = awaited else {
            return self.answered_otherwise(client, awaited);
        };
        let mut now = None;
        if last | self.options.timed_commands {
            let ended = self.read_clock();
            self.account_command(client, command, ended);
            now = if last { M::ended(self, client, End::Completed, ended) } else { Some(ended) };
            if now.is_none() {
                return;
            }
        }
        self.carry_out(client, now);
    }

    /// Lets the client go on after the server has answered one of the rarer requests. The most frequent request, a
    /// statement whose rows the client does not use, is handled by the caller.
    #[inline(never)]
    fn answered_otherwise(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited) {
        let now = self.read_clock();
        match awaited {
            Awaited::Statement { .. } => {}
            Awaited::Count { last } => {
                self.count_query(client);
                if !last || self.end_transaction(client, now).is_some() {
                    self.drive(client, now);
                }
            }
            Awaited::Rows { command } => self.store_rows(client, command, now),
            Awaited::Answer { counts } => self.hand_answer(client, counts, now),
            Awaited::Prepared { command } => {
                let now = self.start_pipeline(client, command, now);
                self.drive(client, now);
            }
            Awaited::Rollback => self.rolled_back(client, now),
        }
    }

    #[inline(never)]
    fn store_rows(&mut self, client: &mut ClientOf<M, S>, command: usize, now: Nanos) {
        let results = client.connection.as_mut().map(Connection::take_results).unwrap_or_default();
        match client.program.store(&results) {
            Ok(()) => {
                self.account_command(client, command, now);
                self.drive(client, now);
            }
            Err(trouble) => M::stuck(self, client, None, Cause::Program(trouble)),
        }
    }

    fn count_query(&mut self, client: &ClientOf<M, S>) {
        if let Some(connection) = &client.connection {
            self.counters.statistics.counts.queries.add(connection.answered().kind);
        }
    }

    #[inline(never)]
    fn hand_answer(&mut self, client: &mut ClientOf<M, S>, counts: bool, now: Nanos) {
        if counts {
            self.count_query(client);
            client.program.foresee(client.starts_at_once && self.is_open(now));
        }
        if let Some(connection) = &mut client.connection {
            client.program.complete(ActionResult::Done(connection.answered()));
            if !counts {
                connection.trim();
            }
        }
        self.drive(client, now);
    }
}

/// These functions are called when the server rejects a request, or when the connection breaks.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Handles an error with which the server rejected a client's request.
    #[cold]
    fn rejected(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited, status: u8, error: StatementError) {
        client.note_answer(status);
        let now = self.read_clock();
        match awaited {
            Awaited::Statement { .. } | Awaited::Rows { .. } | Awaited::Prepared { .. }
                if self.passes_unprepared(&error.error) =>
            {
                if !self.pass_unprepared(client, awaited, error.error) {
                    self.answered_otherwise(client, awaited);
                }
            }
            Awaited::Statement { command, .. } | Awaited::Rows { command } => {
                self.statement_failed(client, command, error, now);
            }
            Awaited::Count { last } => {
                if !last || M::ended(self, client, End::Failed(&error.error), now).is_some() {
                    self.hand_failure(client, &error.error, true, now);
                }
            }
            Awaited::Answer { counts } => self.hand_failure(client, &error.error, counts, now),
            Awaited::Prepared { .. } | Awaited::Rollback => {
                M::stuck(self, client, awaited.command(), Cause::from(error));
            }
        }
    }

    fn hand_failure(&mut self, client: &mut ClientOf<M, S>, error: &ServerError, counts: bool, now: Nanos) {
        self.counters.statistics.counts.queries.errors += u64::from(counts);
        client.program.complete(ActionResult::Failed(error));
        self.drive(client, now);
    }

    /// Returns true if the client executes a statement although the server could not prepare it, as pgbench does.
    fn passes_unprepared(&self, error: &ServerError) -> bool {
        M::EXECUTES_UNPREPARED && error.is_unprepared && !self.options.continue_on_error
    }

    /// Prints the error of a statement that could not be prepared, and then executes the statement nevertheless, as
    /// pgbench does: sends the messages of the request that come after the statement's text. Returns false if no such
    /// messages are left, so that no further answer of the server will come.
    fn pass_unprepared(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited, error: Box<ServerError>) -> bool {
        self.write_error(&error);
        client.transaction.unprepared = Some(error);
        let rows = if matches!(awaited, Awaited::Rows { .. }) { Rows::Kept } else { Rows::Skipped };
        match client.connection.as_mut().map(|connection| connection.pass_unprepared(rows)) {
            Some(Ok(None)) => return false,
            sent => self.sent(client, awaited, sent.and_then(Result::transpose)),
        };
        true
    }

    /// Rolls back the transaction whose statement failed, or aborts the client if it cannot go on after this error.
    fn statement_failed(&mut self, client: &mut ClientOf<M, S>, command: usize, failed: StatementError, now: Nanos) {
        let kind = FailureKind::of(&failed.error.sqlstate);
        if kind == FailureKind::Other && !self.options.continue_on_error {
            let cause = match client.transaction.unprepared.take() {
                Some(error) if failed.error.sqlstate == NO_SUCH_STATEMENT => {
                    Cause::Unprepared { error, execution: failed }
                }
                _ => Cause::from(failed),
            };
            return M::stuck(self, client, Some(command), cause);
        }
        if self.options.notes.failures {
            self.note_failure(client, command, &failed.error);
        }
        client.transaction.failure = Some(Box::new(TransactionFailure { error: failed.error, kind, command }));
        if client.status == b'I' {
            return self.rolled_back(client, now);
        }
        let sent = client.connection.as_mut().map(|connection| connection.send_query("ROLLBACK", Rows::Skipped));
        self.sent(client, Awaited::Rollback, sent);
    }

    /// Called when a failed transaction has been rolled back. Tries it again, or counts it as failed and goes on with
    /// the client's next transaction. If the load is over, the client ends, and the transaction is not counted.
    fn rolled_back(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        let Some(failure) = client.transaction.failure.take() else { return };
        if self.is_over(now) {
            return self.leave(client);
        }
        let again = self.may_retry(client, failure.kind, now);
        if self.options.notes.failures {
            self.note_try(client, again, now);
        }
        let account = &mut self.counters.totals.scripts[client.transaction.script].commands[failure.command];
        if again {
            account.retries += 1;
            client.transaction.tries += 1;
            client.program.retry();
            return self.drive(client, now);
        }
        account.failures += 1;
        self.counters.end_failed(client, &failure.error.sqlstate, failure.kind, now);
        if let Some(now) = M::ended(self, client, End::Failed(&failure.error), now) {
            self.drive(client, now);
        }
    }

    fn may_retry(&self, client: &ClientOf<M, S>, kind: FailureKind, now: Nanos) -> bool {
        let (limit, tries) = (self.options.latency_limit, client.transaction.tries);
        kind != FailureKind::Other
            && self.options.tries.is_none_or(|most| tries < most)
            && limit.is_none_or(|limit| u128::from(now - client.transaction.scheduled) <= limit.as_nanos())
    }

    /// Handles a broken connection of the client.
    fn lose(&mut self, client: &mut ClientOf<M, S>, command: Option<usize>, error: ConnectionError) {
        client.connection = None;
        let now = self.read_clock();
        M::lost(self, client, command, error, now);
    }
}

/// These functions end a transaction, and take the client out of the load.
impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Ends a client's transaction when the client's program has reached the end of it. Returns the current time if the
    /// client goes on at once, else `None`.
    #[inline(never)]
    fn end_transaction(&mut self, client: &mut ClientOf<M, S>, now: Nanos) -> Option<Nanos> {
        M::ended(self, client, End::Completed, now)
    }

    /// Returns the time at which a client's transaction ended. If the server has answered a request of the transaction,
    /// the time is `now`, which was read when or after the last answer arrived. Otherwise the clock is read, because it
    /// has not been read since the transaction began.
    #[inline(always)]
    pub fn end_time(&mut self, client: &ClientOf<M, S>, now: Nanos) -> Nanos {
        if client.transaction.was_answered { now } else { self.read_clock() }
    }

    /// Returns the start time of the client's next transaction if it begins at once, else `None`. After a transaction
    /// that did not use the server, the other clients of the thread are served first.
    #[inline(always)]
    pub fn next_after(&mut self, client: &mut ClientOf<M, S>, now: Nanos) -> Option<Nanos> {
        if !client.transaction.was_answered {
            client.state = ClientState::Yielding;
            self.timers.yield_turn(client.index);
            return None;
        }
        M::next(self, client, now).then_some(now)
    }

    /// Handles a script that ended without ending its transaction block: aborts the client or, in a load with
    /// connection pools, fails its task.
    #[cold]
    pub fn left_open(&mut self, client: &mut ClientOf<M, S>) {
        let reason = "end of script reached without completing the last transaction".to_owned();
        M::stuck(self, client, None, Cause::Program(AbortReason::Script { reason }));
    }

    /// Ends a client that cannot go on. Its current transaction is counted as failed if the error has an SQLSTATE.
    pub fn abort(&mut self, client: &mut ClientOf<M, S>, command: Option<usize>, cause: Cause) {
        if let Some(sqlstate) = cause.counted_sqlstate() {
            self.counters.statistics.counts.fail(sqlstate);
        }
        self.counters.totals.aborted += 1;
        let abortion = Abortion { client: client.number, script: client.transaction.script, command, cause };
        self.counters.report(Report::Aborted { thread: self.counters.thread, abortion });
        self.leave(client);
    }

    /// Ends the whole run after a client was aborted, if the plan says so.
    pub fn exit_on_abort(&self) {
        if self.plan.exit_on_abort {
            self.shared.end_run();
        }
    }

    /// Ends the client's session, and takes the client out of the load.
    pub fn leave(&mut self, client: &mut ClientOf<M, S>) {
        if client.takes_part {
            self.counters.leave_slice(client, self.shell.now());
        }
        client.state = ClientState::Finished;
        client.disconnect();
        self.active -= 1;
    }
}
