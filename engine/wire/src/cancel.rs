//! Cancel requests: a connection of its own asks the server to cancel the current statement of another session, as
//! libpq's `PQcancelBlocking` does. The request is sent to the same address as the session, and it is encrypted if the
//! session is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::error::ConnectionError;
use crate::network::Transport;
use crate::opening::OpenError;
use crate::socket::Socket;
use crate::startup::Startup;
use crate::stream::Stream;
use ground::poll::{Poll, Ready, Token};

/// The maximum number of cancel requests that are sent at the same time. It is smaller than the queue of any listening
/// socket.
const AT_ONCE: usize = 32;

/// The pause between two attempts to connect to a Unix socket whose listening queue is full.
pub const RETRY: Duration = Duration::from_millis(1);

/// Begins to send the cancel request for one session.
fn begin(backend: &Backend) -> Result<Request, ConnectionError> {
    let address = backend.attempt.place.as_ref().map_err(|reason| ConnectionError::Unresolved(reason.clone()))?;
    let socket = Socket::connect(address, &backend.target.params)?;
    Ok(Request { stream: Stream::new(socket), startup: Startup::cancelling(backend) })
}

fn failure(backend: &Backend, error: &ConnectionError) -> OpenError {
    let message = backend.target.describe_failure(&backend.attempt, error);
    OpenError { message, sqlstate: error.sqlstate().to_owned() }
}

/// A cancel request that is being sent.
struct Request {
    stream: Stream<Socket>,
    startup: Startup,
}

/// Asks the server to cancel the current statements of these sessions. Returns when the server has read all requests;
/// the statements end soon after that. A session that executes no statement at that moment is not affected.
///
/// # Errors
/// Returns the error of the first request that failed, with libpq's message. Requests that the server has not read by
/// the time `until` fail.
pub fn cancel<'a>(backends: impl IntoIterator<Item = &'a Arc<Backend>>, until: Instant) -> Result<(), OpenError> {
    let mut poll = Poll::new()?;
    let mut backends = backends.into_iter().peekable();
    let mut outcome = Ok(());
    while backends.peek().is_some() {
        let batch: Vec<_> = backends.by_ref().take(AT_ONCE).collect();
        let delivered = deliver(&batch, &mut poll, until);
        outcome = outcome.and(delivered);
    }
    outcome
}

/// Sends the cancel requests of one batch, and waits until the server has read them.
fn deliver(batch: &[&Arc<Backend>], poll: &mut Poll, until: Instant) -> Result<(), OpenError> {
    let (mut ready, mut buffer) = (Ready::default(), vec![0; 1024]);
    let mut first_error = None;
    let mut requests = Vec::new();
    for (number, backend) in batch.iter().enumerate() {
        let begun = begin(backend).and_then(|request| {
            poll.register(&request.stream.socket, Token(number), true).map_err(ConnectionError::Connect)?;
            Ok(request)
        });
        match begun {
            Ok(request) => requests.push((backend, request)),
            Err(error) => drop(first_error.get_or_insert(failure(backend, &error))),
        }
    }
    loop {
        requests.retain_mut(|(backend, Request { stream, startup })| match startup.advance(stream, &mut buffer) {
            Ok(done) => done.is_none(),
            Err(error) => {
                first_error.get_or_insert(failure(backend, &error));
                false
            }
        });
        let Some((backend, _)) = requests.first() else { return first_error.map_or(Ok(()), Err) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(first_error.unwrap_or_else(|| failure(backend, &ConnectionError::Timeout)));
        }
        let crowded = requests.iter().any(|(_, request)| request.stream.socket.awaits_room());
        poll.wait(&mut ready, Some(if crowded { RETRY.min(left) } else { left }))?;
    }
}
