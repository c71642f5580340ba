//! The traits through which connections use the operating system: streams of bytes to servers, and a poll that reports
//! which streams are ready. A load uses the operating system's implementation. A simulation has its own.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use nix::unistd::{Uid, User};

use crate::error::ConnectionError;
use crate::params::Params;
use ground::poll::Token;

/// The address to which a socket connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A stream of bytes to a server, which never blocks.
pub trait Transport: Read + Write {
    /// Returns true if the stream is connected: `Ok(false)` while it is connecting, an error if that failed.
    fn is_connected(&mut self) -> io::Result<bool>;

    /// Returns true if the stream waits for a condition that no event reports. The caller then has to call
    /// [`Transport::is_connected`] again after a while.
    fn awaits_room(&self) -> bool;

    /// Returns the user ID of the account that runs the server behind a Unix socket. The error has libpq's message.
    fn peer_user(&self) -> Result<u32, ConnectionError>;
}

/// Makes streams to servers, and makes the poll of one thread report when they are ready.
pub trait Network {
    type Transport: Transport;

    /// Returns the current time of the clock that measures the timeouts of connection attempts.
    fn now(&self) -> Instant;

    /// Starts to connect to `address`.
    fn connect(&self, address: &SocketAddress, params: &Params) -> Result<Self::Transport, ConnectionError>;

    /// Makes the poll report under `token` when the stream can be read and, if `writable` is true, when it can be
    /// written. `writable` must be true only while the stream is connecting or has bytes to send. Otherwise each
    /// request that the server reads would wake the client.
    fn register(&self, transport: &Self::Transport, token: Token, writable: bool) -> io::Result<()>;

    /// Changes the events for which [`Network::register`] asked.
    fn reregister(&self, transport: &Self::Transport, token: Token, writable: bool) -> io::Result<()>;
}

/// Checks the connection parameter `requirepeer`: the process that listens on a connected Unix socket must run as the
/// account `required`.
///
/// # Errors
/// Returns libpq's message if the server runs as another account, or as an account that the system does not know.
pub fn check_peer<T: Transport>(transport: &T, required: &str) -> Result<(), ConnectionError> {
    let failed = |message| Err(ConnectionError::Authentication(message));
    let user = Uid::from_raw(transport.peer_user()?);
    match User::from_uid(user) {
        Ok(Some(account)) if account.name == required => Ok(()),
        Ok(Some(User { name, .. })) => {
            failed(format!("requirepeer specifies \"{required}\", but actual peer user name is \"{name}\""))
        }
        Ok(None) => failed(format!("local user with ID {user} does not exist")),
        Err(error) => failed(format!("could not look up local user ID {user}: {}", error.desc())),
    }
}
