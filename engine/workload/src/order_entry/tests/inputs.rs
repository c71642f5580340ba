//! Checks that random inputs have the frequencies that the specification requires, within five standard deviations.

use super::*;

const DRAWS: usize = 6000;

/// True if `count` of `draws` draws is within five standard deviations of the given share.
fn fits(count: usize, draws: usize, share: f64) -> bool {
    let (expected, draws) = (draws as f64 * share, draws as f64);
    (count as f64 - expected).abs() <= 5.0 * (draws * share * (1.0 - share)).sqrt()
}

/// Returns the statements of `draws` transactions. `place` is the index of their kind among the five kinds. Each
/// element has the index of the transaction's script, and the transaction's statements.
fn transactions(place: usize, draws: usize) -> Vec<(usize, Vec<String>)> {
    let (mut client, mut choose) = (client(place), Random::seeded(1));
    (0..draws).map(|_| (client.begin(&mut choose), statements_of(&mut client))).collect()
}

fn count(transactions: &[(usize, Vec<String>)], holds: impl Fn(&str) -> bool) -> usize {
    transactions.iter().flat_map(|(_, texts)| texts).filter(|text| holds(text)).count()
}

#[test]
fn one_in_a_hundred_new_orders_is_rolled_back_and_so_many_lines_come_from_elsewhere() {
    let found = transactions(0, DRAWS);
    let rolled_back = found.iter().filter(|(kind, _)| *kind == TransactionKind::RolledBack as usize).count();
    assert!(fits(rolled_back, DRAWS, 0.01), "{rolled_back}");
    let lines = count(&found, |text| text.starts_with("UPDATE stock"));
    let remote = count(&found, |text| text.starts_with("UPDATE stock") && text.contains("s_remote_cnt + 1"));
    assert!(fits(remote, lines, 0.01), "{remote} of {lines}");
    // Warehouse 3 is the home of client number 2 of 8 if there are ten warehouses.
    let home = count(&found, |text| text.starts_with("UPDATE stock") && text.contains("s_w_id = 3 "));
    assert_eq!(home + remote, lines);
    let all = lines + rolled_back;
    let mean = all as f64 / DRAWS as f64;
    // An order has 5 to 15 lines, so the variance is ten.
    assert!((mean - 10.0).abs() < 5.0 * (10.0 / DRAWS as f64).sqrt(), "{mean}");
}

#[test]
fn the_orders_with_a_line_from_elsewhere_are_not_all_local() {
    for (_, texts) in transactions(0, 500) {
        let is_remote = texts.iter().any(|text| text.contains("s_remote_cnt + 1"));
        let order = texts.iter().find(|text| text.starts_with("INSERT INTO orders")).unwrap();
        let is_rolled_back = texts.last().unwrap() == "ROLLBACK";
        assert!(is_rolled_back || order.ends_with(if is_remote { ", 0)" } else { ", 1)" }), "{order}");
    }
}

#[test]
fn lines_lock_stock_in_one_order() {
    for (_, texts) in transactions(0, 500) {
        let place = |text: &String| -> Option<(i64, i64)> {
            let mut numbers = text.strip_prefix("UPDATE stock")?.split("s_w_id = ").nth(1)?.split(" AND s_i_id = ");
            let item = |text: &str| -> Option<i64> { text.split(' ').next()?.parse().ok() };
            Some((numbers.next()?.parse().ok()?, item(numbers.next()?)?))
        };
        let places: Vec<_> = texts.iter().filter_map(place).collect();
        assert!(!places.is_empty() && places.is_sorted(), "{places:?}");
    }
}

#[test]
fn fifteen_percent_pay_elsewhere_and_sixty_by_name() {
    let found = transactions(1, DRAWS);
    let elsewhere = count(&found, |text| text.starts_with("UPDATE customer") && !text.contains("c_w_id = 3 "));
    assert!(fits(elsewhere, DRAWS, 0.15), "{elsewhere}");
    let by_name = count(&found, |text| text.contains("array_agg"));
    assert!(fits(by_name, DRAWS, 0.6), "{by_name}");
    let home = count(&found, |text| text.starts_with("UPDATE warehouse") && text.ends_with("w_zip"));
    assert_eq!(home, DRAWS);
}

#[test]
fn sixty_percent_ask_for_orders_by_name() {
    let by_name = count(&transactions(2, DRAWS), |text| text.contains("array_agg"));
    assert!(fits(by_name, DRAWS, 0.6), "{by_name}");
}

/// Returns the numbers that follow the text `before` in the statements. A number ends at the first character that
/// cannot belong to it.
fn numbers(transactions: &[(usize, Vec<String>)], before: &str) -> Vec<f64> {
    let texts = transactions.iter().flat_map(|(_, texts)| texts);
    let number = |text: &String| {
        let rest = text.split_once(before)?.1;
        let end = rest.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.').unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    texts.filter_map(number).collect()
}

#[test]
fn quantities_amounts_carriers_thresholds_and_districts_are_uniform_in_their_ranges() {
    for (place, before, low, high) in [
        (0, "s_ytd = s_ytd + ", 1.0, 10.0),
        (0, "WHERE d_w_id = 3 AND d_id = ", 1.0, 10.0),
        (1, "SET w_ytd = w_ytd + ", 1.0, 5000.0),
        (1, "WHERE d_w_id = 3 AND d_id = ", 1.0, 10.0),
        (3, "SET o_carrier_id = ", 1.0, 10.0),
        (4, "s_quantity < ", 10.0, 20.0),
    ] {
        let found = transactions(place, 2000);
        let drawn = numbers(&found, before);
        assert!(drawn.len() >= 2000, "{before}");
        assert!(drawn.iter().all(|number| (low..=high).contains(number)), "{before}");
        // A delivery has a carrier for each of ten districts.
        let transactions = if place == 3 { 2000.0 } else { drawn.len() as f64 };
        let (mean, width) = (drawn.iter().sum::<f64>() / drawn.len() as f64, high - low + 1.0);
        let spread = width / (12.0 * transactions).sqrt();
        assert!((mean - (low + high) / 2.0).abs() < 5.0 * spread, "{before}: {mean}");
        // Values occur in the lowest and in the highest tenth of the range.
        assert!(drawn.iter().any(|number| *number < low + width / 10.0), "{before}");
        assert!(drawn.iter().any(|number| *number > high - width / 10.0), "{before}");
    }
}

#[test]
fn a_terminal_types_before_and_thinks_after_a_transaction() {
    let (mut client, mut choose) = (client(4), Random::seeded(1));
    client.begin(&mut choose);
    assert_eq!(client.pause().as_secs_f64(), 2.0);
    client.begin(&mut choose);
    let second = client.pause().as_secs_f64();
    assert!(second > 2.0 && second <= 52.0, "{second}");
}
