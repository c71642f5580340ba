//! `requirepeer`: which account the server behind a Unix socket runs as.

use nix::unistd::{Uid, User};

use crate::error::ConnectionError;
use crate::network::Transport;

/// Checks that the process that listens on a connected Unix socket runs as the account `required`.
///
/// # Errors
/// libpq's sentence on another account, or on one that the system does not know.
pub fn check<T: Transport>(transport: &T, required: &str) -> Result<(), ConnectionError> {
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
