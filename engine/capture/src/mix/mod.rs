//! Makes a synthetic mix: sessions whose statements are generated from what a server has counted (pg_stat_statements)
//! and from what it knows about its columns (pg_stats).
//!
//! - `columns`: draws values from the statistics of columns
//! - `places`: finds the column to which each `$n` of a statement belongs
//! - `table`: reads a CSV file with a header
//!
//! A server counts only the calls. So the order of the statements, their times and their sessions are random.

mod columns;
mod places;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use ground::random::Random;

use crate::error::CaptureError;
use crate::format::{Parameterization, Protocol, RecordedStatement, SessionId, Source, TemplateShape, Writer};
use crate::left_out::{LeftOuts, Reason};
use crate::sql::tokens::{TokenKind, Tokens};
use crate::time::{Micros, now};
use columns::{Columns, Range};
use places::{Meaning, Normalized};
use table::NamedTable;

/// The psql commands that write the two files of a mix, in the order in which pgtrial reads the files.
pub const QUERIES: &str = "\
\\copy (SELECT query, calls, rows, mean_exec_time FROM pg_stat_statements WHERE toplevel AND query NOT ILIKE '%pg_stat_statements%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())) TO 'statements.csv' CSV HEADER
\\copy (SELECT n.nspname AS schema, c.relname AS table, c.reltuples AS rows, a.attname AS column, format_type(a.atttypid, NULL) AS type, s.null_frac, s.n_distinct, s.most_common_vals, s.most_common_freqs, s.histogram_bounds FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname WHERE c.relkind IN ('r', 'p', 'f', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY c.oid, a.attnum) TO 'columns.csv' CSV HEADER
";

/// The greatest number of statements in a mix, a capture that is made from statistics. While the order of the
/// statements is drawn, each of them needs four bytes of memory.
const MOST_STATEMENTS: f64 = 1e9;

/// The files from which a mix (a capture that is made from a server's statistics) is generated, and its length.
#[derive(Debug, Clone, Default)]
pub struct Mix {
    /// The path of the CSV file with the contents of pg_stat_statements. The commands in [`QUERIES`] write it.
    pub statements: String,
    /// The path of the CSV file with the contents of pg_stats. The commands in [`QUERIES`] write it.
    pub columns: String,
    /// The time, in microseconds, during which the server counted the calls in pg_stat_statements.
    pub counted: Micros,
    /// The length of the mix; if it is `None`, the mix is as long as the counted time.
    pub length: Option<Micros>,
    pub sessions: u32,
    pub seed: u64,
}

/// A statement of pg_stat_statements for which all parameters can be generated.
struct Made {
    normalized: Normalized,
    template: u32,
    calls: f64,
    /// The mean number of rows that a call returned or changed.
    rows: f64,
    duration: Micros,
}

/// Writes the sessions of a mix, which are generated from the server's statistics. Returns descriptions of the two
/// files that were read.
pub fn write(mix: &Mix, writer: &mut Writer, left_out: &mut LeftOuts) -> Result<Vec<Source>, CaptureError> {
    let counted = NamedTable::read(&mix.statements, &["query", "calls", "rows"])?;
    let known = NamedTable::read(&mix.columns, &["table", "column", "type"])?;
    let mut columns = Columns::of(&known)?;
    let length = mix.length.unwrap_or(mix.counted);
    let share = length as f64 / mix.counted as f64;
    let mut made = Vec::new();
    for row in counted.rows() {
        let calls = row.number("calls")?.unwrap_or(0.0);
        match normalized(row.text("query"), &columns) {
            Err(reason) => left_out.add_many(reason, calls as u64, &mix.statements, row.line),
            Ok(normalized) => {
                let parameters = Parameterization::Literals { places: &normalized.places, first: 1 };
                let shape = TemplateShape { protocol: Protocol::Simple, text: &normalized.text, parameters };
                let template = writer.template(&shape)?;
                let rows = row.number("rows")?.unwrap_or(0.0) / calls.max(1.0);
                let mean = row.number("mean_exec_time")?.unwrap_or(0.0);
                let duration = (mean * 1000.0) as Micros;
                made.push(Made { normalized, template, calls: calls * share, rows, duration });
            }
        }
    }
    let mut random = Random::seeded(mix.seed);
    let order = order(&made, &mut random)?;
    let begin = now();
    let mut sessions: Vec<(SessionId, Micros)> = Vec::new();
    for _ in 0..mix.sessions {
        sessions.push((writer.begin_session(begin)?, begin));
    }
    let mut left = 1.0;
    for (number, index) in order.iter().enumerate() {
        // The times of the remaining statements are uniformly distributed over the remaining time `left`. The next time
        // is drawn as the smallest of them.
        left *= (1.0 - random.unit()).powf(1.0 / (order.len() - number) as f64);
        let planned = begin + ((1.0 - left) * length as f64) as Micros;
        let statement = &made[*index as usize];
        let (id, free) = &mut sessions[random.range(0, i64::from(mix.sessions) - 1) as usize];
        let start = planned.max(*free);
        *free = start + statement.duration;
        let values = draw(statement, &mut columns, &mut random);
        let sent = RecordedStatement {
            start,
            duration: Some(statement.duration),
            template: statement.template,
            ..Default::default()
        };
        writer.statement(*id, &sent, &values)?;
    }
    Ok(vec![counted.source("pg_stat_statements"), known.source("pg_stats")])
}

/// Finds out how the parameters of a statement can be generated, or returns the reason for which that is not possible.
fn normalized(query: &str, columns: &Columns) -> Result<Normalized, Reason> {
    if query == "<insufficient privilege>" {
        return Err(Reason::HiddenText);
    }
    let mut words = Tokens::of(query).filter(|token| !token.is_blank() && !token.is_symbol("("));
    let is_data = words.next().is_some_and(|token| {
        token.kind == TokenKind::Word
            && ["select", "insert", "update", "delete", "merge", "with", "values", "table"]
                .iter()
                .any(|word| token.is_word(word))
    });
    if !is_data {
        return Err(Reason::OtherCommand);
    }
    places::normalize(query, columns).ok_or(Reason::ValuesUnknown)
}

/// Returns indexes into `made` in random order. Each index occurs as often as its statement is called. A fraction of a
/// call is rounded up with the probability of that fraction.
fn order(made: &[Made], random: &mut Random) -> Result<Vec<u32>, CaptureError> {
    let total: f64 = made.iter().map(|statement| statement.calls).sum();
    if total > MOST_STATEMENTS {
        return Err(CaptureError::LongMix(total));
    }
    let mut order = Vec::new();
    for (index, statement) in (0..).zip(made) {
        let calls = (statement.calls + random.unit()).floor() as usize;
        order.extend(std::iter::repeat_n(index, calls));
    }
    for last in (1..order.len()).rev() {
        order.swap(last, random.range(0, last as i64) as usize);
    }
    Ok(order)
}

/// Draws the literals for one call of a statement, in the order of its placeholders.
fn draw(statement: &Made, columns: &mut Columns, random: &mut Random) -> Vec<Option<String>> {
    let mut ranges: HashMap<usize, Range> = HashMap::new();
    let mut drawn: HashMap<u32, String> = HashMap::new();
    let mut values = Vec::new();
    for (number, meaning) in &statement.normalized.meanings {
        // If a statement contains the same `$n` twice, both get the same value.
        let value = drawn.entry(*number).or_insert_with(|| match meaning {
            Meaning::Value(column) => columns.value(*column, random),
            Meaning::Low(column) | Meaning::High(column) => {
                let range = ranges.entry(*column).or_insert_with(|| columns.range(*column, statement.rows, random));
                if matches!(meaning, Meaning::Low(_)) { range.low.clone() } else { range.high.clone() }
            }
            Meaning::List(column) => columns.list(*column, random),
            Meaning::Array(column) => columns.array(*column, random),
            Meaning::Stored(column) => columns.stored(*column, random),
            Meaning::Limit => format!("{:.0}", statement.rows.ceil().max(1.0)),
            Meaning::Offset => "0".to_owned(),
            Meaning::Step => "1".to_owned(),
        });
        values.push(Some(value.clone()));
    }
    values
}
