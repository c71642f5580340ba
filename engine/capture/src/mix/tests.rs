//! Checks which column each parameter of a statement is found to belong to.

use super::columns::tests::columns;
use super::places::{Meaning, normalize};
use proptest::prelude::*;

/// Returns the meaning of each parameter of a query on a database with the tables `t (id, a, b, at)` and `s.u (id, c)`.
/// The columns are given by their indexes, such as `ID` and `A` below.
fn meanings(query: &str) -> Option<Vec<Meaning>> {
    let columns = columns(&["t.id", "t.a", "t.b", "t.at", "u.id", "u.c"]);
    normalize(query, &columns).map(|found| found.meanings.into_iter().map(|(_, meaning)| meaning).collect())
}

const ID: usize = 0;
const A: usize = 1;
const B: usize = 2;
const AT: usize = 3;
const U_ID: usize = 4;
const C: usize = 5;

#[test]
fn a_parameter_belongs_to_the_column_that_it_is_compared_with() {
    use Meaning::{Array, High, Limit, List, Low, Offset, Step, Stored, Value};
    for (query, expected) in [
        ("select a from t where id = $1", vec![Value(ID)]),
        ("SELECT \"a\" FROM T x WHERE x.ID=$1 AND $2 <> b", vec![Value(ID), Value(B)]),
        ("select * from t join s.u as v on v.id = t.id where v.c = $1::int8", vec![Value(C)]),
        ("select * from t, u where u.id = $1 and t.id = $2", vec![Value(U_ID), Value(ID)]),
        ("select * from t where id between $1 and $2 and a = $3", vec![Low(ID), High(ID), Value(A)]),
        ("select * from t where at >= $1 and b = $2 and at < $3", vec![Low(AT), Value(B), High(AT)]),
        ("select * from t where at > date $1 limit $2 offset $3", vec![Value(AT), Limit, Offset]),
        ("select * from t where id in ($1, $2) or a not in ($3)", vec![Value(ID), Value(ID), Value(A)]),
        ("select * from t where id in ($1 /*, ... */) fetch first $2 rows only", vec![List(ID), Limit]),
        ("select * from t where id = any ($1) and b like $2", vec![Array(ID), Value(B)]),
        ("update t set a = a + $1, b = $2 where id = $3", vec![Step, Value(B), Value(ID)]),
        ("delete from only t where a::text = $1", vec![Value(A)]),
        (
            "insert into t (b, at, id) values ($1, now(), $2), ($3, now(), $4)",
            vec![Stored(B), Stored(ID), Stored(B), Stored(ID)],
        ),
        ("insert into t values ($1, $2) on conflict (id) do update set a = $3", vec![Stored(ID), Stored(A), Value(A)]),
        ("with x as (select id from u where c = $1) select * from t where a = $2", vec![Value(C), Value(A)]),
    ] {
        assert_eq!(meanings(query), Some(expected), "{query}");
    }
}

#[test]
fn a_statement_with_a_value_of_no_column_cannot_be_made() {
    for query in [
        "select $1",
        "select * from t where lower(b) = $1",
        "select * from t where missing = $1",
        "select * from nothing where id = $1",
        "select * from t where at > now() - interval $1",
        "insert into t (id, missing) values ($1, $2)",
        "insert into t (id) values (f($1))",
        "select f($1) from t",
        "select * from t where (id, a) > ($1, $2)",
    ] {
        assert_eq!(meanings(query), None, "{query}");
    }
}

#[test]
fn placeholders_are_numbered_in_the_order_of_the_text() {
    let columns = columns(&["t.id", "t.a"]);
    let found =
        normalize("select /* x */ a from t where a = $7 and id in ($2 /*, ... */) or a = $7", &columns).unwrap();
    assert_eq!(found.text, "select   a from t where a = $1 and id in ($2 ) or a = $3");
    let numbers: Vec<u32> = found.meanings.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [7, 2, 7]);
    for (place, number) in found.places.iter().zip(1..) {
        assert!(found.text[*place as usize..].starts_with(&format!("${number}")));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(
        text in "(select|insert into|from t|t|a|id|=|<|>|not|in|like|between|and|any|values|limit|,|\\(|\\)|\\$1|\\.|::|/\\*, \\.\\.\\. \\*/| ){0,20}"
    ) {
        if let Some(found) = normalize(&text, &columns(&["t.id", "t.a"])) {
            prop_assert_eq!(found.places.len(), found.meanings.len());
        }
    }
}
