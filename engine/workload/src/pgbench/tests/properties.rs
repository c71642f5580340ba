//! Checks properties of scripts and expressions that hold for any input.

use proptest::prelude::*;

use super::super::compiler::Legs;
use super::*;

/// Generates the text of an expression with a random structure.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| number.to_string()),
        (0..4i32).prop_map(|number| number.to_string()),
        (-1e6..1e6f64).prop_map(|number| format!("{number:.3}")),
        prop::sample::select(vec![
            "null",
            "true",
            "FALSE",
            ":x",
            ":y",
            ":z",
            ":text",
            ":nope",
            "9223372036854775807",
            "pi()"
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operators = vec![
            "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "=", "<>", "!=", "&", "|", "#", "<<", ">>", "and", "or",
        ];
        let functions = vec!["abs", "int", "double", "sqrt", "ln", "exp", "hash", "not", "- ", "~", "hash_fnv1a"];
        let pairs = vec!["least", "greatest", "mod", "pow", "random", "permute", "hash"];
        prop_oneof![
            (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
            (prop::sample::select(functions), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            (prop::sample::select(pairs), inner.clone(), inner.clone())
                .prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            (inner.clone(), prop::sample::select(vec!["isnull", "notnull", "is true", "is not false"]))
                .prop_map(|(a, test)| format!("({a}) {test}")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("case when {a} then {b} else {c} end")),
        ]
    })
}

fn variables() -> [(&'static str, Value); 4] {
    let text = Value::Text((*b"17").into());
    [("x", Value::Int(3)), ("y", Value::Double(-2.5)), ("z", Value::Bool(true)), ("text", text)]
}

proptest! {
    #[test]
    fn no_script_is_too_odd_to_be_read(text in any::<Vec<u8>>()) {
        let _ = parse("s", 1, &text).map(|parsed| Scripts::link(vec![parsed], &environment(QueryMode::Prepared)).is_ok());
    }

    #[test]
    fn no_line_is_too_odd_to_be_read(text in "(\\\\(set|if|elif|else|endif|sleep|gset|shell)? ?[-a-z0-9:+*/()'\"$\\\\;{}?% ]{0,12}\n?){0,8}") {
        let _ = parse("s", 1, text.as_bytes());
    }

    #[test]
    fn statements_are_pieces_of_the_script(text in "[a-z'\"$;/*()\\- \n]{0,60}") {
        let parsed = parse("s", 1, text.as_bytes());
        for command in parsed.iter().flat_map(|parsed| &parsed.commands) {
            let script::ScriptCommand::Sql(sql) = command else { panic!("no backslash was written") };
            let statement = String::from_utf8(sql.text.clone()).unwrap();
            prop_assert!(text.contains(&statement), "{statement:?}");
        }
    }

    #[test]
    fn folding_changes_neither_values_nor_errors(text in expression(), seed in any::<u64>()) {
        let (syntax, end) = parse_expression(text.as_bytes(), 0).unwrap();
        prop_assert_eq!(end, text.len());
        let [plain, folded] = [false, true].map(|fold| {
            let mut random = Random::seeded(seed);
            let answer = evaluate(&resolve(&syntax, &variables(), fold), &mut random);
            (format!("{answer:?}"), random)
        });
        prop_assert_eq!(plain, folded, "{}", text);
    }

    #[test]
    fn fast_draws_agree_with_evaluated_ones(low in any::<i32>(), size in 0..i64::from(u32::MAX), seed in any::<u64>()) {
        let high = i64::from(low) + size;
        let drawn = |script: &str| {
            let scripts = link(script, &environment(QueryMode::Simple)).unwrap();
            let mut client = scripts.client(0, Random::seeded(seed));
            client.begin(&mut Random::seeded(1));
            transcript(client.as_mut())
        };
        let statements = "SELECT :a;\n\\set a random(0, 9)\nSELECT :a;";
        let fast = drawn(&format!("\\set a random({low}, {high})\n{statements}"));
        let slow = drawn(&format!("\\set high {high}\n\\set a random({low}, :high)\n{statements}"));
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn integer_arithmetic_agrees_with_wider_integers(a in any::<i64>(), b in any::<i64>(), small in -9..9i64) {
        for (a, b) in [(a, b), (a, small), (small, b)] {
            for (sign, wide) in [
                ("+", Some(i128::from(a) + i128::from(b))),
                ("-", Some(i128::from(a) - i128::from(b))),
                ("*", Some(i128::from(a) * i128::from(b))),
                ("/", (b != 0).then(|| i128::from(a) / i128::from(b))),
                ("%", (b != 0).then(|| i128::from(a) % i128::from(b))),
            ] {
                let text = format!("({a}) {sign} ({b})");
                let (syntax, _) = parse_expression(text.as_bytes(), 0).unwrap();
                let answer = evaluate(&resolve(&syntax, &[], false), &mut Random::seeded(1)).ok();
                let expected = wide.and_then(|wide| i64::try_from(wide).ok()).map(Scalar::Int);
                prop_assert_eq!(answer, expected, "{}", text);
            }
        }
    }

    #[test]
    fn doubles_keep_fifteen_digits(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
        let mut out = Vec::new();
        Value::Double(number).write_text(&mut out);
        let text = String::from_utf8(out).unwrap();
        let back: f64 = text.parse().unwrap();
        let rounded: f64 = format!("{number:.14e}").parse().unwrap();
        prop_assert_eq!(back, rounded, "{}", text);
    }
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    for text in ["(".repeat(100_000), "- ".repeat(100_000), format!("1{}", "+1".repeat(100_000))] {
        let error = parse_expression(text.as_bytes(), 0).unwrap_err();
        assert_eq!(error.mistake.message, "memory exhausted");
    }
}

#[test]
fn what_is_not_too_deep_is_evaluated() {
    let deep = format!("{}1{}{}", "(".repeat(190), ")".repeat(190), "+1".repeat(900));
    let (syntax, _) = parse_expression(deep.as_bytes(), 0).unwrap();
    assert_eq!(evaluate(&resolve(&syntax, &[], true), &mut Random::seeded(1)), Ok(Scalar::Int(901)));
}

/// Returns descriptions of a client's actions in some transactions. If `quick` is true, legs (random draws and the
/// query after them) are executed at once; otherwise the client goes step by step.
fn actions(text: &str, quick: bool) -> Vec<String> {
    let script = parse("script.sql", 1, text.as_bytes()).unwrap();
    let mut scripts = Scripts::link(vec![script], &environment(QueryMode::Prepared)).unwrap();
    if !quick {
        scripts.scripts.iter_mut().for_each(|script| script.legs = Legs::default());
    }
    let (mut client, mut choose) = (Arc::new(scripts).client(0, seeds().clients[0].clone()), Random::seeded(1));
    let mut said = Vec::new();
    for _ in 0..3 {
        client.begin(&mut choose);
        for _ in 0..100 {
            let action = client.next_action();
            let is_over = matches!(action, Action::End | Action::Abort(_));
            said.push(format!("{action:?}"));
            if is_over {
                break;
            }
        }
    }
    said
}

proptest! {
    /// Checks that a leg (random draws and the query after them) has the same effect if it is executed at once as if
    /// its steps are executed one by one.
    #[test]
    fn with_or_without_the_short_way_of_queries_a_client_does_the_same(
        commands in prop::collection::vec(prop::sample::select(vec![
            "\\set a random(1, 100)",
            "\\set b random(-5000, 5000)",
            "\\set c :a + 1",
            "SELECT :a;",
            "SELECT :b, :c;",
            "SELECT 1 AS a \\gset",
            "\\if :a > 50\nSELECT 2;\n\\set a random(1, 7)\n\\else\n\\set b random(1, 9)\n\\endif",
            "\\startpipeline\nSELECT :a;\nSELECT 3;\n\\endpipeline",
            "\\sleep 1 us",
        ]), 1..12),
    ) {
        let text = commands.join("\n");
        prop_assert_eq!(actions(&text, true), actions(&text, false));
    }
}
