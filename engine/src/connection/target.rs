//! The server to connect to: its parameters with names resolved, as the list of attempts that each connection makes.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;

use rustls::ClientConfig;

use super::error::ConnectionError;
use super::params::{Address, Endpoint, Params, SslMode};
use super::stream::SocketAddress;
use super::tls;

/// Everything that a connection needs to know; resolved once, shared by all clients.
pub struct Target {
    pub params: Params,
    pub attempts: Vec<Attempt>,
    pub tls_config: Option<Arc<ClientConfig>>,
}

/// One way to reach one of the servers.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Index into the parameters' endpoints.
    pub endpoint: usize,
    pub address: SocketAddress,
    /// Whether to ask for TLS in this attempt.
    pub tls: bool,
}

impl Target {
    /// Resolves names and prepares TLS. Errors are libpq's sentences.
    pub fn resolve(params: Params) -> Result<Self, ConnectionError> {
        let mut attempts = Vec::new();
        let mut unresolved = None;
        for (index, endpoint) in params.endpoints.iter().enumerate() {
            let addresses = match addresses(endpoint) {
                Ok(addresses) => addresses,
                Err(error) => {
                    unresolved = Some(error);
                    continue;
                }
            };
            for address in addresses {
                for tls in tls_choices(params.tls.mode, &address) {
                    attempts.push(Attempt { endpoint: index, address: address.clone(), tls: *tls });
                }
            }
        }
        if let (true, Some(error)) = (attempts.is_empty(), unresolved) {
            return Err(error);
        }
        let tls_config = attempts
            .iter()
            .any(|attempt| attempt.tls)
            .then(|| tls::client_config(&params.tls))
            .transpose()
            .map_err(|error| ConnectionError::Tls(error.to_string()))?;
        Ok(Self { params, attempts, tls_config })
    }

    /// The endpoint of an attempt.
    pub fn endpoint(&self, attempt: &Attempt) -> &Endpoint {
        &self.params.endpoints[attempt.endpoint]
    }

    /// libpq's line on a failed attempt.
    pub fn describe_failure(&self, attempt: &Attempt, error: &ConnectionError) -> String {
        let endpoint = self.endpoint(attempt);
        let (place, question) = match &attempt.address {
            SocketAddress::Unix(path) => (
                format!("on socket \"{}\"", path.display()),
                "\n\tIs the server running locally and accepting connections on that socket?",
            ),
            SocketAddress::Tcp(address) => {
                let ip = address.ip().to_string();
                let at = if ip == endpoint.host_name {
                    format!("at \"{ip}\", port {}", endpoint.port)
                } else {
                    format!("at \"{}\" ({ip}), port {}", endpoint.host_name, endpoint.port)
                };
                (at, "\n\tIs the server running on that host and accepting TCP/IP connections?")
            }
        };
        let (reason, question) = match error {
            ConnectionError::Io(error) => (plain_io_message(error), question),
            other => (other.to_string(), ""),
        };
        format!("connection to server {place} failed: {reason}{question}")
    }
}

/// The system's words without Rust's error number, as `strerror` gives them.
pub fn plain_io_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn addresses(endpoint: &Endpoint) -> Result<Vec<SocketAddress>, ConnectionError> {
    match &endpoint.address {
        Address::Unix(path) => Ok(vec![SocketAddress::Unix(path.clone())]),
        Address::Tcp(host) => match (host.as_str(), endpoint.port).to_socket_addrs() {
            Ok(found) => Ok(found.map(SocketAddress::Tcp).collect()),
            Err(error) => {
                let text = error.to_string();
                let reason = text.rsplit("information: ").next().unwrap_or(&text);
                Err(ConnectionError::Protocol(format!("could not translate host name \"{host}\" to address: {reason}")))
            }
        },
    }
}

/// Whether to try with TLS, without, or one after the other. Unix sockets never have TLS, as in libpq.
fn tls_choices(mode: SslMode, address: &SocketAddress) -> &'static [bool] {
    match (address, mode) {
        (SocketAddress::Unix(_), _) | (_, SslMode::Disable) => &[false],
        (_, SslMode::Allow) => &[false, true],
        (_, SslMode::Prefer) => &[true, false],
        (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[true],
    }
}
