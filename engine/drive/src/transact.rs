//! A client's way: a reply comes in, the program says what is next, the next request goes out. Runs without any extras
//! have a shorter one (`plain.rs`).

use mio::Token;

use super::Cause;
use super::client::{Client, Stage, State};
use super::thread::Thread;
use crate::ledger::log::End;
use ground::clock::{Nanos, Phase};
use wire::error::ConnectionError;
use wire::statement::QueryMode;
use wire::{Answered, Rows};
use workload::{AbortReason, Action, ActionResult};

impl Thread<'_> {
    /// Starts a client's next transaction, or ends the client.
    pub fn begin_transaction(&mut self, client: &mut Client, now: Nanos) {
        if self.next_transaction(client, now) {
            self.drive(client, now);
        }
    }

    /// Makes a client ready for its next transaction, which starts when the former one ends: one clock reading serves
    /// for both. False if it has done its share, or must wait for its time or its connection.
    pub(super) fn next_transaction(&mut self, client: &mut Client, now: Nanos) -> bool {
        if self.pools.is_some() {
            return self.next_task(client, now);
        }
        if self.is_done(client, now) {
            self.end_client(client);
            return false;
        }
        client.script = client.program.begin(&mut self.choose);
        client.tries = 1;
        client.was_answered = false;
        if self.plan.options().notes.steps {
            self.note_script(client);
        }
        if self.throttle.is_some() && !self.await_slot(client, now) {
            return false;
        }
        if self.is_to_connect(client) {
            self.connect_later(client, now);
            return false;
        }
        if self.throttle.is_none() {
            client.scheduled = now;
        }
        client.transaction_began = now;
        true
    }

    /// Starts the transaction of a client whose time has come or whose connection is ready.
    pub fn start_transaction(&mut self, client: &mut Client, now: Nanos) {
        if self.throttle.is_none() {
            client.scheduled = now;
        }
        client.transaction_began = now;
        self.drive(client, now);
    }

    /// Starts a transaction at its scheduled time.
    pub fn start_scheduled(&mut self, client: &mut Client, now: Nanos) {
        if self.is_over(now) {
            return self.end_client(client);
        }
        if let Some(pace) = &mut self.tally.pace {
            pace.oversleeps.record(now - client.scheduled);
        }
        if self.is_to_connect(client) {
            return self.connect_later(client, now);
        }
        self.start_transaction(client, now);
    }

    /// Gives a client its next scheduled start, past those that are too late already; true if that is now.
    fn await_slot(&mut self, client: &mut Client, now: Nanos) -> bool {
        loop {
            let Some(throttle) = &mut self.throttle else { return true };
            let scheduled = throttle.next();
            client.scheduled = scheduled;
            if self.plan.options().latency_limit.is_some_and(|limit| scheduled + limit.as_nanos() as Nanos <= now) {
                self.skip(client, now);
                if self.is_done(client, now) {
                    self.end_client(client);
                    return false;
                }
                continue;
            }
            if let Some(end) = self.schedule.end.filter(|end| scheduled > *end) {
                if self.plan.is_staged() {
                    // As sysbench's clients do it waits for the end: the run has its whole length.
                    client.state = State::Scheduled;
                    self.timers.add(end, client.index);
                } else {
                    self.end_client(client);
                }
                return false;
            }
            if scheduled > now {
                client.state = State::Scheduled;
                self.timers.add(scheduled, client.index);
                return false;
            }
            return true;
        }
    }

    /// Asks the program until the server, a moment or the end is needed.
    pub fn drive(&mut self, client: &mut Client, mut now: Nanos) {
        loop {
            if self.plan.options().timed_commands {
                client.command_began = now;
            }
            match client.program.next_action() {
                Action::Query { command, statement, values, rows, last } => {
                    let Some(connection) = &mut client.connection else {
                        return self.query_without_connection(client);
                    };
                    let sent = connection.send(statement, self.plan.mode, values, rows, &mut self.scratch);
                    if self.plan.options().notes.steps {
                        let text = connection.sent_text().filter(|_| self.plan.mode != QueryMode::Prepared);
                        self.note_sending(client.index, text.unwrap_or_else(|| statement.name()));
                    }
                    if connection.in_pipeline() {
                        if let Err(error) = sent {
                            return self.lose(client, error);
                        }
                        now = self.finish_command(client, command, now);
                        continue;
                    }
                    client.state = match rows {
                        Rows::Skipped => State::Waiting { command, last },
                        Rows::Kept => State::WaitingForRows { command },
                        Rows::Counted => State::WaitingForCount { last },
                        Rows::Handed => State::WaitingForAnswer { counts: true },
                    };
                    if sent.is_err() || connection.has_unsent() {
                        self.sent_in_part(client, sent);
                    }
                    return;
                }
                Action::End => match self.end_transaction(client, now) {
                    Some(next) => now = next,
                    None => return,
                },
                Action::Local { command } => now = self.finish_command(client, command, now),
                Action::Sleep { command, time } => {
                    self.note_command(client, command);
                    client.state = State::Sleeping { command };
                    let until = self.clock.now().saturating_add(time.as_nanos() as Nanos);
                    self.timers.add(until, client.index);
                    return;
                }
                Action::StartPipeline { command, statements } => {
                    let Some(connection) = &mut client.connection else { return };
                    let is_prepared = self.plan.mode == QueryMode::Prepared;
                    match if is_prepared { connection.prepare(statements) } else { Ok(false) } {
                        Ok(false) => {
                            connection.start_pipeline();
                            now = self.finish_command(client, command, now);
                        }
                        sent => {
                            client.state = State::Preparing { command };
                            return self.sent_in_part(client, sent.map(drop));
                        }
                    }
                }
                Action::SyncPipeline { command } => {
                    if let Some(connection) = &mut client.connection {
                        connection.sync_pipeline();
                    }
                    now = self.finish_command(client, command, now);
                }
                Action::EndPipeline { command } => {
                    self.note_command(client, command);
                    let Some(connection) = &mut client.connection else { return };
                    client.state = State::Waiting { command, last: false };
                    let sent = connection.end_pipeline();
                    return self.sent_in_part(client, sent);
                }
                Action::Text { sql, rows } => {
                    // What is not counted has its answer all the same.
                    let (rows, state) = match rows {
                        Rows::Skipped => (Rows::Counted, State::WaitingForAnswer { counts: false }),
                        Rows::Handed => (rows, State::WaitingForAnswer { counts: true }),
                        _ => (rows, State::WaitingForCount { last: false }),
                    };
                    let sent = client.connection.as_mut().map(|connection| connection.send_query(sql, rows));
                    client.state = state;
                    return self.sent_on_staged(client, sent);
                }
                Action::Prepare { statement } => {
                    let sent = client.connection.as_mut().map(|connection| connection.send_prepare(statement));
                    client.state = State::WaitingForAnswer { counts: false };
                    return self.sent_on_staged(client, sent);
                }
                Action::PrepareAll { statements } => {
                    let sent = client.connection.as_mut().map(|connection| connection.prepare(statements));
                    if matches!(sent, Some(Ok(false))) {
                        client.program.complete(ActionResult::Done(&Answered::default()));
                        continue;
                    }
                    client.state = State::WaitingForAnswer { counts: false };
                    return self.sent_on_staged(client, sent.map(|sent| sent.map(drop)));
                }
                Action::Connect { number } => {
                    self.use_connection(client, number);
                    client.connection = None;
                    return self.connect_later(client, now);
                }
                Action::Use { number } => self.use_connection(client, number),
                Action::Disconnect { number } => {
                    self.use_connection(client, number);
                    client.staged.made.retain(|made| *made != number);
                    if let Some(mut connection) = client.connection.take() {
                        connection.terminate();
                    }
                }
                Action::Leave => {
                    client.staged.stage = Stage::Stop;
                }
                Action::Abort(trouble) => {
                    if let AbortReason::Command { command, .. } = trouble {
                        self.note_command(client, command);
                    }
                    return self.abort(client, None, Cause::Program(trouble));
                }
            }
        }
    }

    /// Has the poll tell when the socket takes the rest. A broken socket may still hold the server's last word: the read
    /// that follows finds it.
    #[cold]
    pub(super) fn sent_in_part(&mut self, client: &mut Client, sent: Result<(), ConnectionError>) {
        let Some(connection) = &mut client.connection else { return };
        let watched = sent.and_then(|()| Ok(connection.watch_unsent(self.readiness.registry(), Token(client.index))?));
        if watched.is_err() {
            self.receive(client);
        }
    }

    pub(super) fn open_pipeline(&mut self, client: &mut Client, command: usize, now: Nanos) {
        if let Some(connection) = &mut client.connection {
            connection.start_pipeline();
        }
        let now = self.finish_command(client, command, now);
        self.drive(client, now);
    }

    /// A command that took no answer is over; the time is read anew only where it is wanted.
    fn finish_command(&mut self, client: &mut Client, command: usize, now: Nanos) -> Nanos {
        self.note_command(client, command);
        if !self.plan.options().timed_commands {
            return now;
        }
        let now = self.clock.now();
        self.account_command(client, command, now);
        now
    }

    /// Notes the time of a command that ended at `now`.
    #[inline]
    pub fn account_command(&mut self, client: &mut Client, command: usize, now: Nanos) {
        if self.plan.options().timed_commands {
            let account = &mut self.scripts[client.script].commands[command];
            account.moments.add((now - client.command_began) as f64 / 1000.0);
        }
    }

    /// The script is at its end: counts the transaction and prepares the next one, which begins at the returned time.
    pub(super) fn end_transaction(&mut self, client: &mut Client, now: Nanos) -> Option<Nanos> {
        if self.plan.is_staged() {
            return self.end_staged(client, now);
        }
        if !client.was_answered {
            return self.end_without_answer(client);
        }
        if self.pools.is_some() && client.status != b'I' {
            // A task is counted once: what it leaves open is lost.
            self.leave_open(client);
            return None;
        }
        self.commit(client, now);
        if client.status != b'I' {
            self.leave_open(client);
            return None;
        }
        self.count(client);
        self.next_transaction(client, now).then_some(now)
    }

    /// A transaction without the server: the others have their turn before the next one.
    fn end_without_answer(&mut self, client: &mut Client) -> Option<Nanos> {
        let now = self.clock.now();
        self.roll(now);
        self.commit(client, now);
        self.count(client);
        client.state = State::Yielding;
        self.yielding.push(client.index);
        None
    }

    #[cold]
    pub(super) fn leave_open(&mut self, client: &mut Client) {
        let reason = "end of script reached without completing the last transaction".to_owned();
        self.abort(client, None, Cause::Program(AbortReason::Script { reason }));
    }

    /// A transaction is over, however it ended; with `--connect` so is its connection.
    pub fn count(&mut self, client: &mut Client) {
        client.done += u64::from(self.stretch.phase != Phase::Warmup);
        if self.plan.reconnect() {
            if let Some(mut connection) = client.connection.take() {
                connection.terminate();
            }
        }
    }

    #[inline]
    pub(super) fn commit(&mut self, client: &mut Client, now: Nanos) {
        let latency = now - client.scheduled;
        self.tally.commit(latency);
        if self.is_detailed {
            self.commit_in_detail(client, now, latency);
        }
    }

    fn commit_in_detail(&mut self, client: &mut Client, now: Nanos, latency: Nanos) {
        let lag = client.transaction_began - client.scheduled;
        let is_late = self.plan.options().latency_limit.is_some_and(|limit| u128::from(latency) > limit.as_nanos());
        if let Some(pace) = &mut self.tally.pace {
            pace.service.record(now - client.transaction_began);
            pace.lags.record(lag);
        }
        self.complete_task(client, now);
        let (script, retries) = (client.script, client.tries - 1);
        let throttled = self.throttle.is_some();
        for counts in [&mut self.tally.counts, &mut self.scripts[script].whole] {
            if throttled {
                counts.lag.add(lag as f64 / 1000.0);
            }
            counts.late += u64::from(is_late);
            counts.add_retries(retries);
        }
        self.scripts[script].whole.moments.add(latency as f64 / 1000.0);
        self.log(client, now, End::Committed { latency });
    }

    fn skip(&mut self, client: &mut Client, now: Nanos) {
        let script = client.script;
        self.tally.counts.skipped += 1;
        self.scripts[script].whole.skipped += 1;
        client.transaction_began = client.scheduled;
        self.log(client, now, End::Skipped);
        if self.stretch.phase != Phase::Warmup {
            client.done += 1;
        }
    }
}
