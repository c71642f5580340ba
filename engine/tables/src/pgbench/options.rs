//! The options of `pgbench -i`, and the sizes of the tables that follow from them.

use std::ops::Range;

use ground::shard::Shard;

pub const TELLERS_PER_BRANCH: u64 = 10;
pub const ACCOUNTS_PER_BRANCH: u64 = 100_000;

/// The largest number of connections among which the memory for sorting keys is divided. If there are more connections,
/// each of them gets as much as with this number.
pub const MAX_CONNECTIONS: usize = 8;

/// The options of `pgbench -i`.
#[derive(Debug, Clone)]
pub struct InitOptions {
    /// The scale factor, which is the number of branches. Each branch has 10 tellers and 100,000 accounts.
    pub scale: u32,
    /// The fillfactor of the tables in per cent, from 10 to 100.
    pub fillfactor: u32,
    /// True to print a progress line every five seconds; false to print one every 100,000 rows.
    pub quiet: bool,
    /// The tablespace of the tables; `None` for the server's default.
    pub tablespace: Option<String>,
    /// The tablespace of the indexes; `None` for the server's default.
    pub index_tablespace: Option<String>,
    pub unlogged: bool,
    /// The number of partitions of pgbench_accounts; 0 for an ordinary table.
    pub partitions: u32,
    pub partition_method: PartitionMethod,
    /// The greatest number of connections for loading, if the user has chosen it.
    pub jobs: Option<usize>,
    /// The query that the user gave with `--mark-by`. The transaction that makes the tables runs this query, and then
    /// the statements that it returns, which mark the tables, for example by comments.
    pub mark_by: Option<String>,
    /// The share of the rows that this engine generates. If several engines share a load, none of them makes or
    /// truncates the tables: they must exist, and be empty, before the engines start.
    pub shard: Shard,
}

impl InitOptions {
    /// Returns the number of accounts that all engines together generate.
    pub fn all_accounts(&self) -> u64 {
        ACCOUNTS_PER_BRANCH * u64::from(self.scale)
    }

    /// Returns the rows of pgbench_accounts that this engine generates. Row n, counted from 0, is account n + 1.
    pub fn accounts(&self) -> Range<u64> {
        self.shard.range(self.all_accounts())
    }

    /// Returns the number of connections for loading. Unless the user chose a number, it is one, as in pgbench: a
    /// pooler may have no further connections, and the server may end a connection that waits for others in its
    /// transaction.
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

/// The method by which rows are assigned to the partitions of pgbench_accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionMethod {
    Range,
    Hash,
}

impl PartitionMethod {
    /// Returns the method's name in the option and in SQL.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }
    }
}
