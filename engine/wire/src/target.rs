//! The server to which clients connect: its parameters with resolved host names, and the list of attempts that each
//! connection makes.

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

/// The user of the program, represented by functions: they show notices of servers and warnings of libpq, show
/// progress, and ask for a password.
#[derive(Debug, Clone, Copy)]
pub struct User {
    /// The function that shows a notice or a warning, which it gets without a line feed at the end.
    pub tell: fn(&str),
    /// The function that shows the progress of long work. It gets the text as it must be written. On a terminal, a text
    /// without a newline at its end is overwritten by the next text.
    pub show: fn(&str),
    /// The function that asks the user a question. The answer is not shown on the screen.
    pub ask: fn(&str) -> io::Result<String>,
}

impl User {
    /// The user of connections whose notices are dropped and that never ask for a password.
    pub const NOBODY: Self = Self { tell: |_| {}, show: |_| {}, ask: |_| Ok(String::new()) };
}

/// Everything that a connection needs to know about its server. It is resolved once and shared by all clients.
pub struct Target {
    pub params: Params,
    /// The addresses of each endpoint, or the error in resolving them.
    places: Vec<Result<Vec<SocketAddress>, ParamsError>>,
    /// The attempts of a connection, in the order in which the hosts were given.
    route: Arc<[Arc<Attempt>]>,
    /// The TLS configuration, or the error in making it.
    pub tls_config: Result<Arc<ClientConfig>, TlsFailure>,
    pub user: User,
    /// The password that the user has typed.
    typed_password: OnceLock<Password>,
    /// The interrupt flag. While it is set, the statements of blocking sessions are cancelled.
    interrupt: OnceLock<Arc<AtomicBool>>,
}

/// One attempt to reach a server: a combination of host, address and choice of encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The index of the endpoint in the connection parameters.
    pub endpoint: usize,
    /// The address, or the error in resolving it.
    pub place: Result<SocketAddress, ParamsError>,
    /// True if this attempt asks for TLS.
    pub tls: bool,
}

impl Target {
    /// Returns the server that the command line and the environment name. `user` gets libpq's warnings, such as for an
    /// unsafe password file.
    pub fn of(given: &Given, user: User) -> Result<Arc<Self>, ParamsError> {
        Ok(Arc::new(Self { user, ..Self::resolve(params_of(given, user)?) }))
    }

    /// Returns the server that the command line and the environment name, for sessions with this encoding. If the user
    /// has chosen another encoding, such as by `PGCLIENTENCODING`, it is ignored.
    pub fn of_encoding(given: &Given, encoding: &str, user: User) -> Result<Arc<Self>, ParamsError> {
        let mut params = params_of(given, user)?;
        params.client_encoding = Some(encoding.to_owned());
        Ok(Arc::new(Self { user, ..Self::resolve(params) }))
    }

    /// Resolves host names and prepares TLS, for connections whose notices are dropped and that never ask for a
    /// password. As in libpq, an error in resolving a host or in preparing TLS is reported only by the connection
    /// attempts that need the host or TLS.
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

    /// Returns the attempts for one connection, in the order in which the hosts were given or, with
    /// `load_balance_hosts=random`, in a new random order.
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

    /// Returns the endpoint to which an attempt belongs.
    pub fn endpoint(&self, attempt: &Attempt) -> &Endpoint {
        &self.params.endpoints[attempt.endpoint]
    }

    /// Returns the password for an attempt, if one is known.
    pub fn password(&self, attempt: &Attempt) -> Option<&Password> {
        self.endpoint(attempt).password.as_ref().or_else(|| self.typed_password.get())
    }

    /// Makes `interrupt` the flag that ends the statements of blocking sessions when it is set. Has no effect if a flag
    /// was already given.
    pub fn obey(&self, interrupt: &Arc<AtomicBool>) {
        let _ = self.interrupt.set(Arc::clone(interrupt));
    }

    /// Returns true if the flag that [`Target::obey`] was given is set, and `None` if it was given no flag.
    pub fn is_interrupted(&self) -> Option<bool> {
        self.interrupt.get().map(|flag| flag.load(Ordering::Relaxed))
    }

    /// Asks the user for the password, once, if no password is known. Returns true if the user has typed one.
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

    /// Returns libpq's message about a failed attempt.
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
                // If `hostaddr` is given, the message shows the address only, even if a host name was given with it.
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

/// Returns the connection parameters that the command line and the environment name.
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
                // Rust's library puts words of its own before those of getaddrinfo.
                let text = error.to_string();
                let reason = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
                Err(ParamsError::UnknownHost { host: host.clone(), reason: reason.to_owned() })
            }
        },
    }
}

/// Returns all attempts: for each endpoint, each of its addresses with each choice of encryption.
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

/// Returns whether TLS is used in the first attempt at an address, and in the second attempt if there is one. As in
/// libpq, connections over Unix sockets never use TLS.
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
