//! The trait that each mode of a load implements. The event loop calls it to learn when clients act. CONTRIBUTING.md
//! lists what a new mode needs besides a file like `closed.rs`, `staged.rs`, `pooled.rs` and `replayed.rs`.

use crate::client::{Awaited, Client};
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

/// The way in which a client's transaction has ended.
#[derive(Debug, Clone, Copy)]
pub enum End<'e> {
    /// The client's program has reached the end of the transaction.
    Completed,
    /// The server has rejected a statement of the transaction, which is not tried again. The transaction of a script was
    /// rolled back and counted before. A program of another mode receives the error afterwards and decides whether its
    /// transaction goes on.
    Failed(&'e ServerError),
}

/// A mode of the load: decides when the next transaction of a client starts, and what the end of a transaction or of a
/// connection means for the client. The steps in between are the same in all modes, and are in `life.rs`.
pub trait Mode<S: Shell>: Sized + Send {
    /// The part of the plan that belongs to this mode.
    type Plan;
    /// The actions that the programs of the mode's workloads can ask for.
    type Actions: Actions;
    /// The part of a client's state that only this mode of the load needs.
    type Client: Default;

    /// True if a client executes a statement even if the server could not prepare it, as pgbench does.
    const EXECUTES_UNPREPARED: bool = false;

    /// True if a client that waits for its next transaction reads what the server sends, and thus notices at once that
    /// its connection is lost. False if it notices that when it sends its next request.
    const READS_WHEN_IDLE: bool = false;

    /// Makes the mode's state for the thread that runs the clients in `share`, and the empty counters to which the
    /// thread adds its transactions.
    fn new(plan: &Plan, load: &Self::Plan, share: Share) -> (Self, LoadStatistics);

    /// Begins what a client has to do before the start of the load. The load starts when [`Thread::unready`] is 0 in
    /// all threads.
    fn prepare(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>);

    /// Called when the load begins at `at`.
    fn start(thread: &mut Thread<'_, Self, S>, clients: &mut [ClientOf<Self, S>], at: Nanos);

    /// Prepares a client's next transaction. Returns true if the transaction starts now. Otherwise the mode has made
    /// the client wait or has ended it.
    fn next(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos) -> bool;

    /// Called when the time has come for which an idle client waited ([`Thread::wait_until`]).
    fn due(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos);

    /// Called when a client's transaction has ended, or when the server has rejected a statement of it
    /// ([`End::Failed`]). Counts the transaction, unless it is a failed one of a script, which was counted before.
    /// Returns the current time if the client goes on at once, such as with its next transaction, else `None`.
    fn ended(
        thread: &mut Thread<'_, Self, S>,
        client: &mut ClientOf<Self, S>,
        end: End<'_>,
        now: Nanos,
    ) -> Option<Nanos>;

    /// Called when a client cannot go on with its transaction for the reason `cause`.
    fn stuck(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, command: Option<usize>, cause: Cause);

    /// Called when a client's connection is ready.
    fn connected(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, now: Nanos);

    /// Called when a client's connection could not be made.
    fn refused(thread: &mut Thread<'_, Self, S>, client: &mut ClientOf<Self, S>, error: OpenError, now: Nanos);

    /// Called when a client's connection broke while the client waited for the answer to the script's `command`. If
    /// [`Mode::READS_WHEN_IDLE`] is true, it is also called for idle clients.
    fn lost(
        thread: &mut Thread<'_, Self, S>,
        client: &mut ClientOf<Self, S>,
        command: Option<usize>,
        error: ConnectionError,
        now: Nanos,
    );

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

    /// Called at the end of each round of the event loop. Does what no event of a single client asks for, such as to
    /// give up connections that take too long, or to give free connections to tasks that wait.
    fn tend(thread: &mut Thread<'_, Self, S>, clients: &mut [ClientOf<Self, S>]);

    /// Returns the time at which a round of the event loop must end even if no event happens, so that [`Mode::tend`] is
    /// called; `None` if there is no such time.
    fn tends_at(&self) -> Option<Nanos> {
        None
    }
}
