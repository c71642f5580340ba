//! The texts of the tests' statements, and their compilation to [`Statement`]s.

use wire::statement::{Hole, QueryMode, Statement};

/// A value of a statement. [`Self::place`] is its index among a client's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementSlot {
    Id,
    /// The end of a range that begins at `Id`.
    End,
    K,
    C,
    Pad,
    /// One of the many numbers in the statements of `select_random_points` and `select_random_ranges`. The field is its
    /// index.
    Point(usize),
}

/// The OIDs of the types that sysbench declares for parameters: whole numbers are `bigint`, and strings are `varchar`.
const BIGINT: u32 = 20;
const VARCHAR: u32 = 1043;

impl StatementSlot {
    /// Returns the index of the value among a client's values.
    pub fn place(self) -> usize {
        match self {
            StatementSlot::Id => 0,
            StatementSlot::End | StatementSlot::K => 1,
            StatementSlot::C => 2,
            StatementSlot::Pad => 3,
            StatementSlot::Point(place) => place,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, StatementSlot::C | StatementSlot::Pad)
    }
}

pub const POINT: &str = "SELECT c FROM sbtest{} WHERE id=?";
pub const SIMPLE_RANGE: &str = "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?";
pub const SUM_RANGE: &str = "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?";
pub const LEGACY_SUM_RANGE: &str = "SELECT SUM(K) FROM sbtest{} WHERE id BETWEEN ? AND ?";
pub const ORDER_RANGE: &str = "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c";
pub const DISTINCT_RANGE: &str = "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c";
pub const INDEX_UPDATE: &str = "UPDATE sbtest{} SET k=k+1 WHERE id=?";
pub const NON_INDEX_UPDATE: &str = "UPDATE sbtest{} SET c=? WHERE id=?";
pub const DELETE: &str = "DELETE FROM sbtest{} WHERE id=?";
pub const INSERT: &str = "INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)";
pub const INSERT_WITHOUT_ID: &str = "INSERT INTO sbtest{} (k, c, pad) VALUES (?, ?, ?)";

/// Returns the text of the statement of `select_random_points` with `count` points.
pub fn random_points(count: usize) -> String {
    let points = vec!["?"; count].join(", ");
    format!("        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({points})\n        ")
}

/// Returns the text of the statement of `select_random_ranges` with `count` ranges.
pub fn random_ranges(count: usize) -> String {
    let ranges = vec!["k BETWEEN ? AND ?"; count].join(" OR ");
    format!("        SELECT count(k)\n          FROM sbtest1\n          WHERE {ranges}")
}

/// Makes a statement from a text in which a `?` stands for each of `slots`. If statements are sent as text, strings get
/// quotes.
pub fn compile(id: usize, mode: QueryMode, text: &str, slots: &[StatementSlot]) -> Statement {
    let mut pieces: Vec<Vec<u8>> = text.split('?').map(|piece| piece.as_bytes().to_vec()).collect();
    if mode == QueryMode::Simple {
        for (place, _) in slots.iter().enumerate().filter(|(_, slot)| slot.is_text()) {
            pieces[place].push(b'\'');
            pieces[place + 1].insert(0, b'\'');
        }
    }
    let holes = slots.iter().map(|slot| Hole { slot: slot.place(), name: String::new() }).collect();
    let types: Vec<u32> = slots.iter().map(|slot| if slot.is_text() { VARCHAR } else { BIGINT }).collect();
    Statement::of_session(id, pieces, holes, &types)
}
