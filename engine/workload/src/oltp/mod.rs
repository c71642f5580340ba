//! sysbench's tests of the database as native programs. The statements of each test are compiled once, and a client
//! only draws values.

mod bulk;
mod client;
mod event;
pub mod failure;
mod options;
pub mod parameters;
mod statements;
mod test;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::program::{Fatal, StagedActions, Workload};
use super::sb_rand::Distributions;
use super::settings::{OptionSpec, Settings};
pub use event::{C_LENGTH, PAD_LENGTH};
use ground::shard::Shard;
use parameters::TestParameters;
pub use test::{OltpTest, TESTS, TestKind, find};

impl OltpTest {
    /// Returns the options of the test, in the order in which its help lists them. The test `bulk_insert` has none.
    pub fn options(&self) -> Vec<OptionSpec> {
        options::of(self.kind)
    }

    /// Returns the workload of a run. If several engines share the run, `shard` is the share of this engine. The query
    /// mode of the run must be [`OltpTest::mode`].
    pub fn workload(&self, settings: &Settings, shard: Shard) -> Result<Arc<dyn Workload<StagedActions>>, Fatal> {
        let distributions = Distributions::new(settings)?.of_shard(shard);
        if self.kind == TestKind::BulkInsert {
            return Ok(Arc::new(bulk::BulkInsert { test: *self }));
        }
        let parameters = TestParameters::read(self.kind, settings)?;
        parameters.check_for_run(self.kind)?;
        Ok(Arc::new(Arc::new(event::OltpEvent::new(*self, parameters, self.mode(settings), distributions))))
    }
}
