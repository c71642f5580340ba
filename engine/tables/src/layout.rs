//! How pgbench_accounts is made, as far as that decides how to fill it.

use wire::session::{Row, Session};

use super::Failed;
use super::rows::Share;

/// More hash partitions than this are filled through their parent: for each, the numbers of all rows are gone through.
const MOST_HASH_PARTITIONS: usize = 64;

/// One ordinary table that holds accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name as it stands in a statement.
    pub table: String,
    pub share: Share,
    /// Account numbers are of 64 bits.
    pub wide: bool,
}

/// A row for pgbench_accounts and one for each table that inherits from it, in the order in which they were made.
const SURVEY: &str = "\
select c.oid::pg_catalog.regclass, c.relkind, pg_catalog.pg_get_expr(c.relpartbound, c.oid), \
  pg_catalog.pg_get_partkeydef(c.oid), \
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

/// The tables that hold the accounts, if each can be filled by itself with two columns only, the others set as its
/// defaults for the time of loading: tables of ours (this needs their owner), exactly as pgbench makes them, without
/// triggers (so without foreign keys) or anything else that would notice. `None`: they are filled as pgbench does.
pub fn parts(session: &mut Session, rows: u64) -> Result<Option<Vec<Part>>, Failed> {
    let survey = session.query(SURVEY).map_err(|error| Failed::Query { sql: SURVEY.to_owned(), error })?;
    Ok(divide(&survey, rows))
}

fn divide(survey: &[Row], rows: u64) -> Option<Vec<Part>> {
    let (root, partitions) = survey.split_first()?;
    if survey.iter().any(|row| field(row, 5) != Some("t")) {
        return None;
    }
    if partitions.is_empty() {
        return part(root, Share::Range(0..rows)).map(|part| vec![part]);
    }
    let shares = match field(root, 3)? {
        "RANGE (aid)" => ranges(partitions, rows)?,
        "HASH (aid)" => hashes(partitions, rows)?,
        _ => return None,
    };
    partitions.iter().zip(shares).map(|(row, share)| part(row, share)).collect()
}

fn part(row: &Row, share: Share) -> Option<Part> {
    let wide = match field(row, 4)? {
        "abalance integer,aid integer,bid integer,filler character(84)" => false,
        "abalance integer,aid bigint,bid integer,filler character(84)" => true,
        _ => return None,
    };
    (field(row, 1) == Some("r")).then(|| Some(Part { table: field(row, 0)?.to_owned(), share, wide }))?
}

/// The shares of range partitions, which have to have a place for every row.
fn ranges(partitions: &[Row], rows: u64) -> Option<Vec<Share>> {
    let shares: Vec<_> = partitions.iter().map(|row| range(field(row, 2)?, rows)).collect::<Option<_>>()?;
    let placed: u64 = shares.iter().map(|range| range.end - range.start).sum();
    (placed == rows).then(|| shares.into_iter().map(Share::Range).collect())
}

/// From the partition's bounds, e.g. `FOR VALUES FROM (MINVALUE) TO (50001)`.
fn range(bounds: &str, rows: u64) -> Option<std::ops::Range<u64>> {
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

/// The shares of hash partitions of one modulus, all remainders present.
fn hashes(partitions: &[Row], rows: u64) -> Option<Vec<Share>> {
    let modulus = partitions.len() as u64;
    let mut seen = vec![false; partitions.len()];
    let mut shares = Vec::new();
    for row in partitions {
        let prefix = format!("FOR VALUES WITH (modulus {modulus}, remainder ");
        let remainder: usize = field(row, 2)?.strip_prefix(&prefix)?.strip_suffix(')')?.parse().ok()?;
        *seen.get_mut(remainder)? = true;
        shares.push(Share::Hash { rows: 0..rows, modulus, remainder: remainder as u64 });
    }
    (seen.iter().all(|seen| *seen) && partitions.len() <= MOST_HASH_PARTITIONS).then_some(shares)
}

fn field(row: &Row, index: usize) -> Option<&str> {
    row.get(index)?.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str = "abalance integer,aid integer,bid integer,filler character(84)";

    fn row(table: &str, kind: &str, bounds: &str, key: &str) -> Row {
        let texts = [table, kind, bounds, key, COLUMNS, "t"];
        texts.map(|text| (!text.is_empty()).then(|| text.to_owned())).to_vec()
    }

    fn ranged(bounds: &[&str]) -> Option<Vec<Share>> {
        let mut survey = vec![row("a", "p", "", "RANGE (aid)")];
        survey.extend(bounds.iter().map(|bounds| row("a_1", "r", bounds, "")));
        divide(&survey, 100).map(|parts| parts.into_iter().map(|part| part.share).collect())
    }

    #[test]
    fn an_ordinary_table_holds_all() {
        let parts = divide(&[row("a", "r", "", "")], 7);
        assert_eq!(parts, Some(vec![Part { table: "a".to_owned(), share: Share::Range(0..7), wide: false }]));
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
        assert_eq!(ranged(&halves), Some(vec![Share::Range(0..50), Share::Range(50..100)]));
        assert_eq!(ranged(&halves[..1]), None);
        let beyond = ["FOR VALUES FROM (-5) TO (200)", "FOR VALUES FROM (200) TO (300)"];
        assert_eq!(ranged(&beyond), Some(vec![Share::Range(0..100), Share::Range(100..100)]));
        assert_eq!(ranged(&["DEFAULT"]), None);
    }

    #[test]
    fn hash_partitions_must_be_complete() {
        let survey = |remainders: [u32; 2]| {
            let [first, second] =
                remainders.map(|r| row("p", "r", &format!("FOR VALUES WITH (modulus 2, remainder {r})"), ""));
            divide(&[row("a", "p", "", "HASH (aid)"), first, second], 9)
        };
        assert_eq!(survey([1, 0]).unwrap()[0].share, Share::Hash { rows: 0..9, modulus: 2, remainder: 1 });
        assert_eq!(survey([1, 1]), None);
    }
}
