//! Draws values for columns according to their statistics in pg_stats.

use std::collections::HashMap;

use ground::random::Random;

use super::table::{NamedRow, NamedTable};
use crate::error::CaptureError;

/// The number of values in a generated list. pg_stat_statements does not record the length of the original lists.
const LIST: usize = 5;

/// The largest number that is drawn for a numeric column without statistics of its values.
const LARGEST: i64 = 1000;

/// The columns of all tables of a database.
#[derive(Debug, Default)]
pub struct Columns {
    columns: Vec<Column>,
    /// The columns of each table in the order of the table, as indexes into `columns`. A table has an entry under its
    /// name, and another one under its name with the schema.
    tables: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Column {
    name: String,
    kind: TokenKind,
    /// The server's estimate of the number of rows of the column's table.
    table_rows: f64,
    null_share: f64,
    /// True if pg_stats says that every value is different (`n_distinct` is -1).
    is_unique: bool,
    /// The most common values. With each is the share of the table's rows that have this value or an earlier value of
    /// the list.
    common: Vec<(f64, String)>,
    /// The bounds of the column's histogram. Between any two neighbouring bounds lie equally many rows.
    bounds: Vec<String>,
    /// The last number that was generated for a unique column; `None` before the first one.
    made: Option<i64>,
}

/// The kind of a column's type. It decides how values are generated if none are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Integer,
    /// Numbers with decimal places.
    Decimal,
    Boolean,
    Text,
    Time,
    Uuid,
    Json,
    Other,
}

/// The two ends of a range of values, as SQL literals.
#[derive(Debug, Clone)]
pub struct Range {
    pub low: String,
    pub high: String,
}

impl Columns {
    /// Reads the columns from a file with the contents of pg_stats.
    pub fn of(table: &NamedTable) -> Result<Self, CaptureError> {
        let mut found = Self::default();
        for row in table.rows() {
            let number = found.columns.len();
            for name in [row.text("table").to_owned(), format!("{}.{}", row.text("schema"), row.text("table"))] {
                found.tables.entry(name).or_default().push(number);
            }
            found.columns.push(Column::of(row)?);
        }
        Ok(found)
    }

    /// Returns the indexes of a table's columns, in the order of the table; `None` if the table is not known.
    pub fn table(&self, name: &str) -> Option<&[usize]> {
        self.tables.get(name).map(Vec::as_slice)
    }

    /// Returns the index of a table's column; `None` if the table or the column is not known.
    pub fn find(&self, table: &str, column: &str) -> Option<usize> {
        self.table(table)?.iter().copied().find(|number| self.columns[*number].name == column)
    }

    /// True if values for the column can be generated: pg_stats has some, or its type is known.
    pub fn has_values(&self, column: usize) -> bool {
        self.columns[column].has_values()
    }

    /// Draws one of the column's values, and returns it as an SQL literal.
    pub fn value(&self, column: usize, random: &mut Random) -> String {
        let column = &self.columns[column];
        column.literal(&column.draw(random))
    }

    /// Draws a range of the column's values that contains about `rows` rows of the table.
    pub fn range(&self, column: usize, rows: f64, random: &mut Random) -> Range {
        let column = &self.columns[column];
        let share = (rows / column.table_rows).clamp(0.0, 1.0);
        let begin = random.unit() * (1.0 - share);
        Range { low: column.literal(&column.at(begin)), high: column.literal(&column.at(begin + share)) }
    }

    /// Draws several values, and returns them as SQL literals with commas between them.
    pub fn list(&self, column: usize, random: &mut Random) -> String {
        (0..LIST).map(|_| self.value(column, random)).collect::<Vec<_>>().join(", ")
    }

    /// Draws several values, and returns them as the SQL literal of an array.
    pub fn array(&self, column: usize, random: &mut Random) -> String {
        let column = &self.columns[column];
        let element = |value: String| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
        let values: Vec<_> = (0..LIST).map(|_| element(column.draw(random))).collect();
        quoted(&format!("{{{}}}", values.join(",")))
    }

    /// Draws a value for an INSERT, and returns it as an SQL literal, or `NULL` as often as the column has NULLs. For a
    /// unique column the value is new, as far as the type allows that.
    pub fn stored(&mut self, column: usize, random: &mut Random) -> String {
        let column = &mut self.columns[column];
        if random.unit() < column.null_share {
            return "NULL".to_owned();
        }
        let value = if column.is_unique { column.make(random) } else { column.draw(random) };
        column.literal(&value)
    }
}

impl Column {
    fn of(row: NamedRow<'_>) -> Result<Self, CaptureError> {
        let shares = elements(row.text("most_common_freqs"));
        let mut sum = 0.0;
        let common = elements(row.text("most_common_vals")).into_iter().zip(shares).map(|(value, share)| {
            sum += share.parse().unwrap_or(0.0);
            (sum, value)
        });
        Ok(Self {
            name: row.text("column").to_owned(),
            kind: TokenKind::of(row.text("type")),
            table_rows: row.number("rows")?.unwrap_or(0.0).max(1.0),
            null_share: row.number("null_frac")?.unwrap_or(0.0),
            is_unique: row.number("n_distinct")? == Some(-1.0),
            common: common.collect(),
            bounds: elements(row.text("histogram_bounds")),
            made: None,
        })
    }

    /// Returns a value as an SQL literal. The literal has no quotes only if the column is numeric and the value
    /// consists of digits. All other literals have quotes, because SQL rejects `text = 5`.
    fn literal(&self, value: &str) -> String {
        let is_number = matches!(self.kind, TokenKind::Integer | TokenKind::Decimal);
        let is_bare = is_number && !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit());
        if is_bare { value.to_owned() } else { quoted(value) }
    }

    fn is_known(&self) -> bool {
        !self.common.is_empty() || !self.bounds.is_empty()
    }

    fn has_values(&self) -> bool {
        self.is_known() || self.kind != TokenKind::Other
    }

    fn draw(&self, random: &mut Random) -> String {
        if !self.is_known() {
            return self.invent(random);
        }
        let share = random.unit() * (1.0 - self.null_share);
        match self.common.iter().find(|(sum, _)| share < *sum) {
            Some((_, value)) => value.clone(),
            None if self.bounds.is_empty() => self.common[self.common.len() - 1].1.clone(),
            None => self.at(random.unit()),
        }
    }

    /// Returns the value below which the given share of the column's rows lies.
    fn at(&self, share: f64) -> String {
        if self.bounds.is_empty() {
            let found = self.common.iter().find(|(sum, _)| share < *sum).or(self.common.last());
            return found.map_or_else(|| format!("{:.0}", 1.0 + share * LARGEST as f64), |(_, value)| value.clone());
        }
        let place = share * (self.bounds.len() - 1) as f64;
        let below = &self.bounds[place as usize];
        let Some(above) = self.bounds.get(place as usize + 1) else { return below.clone() };
        match (self.kind, below.parse::<f64>(), above.parse::<f64>()) {
            (TokenKind::Integer | TokenKind::Decimal, Ok(low), Ok(high)) => {
                let decimals = if self.kind == TokenKind::Integer { 0 } else { decimals(below).max(decimals(above)) };
                let value = low + (high - low) * place.fract();
                // The value is rounded down, because a value above the last bound does not occur in the column.
                let unit = 10_f64.powi(decimals as i32);
                format!("{:.decimals$}", (value * unit).floor() / unit)
            }
            _ => below.clone(),
        }
    }

    /// Draws a value from the type alone, for a column whose values are not in pg_stats.
    fn invent(&self, random: &mut Random) -> String {
        match self.kind {
            TokenKind::Integer | TokenKind::Decimal => random.range(1, LARGEST).to_string(),
            TokenKind::Boolean => if random.unit() < 0.5 { "f" } else { "t" }.to_owned(),
            TokenKind::Time => "now".to_owned(),
            TokenKind::Uuid => uuid(random),
            TokenKind::Json => "{}".to_owned(),
            TokenKind::Text | TokenKind::Other => format!("{:x}", random.range(1, LARGEST)),
        }
    }

    /// Generates a value that the column does not have yet, as far as its type allows that.
    fn make(&mut self, random: &mut Random) -> String {
        match self.kind {
            TokenKind::Integer => {
                let known = self.bounds.iter().chain(self.common.iter().map(|(_, value)| value));
                let largest = || known.filter_map(|value| value.parse().ok()).max().unwrap_or(0);
                let made = self.made.get_or_insert_with(largest).saturating_add(1);
                self.made.insert(made).to_string()
            }
            TokenKind::Uuid => uuid(random),
            TokenKind::Text => format!("{:x}", random.next_u64()),
            _ => self.draw(random),
        }
    }
}

impl TokenKind {
    /// Returns the kind of a type. `name` is the type's name as `format_type` returns it.
    fn of(name: &str) -> Self {
        match name {
            "smallint" | "integer" | "bigint" => Self::Integer,
            "numeric" | "real" | "double precision" => Self::Decimal,
            "boolean" => Self::Boolean,
            "text" | "character varying" | "character" | "name" => Self::Text,
            "uuid" => Self::Uuid,
            "json" | "jsonb" => Self::Json,
            _ if name == "date" || name.starts_with("time") => Self::Time,
            _ => Self::Other,
        }
    }
}

/// Returns the number of decimal places of a number.
fn decimals(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, digits)| digits.len())
}

fn uuid(random: &mut Random) -> String {
    let digits = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Returns a value as an SQL string in quotes.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Returns the elements of an array in PostgreSQL's text form. Nested arrays and NULL are returned as texts.
fn elements(array: &str) -> Vec<String> {
    let Some(inner) = array.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return Vec::new() };
    let (mut found, mut element) = (Vec::new(), String::new());
    let (mut is_quoted, mut depth) = (false, 0);
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => element.extend(rest.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted && depth == 0 => found.push(std::mem::take(&mut element)),
            _ => {
                depth += if is_quoted { 0 } else { i32::from(c == '{') - i32::from(c == '}') };
                element.push(c);
            }
        }
    }
    if !inner.is_empty() {
        found.push(element);
    }
    found
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Makes integer columns from their names, such as `t.id`.
    pub fn columns(names: &[&str]) -> Columns {
        let mut found = Columns::default();
        for (number, name) in names.iter().enumerate() {
            let (table, column_name) = name.split_once('.').unwrap();
            found.tables.entry(table.to_owned()).or_default().push(number);
            found.tables.entry(format!("s.{table}")).or_default().push(number);
            found.columns.push(Column { name: column_name.to_owned(), ..column(TokenKind::Integer, &[], &["1", "9"]) });
        }
        found
    }

    fn column(kind: TokenKind, common: &[(f64, &str)], bounds: &[&str]) -> Column {
        Column {
            name: "a".to_owned(),
            kind,
            table_rows: 1000.0,
            null_share: 0.0,
            is_unique: false,
            common: common.iter().map(|(sum, value)| (*sum, (*value).to_owned())).collect(),
            bounds: bounds.iter().map(|bound| (*bound).to_owned()).collect(),
            made: None,
        }
    }

    #[test]
    fn arrays_are_split_at_their_own_commas() {
        assert_eq!(elements("{1,-2,3.5}"), ["1", "-2", "3.5"]);
        assert_eq!(elements(r#"{"a,b","c\"d","e\\f",g,""}"#), ["a,b", "c\"d", "e\\f", "g", ""]);
        assert_eq!(elements("{}"), Vec::<String>::new());
        assert_eq!(elements(""), Vec::<String>::new());
    }

    #[test]
    fn common_values_have_their_shares_and_others_follow_the_histogram() {
        let column = column(TokenKind::Integer, &[(0.5, "7"), (0.6, "8")], &["100", "200", "1000"]);
        let mut random = Random::seeded(1);
        let drawn: Vec<i64> = (0..10_000).map(|_| column.draw(&mut random).parse().unwrap()).collect();
        let share = |is_its: &dyn Fn(i64) -> bool| drawn.iter().filter(|value| is_its(**value)).count();
        assert!((4800..5200).contains(&share(&|value| value == 7)));
        assert!((850..1150).contains(&share(&|value| value == 8)));
        assert!((1850..2150).contains(&share(&|value| (100..200).contains(&value))));
        assert!((1850..2150).contains(&share(&|value| (200..1000).contains(&value))));
    }

    #[test]
    fn a_range_has_as_many_rows_as_a_call_returned() {
        let bounds: Vec<String> = (0..=100).map(|bound| (bound * 10).to_string()).collect();
        let texts: Vec<&str> = bounds.iter().map(String::as_str).collect();
        let columns = Columns { columns: vec![column(TokenKind::Integer, &[], &texts)], ..Columns::default() };
        let mut random = Random::seeded(2);
        for _ in 0..100 {
            let range = columns.range(0, 50.0, &mut random);
            let width = range.high.parse::<i64>().unwrap() - range.low.parse::<i64>().unwrap();
            assert!((49..=51).contains(&width), "{range:?}");
        }
    }

    #[test]
    fn new_values_are_beyond_the_known_ones() {
        let mut unique = column(TokenKind::Integer, &[], &["1", "500"]);
        let mut random = Random::seeded(3);
        assert_eq!([unique.make(&mut random), unique.make(&mut random)], ["501", "502"]);
        assert_eq!(uuid(&mut random).len(), 36);
    }

    #[test]
    fn values_become_literals_that_cannot_end_early() {
        for (kind, value, literal) in [
            (TokenKind::Integer, "42", "42"),
            (TokenKind::Decimal, "-42", "'-42'"),
            (TokenKind::Text, "42", "'42'"),
            (TokenKind::Other, "42", "'42'"),
            (TokenKind::Text, "it's", "'it''s'"),
            (TokenKind::Integer, "", "''"),
        ] {
            assert_eq!(column(kind, &[], &[]).literal(value), literal, "{kind:?} {value}");
        }
    }

    #[test]
    fn decimals_keep_their_digits() {
        assert_eq!(column(TokenKind::Decimal, &[], &["1.50", "2.50"]).at(0.25), "1.75");
        assert_eq!(column(TokenKind::Time, &[], &["2026-11-01", "2026-11-23"]).at(0.9), "2026-11-01");
    }
}
