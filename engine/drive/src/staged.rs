//! The mode of sysbench's load. Programs connect by themselves if they use a server, act before their first transaction
//! and after their last one, and receive the server's answers. All clients share a number of transactions. With a rate
//! each transaction starts at its scheduled time.

use std::sync::atomic::Ordering;

use crate::client::{Awaited, Client, ClientState};
use crate::mode::{Asked, End, Mode};
use crate::outcome::Cause;
use crate::plan::{Plan, StagedPlan};
use crate::shell::{Shell, TransportOf};
use crate::statistics::{LoadStatistics, ModeCounts, PerClient};
use crate::thread::{Share, Thread};
use ground::clock::{Nanos, Phase};
use wire::error::ConnectionError;
use wire::{Connection, OpenError, Rows};
use workload::{AbortReason, ActionResult, Management, StagedActions, StagedRequest};

/// The message of sysbench if too many transactions wait for a client.
const QUEUE_IS_FULL: &str = "The event queue is full. This means the worker threads are unable to keep up with the specified event \
                             generation rate";

/// The state of a sysbench load in one thread.
pub struct Staged {
    /// The number of transactions that all clients run together; `None` without a limit.
    events: Option<u64>,
    /// The number of transactions that each client runs; `None` without a limit.
    events_each: Option<u64>,
    /// The maximum number of transactions that may wait for this thread's clients after the start of the load. Used
    /// only with a rate.
    longest_queue: Option<u64>,
    has_started: bool,
}

/// The state that a client needs only in a sysbench load.
pub struct StagedClient<T> {
    stage: Stage,
    /// The number of the connection in use.
    current: usize,
    /// The client's other connections.
    parked: Vec<(usize, Connection<T>)>,
    /// The numbers of the connections that the client has made and has not closed itself.
    made: Vec<usize>,
    /// True if the client has taken one of the transactions that all clients share, but could not begin it before the
    /// end of this engine's slice. The client then begins it in the next slice.
    has_event: bool,
}

impl<T> Default for StagedClient<T> {
    fn default() -> Self {
        Self { stage: Stage::Start, current: 0, parked: Vec::new(), made: Vec::new(), has_event: false }
    }
}

/// A stage in the life of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client acts before its first transaction.
    Start,
    Load,
    /// The client acts after its last transaction.
    Stop,
}

type StagedThread<'a, S> = Thread<'a, Staged, S>;
type Caller<S> = Client<StagedClient<TransportOf<S>>, StagedActions, S>;

impl<S: Shell> Mode<S> for Staged {
    type Plan = StagedPlan;
    type Actions = StagedActions;
    type Client = StagedClient<TransportOf<S>>;

    fn new(plan: &Plan, staged: &StagedPlan, share: Share) -> (Self, LoadStatistics) {
        let clients = PerClient::new(share.first_client, share.clients);
        let StagedPlan { events, events_each, .. } = *staged;
        let longest_queue = staged.longest_queue.map(|longest| longest / plan.jobs as u64);
        (
            Self { events, events_each, longest_queue, has_started: false },
            LoadStatistics { of_mode: ModeCounts::Clients(clients), ..LoadStatistics::default() },
        )
    }

    fn prepare(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>) {
        thread.unready += 1;
        thread.drive(client, thread.shell.now());
    }

    fn start(thread: &mut StagedThread<'_, S>, clients: &mut [Caller<S>], at: Nanos) {
        thread.mode.has_started = true;
        for client in clients {
            client.own.stage = Stage::Load;
            client.starts_at_once = thread.mode.is_unlimited() && thread.throttle.is_none();
            thread.begin_transaction(client, at);
        }
    }

    #[inline]
    fn next(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, now: Nanos) -> bool {
        if !thread.is_open(now) {
            thread.stop_or_wait(client, now);
            return false;
        }
        if thread.throttle.is_some() {
            return thread.next_at_rate(client, now);
        }
        if !thread.takes_event(client) {
            thread.go_without_event(client, now);
            return false;
        }
        thread.choose_script(client);
        client.transaction.scheduled = now;
        client.transaction.began = now;
        true
    }

    #[inline]
    fn ended(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, end: End<'_>, now: Nanos) -> Option<Nanos> {
        if let End::Failed(_) = end {
            // The program itself decides whether the transaction goes on.
            return Some(now);
        }
        match client.own.stage {
            Stage::Start => {
                client.state = ClientState::Idle;
                thread.unready -= 1;
                None
            }
            Stage::Load => {
                let now = thread.end_time(client, now);
                thread.counters.commit(client, now);
                thread.counters.count(client);
                if thread.counters.period.phase == Phase::Warmup {
                    thread.give_event_back();
                } else {
                    let latency = now - client.transaction.scheduled;
                    thread.counters.statistics.of_mode.add_of_client(client.index, latency);
                }
                // A client that has a thread of its own keeps no other client waiting.
                if thread.plan.is_spread() && !thread.shared.is_ended() {
                    return Self::next(thread, client, now).then_some(now);
                }
                thread.next_after(client, now)
            }
            Stage::Stop => {
                thread.leave(client);
                None
            }
        }
    }

    fn connected(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, now: Nanos) {
        let StagedClient { made, current, .. } = &mut client.own;
        if made.contains(current) {
            thread.counters.statistics.counts.queries.reconnects += 1;
        } else {
            made.push(*current);
        }
        client.transaction.was_answered = true;
        if let Some(connection) = &client.connection {
            client.program.complete(ActionResult::Done(connection.answered()));
        }
        thread.drive(client, now);
    }

    fn refused(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, error: OpenError, now: Nanos) {
        client.program.complete(ActionResult::Refused(&error));
        thread.drive(client, now);
    }

    fn lost(
        thread: &mut StagedThread<'_, S>,
        client: &mut Caller<S>,
        _command: Option<usize>,
        error: ConnectionError,
        now: Nanos,
    ) {
        client.transaction.was_answered = true;
        client.program.complete(ActionResult::Lost(&error));
        thread.drive(client, now);
    }

    fn stuck(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, command: Option<usize>, cause: Cause) {
        thread.abort(client, command, cause);
        if client.own.stage == Stage::Start {
            // The other clients go on, and report errors of their own.
            thread.unready -= 1;
        } else {
            thread.exit_on_abort();
        }
    }

    fn due(thread: &mut StagedThread<'_, S>, client: &mut Caller<S>, now: Nanos) {
        if !thread.may_begin(client, now) {
            client.own.has_event = true;
            return thread.stop_or_wait(client, now);
        }
        thread.counters.note_oversleep(now - client.transaction.scheduled);
        client.transaction.began = now;
        thread.drive(client, now);
    }

    fn ask(
        _thread: &mut StagedThread<'_, S>,
        connection: &mut Connection<TransportOf<S>>,
        request: StagedRequest<'_>,
    ) -> Asked {
        let uncounted = Awaited::Answer { counts: false };
        match request {
            // The program needs the answer even if the request does not count as a query.
            StagedRequest::Text { sql, rows: Rows::Skipped } => {
                (uncounted, connection.send_query(sql, Rows::Counted).map(Some))
            }
            StagedRequest::Text { sql, rows } => {
                (Awaited::of_query(rows, 0, false), connection.send_query(sql, rows).map(Some))
            }
            StagedRequest::Prepare { statement } => (uncounted, connection.send_prepare(statement).map(Some)),
            StagedRequest::PrepareAll { statements } => (uncounted, connection.prepare(statements)),
        }
    }

    fn step(
        thread: &mut StagedThread<'_, S>,
        client: &mut Caller<S>,
        management: Management,
        now: Nanos,
    ) -> Option<Nanos> {
        match management {
            Management::Connect(number) => {
                use_connection(client, number);
                client.connection = None;
                thread.connect(client, now);
                return None;
            }
            Management::Use(number) => use_connection(client, number),
            Management::Disconnect(number) => {
                use_connection(client, number);
                client.own.made.retain(|made| *made != number);
                client.disconnect();
            }
            Management::Count { queries, events } => {
                let counts = &mut thread.counters.statistics.counts;
                counts.queries.merge(&queries);
                counts.more_events += events;
            }
            Management::Leave => stop(client),
        }
        Some(now)
    }

    /// Ends the run with an error if too many transactions wait for a client, as sysbench does.
    #[inline]
    fn tend(thread: &mut StagedThread<'_, S>, clients: &mut [Caller<S>]) {
        if let Some(longest) = thread.mode.longest_queue.filter(|_| thread.mode.has_started) {
            thread.check_queue(clients, longest);
        }
    }
}

impl Staged {
    /// Returns true if no number of transactions limits the load.
    fn is_unlimited(&self) -> bool {
        self.events.is_none() && self.events_each.is_none()
    }
}

impl<S: Shell> StagedThread<'_, S> {
    /// Takes one transaction out of the client's own limit and out of the limit for all clients together. Returns false
    /// if one of these limits is reached. Transactions that end in the warm-up are given back later. A transaction that
    /// is under way when the warm-up ends is measured; therefore transactions are taken even in the warm-up.
    #[inline]
    fn takes_event(&self, client: &Caller<S>) -> bool {
        let Staged { events, events_each, .. } = self.mode;
        events_each.is_none_or(|each| client.done < each) && events.is_none_or(|events| self.shared.takes_event(events))
    }

    /// Gives back a transaction that was not measured because it ended in the warm-up.
    fn give_event_back(&self) {
        if self.mode.events.is_some() {
            self.shared.events.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends the run with an error if more than `longest` transactions wait for a client.
    fn check_queue(&mut self, clients: &mut [Caller<S>], longest: u64) {
        let now = self.shell.now();
        if self.waiting(now) <= longest {
            return;
        }
        let is_loading =
            |client: &&mut Caller<S>| client.own.stage == Stage::Load && client.state != ClientState::Finished;
        if let Some(client) = clients.iter_mut().find(is_loading) {
            let reason = AbortReason::Fatal(vec![QUEUE_IS_FULL.to_owned()]);
            Staged::stuck(self, client, None, Cause::Program(reason));
        }
    }

    /// Handles a client for which no transaction is left. In the measured part the client stops. In the warm-up the
    /// client waits for the measured part, because other clients may still give transactions back. While it waits it does
    /// not take part in a slice of time.
    #[cold]
    fn go_without_event(&mut self, client: &mut Caller<S>, now: Nanos) {
        if self.counters.period.phase != Phase::Warmup {
            return self.stop_client(client);
        }
        self.counters.leave_slice(client, now);
        client.state = ClientState::Yielding;
        self.timers.add(self.counters.schedule.measure, client.index);
    }

    /// Gives a client its next scheduled start. Returns true if the client begins its transaction now.
    #[inline(never)]
    fn next_at_rate(&mut self, client: &mut Caller<S>, now: Nanos) -> bool {
        let Some(scheduled) = self.next_start(client) else {
            // As in sysbench, a client whose next start is after the end of the load waits for the end, so that the run
            // has its full length.
            self.wait_for_deadline(client);
            return false;
        };
        if !std::mem::take(&mut client.own.has_event) && !self.takes_event(client) {
            self.go_without_event(client, now);
            return false;
        }
        self.choose_script(client);
        if scheduled > now {
            self.wait_until(client, scheduled);
            return false;
        }
        client.transaction.began = now;
        true
    }

    /// Handles a client that must not begin a transaction. The client stops if the load is over, and waits while it is
    /// the slice of another engine.
    #[cold]
    fn stop_or_wait(&mut self, client: &mut Caller<S>, now: Nanos) {
        self.leave_slice(client, now);
        if self.is_over(now) { self.stop_client(client) } else { self.await_slice(client, now) }
    }

    /// Begins the actions that a client does after its last transaction.
    fn stop_client(&mut self, client: &mut Caller<S>) {
        stop(client);
        client.program.stop();
        let now = self.shell.now();
        self.counters.leave_slice(client, now);
        self.drive(client, now);
    }
}

/// Records that the client begins no further transaction.
fn stop<S: Shell>(client: &mut Caller<S>) {
    client.own.stage = Stage::Stop;
    client.starts_at_once = false;
}

/// Makes connection `number` the client's current connection. The connection used before stays open.
fn use_connection<S: Shell>(client: &mut Caller<S>, number: usize) {
    let own = &mut client.own;
    if own.current == number {
        return;
    }
    if let Some(former) = client.connection.take() {
        own.parked.push((own.current, former));
    }
    own.current = number;
    let found = own.parked.iter().position(|(parked, _)| *parked == number);
    client.connection = found.map(|at| own.parked.swap_remove(at).1);
}
