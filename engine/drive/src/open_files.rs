//! The limit of open files of the process, which a run raises before it starts its threads.

use ground::readiness::Readiness;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::plan::Plan;

/// The number of open files that a thread needs in addition to the sockets of its clients: those of its event loop, and
/// its transaction log.
const FILES_PER_THREAD: u64 = Readiness::FILES + 1;

/// The number of open files that the process needs in addition to those of its clients and threads, such as the
/// standard streams, the file of events and the connections over which statements are cancelled.
const OTHER_FILES: u64 = 64;

/// Raises the process's limit of open files, as far as the system allows, to the number that the plan's clients and
/// threads need. If the limit is still too low, the run fails later with an error.
pub fn raise_limit(plan: &Plan) {
    let wanted = plan.clients as u64 + FILES_PER_THREAD * plan.jobs as u64 + OTHER_FILES;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        if soft < wanted {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard);
        }
    }
}
