//! Checks the order of the statements of each transaction, and their values.

use super::*;

const LINE: [&str; 3] = ["SELECT i_price,", "UPDATE stock", "INSERT INTO"];

#[test]
fn a_new_order_takes_stock_for_each_line() {
    let mut client = client(0);
    let mut choose = Random::seeded(1);
    while client.begin(&mut choose) != TransactionKind::NewOrder as usize {}
    let texts = statements_of(&mut client);
    let lines = (texts.len() - 7) / 3;
    assert!((5..=15).contains(&lines));
    let mut expected =
        vec!["BEGIN", "SELECT w_tax", "UPDATE district", "SELECT c_discount,", "INSERT INTO", "INSERT INTO"];
    (0..lines).for_each(|_| expected.extend(LINE));
    expected.push("COMMIT");
    assert_eq!(outline(&texts), expected);
    assert!(texts[4].contains("VALUES (3001, ") && texts[4].contains(&format!("NULL, {lines}, ")));
    assert!(texts[8].starts_with("INSERT INTO order_line") && texts[8].contains("'abcdefghijklmnopqrstuvwx'"));
    let quantity: i64 = texts[7].split("s_ytd + ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let cents = 1234 * quantity;
    assert!(texts[8].contains(&format!(", {quantity}, {}.{:02}, ", cents / 100, cents % 100)), "{}", texts[8]);
}

#[test]
fn a_rolled_back_new_order_does_all_its_work_before() {
    let (mut client, mut choose) = (client(0), Random::seeded(1));
    while client.begin(&mut choose) != TransactionKind::RolledBack as usize {}
    let texts = statements_of(&mut client);
    assert_eq!(texts.last().map(String::as_str), Some("ROLLBACK"));
    assert!(texts[texts.len() - 2].starts_with("SELECT i_price") && texts[texts.len() - 2].contains("100001"));
    assert!(texts.iter().filter(|text| text.starts_with("INSERT INTO order_line")).count() >= 4);
}

#[test]
fn a_payment_finds_its_customer_by_number_or_by_name() {
    let (mut client, mut choose) = (client(1), Random::seeded(1));
    let mut by_name = [0; 2];
    for _ in 0..50 {
        client.begin(&mut choose);
        let texts = statements_of(&mut client);
        let has_name = texts.iter().any(|text| text.contains("array_agg"));
        by_name[usize::from(has_name)] += 1;
        let mut expected =
            vec!["BEGIN", "UPDATE warehouse", "UPDATE district", "UPDATE customer", "INSERT INTO", "COMMIT"];
        if has_name {
            expected.insert(3, "SELECT (array_agg(c_id");
            assert!(texts[4].contains("c_id = 77 "), "{}", texts[4]);
        }
        assert_eq!(outline(&texts), expected);
        let history = &texts[texts.len() - 2];
        assert!(history.ends_with("'ware    dist')"), "{history}");
        let update = &texts[texts.len() - 3];
        let amount = update.split("c_balance - ").nth(1).unwrap().split(',').next().unwrap();
        assert!(update.contains(&format!(" {amount}|'")), "the note has the amount: {update}");
    }
    assert!(by_name.iter().all(|count| *count > 10), "{by_name:?}");
}

#[test]
fn an_order_status_reads_the_lines_of_the_last_order() {
    let (mut client, mut choose) = (client(2), Random::seeded(1));
    client.begin(&mut choose);
    let texts = statements_of(&mut client);
    let lines = texts.iter().find(|text| text.contains("FROM order_line")).unwrap();
    assert!(lines.ends_with("ol_o_id = 2500") && texts.last().unwrap() == "COMMIT");
}

#[test]
fn a_delivery_serves_all_districts_and_skips_those_without_orders() {
    let (mut client, mut choose) = (client(3), Random::seeded(1));
    client.begin(&mut choose);
    let texts = statements_of(&mut client);
    assert_eq!(texts.len(), 2 + 10 * 5);
    assert!(texts[5].contains("c_balance + 123.45") && texts[5].contains("c_id = 55"));
    client.begin(&mut choose);
    let none_in_four = |text: &str| {
        let is_skipped = text.starts_with("SELECT no_o_id") && text.contains("no_d_id = 4 ");
        if is_skipped { None } else { usual(text) }
    };
    let mut count = 0;
    while !step(&mut client, &none_in_four).last {
        count += 1;
    }
    assert_eq!(count + 1, 2 + 9 * 5 + 1);
}

#[test]
fn a_stock_level_looks_at_the_last_twenty_orders_of_its_district() {
    let (mut client, mut choose) = (client(4), Random::seeded(1));
    client.begin(&mut choose);
    let texts = statements_of(&mut client);
    assert_eq!(outline(&texts), ["BEGIN", "SELECT d_next_o_id", "SELECT count(DISTINCT", "COMMIT"]);
    assert!(texts[2].contains("ol_o_id >= 2981 AND ol_o_id < 3001 "));
}

#[test]
fn a_retry_enters_the_same_values() {
    for place in 0..5 {
        let (mut client, mut choose) = (client(place), Random::seeded(1));
        client.begin(&mut choose);
        let first: Vec<_> = (0..4).map(|_| step(&mut client, &usual).text).collect();
        client.retry();
        let again: Vec<_> = (0..4).map(|_| step(&mut client, &usual).text).collect();
        assert_eq!(first, again);
    }
}

#[test]
fn an_answer_that_is_not_expected_ends_the_client() {
    let (mut client, mut choose) = (client(4), Random::seeded(1));
    client.begin(&mut choose);
    client.next_action();
    client.next_action();
    let refused = client.store(&[ResultSet::default()]).unwrap_err();
    assert_eq!(refused.to_string(), "expected the district's row, got 0 rows");
}

/// Returns two texts, each a list with commas: the warehouses, and the items, of the rows of stock that an order takes
/// from.
fn stock_of(texts: &[String]) -> [String; 2] {
    let taken: Vec<Vec<&str>> = texts
        .iter()
        .filter(|text| text.starts_with("UPDATE stock"))
        .filter_map(|text| Some(text.split("s_w_id = ").nth(1)?.split(' ').collect()))
        .collect();
    // The text behind the warehouse's column begins like `3 AND s_i_id = 17 RETURNING ...`.
    [0, 4].map(|place| taken.iter().map(|words| words[place]).collect::<Vec<_>>().join(","))
}

#[test]
fn a_procedure_gets_what_the_statements_get() {
    for place in 0..5 {
        let mut choose = Random::seeded(1);
        let (mut by_statements, mut by_call) = (client(place), client_of(place, TransactionStyle::Procedures));
        for _ in 0..50 {
            let kind = by_statements.begin(&mut choose.clone());
            assert_eq!(by_call.begin(&mut choose), kind);
            let (texts, calls) = (statements_of(&mut by_statements), statements_of(&mut by_call));
            let [call] = &calls[..] else { panic!("one call: {calls:?}") };
            assert!(call.starts_with("CALL pgtrial_"));
            if kind == TransactionKind::NewOrder as usize {
                let [supplies, items] = stock_of(&texts);
                assert!(call.contains(&format!(", '{{{items}}}', '{{{supplies}}}', '{{")), "{call}\n{texts:?}");
            }
            if place == 1 || place == 2 {
                let has_name = texts.iter().any(|text| text.contains("array_agg"));
                // A call has either the customer's number or the last name; the other one is 0 or empty.
                assert_eq!(call.contains(", 0, '"), has_name, "{call}");
                assert_eq!(!call.contains("''"), has_name, "{call}");
            }
        }
    }
}
