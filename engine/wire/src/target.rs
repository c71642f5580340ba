//! The server to connect to: its parameters with names resolved, and the route of attempts that each connection makes.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;

use crate::error::ConnectionError;
use crate::network::SocketAddress;
use crate::params;
use crate::params::{Address, Endpoint, Given, Params, ParamsError, Password, ProcessEnvironment, SslMode};
use crate::tls::{self, TlsFailure};
use ground::random::{Random, entropy};

/// The user of the program, represented by functions that show notices of servers and warnings of libpq, show progress,
/// and ask for a password.
#[derive(Debug, Clone, Copy)]
pub struct User {
    /// The function that gets notices and warnings, each without the last line's end.
    pub tell: fn(&str),
    /// The function that shows the progress of long work. It gets the text as it must be written: on a terminal, text
    /// without a newline at its end is overwritten by the next text.
    pub show: fn(&str),
    /// The function that asks a question; the answer is not shown.
    pub ask: fn(&str) -> io::Result<String>,
}

impl User {
    /// The user of connections whose notices are dropped and for which no password is asked.
    pub const NOBODY: Self = Self { tell: |_| {}, show: |_| {}, ask: |_| Ok(String::new()) };
}

/// Everything that a connection needs to know; resolved once, shared by all clients.
pub struct Target {
    pub params: Params,
    /// The addresses of each endpoint, or why they are unknown.
    places: Vec<Result<Vec<SocketAddress>, ParamsError>>,
    /// The attempts in the order given.
    route: Arc<[Arc<Attempt>]>,
    /// The configuration for attempts with TLS, or why there is none.
    pub tls_config: Result<Arc<ClientConfig>, TlsFailure>,
    pub user: User,
    /// The password that the user typed in.
    typed_password: OnceLock<Password>,
    /// The flag of an interrupt. While it is set, the statements of sessions that wait for their answers are cancelled.
    interrupt: OnceLock<Arc<AtomicBool>>,
}

/// A combination of host, address and choice of encryption with which one attempt to reach a server is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The index into the parameters' endpoints.
    pub endpoint: usize,
    /// The address, or why there is none.
    pub place: Result<SocketAddress, ParamsError>,
    /// True if TLS is asked for in this attempt.
    pub tls: bool,
}

impl Target {
    /// Returns the server that a command line and the environment name. The user is told libpq's warnings, such as on
    /// an unsafe password file.
    pub fn of(given: &Given, user: User) -> Result<Arc<Self>, ParamsError> {
        Ok(Arc::new(Self { user, ..Self::resolve(params_of(given, user)?) }))
    }

    /// Returns the server that a command line and the environment name, for sessions with this encoding. An encoding that
    /// the user has chosen, such as by `PGCLIENTENCODING`, is ignored.
    pub fn of_encoding(given: &Given, encoding: &str, user: User) -> Result<Arc<Self>, ParamsError> {
        let mut params = params_of(given, user)?;
        params.client_encoding = Some(encoding.to_owned());
        Ok(Arc::new(Self { user, ..Self::resolve(params) }))
    }

    /// Resolves host names and prepares TLS, without a user who is told notices or asked for a password. As in libpq,
    /// an error in either is reported by the connection attempts that depend on it.
    pub fn resolve(params: Params) -> Self {
        let places: Vec<_> = params.endpoints.iter().map(addresses).collect();
        let has_network = places.iter().flatten().flatten().any(|place| matches!(place, SocketAddress::Tcp(_)));
        let tls_config = if has_network && params.tls.mode != SslMode::Disable {
            tls::client_config(&params.tls)
        } else {
            Err(TlsFailure::Unsupported("TLS was asked for without a TLS configuration".to_owned()))
        };
        let route = route(params.tls.mode, places.iter().enumerate());
        Self {
            params,
            places,
            route,
            tls_config,
            user: User::NOBODY,
            typed_password: OnceLock::new(),
            interrupt: OnceLock::new(),
        }
    }

    /// Returns the attempts for one connection, in the order given or, to balance the load, in a fresh random one.
    pub fn route(&self) -> Arc<[Arc<Attempt>]> {
        if !self.params.load_balance_random {
            return Arc::clone(&self.route);
        }
        let mut random = Random::seeded(entropy());
        let mut places: Vec<_> = self.places.iter().cloned().enumerate().collect();
        shuffle(&mut places, &mut random);
        for (_, addresses) in &mut places {
            if let Ok(addresses) = addresses {
                shuffle(addresses, &mut random);
            }
        }
        route(self.params.tls.mode, places.iter().map(|(endpoint, addresses)| (*endpoint, addresses)))
    }

    /// Returns the endpoint of an attempt.
    pub fn endpoint(&self, attempt: &Attempt) -> &Endpoint {
        &self.params.endpoints[attempt.endpoint]
    }

    /// Returns the password for an attempt, if one is known.
    pub fn password(&self, attempt: &Attempt) -> Option<&Password> {
        self.endpoint(attempt).password.as_ref().or_else(|| self.typed_password.get())
    }

    /// Ends what sessions that wait for their answers do once `interrupt` is set; for the first flag that is given.
    pub fn obey(&self, interrupt: &Arc<AtomicBool>) {
        let _ = self.interrupt.set(Arc::clone(interrupt));
    }

    /// Returns the state of [`Target::obey`]'s flag; `None` if there is no flag.
    pub fn is_interrupted(&self) -> Option<bool> {
        self.interrupt.get().map(|flag| flag.load(Ordering::Relaxed))
    }

    /// Asks the user for the password, once, if none is known; returns true if there was one.
    pub fn ask_for_password(&self) -> bool {
        let is_known =
            self.typed_password.get().is_some() || self.params.endpoints.iter().any(|e| e.password.is_some());
        if is_known {
            return false;
        }
        match (self.user.ask)("Password: ") {
            Ok(text) if !text.is_empty() => self.typed_password.set(Password::new(text)).is_ok(),
            _ => false,
        }
    }

    /// Returns libpq's line on a failed attempt.
    pub fn describe_failure(&self, attempt: &Attempt, error: &ConnectionError) -> String {
        let endpoint = self.endpoint(attempt);
        let (place, question) = match &attempt.place {
            Err(reason) => return reason.to_string(),
            Ok(SocketAddress::Unix(path)) => (
                format!("on socket \"{}\"", ground::text::of_path(path)),
                "\n\tIs the server running locally and accepting connections on that socket?",
            ),
            Ok(SocketAddress::Tcp(address)) => {
                let (name, ip) = (&endpoint.host_name, address.ip().to_string());
                // With `hostaddr` the address was given, whatever name was given with it.
                let at = if endpoint.is_named && endpoint.address == Ok(Address::Tcp(name.clone())) && *name != ip {
                    format!("at \"{name}\" ({ip}), port {}", endpoint.port)
                } else {
                    let written = match &endpoint.address {
                        Ok(Address::Tcp(written)) => written,
                        _ => &ip,
                    };
                    format!("at \"{written}\", port {}", endpoint.port)
                };
                (at, "\n\tIs the server running on that host and accepting TCP/IP connections?")
            }
        };
        let question = if matches!(error, ConnectionError::Connect(_)) { question } else { "" };
        format!("connection to server {place} failed: {error}{question}")
    }
}

/// Returns the parameters that a command line and the environment name.
fn params_of(given: &Given, user: User) -> Result<Params, ParamsError> {
    let params = params::resolve(given, &ProcessEnvironment)?;
    params.warnings.iter().for_each(|warning| (user.tell)(&warning.to_string()));
    Ok(params)
}

fn addresses(endpoint: &Endpoint) -> Result<Vec<SocketAddress>, ParamsError> {
    match &endpoint.address {
        Err(reason) => Err(reason.clone()),
        Ok(Address::Unix(path)) => Ok(vec![SocketAddress::Unix(path.clone())]),
        Ok(Address::Tcp(host)) => match (host.as_str(), endpoint.port).to_socket_addrs() {
            Ok(found) => Ok(found.map(SocketAddress::Tcp).collect()),
            Err(error) => {
                // The words of getaddrinfo stand behind those of Rust's library.
                let text = error.to_string();
                let reason = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
                Err(ParamsError::UnknownHost { host: host.clone(), reason: reason.to_owned() })
            }
        },
    }
}

/// Returns all attempts: each endpoint, each of its addresses, each choice of encryption.
fn route<'a>(
    mode: SslMode,
    places: impl Iterator<Item = (usize, &'a Result<Vec<SocketAddress>, ParamsError>)>,
) -> Arc<[Arc<Attempt>]> {
    let mut attempts = Vec::new();
    for (endpoint, addresses) in places {
        let attempt = |place, tls| Arc::new(Attempt { endpoint, place, tls });
        match addresses {
            Err(reason) => attempts.push(attempt(Err(reason.clone()), false)),
            Ok(addresses) => {
                for address in addresses {
                    attempts.extend(tls_choices(mode, address).iter().map(|tls| attempt(Ok(address.clone()), *tls)));
                }
            }
        }
    }
    attempts.into()
}

/// Returns whether TLS is used in the first attempt at an address, and in the second one if there is one. Unix sockets
/// never have TLS, as in libpq.
fn tls_choices(mode: SslMode, address: &SocketAddress) -> &'static [bool] {
    match (address, mode) {
        (SocketAddress::Unix(_), _) | (_, SslMode::Disable) => &[false],
        (_, SslMode::Allow) => &[false, true],
        (_, SslMode::Prefer) => &[true, false],
        (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[true],
    }
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.range(0, last as i64) as usize);
    }
}
