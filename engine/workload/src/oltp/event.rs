//! The events of a test: the statements that they send and the values that they draw, compiled once for all clients.

use super::parameters::TestParameters;
use super::statements::{self, StatementSlot};
use super::test::{OltpTest, TestKind};
use crate::sb_rand::{Distribution, Distributions};
use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// A part of an event: a statement, or a DELETE and its INSERT, executed a number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPart {
    pub draw: StatementDraw,
    /// The number of times that an event executes this part; at least 1.
    pub times: u64,
    /// True if each execution of this part draws a table; false if it uses the table that was drawn last.
    pub chooses: bool,
    /// The index of the statement. If each table has a statement of its own, the index of the first table's statement.
    pub first: usize,
    pub is_per_table: bool,
}

/// The values that are drawn for each execution of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementDraw {
    Nothing,
    Id,
    /// An id at which a range of ids begins. The end of the range is computed from it.
    Range,
    /// An id, and a text for the column `c`.
    Text,
    /// Values for all columns. The DELETE uses the id, and an INSERT with the same id follows; `insert` is the index of
    /// the first table's INSERT.
    Replacement {
        insert: usize,
    },
    /// Values for all columns except the id.
    Row,
    /// Values for all columns, with an id that was never used before.
    NewRow,
    /// Several ids, each of which is drawn independently.
    Points,
    /// Several ranges of ids. Each has two values, its ends.
    Ranges,
}

/// A test with its options, and what its events do.
pub struct OltpEvent {
    pub test: OltpTest,
    pub mode: QueryMode,
    pub parameters: TestParameters,
    pub distributions: Distributions,
    /// The statements in the order in which they are prepared. The id of a statement is its index.
    pub statements: Vec<Statement>,
    pub parts: Vec<EventPart>,
}

impl OltpEvent {
    pub fn new(test: OltpTest, parameters: TestParameters, mode: QueryMode, distributions: Distributions) -> Self {
        let compiler = Compiler { test, mode, parameters: &parameters, statements: Vec::new(), parts: Vec::new() };
        let (statements, mut parts) = compiler.compile();
        parts.retain(|part| part.times > 0);
        if test.kind == TestKind::Legacy {
            // Events of the test of sysbench 0.5 use only one table each.
            let mut tables = parts.iter_mut().filter(|part| part.chooses).skip(1);
            tables.by_ref().for_each(|part| part.chooses = false);
        }
        Self { test, mode, parameters, distributions, statements, parts }
    }

    /// Returns the distribution from which a client draws ids. In the tests `select_random_*` each client has a part of
    /// the table of its own. As in sysbench, the bounds of the part are rounded down to whole numbers.
    pub fn ids(&self, client: usize) -> Distribution {
        let TestParameters { table_size, threads, .. } = self.parameters;
        if !self.test.kind.has_own_part() {
            return self.distributions.over(1, table_size);
        }
        let length = table_size as f64 / threads as f64;
        let start = length * (client % threads) as f64;
        self.distributions.over(start as i64, (start + length) as i64)
    }

    /// Returns the memory for a client's values. It is filled with placeholders that have the types and lengths of the
    /// values that will be drawn.
    pub fn values(&self) -> Box<[Value]> {
        if self.test.kind.has_own_part() {
            let TestParameters { random_points, number_of_ranges, .. } = self.parameters;
            let is_points = self.test.kind == TestKind::RandomPoints;
            return vec![Value::Int(0); if is_points { random_points } else { 2 * number_of_ranges }].into();
        }
        let text = |length| Value::Text(vec![0; length].into());
        Box::new([Value::Int(0), Value::Int(0), text(C_LENGTH), text(PAD_LENGTH)])
    }
}

/// The length of values of the column `c` in bytes: ten groups of eleven digits with dashes between them. Values of
/// `pad` have five groups.
pub const C_LENGTH: usize = 119;
pub const PAD_LENGTH: usize = 59;

struct Compiler<'a> {
    test: OltpTest,
    mode: QueryMode,
    parameters: &'a TestParameters,
    statements: Vec<Statement>,
    parts: Vec<EventPart>,
}

impl Compiler<'_> {
    fn compile(mut self) -> (Vec<Statement>, Vec<EventPart>) {
        let parameters = self.parameters;
        match self.test.kind {
            TestKind::ReadOnly => self.read_only(),
            TestKind::ReadWrite | TestKind::Legacy => self.read_write(true),
            TestKind::WriteOnly => self.read_write(false),
            TestKind::PointSelect => self.points(),
            TestKind::UpdateIndex => self.index_updates(),
            TestKind::UpdateNonIndex => self.non_index_updates(),
            TestKind::Delete => self.each(1, StatementDraw::Id, statements::DELETE, &[StatementSlot::Id]),
            TestKind::Insert if parameters.auto_inc => {
                self.each(
                    1,
                    StatementDraw::Row,
                    statements::INSERT_WITHOUT_ID,
                    &[StatementSlot::K, StatementSlot::C, StatementSlot::Pad],
                );
            }
            TestKind::Insert => {
                self.each(
                    1,
                    StatementDraw::NewRow,
                    statements::INSERT,
                    &[StatementSlot::Id, StatementSlot::K, StatementSlot::C, StatementSlot::Pad],
                );
            }
            TestKind::RandomPoints => {
                let count = parameters.random_points;
                self.numbers(StatementDraw::Points, &statements::random_points(count), count);
            }
            TestKind::RandomRanges => {
                let count = parameters.number_of_ranges;
                self.numbers(StatementDraw::Ranges, &statements::random_ranges(count), 2 * count);
            }
            TestKind::BulkInsert => {}
        }
        (self.statements, self.parts)
    }

    /// Compiles a read-only event. Only for read-only events sysbench prepares the point queries before BEGIN and
    /// COMMIT.
    fn read_only(&mut self) {
        self.points();
        let ends = self.transaction();
        self.ranges();
        self.enclose(ends);
    }

    fn read_write(&mut self, reads: bool) {
        let ends = self.transaction();
        if reads {
            self.points();
            self.ranges();
        }
        self.index_updates();
        self.non_index_updates();
        self.delete_inserts();
        self.enclose(ends);
    }

    fn points(&mut self) {
        self.each(self.parameters.point_selects, StatementDraw::Id, statements::POINT, &[StatementSlot::Id]);
    }

    fn ranges(&mut self) {
        let parameters = self.parameters;
        if !parameters.range_selects {
            return;
        }
        let is_legacy = self.test.kind == TestKind::Legacy;
        let sum = if is_legacy { statements::LEGACY_SUM_RANGE } else { statements::SUM_RANGE };
        for (times, text) in [
            (parameters.simple_ranges, statements::SIMPLE_RANGE),
            (parameters.sum_ranges, sum),
            (parameters.order_ranges, statements::ORDER_RANGE),
            (parameters.distinct_ranges, statements::DISTINCT_RANGE),
        ] {
            self.each(times, StatementDraw::Range, text, &[StatementSlot::Id, StatementSlot::End]);
        }
    }

    fn index_updates(&mut self) {
        self.each(self.parameters.index_updates, StatementDraw::Id, statements::INDEX_UPDATE, &[StatementSlot::Id]);
    }

    fn non_index_updates(&mut self) {
        let times = self.parameters.non_index_updates;
        self.each(times, StatementDraw::Text, statements::NON_INDEX_UPDATE, &[StatementSlot::C, StatementSlot::Id]);
    }

    fn delete_inserts(&mut self) {
        let first = self.add_each(statements::DELETE, &[StatementSlot::Id]);
        let insert = self
            .add_each(statements::INSERT, &[StatementSlot::Id, StatementSlot::K, StatementSlot::C, StatementSlot::Pad]);
        let (draw, times) = (StatementDraw::Replacement { insert }, self.parameters.delete_inserts);
        self.parts.push(EventPart { draw, times, chooses: true, first, is_per_table: true });
    }

    /// Adds BEGIN and COMMIT, and returns the event's parts for them. Returns `None` if the event has no transaction
    /// (`--skip_trx`).
    fn transaction(&mut self) -> Option<[EventPart; 2]> {
        if self.parameters.skip_trx {
            return None;
        }
        Some(["BEGIN", "COMMIT"].map(|text| {
            let first = self.add(text, &[]);
            EventPart { draw: StatementDraw::Nothing, times: 1, chooses: false, first, is_per_table: false }
        }))
    }

    fn enclose(&mut self, ends: Option<[EventPart; 2]>) {
        if let Some([begin, commit]) = ends {
            self.parts.insert(0, begin);
            self.parts.push(commit);
        }
    }

    /// Adds a part that draws a table for each execution, with a statement for each table.
    fn each(&mut self, times: u64, draw: StatementDraw, text: &str, slots: &[StatementSlot]) {
        let first = self.add_each(text, slots);
        self.parts.push(EventPart { draw, times, chooses: true, first, is_per_table: true });
    }

    /// Adds a part whose statement has `count` numbers as values.
    fn numbers(&mut self, draw: StatementDraw, text: &str, count: usize) {
        let slots: Vec<_> = (0..count).map(StatementSlot::Point).collect();
        let first = self.add(text, &slots);
        self.parts.push(EventPart { draw, times: 1, chooses: false, first, is_per_table: false });
    }

    fn add_each(&mut self, text: &str, slots: &[StatementSlot]) -> usize {
        let first = self.statements.len();
        for table in 1..=self.parameters.tables {
            self.add(&text.replace("{}", &table.to_string()), slots);
        }
        first
    }

    fn add(&mut self, text: &str, slots: &[StatementSlot]) -> usize {
        let id = self.statements.len();
        self.statements.push(statements::compile(id, self.mode, text, slots));
        id
    }
}
