//! Checks the options that tests declare, and the values that tests accept.

use super::{number, settings};
use crate::oltp::{TESTS, find};
use crate::settings::OptionValue;
use ground::shard::Shard;

/// Parses a line of `sysbench TEST help` into the option's name, its default and its description.
fn parse_help(line: &str) -> (String, OptionValue, String) {
    let line = line.trim_start().strip_prefix("--").unwrap();
    let (head, rest) = line.split_once(' ').unwrap();
    let rest = rest.trim_start();
    let (description, default) = match rest.rsplit_once(" [") {
        Some((description, default)) => (description, default.strip_suffix(']')),
        None => (rest, None),
    };
    let (name, value) = if let Some(name) = head.strip_suffix("[=on|off]") {
        (name, OptionValue::Bool(default == Some("on")))
    } else if let Some(name) = head.strip_suffix("=N") {
        (name, OptionValue::Int(default.unwrap().parse().unwrap()))
    } else {
        (head.strip_suffix("=STRING").unwrap(), OptionValue::Text(default.map(str::to_owned)))
    };
    (name.to_owned(), value, description.to_owned())
}

#[test]
fn options_are_those_of_sysbenchs_help() {
    let usual = include_str!("../help/oltp_read_write.txt");
    for (name, help) in [
        ("oltp_read_only", usual),
        ("oltp_read_write", usual),
        ("oltp_write_only", usual),
        ("oltp_point_select", usual),
        ("oltp_update_index", usual),
        ("oltp_update_non_index", usual),
        ("oltp_insert", usual),
        ("oltp_delete", usual),
        ("select_random_points", include_str!("../help/select_random_points.txt")),
        ("select_random_ranges", include_str!("../help/select_random_ranges.txt")),
        ("bulk_insert", ""),
    ] {
        let options = find(name).unwrap().options();
        let found: Vec<_> = options.into_iter().map(|o| (o.name, o.default, o.description)).collect();
        assert_eq!(found, help.lines().map(parse_help).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn there_are_the_native_tests_and_no_others() {
    for test in TESTS {
        assert_eq!(find(test.name), Some(test));
    }
    assert!(find("oltp_common").is_none() && find("cpu").is_none() && find("").is_none());
}

#[test]
fn options_out_of_range_are_refused() {
    let refused = |name: &str, option: &str, value: i64| {
        let fatal = find(name).unwrap().workload(&settings(&[(option, number(value))]), Shard::WHOLE).err().unwrap();
        fatal.lines.concat()
    };
    assert_eq!(refused("oltp_read_only", "tables", 0), "--tables must be at least 1 to run, and is 0");
    assert_eq!(refused("oltp_read_only", "table_size", 0), "--table_size must be at least 1 to run, and is 0");
    assert_eq!(
        refused("oltp_read_only", "tables", 1 << 40),
        format!("--tables must be between 0 and 100000, and is {}", 1u64 << 40)
    );
    assert_eq!(
        refused("oltp", "oltp_table_size", 1 << 31),
        "--oltp_table_size must be between 0 and 2147483647, and is 2147483648"
    );
    assert_eq!(
        refused("select_random_points", "random_points", 65536),
        "--random_points must be between 1 and 65535, and is 65536"
    );
    assert_eq!(
        refused("select_random_ranges", "number_of_ranges", 0),
        "--number_of_ranges must be between 1 and 32767, and is 0"
    );
}
