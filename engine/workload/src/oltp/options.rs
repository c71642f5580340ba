//! The options that each test declares, as `sysbench TEST help` prints them.

use super::test::TestKind;
use crate::settings::{OptionSpec, OptionValue};

use OptionValue::{Bool, Int, Text};

/// The name of an option without the prefix of sysbench 0.5, its description and its default.
type Declared = (&'static str, &'static str, OptionValue);

/// Returns the name that an option has in tests of this kind. In the test of sysbench 0.5 most names begin with
/// `oltp_`.
pub fn name_in(kind: TestKind, name: &str) -> String {
    match (kind, name) {
        (TestKind::Legacy, "tables") => "oltp_tables_count".to_owned(),
        (TestKind::Legacy, name) if name != "pgsql_variant" => format!("oltp_{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the options that a test of this kind declares. The test of sysbench 0.5 has the options of the other tests
/// under other names (see [`name_in`]), except `mysql_storage_engine`, and two more. The test `bulk_insert` has none.
pub fn declared(kind: TestKind) -> Vec<Declared> {
    let mut options = vec![
        (
            "auto_inc",
            "Use AUTO_INCREMENT column as Primary Key (for MySQL), or its alternatives in other DBMS. When disabled, use \
             client-generated IDs",
            Bool(true),
        ),
        ("create_secondary", "Create a secondary index in addition to the PRIMARY KEY", Bool(true)),
        ("delete_inserts", "Number of DELETE/INSERT combinations per transaction", Int(1)),
        ("distinct_ranges", "Number of SELECT DISTINCT queries per transaction", Int(1)),
        ("index_updates", "Number of UPDATE index queries per transaction", Int(1)),
        ("mysql_storage_engine", "Storage engine, if MySQL is used", Text(Some("innodb".to_owned()))),
        ("non_index_updates", "Number of UPDATE non-index queries per transaction", Int(1)),
        ("order_ranges", "Number of SELECT ORDER BY queries per transaction", Int(1)),
        (
            "pgsql_variant",
            "Use this PostgreSQL variant when running with the PostgreSQL driver. The only currently supported variant is \
             'redshift'. When enabled, create_secondary is automatically disabled, and delete_inserts is set to 0",
            Text(None),
        ),
        ("point_selects", "Number of point SELECT queries per transaction", Int(10)),
        ("range_selects", "Enable/disable all range SELECT queries", Bool(true)),
        ("range_size", "Range size for range SELECT queries", Int(100)),
        ("secondary", "Use a secondary index in place of the PRIMARY KEY", Bool(false)),
        ("simple_ranges", "Number of simple range SELECT queries per transaction", Int(1)),
        ("skip_trx", "Don't start explicit transactions and execute all queries in the AUTOCOMMIT mode", Bool(false)),
        ("sum_ranges", "Number of SELECT SUM() queries per transaction", Int(1)),
        ("table_size", "Number of rows per table", Int(10_000)),
        ("tables", "Number of tables", Int(1)),
    ];
    match kind {
        TestKind::BulkInsert => options.clear(),
        TestKind::Legacy => {
            options.retain(|(name, ..)| *name != "mysql_storage_engine");
            options.push(("read_only", "No UPDATE, DELETE and INSERT queries", Bool(false)));
            options.push(("write_only", "No SELECT queries", Bool(false)));
        }
        TestKind::RandomPoints => {
            let description = "Number of random points in the IN() clause in generated SELECTs";
            options.push(("random_points", description, Int(10)));
        }
        TestKind::RandomRanges => {
            options.push(("delta", "Size of BETWEEN ranges", Int(5)));
            options.push(("number_of_ranges", "Number of random BETWEEN ranges per SELECT", Int(10)));
        }
        TestKind::Delete | TestKind::Insert | TestKind::PointSelect | TestKind::ReadOnly | TestKind::ReadWrite => {}
        TestKind::UpdateIndex | TestKind::UpdateNonIndex | TestKind::WriteOnly => {}
    }
    options
}

/// Returns the options of a test, sorted by name.
pub fn of(kind: TestKind) -> Vec<OptionSpec> {
    let spec = |(name, description, default): Declared| OptionSpec {
        name: name_in(kind, name),
        description: description.to_owned(),
        default,
    };
    let mut options: Vec<_> = declared(kind).into_iter().map(spec).collect();
    options.sort_by(|a, b| a.name.cmp(&b.name));
    options
}
