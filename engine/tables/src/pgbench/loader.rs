//! The options of `pgbench -i`, and the connections that it loads over.

use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ground::shard::Shard;
use wire::session::Session;
use wire::target::Target;

use super::statements::ACCOUNTS_PER_BRANCH;
use crate::session::{Backends, LoadError};

/// The most connections if the user does not choose their number.
pub const MAX_CONNECTIONS: usize = 8;

/// How long [`for_each`] waits for each further thread after an error.
const PATIENCE: Duration = Duration::from_secs(2);

/// The options of `pgbench -i`.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The number of branches; each has 10 tellers and 100,000 accounts.
    pub scale: u32,
    /// Percent, 10 to 100.
    pub fillfactor: u32,
    /// Prints a progress line every five seconds instead of every 100,000 rows.
    pub quiet: bool,
    /// The tablespace of the tables, if not the server's default.
    pub tablespace: Option<String>,
    /// The tablespace of the indexes, if not the server's default.
    pub index_tablespace: Option<String>,
    pub unlogged: bool,
    /// The number of partitions of pgbench_accounts; 0 for an ordinary table.
    pub partitions: u32,
    pub partition_method: PartitionMethod,
    /// The most connections to load over, if the user chooses their number.
    pub jobs: Option<usize>,
    /// The share of this engine of the rows. Engines that share a load neither make nor empty the tables: that is done
    /// before they start.
    pub shard: Shard,
}

impl InitOptions {
    /// Returns the number of accounts of all engines.
    pub fn all_accounts(&self) -> u64 {
        ACCOUNTS_PER_BRANCH * u64::from(self.scale)
    }

    /// Returns the rows of pgbench_accounts that this engine generates. Row n, counted from 0, is account n + 1.
    pub fn accounts(&self) -> Range<u64> {
        self.shard.range(self.all_accounts())
    }

    /// Returns how many connections are worth while, or the number that the user chose.
    pub fn connections(&self) -> usize {
        self.jobs.unwrap_or_else(|| {
            let processors = thread::available_parallelism().map_or(1, |count| count.get());
            processors.min(MAX_CONNECTIONS).min(self.scale as usize)
        })
    }
}

impl Default for InitOptions {
    fn default() -> Self {
        Self {
            scale: 1,
            fillfactor: 100,
            quiet: false,
            tablespace: None,
            index_tablespace: None,
            unlogged: false,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            jobs: None,
            shard: Shard::WHOLE,
        }
    }
}

/// How rows are assigned to partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    /// Returns the name that the option and the statement use.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }
    }
}

/// What each step works with.
pub struct Loader<'a> {
    pub target: &'a Arc<Target>,
    pub session: &'a mut Session,
    pub options: &'a InitOptions,
    pub backends: &'a Backends,
}

impl Loader<'_> {
    /// Opens connections to work on `items` things in parallel. Returns none if the loader's own session does as well.
    pub fn open_helpers(&self, items: usize) -> Result<Vec<Session>, LoadError> {
        let count = self.options.connections().min(items);
        // With several hosts, another connection might reach another server.
        let params = &self.target.params;
        if count < 2 || params.endpoints.len() > 1 || params.load_balance_random {
            return Ok(Vec::new());
        }
        let mut helpers = Vec::new();
        for _ in 0..count {
            let opened = Session::open(self.target).map_err(LoadError::Connect);
            match opened.and_then(|mut helper| self.backends.add(&mut helper).map(|()| helper)) {
                Ok(helper) => helpers.push(helper),
                // The user did not choose the number of connections: fewer will do.
                Err(_) if self.options.jobs.is_none() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(helpers)
    }
}

/// Calls `work` for each item, over one thread for each session. Returns the sessions when all items are done.
///
/// After the first error the flag that `work` receives becomes true, no thread takes a further item, and each thread is
/// waited for at most two seconds.
pub fn for_each<T: Send + Sync + 'static>(
    sessions: Vec<Session>,
    items: Vec<T>,
    work: impl Fn(&mut Session, &T, &AtomicBool) -> Result<(), LoadError> + Send + Sync + 'static,
) -> Result<Vec<Session>, LoadError> {
    let count = sessions.len();
    let shared = Arc::new((items, work, AtomicUsize::new(0), AtomicBool::new(false)));
    let (sender, receiver) = mpsc::channel();
    for mut session in sessions {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        thread::spawn(move || {
            let (items, work, next, stop) = &*shared;
            let mut own = iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)))
                .take_while(|_| !stop.load(Ordering::Relaxed));
            let done = own.try_for_each(|item| work(&mut session, item, stop)).map(|()| session);
            // After an error the receiver may be gone.
            let _ = sender.send(done);
        });
    }
    drop(sender);
    let mut done = Vec::new();
    while done.len() < count {
        match receiver.recv().unwrap_or(Err(LoadError::ThreadLost)) {
            Ok(session) => done.push(session),
            Err(first) => {
                shared.3.store(true, Ordering::Relaxed);
                drop(done);
                while receiver.recv_timeout(PATIENCE).is_ok() {}
                return Err(first);
            }
        }
    }
    Ok(done)
}
