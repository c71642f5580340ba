//! sysbench's tests of the database as native programs: what each sends is compiled once, and a client only draws values.

mod bulk;
mod client;
mod event;
pub mod failure;
mod options;
pub mod parameters;
mod statements;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::program::{Fatal, Workload};
use super::sb_rand::Distributions;
use super::settings::{OptionSpec, Settings};
pub use event::{C_LENGTH, PAD_LENGTH};
use ground::shard::Shard;
use parameters::Parameters;
use wire::statement::QueryMode;

/// Which test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    BulkInsert,
    Delete,
    Insert,
    /// The one `oltp.lua` of sysbench 0.5, whose statements are sent as text.
    Legacy,
    PointSelect,
    RandomPoints,
    RandomRanges,
    ReadOnly,
    ReadWrite,
    UpdateIndex,
    UpdateNonIndex,
    WriteOnly,
}

/// A native test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    name: &'static str,
    kind: TestKind,
}

/// All tests in the order of their names.
const TESTS: [Test; 12] = [
    Test { name: "bulk_insert", kind: TestKind::BulkInsert },
    Test { name: "oltp", kind: TestKind::Legacy },
    Test { name: "oltp_delete", kind: TestKind::Delete },
    Test { name: "oltp_insert", kind: TestKind::Insert },
    Test { name: "oltp_point_select", kind: TestKind::PointSelect },
    Test { name: "oltp_read_only", kind: TestKind::ReadOnly },
    Test { name: "oltp_read_write", kind: TestKind::ReadWrite },
    Test { name: "oltp_update_index", kind: TestKind::UpdateIndex },
    Test { name: "oltp_update_non_index", kind: TestKind::UpdateNonIndex },
    Test { name: "oltp_write_only", kind: TestKind::WriteOnly },
    Test { name: "select_random_points", kind: TestKind::RandomPoints },
    Test { name: "select_random_ranges", kind: TestKind::RandomRanges },
];

/// The test of this name.
pub fn find(name: &str) -> Option<Test> {
    TESTS.into_iter().find(|test| test.name == name)
}

impl Test {
    /// As messages name it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn kind(&self) -> TestKind {
        self.kind
    }

    /// What it declares, in the order of its help; `bulk_insert` declares nothing.
    pub fn options(&self) -> Vec<OptionSpec> {
        options::of(self.kind)
    }

    /// How its statements travel: prepared, unless `--db-ps-mode=disable`; some tests send text in any case.
    pub fn mode(&self, settings: &Settings) -> QueryMode {
        let is_text = matches!(self.kind, TestKind::BulkInsert | TestKind::Insert | TestKind::Legacy);
        if is_text || settings.text("db_ps_mode") == Some("disable") { QueryMode::Simple } else { QueryMode::Prepared }
    }

    /// What the clients of a run do, of which the engine has one part; the run's mode has to be [`Test::mode`].
    pub fn workload(&self, settings: &Settings, shard: Shard) -> Result<Arc<dyn Workload>, Fatal> {
        let distributions = Distributions::new(settings)?.of_shard(shard);
        if self.kind == TestKind::BulkInsert {
            return Ok(Arc::new(bulk::BulkInsert));
        }
        let parameters = Parameters::read(self.kind, settings)?;
        parameters.check_for_run(self.kind)?;
        Ok(Arc::new(Arc::new(event::Event::new(*self, parameters, self.mode(settings), distributions))))
    }
}
