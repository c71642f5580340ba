//! The system's limit of open files, of which each connection needs one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What helps against too few.
pub const ADVICE: &str = "Reduce number of clients, or use limit/ulimit to increase the system limit.";

/// There cannot be so many connections.
#[derive(Debug)]
pub struct TooFew {
    pub message: String,
    /// Whether [`ADVICE`] helps.
    pub advises: bool,
}

/// Raises the limit so that there can be so many connections, where the system lets it; messages are pgbench's.
pub fn reserve(connections: u64) -> Result<(), TooFew> {
    let needed = connections + 3;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| TooFew { message: format!("getrlimit failed: {}", error.desc()), advises: false })?;
    if hard < needed {
        let message = format!("need at least {needed} open files, but system limit is {hard}");
        return Err(TooFew { message, advises: true });
    }
    // Threads need a few files more than pgbench counts.
    let wanted = (needed + 2 * connections).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|error| {
            let reason = error.desc();
            let message = format!("need at least {needed} open files, but couldn't raise the limit: {reason}");
            TooFew { message, advises: true }
        })?;
    }
    Ok(())
}
