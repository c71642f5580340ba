//! Checks the test of sysbench 0.5.

use super::{client, event, number, queries, settings, shapes, switch};
use crate::oltp::find;
use crate::settings::OptionValue;
use ground::shard::Shard;

#[test]
fn the_published_command_of_0_5_only_writes() {
    let none = ["point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"];
    let mut options: Vec<_> = none.map(|name| (format!("oltp_{name}"), number(0))).to_vec();
    options.push(("oltp_tables_count".to_owned(), number(250)));
    let options: Vec<_> = options.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let event = event("oltp", &options);
    let queries = queries(&mut client(&event, 0));
    let table = queries[1].sent.split(' ').nth(1).unwrap().to_owned();
    let here = |shape: &str| shape.replace("sbtest1", &table);
    assert_eq!(
        shapes(&queries),
        [
            "BEGIN",
            "UPDATE sbtest1 SET k=k+1 WHERE id=N",
            "UPDATE sbtest1 SET c=T WHERE id=N",
            "DELETE FROM sbtest1 WHERE id=N",
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES (N, N, T, T)",
            "COMMIT"
        ]
        .map(here)
    );
}

#[test]
fn the_test_of_0_5_has_its_own_options() {
    let shapes_with = |options: &[(&str, OptionValue)]| shapes(&queries(&mut client(&event("oltp", options), 0)));
    let read_only = shapes_with(&[("oltp_read_only", switch(true)), ("oltp_skip_trx", switch(true))]);
    assert_eq!(read_only.len(), 14);
    assert_eq!(read_only[11], "SELECT SUM(K) FROM sbtest1 WHERE id BETWEEN N AND N");
    assert_eq!(shapes_with(&[("oltp_write_only", switch(true))]).len(), 6);
    assert_eq!(shapes_with(&[("pgsql_variant", OptionValue::Text(Some("redshift".to_owned())))]).len(), 18);
    let both = settings(&[("oltp_read_only", switch(true)), ("oltp_write_only", switch(true))]);
    let refused = find("oltp").unwrap().workload(&both, Shard::WHOLE).err().unwrap();
    assert_eq!(refused.lines, ["--oltp-read-only and --oltp-write-only are mutually exclusive"]);
}
