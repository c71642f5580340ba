//! Compares the results of expressions and scripts one by one with the answers of pgbench 18.

use super::*;
use wire::value::write_double;

fn typed(scalar: Scalar) -> String {
    match scalar {
        Scalar::Null => "null".to_owned(),
        Scalar::Bool(truth) => format!("boolean {truth}"),
        Scalar::Int(number) => format!("int {number}"),
        Scalar::Double(number) => {
            let mut out = b"double ".to_vec();
            write_double(number, &mut out);
            String::from_utf8(out).unwrap()
        }
    }
}

fn variables() -> [(&'static str, Value); 4] {
    let default_seed = Value::Int(seeds().hashes as i64);
    let seed = Value::Int(SEED as i64);
    [("scale", Value::Int(1)), ("random_seed", seed), ("default_seed", default_seed), ("client_id", Value::Int(0))]
}

#[test]
fn expressions_have_the_values_types_and_errors_of_pgbench() {
    for (text, expected) in reference(include_str!("reference/expressions.tsv")) {
        let syntax = match parse_expression(text.as_bytes(), 0) {
            Ok((syntax, _)) => syntax,
            Err(_) => {
                let refused = parse("script.sql", 1, format!("\\set a {text}\n").as_bytes()).unwrap_err();
                assert_eq!(format!("refused: {refused}"), expected, "{text}");
                continue;
            }
        };
        for fold in [false, true] {
            let resolved = resolve(&syntax, &variables(), fold);
            let answer = match evaluate(&resolved, &mut seeds().clients[0].clone()) {
                Ok(scalar) => typed(scalar),
                Err(sentence) => format!("error: {}", sentence.unwrap()),
            };
            assert_eq!(answer, expected, "{text}");
        }
    }
}

#[test]
fn draws_are_those_of_pgbench_one_after_another() {
    for (text, expected) in reference(include_str!("reference/draws.tsv")) {
        let mut sent = format!("\\set a {text}\nSELECT :a;\n").repeat(12);
        sent.push_str("SELECT 0;");
        let lines = said(&sent);
        let numbers: Vec<_> =
            lines.lines().map(|line| line.trim_matches(|c: char| !c.is_ascii_digit() && c != '-')).collect();
        assert_eq!(numbers[..12].join(" "), expected, "{text}");
    }
}

#[test]
fn scripts_send_and_say_what_pgbench_sends_and_says() {
    for (text, expected) in reference(include_str!("reference/scripts.tsv")) {
        assert_eq!(said(&text), expected, "{text}");
    }
}
