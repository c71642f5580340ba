//! The options of `pgbench -i`, and the sizes of the tables that follow from them.

use std::ops::Range;

use ground::shard::Shard;

pub const TELLERS_PER_BRANCH: u64 = 10;
pub const ACCOUNTS_PER_BRANCH: u64 = 100_000;

/// The largest number of connections among which the memory for sorting keys is divided.
pub const MAX_CONNECTIONS: usize = 8;

/// The options of `pgbench -i`.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The number of branches; each has 10 tellers and 100,000 accounts.
    pub scale: u32,
    /// The fillfactor, percent, from 10 to 100.
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
    /// The greatest number of connections to load over, if the user chooses their number.
    pub jobs: Option<usize>,
    /// The query of `--mark-by`, whose statements mark the tables in the transaction that makes them.
    pub mark_by: Option<String>,
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

    /// Returns the number of connections that load: one, as in pgbench, unless the user chose another number. A pooler
    /// may have no room for more, and a connection that waits for others in its transaction may be ended by the server.
    pub fn connections(&self) -> usize {
        self.jobs.unwrap_or(1)
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
            mark_by: None,
            shard: Shard::WHOLE,
        }
    }
}

/// The method by which rows are assigned to partitions.
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
