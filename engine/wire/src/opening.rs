//! Opens a session by trying one address after another: decides which attempt follows a failed one, and makes the error
//! when no attempt is left.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::error::ConnectionError;
use crate::network::Network;
use crate::params::TargetSessionAttrs;
use crate::startup::Startup;
use crate::stream::Stream;
use crate::target::{Attempt, Target, User};
use crate::tls::TlsFailure;
use ground::output::plain_io_message;

/// The SQLSTATE of a server that is starting up, shutting down, or a standby that accepts no sessions.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// The error when all attempts to open a session have failed. It has the lines that libpq prints for all attempts, and
/// the SQLSTATE of the last attempt.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    pub message: String,
    pub sqlstate: String,
}

/// Makes the error for a failure in the client's operating system, such as a lack of file descriptors.
impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self { message: plain_io_message(&error), sqlstate: "08006".to_owned() }
    }
}

/// A connection that is not ready yet.
pub struct Opening {
    search: Search,
    /// The index of the current attempt in the list of attempts.
    at: usize,
    /// The time at which the current attempt times out; `None` without a time limit.
    pub deadline: Option<Instant>,
    pub startup: Startup,
}

impl Opening {
    /// Returns the user who gets the notices and warnings of the connection.
    pub fn user(&self) -> User {
        self.search.target.user
    }

    /// Starts the first attempt to reach the server.
    pub fn begin<N: Network>(target: &Arc<Target>, network: &N) -> Result<(Self, Stream<N::Transport>), OpenError> {
        let search = Search {
            route: target.route(),
            target: Arc::clone(target),
            wanted: target.params.target_session_attrs,
            failures: Vec::new(),
        };
        let first = if search.route.is_empty() { Next::Nothing } else { Next::At(0) };
        search.attempt(first, "08001", network)
    }

    /// Records why the current attempt failed. Starts the next attempt if libpq would make one, and returns the error
    /// otherwise.
    pub fn fail<N: Network>(
        self,
        error: &ConnectionError,
        network: &N,
    ) -> Result<(Self, Stream<N::Transport>), OpenError> {
        let Self { mut search, mut at, startup, .. } = self;
        let mut line = search.target.describe_failure(&search.route[at], error);
        if let Some(file) = startup.rejected_password_file(error) {
            line.push_str(&format!("\npassword retrieved from file \"{}\"", ground::text::of_path(file)));
        }
        search.failures.push(line);
        if startup.went_on_without_tls {
            at += 1;
        }
        let next = next_attempt(&search.route, at, error, startup.may_change_encryption(error));
        search.attempt(next, error.sqlstate(), network)
    }
}

/// The state that all attempts to make one connection share.
struct Search {
    target: Arc<Target>,
    route: Arc<[Arc<Attempt>]>,
    wanted: TargetSessionAttrs,
    failures: Vec<String>,
}

impl Search {
    /// Starts the next attempt. If an attempt fails at once, starts the one after it.
    fn attempt<N: Network>(
        mut self,
        mut next: Next,
        sqlstate: &str,
        network: &N,
    ) -> Result<(Opening, Stream<N::Transport>), OpenError> {
        let mut sqlstate = sqlstate.to_owned();
        loop {
            let at = match next {
                Next::At(at) => at,
                Next::Nothing if self.wanted == TargetSessionAttrs::PreferStandby && !self.route.is_empty() => {
                    self.wanted = TargetSessionAttrs::Any;
                    0
                }
                Next::Nothing | Next::GiveUp => {
                    return Err(OpenError { message: self.failures.join("\n"), sqlstate });
                }
            };
            let attempt = Arc::clone(&self.route[at]);
            let socket = match &attempt.place {
                Ok(address) => network.connect(address, &self.target.params),
                Err(reason) => Err(ConnectionError::Unresolved(reason.clone())),
            };
            match socket {
                Ok(socket) => {
                    let timeout = match &self.target.params.connect_timeout {
                        Ok(timeout) => *timeout,
                        Err(reason) => {
                            let error = ConnectionError::ConnectTimeout(reason.clone());
                            self.failures.push(self.target.describe_failure(&attempt, &error));
                            next = Next::GiveUp;
                            continue;
                        }
                    };
                    let deadline = timeout.map(|timeout| network.now() + timeout);
                    let startup = Startup::new(Arc::clone(&self.target), attempt, self.wanted);
                    return Ok((Opening { search: self, at, deadline, startup }, Stream::new(socket)));
                }
                Err(error) => {
                    sqlstate = error.sqlstate().to_owned();
                    self.failures.push(self.target.describe_failure(&attempt, &error));
                    next = next_attempt(&self.route, at, &error, true);
                }
            }
        }
    }
}

/// The next step of a connection after a failed attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    At(usize),
    /// The list has no further attempt.
    Nothing,
    GiveUp,
}

/// Returns what libpq does after this kind of failure. libpq goes on to another server only if the first server does
/// not answer or is of the wrong kind, but not if the server refuses the session. `is_open` is true if the same address
/// may be tried again with the other choice of encryption, because authentication has not been completed.
fn next_attempt(route: &[Arc<Attempt>], at: usize, error: &ConnectionError, is_open: bool) -> Next {
    let failed = &route[at];
    let is_same_host = |next: &Attempt| next.endpoint == failed.endpoint;
    let is_same_address = |next: &Attempt| is_same_host(next) && next.place == failed.place;
    let first_other = |is_same: &dyn Fn(&Attempt) -> bool| {
        let found = (at + 1..route.len()).find(|later| !is_same(&route[*later]));
        found.map_or(Next::Nothing, Next::At)
    };
    match error {
        ConnectionError::Connect(_)
        | ConnectionError::TcpOption(_)
        | ConnectionError::SocketOption { .. }
        | ConnectionError::Timeout => first_other(&is_same_address),
        ConnectionError::Unresolved(_) | ConnectionError::WrongSession(_) => first_other(&is_same_host),
        ConnectionError::Server(refusal) if is_open && refusal.sqlstate == CANNOT_CONNECT_NOW => {
            first_other(&is_same_host)
        }
        // Try the same address with the other choice of encryption.
        ConnectionError::Server(_) | ConnectionError::Tls(TlsFailure::AsLibpq(_))
            if is_open && route.get(at + 1).is_some_and(|next| is_same_address(next)) =>
        {
            Next::At(at + 1)
        }
        _ => Next::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ServerError;
    use crate::network::SocketAddress;

    /// Returns a list of attempts for two hosts. The first host has two addresses, and each address is tried with TLS
    /// and without.
    fn route() -> Vec<Arc<Attempt>> {
        [(0, "127.0.0.1:1"), (0, "127.0.0.2:1"), (1, "127.0.0.1:1")]
            .into_iter()
            .flat_map(|(endpoint, address)| {
                let place = Ok(SocketAddress::Tcp(address.parse().unwrap()));
                [true, false].map(|tls| Arc::new(Attempt { endpoint, place: place.clone(), tls }))
            })
            .collect()
    }

    fn refusal(sqlstate: &str) -> ConnectionError {
        ConnectionError::Server(Box::new(ServerError { sqlstate: sqlstate.to_owned(), ..ServerError::default() }))
    }

    fn after(at: usize, error: &ConnectionError, authenticated: bool) -> Next {
        next_attempt(&route(), at, error, !authenticated)
    }

    #[test]
    fn a_server_that_does_not_answer_is_left_for_the_next_address() {
        let refused = ConnectionError::Connect(std::io::ErrorKind::ConnectionRefused.into());
        assert_eq!(after(0, &refused, false), Next::At(2));
        assert_eq!(after(2, &ConnectionError::Timeout, false), Next::At(4));
        assert_eq!(after(4, &refused, false), Next::Nothing);
    }

    #[test]
    fn a_server_of_the_wrong_kind_is_left_for_the_next_host() {
        assert_eq!(after(0, &refusal(CANNOT_CONNECT_NOW), false), Next::At(4));
        assert_eq!(after(1, &ConnectionError::WrongSession("session is read-only"), true), Next::At(4));
        assert_eq!(after(5, &ConnectionError::WrongSession("session is read-only"), true), Next::Nothing);
    }

    #[test]
    fn a_refusal_is_final_but_for_the_other_encryption() {
        assert_eq!(after(0, &refusal("28000"), false), Next::At(1));
        assert_eq!(after(1, &refusal("28000"), false), Next::GiveUp);
        assert_eq!(after(0, &refusal("3D000"), true), Next::GiveUp);
        assert_eq!(after(0, &ConnectionError::Tls(TlsFailure::AsLibpq(String::new())), false), Next::At(1));
        assert_eq!(after(0, &ConnectionError::Tls(TlsFailure::AsLibpq(String::new())), true), Next::GiveUp);
        assert_eq!(after(0, &ConnectionError::Tls(TlsFailure::Unsupported(String::new())), false), Next::GiveUp);
        assert_eq!(after(0, &ConnectionError::NoPassword, false), Next::GiveUp);
        assert_eq!(after(0, &ConnectionError::Closed, false), Next::GiveUp);
    }
}
