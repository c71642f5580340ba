//! sysbench's tests of the database: their names, and how they differ.

use crate::program::{CommandInfo, ScriptInfo};
use crate::settings::Settings;
use crate::statistics::Hooks;
use wire::statement::QueryMode;

/// The kind of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    BulkInsert,
    Delete,
    Insert,
    /// The test `oltp.lua` of sysbench 0.5, whose statements are sent as text.
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
    /// Returns true if a statement of the test has many values, all of which a client draws from its own part of the
    /// table.
    pub fn has_own_part(self) -> bool {
        matches!(self, TestKind::RandomPoints | TestKind::RandomRanges)
    }
}

/// A native test of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OltpTest {
    /// The name of the test, as messages have it.
    pub name: &'static str,
    pub kind: TestKind,
    /// The description of the test in the help.
    pub description: &'static str,
}

const fn test(name: &'static str, kind: TestKind, description: &'static str) -> OltpTest {
    OltpTest { name, kind, description }
}

/// Native tests change none of sysbench's own reports.
impl Hooks for OltpTest {}

/// All tests of the database, in the order of their names.
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

/// Returns the test of this name.
pub fn find(name: &str) -> Option<OltpTest> {
    TESTS.into_iter().find(|test| test.name == name)
}

impl OltpTest {
    /// Returns true if the test is written for sysbench 1.0: its commands run in all threads, and it takes only the
    /// options that it declares.
    pub fn is_modern(&self) -> bool {
        !matches!(self.kind, TestKind::BulkInsert | TestKind::Legacy)
    }

    /// Returns the test's one script, as reports name it.
    pub(super) fn scripts(&self) -> Vec<ScriptInfo> {
        let commands = vec![CommandInfo { line: self.name.to_owned(), is_sql: true }];
        vec![ScriptInfo { description: self.name.to_owned(), weight: 1, commands }]
    }

    /// Returns how the test's statements travel: prepared, unless `--db-ps-mode=disable`; some tests send text in any
    /// case.
    pub fn mode(&self, settings: &Settings) -> QueryMode {
        let is_text = matches!(self.kind, TestKind::BulkInsert | TestKind::Insert | TestKind::Legacy);
        if is_text || settings.text("db_ps_mode") == Some("disable") { QueryMode::Simple } else { QueryMode::Prepared }
    }
}
