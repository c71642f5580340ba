//! What was chosen for a test, whatever the names of its options.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{TestKind, options};
use crate::program::Fatal;
use crate::settings::{OptionValue, Settings};

/// The most rows of a table: their numbers are of PostgreSQL's `integer`.
const MOST_ROWS: i64 = i32::MAX as i64;

/// The most tables: the statements for each are kept in memory.
const MOST_TABLES: i64 = 100_000;

/// The most parameters of a statement, by the protocol.
const MOST_PARAMETERS: i64 = u16::MAX as i64;

/// A test's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    pub tables: u64,
    pub table_size: i64,
    /// How often each statement is in an event; DELETE and INSERT together count once.
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
    /// The server numbers the rows.
    pub auto_inc: bool,
    pub secondary: bool,
    pub create_secondary: bool,
    pub redshift: bool,
    pub random_points: usize,
    pub number_of_ranges: usize,
    pub delta: i64,
    pub threads: usize,
}

/// Options by their names without 0.5's prefix.
struct Reader<'a> {
    kind: TestKind,
    settings: &'a Settings,
    defaults: BTreeMap<String, OptionValue>,
}

impl Reader<'_> {
    fn name(&self, name: &str) -> String {
        options::name_in(self.kind, name)
    }

    fn value(&self, name: &str) -> Option<&OptionValue> {
        let name = self.name(name);
        self.settings.get(&name).or_else(|| self.defaults.get(&name))
    }

    fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(OptionValue::Int(number)) => *number,
            _ => 0,
        }
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.value(name), Some(OptionValue::Bool(true)))
    }

    fn count(&self, name: &str) -> u64 {
        u64::try_from(self.int(name)).unwrap_or(0)
    }

    fn within(&self, name: &str, range: RangeInclusive<i64>) -> Result<i64, Fatal> {
        let number = self.int(name);
        if range.contains(&number) {
            return Ok(number);
        }
        let (name, least, most) = (self.name(name), range.start(), range.end());
        Err(Fatal::new(format_args!("--{name} must be between {least} and {most}, and is {number}")))
    }
}

impl Parameters {
    /// From the options of a test of this kind.
    pub fn read(kind: TestKind, settings: &Settings) -> Result<Self, Fatal> {
        let defaults = options::of(kind).into_iter().map(|option| (option.name, option.default)).collect();
        let read = Reader { kind, settings, defaults };
        let redshift = matches!(read.value("pgsql_variant"), Some(OptionValue::Text(Some(name))) if name == "redshift");
        let is_legacy = kind == TestKind::Legacy;
        let (read_only, write_only) = (is_legacy && read.is_on("read_only"), is_legacy && read.is_on("write_only"));
        if read_only && write_only {
            return Err(Fatal::new("--oltp-read-only and --oltp-write-only are mutually exclusive"));
        }
        let [reads, writes] = [!write_only, !read_only].map(u64::from);
        let parameters = |kind_of_size| if kind == kind_of_size { 1..=MOST_PARAMETERS } else { i64::MIN..=i64::MAX };
        let ranges = if kind == TestKind::RandomRanges { 1..=MOST_PARAMETERS / 2 } else { i64::MIN..=i64::MAX };
        Ok(Self {
            tables: read.within("tables", 0..=MOST_TABLES)? as u64,
            table_size: read.within("table_size", 0..=MOST_ROWS)?,
            point_selects: if kind == TestKind::PointSelect { 1 } else { reads * read.count("point_selects") },
            simple_ranges: reads * read.count("simple_ranges"),
            sum_ranges: reads * read.count("sum_ranges"),
            order_ranges: reads * read.count("order_ranges"),
            distinct_ranges: reads * read.count("distinct_ranges"),
            index_updates: writes * read.count("index_updates"),
            non_index_updates: writes * read.count("non_index_updates"),
            // 1.0.20's tests say that this variant has none, and have them nevertheless.
            delete_inserts: if is_legacy && redshift { 0 } else { writes * read.count("delete_inserts") },
            range_size: read.int("range_size"),
            range_selects: read.is_on("range_selects"),
            skip_trx: read.is_on("skip_trx"),
            auto_inc: read.is_on("auto_inc"),
            secondary: read.is_on("secondary"),
            create_secondary: read.is_on("create_secondary") && !(is_legacy && redshift),
            redshift,
            random_points: read.within("random_points", parameters(TestKind::RandomPoints))? as usize,
            number_of_ranges: read.within("number_of_ranges", ranges)? as usize,
            delta: read.int("delta"),
            threads: usize::try_from(settings.int("threads")).unwrap_or(1).max(1),
        })
    }

    /// What can be prepared need not be something that a run can draw numbers from.
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
