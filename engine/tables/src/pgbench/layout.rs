//! Finds the tables that hold pgbench's accounts (pgbench_accounts or its partitions), and the rows that belong into
//! each of them. The definition of the tables decides whether the engine can fill them separately.

use std::ops::Range;
use std::slice;

use wire::session::{Row, Session};

use super::options::InitOptions;
use super::rows::{HashPartition, RowSet};
use crate::error::LoadError;
use crate::session::query_if_allowed;

/// The largest number of hash partitions that are filled one by one. More partitions are filled through their parent,
/// because the engine hashes all rows once for each partition.
const MAX_HASH_PARTITIONS: usize = 64;

/// A table that holds accounts (pgbench_accounts or a partition of it), and the rows that belong into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountsTable {
    /// The table's name as an SQL statement needs it: qualified and quoted where necessary.
    pub name: String,
    pub rows: RowSet,
    /// True if account numbers have 64 bits.
    pub is_bigint: bool,
}

/// The expressions for the bounds of a partition and for the key of a partitioned table.
const PARTITION: &str = "pg_catalog.pg_get_expr(c.relpartbound, c.oid), pg_catalog.pg_get_partkeydef(c.oid)";

/// The query that returns a row for pgbench_accounts, then one for each table that inherits from it, in the order of
/// their creation.
const SURVEY: &str = "\
select c.oid::pg_catalog.regclass, c.relkind, {partition}, \
  (select pg_catalog.string_agg(a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod), ',' \
      order by a.attname) \
    from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), \
  pg_catalog.pg_has_role(c.relowner, 'USAGE') and not c.relhastriggers and not c.relhasrules \
    and not c.relrowsecurity and c.relchecks = 0 \
    and not exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.atthasdef) \
    and not exists (select from pg_catalog.pg_event_trigger) \
from pg_catalog.pg_class c, (select pg_catalog.to_regclass('pgbench_accounts')::pg_catalog.oid as oid) root \
where c.oid = root.oid \
  or c.oid in (select i.inhrelid from pg_catalog.pg_inherits i where i.inhparent = root.oid) \
order by c.oid <> root.oid, c.oid";

/// Returns the tables of accounts that this engine fills, with the rows of each. Returns `None` if the tables have to
/// be filled as pgbench does it, or if the catalogs cannot be read.
///
/// With the result, each table is filled by its own COPY. Unless several engines share the load, COPY sends only two
/// columns, and the other two columns get their values from temporary defaults. This requires that the user owns the
/// tables, since only an owner may alter them, and that they are exactly as pgbench makes them: without triggers (and
/// so without foreign keys), and without anything else that a change of defaults would affect.
pub fn find(session: &mut Session, options: &InitOptions) -> Result<Option<Vec<AccountsTable>>, LoadError> {
    let partition = if session.server.has_partitions() { PARTITION } else { "null, null" };
    let survey = query_if_allowed(session, &SURVEY.replace("{partition}", partition))?.unwrap_or_default();
    let tables = divide(&survey, options.all_accounts());
    if !options.shard.is_part() {
        return Ok(tables);
    }
    Ok(tables.map(|tables| own(&tables, &options.accounts(), options.connections())))
}

fn divide(survey: &[Row], rows: u64) -> Option<Vec<AccountsTable>> {
    let (root, partitions) = survey.split_first()?;
    if survey.iter().any(|row| field(row, 5) != Some("t")) {
        return None;
    }
    if partitions.is_empty() {
        return table(root, RowSet { range: 0..rows, hash: None }).map(|table| vec![table]);
    }
    let row_sets = match field(root, 3)? {
        "RANGE (aid)" => range_partitions(partitions, rows)?,
        "HASH (aid)" => hash_partitions(partitions, rows)?,
        _ => return None,
    };
    partitions.iter().zip(row_sets).map(|(row, rows)| table(row, rows)).collect()
}

fn table(row: &Row, rows: RowSet) -> Option<AccountsTable> {
    let is_bigint = match field(row, 4)? {
        "abalance integer,aid integer,bid integer,filler character(84)" => false,
        "abalance integer,aid bigint,bid integer,filler character(84)" => true,
        _ => return None,
    };
    (field(row, 1) == Some("r")).then_some(AccountsTable { name: field(row, 0)?.to_owned(), rows, is_bigint })
}

/// Returns the rows of each range partition, or `None` if the bounds of a partition cannot be read or some row has no
/// partition.
fn range_partitions(partitions: &[Row], rows: u64) -> Option<Vec<RowSet>> {
    let ranges: Vec<_> = partitions.iter().map(|row| range(field(row, 2)?, rows)).collect::<Option<_>>()?;
    let placed: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    (placed == rows).then(|| ranges.into_iter().map(|range| RowSet { range, hash: None }).collect())
}

/// Reads the bounds of a partition, such as `FOR VALUES FROM (MINVALUE) TO (50001)`.
fn range(bounds: &str, rows: u64) -> Option<Range<u64>> {
    let (from, to) = bounds.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?.split_once(") TO (")?;
    let row = |bound: &str| match bound {
        "MINVALUE" => Some(0),
        "MAXVALUE" => Some(rows),
        number => {
            let account: i64 = number.trim_matches('\'').parse().ok()?;
            Some(u64::try_from(account - 1).unwrap_or(0).min(rows))
        }
    };
    let (from, to) = (row(from)?, row(to)?);
    Some(from..to.max(from))
}

/// Returns the rows of each hash partition. Returns `None` if the partitions differ in their modulus, if a remainder is
/// missing, or if there are more than [`MAX_HASH_PARTITIONS`].
fn hash_partitions(partitions: &[Row], rows: u64) -> Option<Vec<RowSet>> {
    let modulus = partitions.len() as u64;
    let prefix = format!("FOR VALUES WITH (modulus {modulus}, remainder ");
    let mut seen = vec![false; partitions.len()];
    let mut row_sets = Vec::new();
    for row in partitions {
        let remainder: usize = field(row, 2)?.strip_prefix(&prefix)?.strip_suffix(')')?.parse().ok()?;
        *seen.get_mut(remainder)? = true;
        row_sets.push(RowSet { range: 0..rows, hash: Some(HashPartition { modulus, remainder: remainder as u64 }) });
    }
    (seen.iter().all(|seen| *seen) && partitions.len() <= MAX_HASH_PARTITIONS).then_some(row_sets)
}

fn field(row: &Row, index: usize) -> Option<&str> {
    row.get(index)?.as_deref()
}

/// Returns the tables, with their rows, that this engine fills if several engines share the tables. The rows in the
/// range `own` are divided among `wanted` connections. Shared tables are neither altered nor truncated while they are
/// filled, so several connections can fill an ordinary table.
fn own(tables: &[AccountsTable], own: &Range<u64>, wanted: usize) -> Vec<AccountsTable> {
    let tables = cut(tables, slice::from_ref(own));
    if tables.len() >= wanted {
        return tables;
    }
    let (wanted, length) = (wanted as u64, own.end - own.start);
    let bound = |number: u64| own.start + length * number / wanted;
    cut(&tables, &(0..wanted).map(|number| bound(number)..bound(number + 1)).collect::<Vec<_>>())
}

/// Returns, for each of the ranges, the tables restricted to the rows in that range. Tables without a row in the range
/// are left out.
fn cut(tables: &[AccountsTable], ranges: &[Range<u64>]) -> Vec<AccountsTable> {
    let within =
        |table: &AccountsTable, range| table.rows.within(range).map(|rows| AccountsTable { rows, ..table.clone() });
    ranges.iter().flat_map(|range| tables.iter().filter_map(move |table| within(table, range))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ground::shard::Shard;

    const COLUMNS: &str = "abalance integer,aid integer,bid integer,filler character(84)";

    fn row(table: &str, kind: &str, bounds: &str, key: &str) -> Row {
        let texts = [table, kind, bounds, key, COLUMNS, "t"];
        texts.map(|text| (!text.is_empty()).then(|| text.to_owned())).to_vec()
    }

    fn rows(range: Range<u64>) -> RowSet {
        RowSet { range, hash: None }
    }

    fn ranged(bounds: &[&str]) -> Option<Vec<RowSet>> {
        let mut survey = vec![row("a", "p", "", "RANGE (aid)")];
        survey.extend(bounds.iter().map(|bounds| row("a_1", "r", bounds, "")));
        divide(&survey, 100).map(|tables| tables.into_iter().map(|table| table.rows).collect())
    }

    #[test]
    fn an_ordinary_table_holds_all() {
        let tables = divide(&[row("a", "r", "", "")], 7);
        assert_eq!(tables, Some(vec![AccountsTable { name: "a".to_owned(), rows: rows(0..7), is_bigint: false }]));
    }

    #[test]
    fn what_is_not_as_pgbench_makes_it_is_left_to_pgbenchs_way() {
        let mut strange = row("a", "r", "", "");
        strange[5] = Some("f".to_owned());
        assert_eq!(divide(&[strange], 7), None);
        let mut strange = row("a", "r", "", "");
        strange[4] = Some("aid numeric".to_owned());
        assert_eq!(divide(&[strange], 7), None);
        assert_eq!(divide(&[row("a", "v", "", "")], 7), None);
        assert_eq!(divide(&[], 7), None);
        assert_eq!(divide(&[row("a", "p", "", "LIST (aid)"), row("b", "r", "DEFAULT", "")], 7), None);
    }

    #[test]
    fn ranges_must_have_a_place_for_every_row() {
        let halves = ["FOR VALUES FROM (MINVALUE) TO (51)", "FOR VALUES FROM ('51') TO (MAXVALUE)"];
        assert_eq!(ranged(&halves), Some(vec![rows(0..50), rows(50..100)]));
        assert_eq!(ranged(&halves[..1]), None);
        let beyond = ["FOR VALUES FROM (-5) TO (200)", "FOR VALUES FROM (200) TO (300)"];
        assert_eq!(ranged(&beyond), Some(vec![rows(0..100), rows(100..100)]));
        assert_eq!(ranged(&["DEFAULT"]), None);
    }

    #[test]
    fn hash_partitions_must_be_complete() {
        let survey = |remainders: [u32; 2]| {
            let [first, second] =
                remainders.map(|r| row("p", "r", &format!("FOR VALUES WITH (modulus 2, remainder {r})"), ""));
            divide(&[row("a", "p", "", "HASH (aid)"), first, second], 9)
        };
        assert_eq!(
            survey([1, 0]).unwrap()[0].rows,
            RowSet { range: 0..9, hash: Some(HashPartition { modulus: 2, remainder: 1 }) }
        );
        assert_eq!(survey([1, 1]), None);
    }

    /// Returns the bounds of the ranges that engine number `index` of three fills, for range partitions with the given
    /// bounds.
    fn filled(bounds: &[(u64, u64)], index: usize, wanted: usize) -> Vec<(u64, u64)> {
        let table = |(start, end): &(u64, u64)| AccountsTable {
            name: "pgbench_accounts".to_owned(),
            rows: rows(*start..*end),
            is_bigint: false,
        };
        let options = InitOptions { shard: Shard { index, of: 3 }, ..InitOptions::default() };
        let tables: Vec<_> = bounds.iter().map(table).collect();
        let own = own(&tables, &options.accounts(), wanted).into_iter();
        own.map(|AccountsTable { rows: RowSet { range, hash }, .. }| {
            assert_eq!(hash, None);
            (range.start, range.end)
        })
        .collect()
    }

    #[test]
    fn an_ordinary_table_is_filled_over_as_many_connections_as_are_wanted() {
        let whole = [(0, 100_000)];
        assert_eq!(filled(&whole, 0, 1), [(0, 33_334)]);
        assert_eq!(filled(&whole, 1, 2), [(33_334, 50_000), (50_000, 66_667)]);
        assert_eq!(filled(&whole, 2, 3), [(66_667, 77_778), (77_778, 88_889), (88_889, 100_000)]);
    }

    #[test]
    fn partitions_without_a_row_of_ours_are_left_to_others() {
        let halves = [(0, 50_000), (50_000, 100_000)];
        assert_eq!(filled(&halves, 0, 1), [(0, 33_334)]);
        assert_eq!(filled(&halves, 1, 2), [(33_334, 50_000), (50_000, 66_667)]);
    }
}
