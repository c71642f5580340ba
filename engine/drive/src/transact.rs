//! The execution of a client's transaction: the client's program chooses the next action, the request is sent, and the
//! server's answer is received.

use ground::poll::Token;

use crate::client::{Awaited, ClientState};
use crate::mode::{ClientOf, End, Mode};
use crate::outcome::Cause;
use crate::shell::Shell;
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::error::{ConnectionError, ServerError};
use wire::{Answered, Connection, Reply, Sent, StatementError};
use workload::{AbortReason, Action, ActionResult};

impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Starts a client's next transaction, unless the client has to wait or has finished.
    pub fn begin_transaction(&mut self, client: &mut ClientOf<M, S>, now: Nanos) {
        self.counters.enter_slice(client, now);
        if M::next(self, client, now) {
            self.drive(client, now);
        }
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
                Action::End => self.end(client, began),
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

    #[inline(never)]
    fn end(&mut self, client: &mut ClientOf<M, S>, now: Nanos) -> Option<Nanos> {
        M::ended(self, client, End::Completed, now)
    }

    /// Handles a request after as much of it was sent as the socket accepted. `sent` is `None` if the client had no
    /// connection on which to send it. Always returns `None`, which means that the client waits.
    #[inline]
    pub fn sent(
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
    pub fn finish_command(&mut self, client: &mut ClientOf<M, S>, command: usize, now: Nanos) -> Nanos {
        if !self.options.timed_commands {
            return now;
        }
        let now = self.shell.now();
        self.account_command(client, command, now);
        now
    }

    /// Adds the time of a command that ended at `now` to the command's counters, if commands are timed.
    #[inline]
    pub fn account_command(&mut self, client: &ClientOf<M, S>, command: usize, now: Nanos) {
        if self.options.timed_commands {
            let account = &mut self.counters.totals.scripts[client.transaction.script].commands[command];
            account.moments.add((now - client.transaction.command_began) as f64 / 1000.0);
        }
    }

    /// Reads what the server has sent. If the answer is complete, the client goes on.
    #[inline(always)]
    pub fn receive(&mut self, client: &mut ClientOf<M, S>, awaited: Awaited) {
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
    pub fn receive_idle(&mut self, client: &mut ClientOf<M, S>) {
        let Some(connection) = &mut client.connection else { return };
        let received = connection.receive(&mut self.sockets.buffer, self.shell.network(), Token(client.index));
        match received {
            Ok(_) if !connection.is_dismissed() => {}
            Ok(_) => self.lose(client, None, ConnectionError::Closed),
            Err(error) => self.lose(client, None, error),
        }
    }

    /// Returns the time that was read before, or reads the clock now.
    #[inline(always)]
    fn time(&mut self, read: Option<Nanos>) -> Nanos {
        read.unwrap_or_else(|| self.read_clock())
    }

    /// Reads the clock. If a second (or a round of slices) has ended, the thread reports its counts.
    #[inline(always)]
    pub fn read_clock(&mut self) -> Nanos {
        let now = self.shell.now();
        self.end_periods(now);
        now
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
                if !last || self.end(client, now).is_some() {
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

    fn hand_failure(&mut self, client: &mut ClientOf<M, S>, error: &ServerError, counts: bool, now: Nanos) {
        self.counters.statistics.counts.queries.errors += u64::from(counts);
        client.program.complete(ActionResult::Failed(error));
        self.drive(client, now);
    }

    /// Handles a broken connection of the client.
    fn lose(&mut self, client: &mut ClientOf<M, S>, command: Option<usize>, error: ConnectionError) {
        client.connection = None;
        let now = self.read_clock();
        M::lost(self, client, command, error, now);
    }

    /// Handles a script that ended without ending its transaction block: aborts the client or, in a load with
    /// connection pools, fails its task.
    #[cold]
    pub fn left_open(&mut self, client: &mut ClientOf<M, S>) {
        let reason = "end of script reached without completing the last transaction".to_owned();
        M::stuck(self, client, None, Cause::Program(AbortReason::Script { reason }));
    }
}
