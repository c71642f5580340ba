//! `requirepeer`: which account the server behind a Unix socket runs as.

use nix::unistd::{Uid, User};

use crate::error::ConnectionError;
use crate::socket::Socket;

/// Checks that the process that listens on a connected Unix socket runs as the account `required`.
///
/// # Errors
/// libpq's sentence on another account, or on one that the system does not know.
pub fn check(socket: &Socket, required: &str) -> Result<(), ConnectionError> {
    let failed = |message| Err(ConnectionError::Authentication(message));
    let user = user_id(socket)?;
    match User::from_uid(user) {
        Ok(Some(account)) if account.name == required => Ok(()),
        Ok(Some(User { name, .. })) => {
            failed(format!("requirepeer specifies \"{required}\", but actual peer user name is \"{name}\""))
        }
        Ok(None) => failed(format!("local user with ID {user} does not exist")),
        Err(error) => failed(format!("could not look up local user ID {user}: {}", error.desc())),
    }
}

#[cfg(target_os = "linux")]
fn user_id(socket: &Socket) -> Result<Uid, ConnectionError> {
    let credentials = rustix::net::sockopt::socket_peercred(socket);
    let failed = |error| ConnectionError::Authentication(format!("could not get peer credentials: {error}"));
    Ok(Uid::from_raw(credentials.map_err(failed)?.uid.as_raw()))
}

#[cfg(not(target_os = "linux"))]
fn user_id(_socket: &Socket) -> Result<Uid, ConnectionError> {
    Err(ConnectionError::Authentication("requirepeer parameter is not supported on this platform".to_owned()))
}
