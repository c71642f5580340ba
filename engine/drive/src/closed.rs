//! The closed loop, as in pgbench: a client starts its next transaction when its last one has ended or, with a rate, at
//! its scheduled time. With `--connect` each transaction uses a connection of its own. With `--wait-for-server` clients
//! that lose their connection connect again. In a load with think times clients wait before each transaction.

use std::time::Duration;

use crate::client::{Client, ClientState};
use crate::mode::{Asked, End, Mode};
use crate::outcome::Cause;
use crate::plan::{ClosedPlan, Limit, Plan};
use crate::report::Report;
use crate::shell::{Shell, TransportOf};
use crate::statistics::LoadStatistics;
use crate::statistics::log::FailureKind;
use crate::thread::{Share, Thread};
use ground::clock::{Nanos, nanos};
use wire::error::ConnectionError;
use wire::{Connection, OpenError};
use workload::{ScriptActions, ScriptStep, StartPipeline};

/// The pause of a client between two attempts to connect, in nanoseconds. It is short compared with any restart of a
/// server, and long compared with the cost of a refused connection.
const PAUSE: Nanos = 200_000_000;

/// The time in nanoseconds between two checks whether a client has tried to connect for too long. It is short compared
/// with the time that clients are allowed to wait.
const LOOKS_EVERY: Nanos = 10_000_000;

/// The state of a closed loop in one thread.
pub struct Closed {
    /// The number of transactions that each client runs; `u64::MAX` if a time limits the load.
    transactions: u64,
    reconnect: bool,
    thinks: bool,
    wait_for_server: Option<Duration>,
    /// True if this thread has already reported that a client lost the server. With `--connect` it is true from the
    /// start, so that nothing is reported.
    is_outage_noted: bool,
    /// The time of the next check whether a client has tried to connect for too long.
    looks_at: Nanos,
}

/// The part of a client's state that only a closed loop needs.
#[derive(Default)]
pub struct ClosedClient {
    outage: Option<Outage>,
}

/// The outage of a client: it has lost its connection, or could not connect, and waits until the server accepts
/// connections again.
struct Outage {
    since: Nanos,
    /// True while the client pauses before its next attempt to connect.
    is_pausing: bool,
}

type Loop<'a, S> = Thread<'a, Closed, S>;
type LoopClient<S> = Client<ClosedClient, ScriptActions, S>;

impl<S: Shell> Mode<S> for Closed {
    type Plan = ClosedPlan;
    type Actions = ScriptActions;
    type Client = ClosedClient;

    const EXECUTES_UNPREPARED: bool = true;

    fn new(_plan: &Plan, closed: &ClosedPlan, _share: Share) -> (Self, LoadStatistics) {
        let mode = Self {
            transactions: match closed.limit {
                Limit::Transactions(limit) => limit,
                Limit::Time(_) => u64::MAX,
            },
            reconnect: closed.reconnect,
            thinks: closed.thinks,
            wait_for_server: closed.wait_for_server,
            is_outage_noted: closed.reconnect,
            looks_at: 0,
        };
        (mode, LoadStatistics::default())
    }

    fn prepare(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>) {
        if !thread.mode.reconnect {
            thread.unready += 1;
            thread.connect(client, thread.shell.now());
        }
    }

    fn start(thread: &mut Loop<'_, S>, clients: &mut [LoopClient<S>], at: Nanos) {
        clients.iter_mut().for_each(|client| thread.begin_transaction(client, at));
    }

    #[inline(always)]
    fn next(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, now: Nanos) -> bool {
        if thread.cannot_begin(client, now) {
            thread.finish_or_wait(client, now);
            return false;
        }
        if thread.throttle.is_some() {
            return thread.next_at_rate(client, now);
        }
        thread.choose_script(client);
        if thread.mode.thinks {
            thread.think(client, now);
            return false;
        }
        thread.is_connected(client, now)
    }

    #[inline(always)]
    fn ended(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, end: End<'_>, mut now: Nanos) -> Option<Nanos> {
        if let End::Completed = end {
            now = thread.end_time(client, now);
            thread.counters.commit(client, now);
            if client.status != b'I' {
                thread.left_open(client);
                return None;
            }
            thread.counters.count(client);
        }
        thread.end_connection(client);
        thread.next_after(client, now)
    }

    fn connected(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, now: Nanos) {
        if thread.unready > 0 {
            thread.unready -= 1;
            client.state = ClientState::Idle;
            return;
        }
        client.own.outage = None;
        // The time of the load or this engine's slice may have ended while the client waited.
        if !thread.may_begin(client, now) {
            return thread.finish_or_wait(client, now);
        }
        thread.note_start(client, now);
        thread.drive(client, now);
    }

    fn refused(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, error: OpenError, now: Nanos) {
        if thread.unready > 0 {
            thread.counters.report(Report::CannotConnect { client: client.number, error });
            return thread.shared.end_run();
        }
        if let Some(patience) = thread.mode.wait_for_server {
            let outage = client.own.outage.get_or_insert(Outage { since: now, is_pausing: false });
            if thread.is_over(now) {
                return thread.leave(client);
            }
            if u128::from(now - outage.since) <= patience.as_nanos() {
                outage.is_pausing = true;
                return thread.wait_until(client, now + PAUSE);
            }
        }
        Self::stuck(thread, client, None, Cause::Connect(error));
    }

    fn lost(
        thread: &mut Loop<'_, S>,
        client: &mut LoopClient<S>,
        command: Option<usize>,
        error: ConnectionError,
        now: Nanos,
    ) {
        if thread.mode.wait_for_server.is_some() {
            return thread.begin_outage(client, &error, now);
        }
        Self::stuck(thread, client, command, Cause::Connection(error));
    }

    fn stuck(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, command: Option<usize>, cause: Cause) {
        thread.abort(client, command, cause);
        thread.exit_on_abort();
    }

    fn ask(thread: &mut Loop<'_, S>, connection: &mut Connection<TransportOf<S>>, request: StartPipeline<'_>) -> Asked {
        thread.prepare_pipeline(connection, request)
    }

    fn step(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, step: ScriptStep, now: Nanos) -> Option<Nanos> {
        thread.step_script(client, step, now)
    }

    fn due(thread: &mut Loop<'_, S>, client: &mut LoopClient<S>, now: Nanos) {
        if let Some(outage @ Outage { is_pausing: true, .. }) = &mut client.own.outage {
            outage.is_pausing = false;
            return if thread.may_begin(client, now) {
                thread.connect(client, now)
            } else {
                thread.finish_or_wait(client, now)
            };
        }
        if !thread.may_begin(client, now) {
            return thread.finish_or_wait(client, now);
        }
        thread.counters.note_oversleep(now - client.transaction.scheduled);
        if thread.is_connected(client, now) {
            thread.drive(client, now);
        }
    }

    /// Ends clients that connect in vain.
    #[inline(always)]
    fn tend(thread: &mut Loop<'_, S>, clients: &mut [LoopClient<S>]) {
        if thread.sockets.are_connecting() && thread.unready == 0 {
            thread.give_up_connecting(clients);
        }
    }
}

impl<S: Shell> Loop<'_, S> {
    /// Ends the clients that are still connecting when the load is over, or that have tried to connect for too long.
    /// Such clients have no transaction under way.
    #[inline(never)]
    fn give_up_connecting(&mut self, clients: &mut [LoopClient<S>]) {
        let (now, end) = (self.shell.now(), self.counters.schedule.end);
        let patience = self.mode.wait_for_server;
        let is_too_long = |since| patience.is_some_and(|patience| u128::from(now - since) > patience.as_nanos());
        let is_over = |client: &&mut LoopClient<S>| {
            let since = client.own.outage.as_ref().map(|outage| outage.since);
            client.state == ClientState::Connecting && (now >= end || since.is_some_and(is_too_long))
        };
        // Only some rounds check all clients, since thousands of them may be connecting.
        if now < end && (patience.is_none() || now < self.mode.looks_at) {
            return;
        }
        self.mode.looks_at = now + LOOKS_EVERY;
        let mut are_any_over = false;
        for client in clients.iter_mut().filter(is_over) {
            are_any_over = true;
            client.connection = None;
            self.sockets.forget(client.index);
            if now >= end {
                self.leave(client);
                continue;
            }
            let message = "the server did not answer in time".to_owned();
            Closed::refused(self, client, OpenError { message, sqlstate: "08001".to_owned() }, now);
        }
        if are_any_over {
            self.sockets.drop_queued(|index| clients[index].state == ClientState::Connecting);
        }
    }

    /// Returns true if a client must not begin a transaction: the client has run all of its transactions, the load is
    /// over, or it is the slice of another engine.
    #[inline(always)]
    fn cannot_begin(&self, client: &LoopClient<S>, now: Nanos) -> bool {
        client.done >= self.mode.transactions || !self.is_open(now)
    }

    /// Handles a client that must not begin a transaction: the client finishes, or waits for this engine's next slice.
    #[cold]
    fn finish_or_wait(&mut self, client: &mut LoopClient<S>, now: Nanos) {
        self.leave_slice(client, now);
        let is_done = client.done >= self.mode.transactions || self.is_over(now);
        if is_done { self.leave(client) } else { self.await_slice(client, now) }
    }

    /// With `--connect`, closes the connection of a transaction that is over.
    #[inline]
    fn end_connection(&self, client: &mut LoopClient<S>) {
        if self.mode.reconnect {
            client.disconnect();
        }
    }

    /// Gives a client its next scheduled start. A start whose latency limit is already over is counted as skipped.
    /// Returns true if the client begins its transaction now.
    #[inline(never)]
    fn next_at_rate(&mut self, client: &mut LoopClient<S>, mut now: Nanos) -> bool {
        let mut start = self.next_start(client);
        if start.is_some() {
            self.choose_script(client);
        }
        while let Some(scheduled) = start {
            if self.options.latency_limit.is_some_and(|limit| scheduled.saturating_add(nanos(limit)) <= now) {
                self.counters.skip(client, now);
                // Starts may come faster than this loop skips them. Therefore the clock is read again, so that the loop
                // notices the end of the run.
                now = self.read_clock();
                if self.cannot_begin(client, now) {
                    self.finish_or_wait(client, now);
                    return false;
                }
                if self.shared.is_ended() {
                    client.state = ClientState::Yielding;
                    return false;
                }
                start = self.next_start(client);
            } else if scheduled > now {
                self.wait_until(client, scheduled);
                return false;
            } else {
                return self.is_connected(client, now);
            }
        }
        if self.counters.period.slice.is_some() {
            self.wait_for_deadline(client)
        } else {
            self.leave(client)
        }
        false
    }

    /// Makes a client wait for the think time before its next transaction, but not longer than until the end of the
    /// load.
    #[cold]
    fn think(&mut self, client: &mut LoopClient<S>, now: Nanos) {
        let pause = client.program.pause();
        client.transaction.scheduled = now;
        self.wait_until(client, now.saturating_add(nanos(pause)).min(self.counters.schedule.end));
    }

    /// Begins the transaction of a client that has a connection. Returns false if the client has to connect first.
    #[inline]
    fn is_connected(&mut self, client: &mut LoopClient<S>, now: Nanos) -> bool {
        if client.connection.is_none() {
            self.connect(client, now);
            return false;
        }
        self.note_start(client, now);
        true
    }

    #[inline]
    fn note_start(&mut self, client: &mut LoopClient<S>, now: Nanos) {
        if self.throttle.is_none() {
            client.transaction.scheduled = now;
        }
        client.transaction.began = now;
    }

    /// Records that the current transaction has failed because its connection was lost. The client connects again
    /// before its next transaction.
    #[cold]
    fn begin_outage(&mut self, client: &mut LoopClient<S>, error: &ConnectionError, now: Nanos) {
        if !self.mode.is_outage_noted {
            self.mode.is_outage_noted = true;
            let number = client.number;
            self.note(
                number,
                format_args!("waits for the server: {error} (other clients of this thread that wait are not reported)"),
            );
        }
        let before = client.transaction.failure.take();
        let sqlstate = before.as_ref().map_or(error.sqlstate(), |failure| &failure.error.sqlstate);
        self.counters.end_failed(client, sqlstate, FailureKind::of(sqlstate), now);
        client.status = b'I';
        client.own.outage = Some(Outage { since: now, is_pausing: false });
        self.begin_transaction(client, now);
    }
}
