//! sysbench's tests of the database: their names and the differences between them.

use crate::program::{CommandInfo, ScriptInfo};
use crate::settings::Settings;
use crate::statistics::Hooks;
use wire::statement::QueryMode;

/// The kinds of tests. Tests of one kind send the same statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    BulkInsert,
    Delete,
    Insert,
    /// The test `oltp.lua` of sysbench 0.5, which sends its statements as text.
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

impl TestKind {
    /// True if each client draws its ids from its own part of the table, as in the tests `select_random_*`, whose
    /// statements have many values.
    pub fn has_own_part(self) -> bool {
        matches!(self, TestKind::RandomPoints | TestKind::RandomRanges)
    }
}

/// A test of the database that is implemented in Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OltpTest {
    /// The name of the test in messages.
    pub name: &'static str,
    pub kind: TestKind,
    /// The description of the test in the help.
    pub description: &'static str,
}

const fn test(name: &'static str, kind: TestKind, description: &'static str) -> OltpTest {
    OltpTest { name, kind, description }
}

/// The tests of the database use sysbench's own reports unchanged.
impl Hooks for OltpTest {}

/// All tests of the database, sorted by name.
pub const TESTS: [OltpTest; 12] = [
    test("bulk_insert", TestKind::BulkInsert, "INSERT of many rows at once"),
    test("oltp", TestKind::Legacy, "the test of sysbench 0.5"),
    test("oltp_delete", TestKind::Delete, "DELETE by primary key"),
    test("oltp_insert", TestKind::Insert, "INSERT of single rows"),
    test("oltp_point_select", TestKind::PointSelect, "SELECT by primary key"),
    test("oltp_read_only", TestKind::ReadOnly, "transactions of point and range SELECTs"),
    test("oltp_read_write", TestKind::ReadWrite, "transactions of SELECTs, UPDATEs, DELETE and INSERT"),
    test("oltp_update_index", TestKind::UpdateIndex, "UPDATE of an indexed column"),
    test("oltp_update_non_index", TestKind::UpdateNonIndex, "UPDATE of a column without an index"),
    test("oltp_write_only", TestKind::WriteOnly, "transactions of UPDATEs, DELETE and INSERT"),
    test("select_random_points", TestKind::RandomPoints, "SELECT of a list of random keys"),
    test("select_random_ranges", TestKind::RandomRanges, "SELECT of several random ranges"),
];

/// Returns the test of this name, or `None` if there is none.
pub fn find(name: &str) -> Option<OltpTest> {
    TESTS.into_iter().find(|test| test.name == name)
}

impl OltpTest {
    /// True if the test belongs to sysbench 1.0: its commands run in all threads, and it accepts only options that it
    /// declares. False for `bulk_insert` and the test of sysbench 0.5.
    pub fn is_modern(&self) -> bool {
        !matches!(self.kind, TestKind::BulkInsert | TestKind::Legacy)
    }

    /// Returns the scripts that reports list for the test. There is only one, because sysbench's tests have no scripts
    /// of different weights.
    pub(super) fn scripts(&self) -> Vec<ScriptInfo> {
        let commands = vec![CommandInfo { line: self.name.to_owned(), is_sql: true }];
        vec![ScriptInfo { description: self.name.to_owned(), weight: 1, commands }]
    }

    /// Returns the query mode of the test: prepared, unless the user gives `--db-ps-mode=disable`. Some tests always
    /// send text.
    pub fn mode(&self, settings: &Settings) -> QueryMode {
        let is_text = matches!(self.kind, TestKind::BulkInsert | TestKind::Insert | TestKind::Legacy);
        if is_text || settings.text("db_ps_mode") == Some("disable") { QueryMode::Simple } else { QueryMode::Prepared }
    }
}
