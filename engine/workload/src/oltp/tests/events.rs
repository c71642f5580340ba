//! Checks the statements of events.

use proptest::prelude::*;

use super::{Query, client, event, number, queries, shapes, switch, text_of};
use crate::settings::OptionValue;
use wire::session_mark::SessionMark;

/// Compares the statements and their order with a server's log of the statements that sysbench 1.0.20 sent.
#[test]
fn an_event_of_reads_and_writes_is_sysbenchs() {
    let event = event("oltp_read_write", &[("tables", number(3))]);
    let mut client = client(&event, 0);
    let queries = queries(&mut client);
    let parsed: Vec<_> = queries.iter().map(|query| query.parsed.replace(['2', '3'], "1").replace("$1", "?")).collect();
    let mut expected = vec!["BEGIN"];
    expected.extend(["SELECT c FROM sbtest1 WHERE id=?"; 10]);
    expected.extend([
        "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?",
        "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
        "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
        "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
        "UPDATE sbtest1 SET k=k+1 WHERE id=?",
        "UPDATE sbtest1 SET c=? WHERE id=?",
        "DELETE FROM sbtest1 WHERE id=?",
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, $4)",
        "COMMIT",
    ]);
    assert_eq!(parsed, expected);
    assert!(queries.iter().enumerate().all(|(at, query)| query.last == (at + 1 == queries.len())));
    let parsed: Vec<_> = event.statements.iter().map(text_of).collect();
    assert_eq!(parsed.len(), 2 + 9 * 3);
    assert_eq!(
        parsed[..5],
        [
            "BEGIN",
            "COMMIT",
            "SELECT c FROM sbtest1 WHERE id=$1",
            "SELECT c FROM sbtest2 WHERE id=$1",
            "SELECT c FROM sbtest3 WHERE id=$1"
        ]
    );
    assert_eq!(parsed[20..21], ["UPDATE sbtest1 SET c=$1 WHERE id=$2"]);
    assert_eq!(parsed[28], "INSERT INTO sbtest3 (id, k, c, pad) VALUES ($1, $2, $3, $4)");
    // The types BIGINT and VARCHAR, as sysbench declares them.
    let types = [0, 4, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 4, 19, 0, 0, 4, 19];
    assert!(event.statements[28].parse_message(SessionMark::NONE).ends_with(&types));
}

#[test]
fn without_prepared_statements_strings_are_quoted() {
    let event = event("oltp_write_only", &[("db_ps_mode", OptionValue::Text(Some("disable".to_owned())))]);
    let queries = queries(&mut client(&event, 0));
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
    );
    let texts: Vec<_> = queries[4].sent.split('\'').collect();
    assert_eq!((texts[1].len(), texts[3].len()), (119, 59));
    let id = |text: &str| text.split(['=', '(', ',']).rev().find_map(|part| part.trim().parse::<i64>().ok());
    let inserted = queries[4].sent.split("VALUES (").nth(1).unwrap().split(',').next().unwrap().parse().ok();
    assert_eq!(id(&queries[3].sent), inserted);
}

#[test]
fn the_smaller_tests_send_what_they_are_named_after() {
    let statement = |name: &str, options: &[(&str, OptionValue)]| {
        let queries = queries(&mut client(&event(name, options), 0));
        assert!(queries.last().unwrap().last, "{name}");
        shapes(&queries)
    };
    assert_eq!(statement("oltp_point_select", &[("point_selects", number(5))]), ["SELECT c FROM sbtest1 WHERE id=N"]);
    assert_eq!(
        statement("oltp_update_index", &[("index_updates", number(2))]),
        ["UPDATE sbtest1 SET k=k+1 WHERE id=N"; 2]
    );
    assert_eq!(statement("oltp_delete", &[]), ["DELETE FROM sbtest1 WHERE id=N"]);
    assert_eq!(statement("oltp_insert", &[]), ["INSERT INTO sbtest1 (k, c, pad) VALUES (N, T, T)"]);
    assert_eq!(
        statement("oltp_read_only", &[("range_selects", switch(false)), ("skip_trx", switch(true))]),
        ["SELECT c FROM sbtest1 WHERE id=N"; 10]
    );
    assert_eq!(
        statement("select_random_ranges", &[("number_of_ranges", number(2))]),
        ["        SELECT count(k)\n          FROM sbtest1\n          WHERE k BETWEEN N AND N OR k BETWEEN N AND N"]
    );
    assert_eq!(
        statement("select_random_points", &[("random_points", number(3))]),
        ["        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN (N, N, N)\n        "]
    );
}

#[test]
fn ids_that_clients_draw_are_new_ones() {
    let event = event("oltp_insert", &[("auto_inc", switch(false))]);
    let mut ids: Vec<i32> = Vec::new();
    for number in 0..4 {
        let mut client = client(&event, number);
        for _ in 0..500 {
            let text = queries(&mut client).remove(0).sent;
            assert!(text.starts_with("INSERT INTO sbtest1 (id, k, c, pad) VALUES ("), "{text}");
            ids.push(text.split("VALUES (").nth(1).unwrap().split(',').next().unwrap().parse().unwrap());
        }
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2000);
}

#[test]
fn each_client_of_random_points_has_its_own_part_of_the_table() {
    let event = event(
        "select_random_points",
        &[
            ("threads", number(4)),
            ("table_size", number(1000)),
            ("random_points", number(50)),
            ("rand_type", OptionValue::Text(Some("uniform".to_owned()))),
        ],
    );
    for number in 0..4i64 {
        let mut client = client(&event, number as usize);
        let text = queries(&mut client).remove(0).sent;
        let points: Vec<i64> =
            text.split(['(', ')']).nth(1).unwrap().split(", ").map(|point| point.parse().unwrap()).collect();
        assert_eq!(points.len(), 50);
        assert!(points.iter().all(|point| (number * 250..=number * 250 + 250).contains(point)), "{points:?}");
    }
}

proptest! {
    /// Checks, for any options, that an event has as many statements as the options say, that the last one is marked as
    /// the last, and that ids are within the table.
    #[test]
    fn events_are_as_long_as_the_options_say(
        counts in prop::collection::vec(-1i64..4, 8),
        tables in 1i64..5,
        size in 1i64..200,
        skip_trx: bool,
        ranges: bool,
    ) {
        let names = ["point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
            "index_updates", "non_index_updates", "delete_inserts"];
        let mut options: Vec<_> = names.iter().zip(&counts).map(|(name, count)| (*name, number(*count))).collect();
        options.extend([("tables", number(tables)), ("table_size", number(size))]);
        options.extend([("skip_trx", switch(skip_trx)), ("range_selects", switch(ranges))]);
        let mut client = client(&event("oltp_read_write", &options), 0);
        for _ in 0..3 {
            let queries = queries(&mut client);
            let times = |at: usize| counts[at].max(0) as usize;
            let expected = times(0) + if ranges { (1..5).map(times).sum() } else { 0 }
                + times(5) + times(6) + 2 * times(7) + if skip_trx { 0 } else { 2 };
            prop_assert_eq!(queries.len(), expected);
            prop_assert!(queries.iter().enumerate().all(|(at, query)| query.last == (at + 1 == expected)));
            for Query { sent: text, .. } in &queries {
                if let Some(id) = text.split("id=").nth(1) {
                    prop_assert!((1..=size).contains(&id.parse::<i64>().unwrap()), "{}", text);
                }
                if let Some(table) = text.split("sbtest").nth(1) {
                    let table: i64 = table.split(' ').next().unwrap().parse().unwrap();
                    prop_assert!((1..=tables).contains(&table));
                }
            }
        }
    }
}
