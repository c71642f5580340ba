//! The values that were chosen for a test's options, under the same field names in every test.

use std::ops::RangeInclusive;

use super::options;
use super::test::TestKind;
use crate::program::Fatal;
use crate::settings::Settings;

/// The greatest number of rows of a table, since their numbers have PostgreSQL's type `integer`.
const MOST_ROWS: i64 = i32::MAX as i64;

/// The greatest number of tables. The statements for each table are kept in memory.
const MOST_TABLES: i64 = 100_000;

/// The greatest number of parameters that the protocol allows in a statement.
const MOST_PARAMETERS: i64 = u16::MAX as i64;

/// The values of a test's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestParameters {
    pub tables: u64,
    pub table_size: i64,
    /// The number of point queries in an event. The fields up to `delete_inserts` are the numbers of the other
    /// statements; a DELETE and its INSERT count as one.
    pub point_selects: u64,
    pub simple_ranges: u64,
    pub sum_ranges: u64,
    pub order_ranges: u64,
    pub distinct_ranges: u64,
    pub index_updates: u64,
    pub non_index_updates: u64,
    pub delete_inserts: u64,
    pub range_size: i64,
    pub range_selects: bool,
    pub skip_trx: bool,
    /// True if the server assigns the ids of rows (`--auto_inc`); false if the clients choose them.
    pub auto_inc: bool,
    pub secondary: bool,
    pub create_secondary: bool,
    pub redshift: bool,
    pub random_points: usize,
    pub number_of_ranges: usize,
    pub delta: i64,
    pub threads: usize,
}

impl TestParameters {
    /// Reads the values of the options of a test of this kind.
    pub fn read(kind: TestKind, settings: &Settings) -> Result<Self, Fatal> {
        let mut chosen = Settings::default();
        for (name, _, default) in options::declared(kind) {
            chosen.set(name, settings.get(&options::name_in(kind, name)).cloned().unwrap_or(default));
        }
        let count = |name| u64::try_from(chosen.int(name)).unwrap_or(0);
        let within = |name, range: RangeInclusive<i64>| {
            let number = chosen.int(name);
            if range.contains(&number) {
                return Ok(number);
            }
            let (name, least, most) = (options::name_in(kind, name), range.start(), range.end());
            Err(Fatal::new(format_args!("--{name} must be between {least} and {most}, and is {number}")))
        };
        // A number that the test does not have is 0.
        let of_test = |test, most| if kind == test { 1..=most } else { 0..=0 };
        let redshift = chosen.text("pgsql_variant") == Some("redshift");
        let is_legacy = kind == TestKind::Legacy;
        let (read_only, write_only) = (chosen.is_on("read_only"), chosen.is_on("write_only"));
        if read_only && write_only {
            return Err(Fatal::new("--oltp-read-only and --oltp-write-only are mutually exclusive"));
        }
        let [reads, writes] = [!write_only, !read_only].map(u64::from);
        Ok(Self {
            tables: within("tables", 0..=MOST_TABLES)? as u64,
            table_size: within("table_size", 0..=MOST_ROWS)?,
            point_selects: if kind == TestKind::PointSelect { 1 } else { reads * count("point_selects") },
            simple_ranges: reads * count("simple_ranges"),
            sum_ranges: reads * count("sum_ranges"),
            order_ranges: reads * count("order_ranges"),
            distinct_ranges: reads * count("distinct_ranges"),
            index_updates: writes * count("index_updates"),
            non_index_updates: writes * count("non_index_updates"),
            // The help of the tests of sysbench 1.0.20 says that events have no DELETE and INSERT with the variant
            // redshift, but they have them.
            delete_inserts: if is_legacy && redshift { 0 } else { writes * count("delete_inserts") },
            range_size: chosen.int("range_size"),
            range_selects: chosen.is_on("range_selects"),
            skip_trx: chosen.is_on("skip_trx"),
            auto_inc: chosen.is_on("auto_inc"),
            secondary: chosen.is_on("secondary"),
            create_secondary: chosen.is_on("create_secondary") && !(is_legacy && redshift),
            redshift,
            random_points: within("random_points", of_test(TestKind::RandomPoints, MOST_PARAMETERS))? as usize,
            number_of_ranges: within("number_of_ranges", of_test(TestKind::RandomRanges, MOST_PARAMETERS / 2))?
                as usize,
            delta: chosen.int("delta"),
            threads: usize::try_from(settings.int("threads")).unwrap_or(1).max(1),
        })
    }

    /// Checks that a run can use tables with these options. Some tables can be prepared but not used by a run: from an
    /// empty table, for example, a run could draw no ids.
    pub fn check_for_run(&self, kind: TestKind) -> Result<(), Fatal> {
        for (name, number) in [("tables", self.tables as i64), ("table_size", self.table_size)] {
            if number < 1 {
                let name = options::name_in(kind, name);
                return Err(Fatal::new(format_args!("--{name} must be at least 1 to run, and is {number}")));
            }
        }
        Ok(())
    }
}
