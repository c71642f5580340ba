//! The trait that each mode of a load implements. The event loop calls it to learn when clients act. To add a mode,
//! write a file like `closed.rs`, `staged.rs`, `pooled.rs` and `replayed.rs`, and add the mode to
//! [`LoadMode`](crate::plan::LoadMode).

use crate::client::{Awaited, Client, TransactionFailure};
use crate::outcome::Cause;
use crate::plan::Plan;
use crate::shell::{Shell, TransportOf};
use crate::statistics::LoadStatistics;
use crate::thread::{Share, Thread};
use ground::clock::Nanos;
use wire::error::{ConnectionError, ServerError};
use wire::{Connection, OpenError, Sent};
use workload::Actions;

/// A client in a load of mode `M`. `S` is the operating system that its thread uses, which can be simulated.
pub type ClientOf<M, S> = Client<<M as Mode<S>>::Client, ActionsOf<M, S>, S>;

/// The actions that the programs of a mode can ask for.
pub type ActionsOf<M, S> = <M as Mode<S>>::Actions;

/// A request that a program of mode `M` sends to the server.
pub type RequestOf<'r, M, S> = <ActionsOf<M, S> as Actions>::Request<'r>;
/// An action of a program of mode `M` that the engine carries out without a request to the server.
pub type StepOf<M, S> = <ActionsOf<M, S> as Actions>::Step;

/// The result of sending a request: how the client uses the answer, and how far the request was sent. `None` in place
/// of [`Sent`] means that there was nothing to send.
pub type Asked = (Awaited, Result<Option<Sent>, ConnectionError>);

/// A mode of the load: decides when the clients of one thread act, and counts their transactions.
pub trait Mode<S: Shell>: Sized + Send {
    /// The part of the plan that belongs to this mode.
    type Plan;
    /// The actions that the programs of the mode's workloads can ask for.
    type Actions: Actions;
    /// The part of a client's state that only this mode of the load needs.
    type Client: Default;

    /// True if a client executes a statement even if the server could not prepare it, as pgbench does.
    const EXECUTES_UNPREPARED: bool = false;

    /// Makes the mode's state for the thread that runs the clients in `share`, and the empty counters to which the
    /// thread adds its transactions.
    fn new(plan: &Plan, load: &Self::Plan, share: Share) -> (Self, LoadStatistics);

    /// Begins the actions of a client before the start of the load. The load starts when [`Thread::unready`] is 0 in
    /// all threads.
    fn prepare(_thread: &mut Thread<'_, Self, S>, _client: &mut ClientOf<Self, S>) {}

    /// Called when the load begins at `at`.
    fn start(thread: &mut Thread<'_, Self, S>, clients: &mut [ClientOf<Self, S>], at: Nanos);

    /// Prepares a client's next transaction. Returns true if the transaction starts now. Otherwise the mode has made
    /// the client wait or has ended it.
    fn next(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos) -> bool;

    /// Called when a client's program has reached the end of its transaction. Counts the transaction. Returns the start
    /// time of the client's next transaction if it begins at once, else `None`.
    fn ended(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos) -> Option<Nanos>;

    /// Called when a client's transaction has failed and is not tried again. It was rolled back and counted, and the
    /// client goes on.
    fn failed(
        _thread: &mut Thread<'_, Self, S>,
        _client: &mut ClientOf<Self, S>,
        _failure: &TransactionFailure,
        _now: Nanos,
    ) {
    }

    /// Called when the server has rejected a query, before the client's program receives this result.
    fn query_failed(
        _thread: &mut Thread<'_, Self, S>,
        _client: &mut ClientOf<Self, S>,
        _error: &ServerError,
        _now: Nanos,
    ) {
    }

    /// Called when a client's connection is ready.
    fn connected(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos);

    /// Called when a client's connection could not be made.
    fn refused(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, error: OpenError, now: Nanos);

    /// Called when a client's connection broke while the client waited for the answer to the script's `command`.
    fn lost(
        thread: &mut Thread<'_, Self, S>,
        client: &mut ClientOf<Self, S>,
        command: Option<usize>,
        error: ConnectionError,
        now: Nanos,
    );

    /// Called when a client cannot go on with its transaction for the reason `cause`.
    fn stuck(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, command: Option<usize>, cause: Cause);

    /// Returns true if a client whose transaction ends at `now` begins another one at that moment.
    fn goes_on(_thread: &Thread<'_, Self, S>, _client: &ClientOf<Self, S>, _now: Nanos) -> bool {
        false
    }

    /// Called when the time has come for which an idle client waited ([`Thread::wait_until`]).
    fn due(_thread: &mut Thread<'_, Self, S>, _client: &mut ClientOf<Self, S>, _now: Nanos) {}

    /// Called when the server has sent something to an idle client.
    fn idle_readable(_thread: &mut Thread<'_, Self, S>, _client: &mut ClientOf<Self, S>) {}

    /// Sends a request for which a client's program asks.
    fn ask(
        thread: &mut Thread<'_, Self, S>,
        connection: &mut Connection<TransportOf<S>>,
        request: RequestOf<'_, Self, S>,
    ) -> Asked;

    /// Carries out a step for which a client's program asks: an action without a request to the server. Returns the
    /// current time if the client goes on at once, else `None`.
    fn step(
        thread: &mut Thread<'_, Self, S>,
        client: &mut ClientOf<Self, S>,
        step: StepOf<Self, S>,
        now: Nanos,
    ) -> Option<Nanos>;

    /// Called at the beginning of a round of the event loop while connections are being made.
    fn connecting(_thread: &mut Thread<'_, Self, S>, _clients: &mut [ClientOf<Self, S>]) {}

    /// Returns the next time at which the event loop must call the mode again although no event has happened, if there
    /// is one.
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }

    /// Called at the end of a round of the event loop.
    fn served(_thread: &mut Thread<'_, Self, S>, _clients: &mut [ClientOf<Self, S>]) {}

    /// Called from time to time, even if nothing has happened, so that the mode can check conditions that no event
    /// reports, such as the length of a queue.
    fn looked_up(_thread: &mut Thread<'_, Self, S>, _clients: &mut [ClientOf<Self, S>], _now: Nanos) {}
}
