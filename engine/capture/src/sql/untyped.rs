//! Finds parameters whose types decide which function or operator a statement calls. Clients may send the types of
//! parameters, but logs do not contain them. In a replay the server chooses the types, so it may call another function,
//! or fail.

use std::collections::HashSet;

use super::tokens::{SqlToken, TokenKind, Tokens};

/// The parameters of a statement whose types decide what the statement does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Untyped {
    /// True if a type decides whatever value the parameter has.
    pub always: bool,
    /// The numbers of the parameters, counted from 1, with which elements of JSON documents are chosen: `doc -> $1`. The
    /// server takes them for the names of keys, although the client may have sent the index of an array.
    pub indexes: Vec<u32>,
}

impl Untyped {
    /// Finds the parameters without a cast that are operands of arithmetic, are compared with another parameter without
    /// a cast, are arguments of a function, or are alone in a list of values, in an array, in the columns of a subquery,
    /// in the results of a CASE or before IS NULL. In other positions the type is certain: a parameter that is compared
    /// with a column or stored in it gets the column's type.
    pub fn of(text: &str) -> Self {
        let tokens: Vec<SqlToken<'_>> = Tokens::of(text).filter(|token| !token.is_blank()).collect();
        let mut found = Self::default();
        let (mut opened, mut cases) = (Vec::new(), Cases::default());
        let (mut before_is, mut elsewhere) = (HashSet::new(), HashSet::new());
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "(" => opened.push(Opened::at(&tokens, at)),
                "[" => opened.push(Opened::at_bracket(&tokens, at)),
                ")" | "]" => drop(opened.pop()),
                _ if token.is_word("from") || token.is_word("where") => {
                    // The columns of a subquery end here.
                    if let Some(last @ Opened::Columns) = opened.last_mut() {
                        *last = Opened::Other;
                    }
                }
                _ => {}
            }
            found.always |= cases.step(&tokens, at);
            let Some(number) = token.parameter() else { continue };
            let is_before_is = tokens.get(at + 1).is_some_and(|next| next.is_word("is"));
            if is_before_is {
                before_is.insert(number)
            } else {
                elsewhere.insert(number)
            };
            if has_cast(&tokens, at) {
                continue;
            }
            match operator_before(&tokens, at).as_str() {
                "->" | "->>" => found.indexes.push(number),
                "=>" => found.always = true,
                _ => {}
            }
            found.always |= is_operand(&tokens, at) || is_alone(&tokens, at, &opened);
        }
        found.always |= !before_is.is_subset(&elsewhere);
        found
    }
}

/// The kind of text that stands in a pair of parentheses or brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// The arguments of a function. Their types decide which function of this name is called.
    Call,
    /// The rows of a table: `(VALUES ($1, $2), ($3, $4))`. A parameter in them becomes a text.
    Rows,
    /// The columns of a subquery, until FROM. A parameter that is a column becomes a text.
    Columns,
    /// The elements of an array without a cast. Parameters become texts.
    Array,
    Other,
}

/// The CASE expressions that are not ended yet.
#[derive(Default)]
struct Cases(Vec<Results>);

/// The results of a CASE expression.
#[derive(Default)]
struct Results {
    has_parameter: bool,
    /// True if a result has a type, which the parameters get too.
    has_type: bool,
}

impl Cases {
    /// Processes a token. Returns true if it ends a CASE all of whose results are parameters without types.
    fn step(&mut self, tokens: &[SqlToken<'_>], at: usize) -> bool {
        let token = &tokens[at];
        if token.is_word("case") {
            self.0.push(Results::default());
        }
        if token.is_word("end") {
            return self.0.pop().is_some_and(|results| results.has_parameter && !results.has_type);
        }
        if let Some(results) = self.0.last_mut().filter(|_| token.is_word("then") || token.is_word("else")) {
            let ends = |token: &SqlToken<'_>| ["when", "else", "end"].iter().any(|word| token.is_word(word));
            let result = tokens.get(at + 1).filter(|_| tokens.get(at + 2).is_some_and(ends));
            match result {
                Some(result) if result.kind == TokenKind::Parameter => results.has_parameter = true,
                Some(result) if result.kind == TokenKind::Text || result.is_word("null") => {}
                _ => results.has_type = true,
            }
        }
        false
    }
}

/// Words before a parenthesis that are not functions, or functions that do not depend on the types of their arguments.
#[rustfmt::skip]
const NO_CALLS: [&str; 42] = [
    "all", "and", "any", "array", "as", "between", "by", "case", "cast", "distinct", "else", "except", "exists", "filter", "from",
    "having", "ilike", "in", "intersect", "into", "is", "join", "like", "limit", "lower", "nextval", "not", "offset", "on", "or",
    "over", "returning", "row", "select", "set", "some", "then", "union", "upper", "values", "when", "where",
];

/// Functions that give a parameter the type of their other arguments, so that the type of the parameter is certain.
const COMMON_TYPE: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];

impl Opened {
    /// Returns the kind of text in the parentheses that open at token `at`.
    fn at(tokens: &[SqlToken<'_>], at: usize) -> Self {
        let begins = |word: &str| tokens.get(at + 1).is_some_and(|token| token.is_word(word));
        if begins("values") || begins("select") {
            return if begins("values") { Self::Rows } else { Self::Columns };
        }
        let Some(before) = at.checked_sub(1).map(|before| tokens[before]) else { return Self::Other };
        let is_one_of = |words: &[&str]| words.iter().any(|word| before.is_word(word));
        let is_name = matches!(before.kind, TokenKind::Word | TokenKind::QuotedName);
        // `INSERT INTO name (...)`, `WITH name (...)` and `AS name (...)` look like calls, but their lists of columns
        // contain no parameters.
        if !is_name || is_one_of(&NO_CALLS) {
            return Self::Other;
        }
        let has_other = || {
            let arguments = tokens[at + 1..].iter().take_while(|token| !token.is_symbol(")"));
            arguments.clone().any(|token| token.kind != TokenKind::Parameter && !token.is_symbol(","))
        };
        if is_one_of(&COMMON_TYPE) && has_other() { Self::Other } else { Self::Call }
    }

    /// Returns the kind of text in the brackets that open at token `at`.
    fn at_bracket(tokens: &[SqlToken<'_>], at: usize) -> Self {
        let is_array = at.checked_sub(1).is_some_and(|before| tokens[before].is_word("array"));
        let end = tokens[at..].iter().position(|token| token.is_symbol("]")).map_or(tokens.len(), |end| at + end);
        let has_cast = tokens.get(end + 1).is_some_and(|token| token.is_symbol(":"));
        if is_array && !has_cast { Self::Array } else { Self::Other }
    }
}

/// True if a cast gives the parameter its type, as in `$1::date` or `CAST($1 AS date)`.
fn has_cast(tokens: &[SqlToken<'_>], at: usize) -> bool {
    let is = |at: Option<usize>, what: &str| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_symbol(what) || token.is_word(what))
    };
    let colons = is(Some(at + 1), ":") && is(Some(at + 2), ":");
    colons || is(at.checked_sub(2), "cast") && is(Some(at + 1), "as")
}

/// True if the parameter stands without an operator where its type decides: it is the second argument of `f(a, $1)`, a
/// value of `(VALUES ($1, 2))`, an element of `ARRAY[$1]`, or a column of `(SELECT $1)`.
fn is_alone(tokens: &[SqlToken<'_>], at: usize, opened: &[Opened]) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let next = tokens.get(at + 1);
    let is_symbol = |token: Option<&SqlToken<'_>>, symbols: &[&str]| {
        token.is_some_and(|token| symbols.iter().any(|symbol| token.is_symbol(symbol)))
    };
    let is_word = |token: Option<&SqlToken<'_>>, words: &[&str]| {
        token.is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    };
    let is_whole = is_symbol(before, &["(", "[", ","]) && is_symbol(next, &[")", "]", ","]);
    let is_column = (is_symbol(before, &[","]) || is_word(before, &["select", "distinct"]))
        && (is_symbol(next, &[")", ","]) || next.is_some_and(|next| next.kind == TokenKind::Word));
    match opened {
        // `extract(year FROM $1)`
        [.., Opened::Call] => is_whole || is_word(before, &["from"]) && is_symbol(next, &[")"]),
        [.., Opened::Array] => is_whole,
        [.., Opened::Columns] => is_column,
        [.., Opened::Rows, Opened::Other] => is_whole,
        _ => false,
    }
}

/// Returns the operator before the parameter, or an empty text. An operator ends at a space. So in `= -$1` the equals
/// sign and the minus are two operators.
fn operator_before(tokens: &[SqlToken<'_>], at: usize) -> String {
    let begin = tokens[..at].iter().rposition(|token| !is_operator(token)).map_or(0, |last| last + 1);
    tokens[begin..at].chunk_by(are_adjacent).last().map(text_of).unwrap_or_default()
}

/// True if the parameter is an operand of arithmetic, or of a comparison with another parameter.
fn is_operand(tokens: &[SqlToken<'_>], at: usize) -> bool {
    let after = tokens[at + 1..].iter().position(|token| !is_operator(token)).map_or(tokens.len(), |end| at + 1 + end);
    let is_arithmetic = |operator: &str| matches!(operator, "+" | "-" | "*" | "/" | "%" | "^");
    let last = operator_before(tokens, at);
    let first = tokens[at + 1..after].chunk_by(are_adjacent).next().map(text_of).unwrap_or_default();
    let is_comparison = matches!(first.as_str(), "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=");
    let with_parameter = tokens.get(after).is_some_and(|token| token.kind == TokenKind::Parameter);
    is_arithmetic(&last) || is_arithmetic(&first) || is_comparison && with_parameter && !has_cast(tokens, after)
}

fn is_operator(token: &SqlToken<'_>) -> bool {
    token.kind == TokenKind::Symbol && "+-*/<>=~!@#%^&|`?".contains(token.text)
}

fn are_adjacent(one: &SqlToken<'_>, next: &SqlToken<'_>) -> bool {
    one.end() == next.at
}

fn text_of(tokens: &[SqlToken<'_>]) -> String {
    tokens.iter().map(|token| token.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_whose_types_decide_are_found() {
        for text in [
            "SELECT $1 + $2",
            "SELECT to_char($1, '999')",
            "SELECT sum(x) FROM unnest($1) x",
            "SELECT date_trunc('day', $1)",
            "SELECT d - $1 FROM t",
            "SELECT * FROM t WHERE ts > now() - $1",
            "SELECT greatest($1, $2)",
            "SELECT * FROM t WHERE $1 = $2",
            "SELECT \"My\".\"f\"($1)",
            "UPDATE t SET n = n * $1",
            "SELECT * FROM t WHERE a = -$1",
            "UPDATE t SET b = v.b FROM (VALUES ($1, $2), ($3, $4)) AS v (a, b) WHERE t.a = v.a",
            "WITH v AS (SELECT $1 AS a) SELECT * FROM t JOIN v ON t.a = v.a",
            "SELECT * FROM t JOIN (SELECT DISTINCT 1, $1) v ON t.a = v.a",
            "SELECT * FROM t WHERE a = ANY (ARRAY[$1, $2])",
            "UPDATE t SET a = CASE WHEN b = 1 THEN $1 WHEN b = 2 THEN $2 ELSE NULL END",
            "SELECT * FROM t WHERE $1 IS NULL OR a = $2",
            "SELECT extract(year FROM $1)",
            "SELECT f(a => $1)",
        ] {
            assert!(Untyped::of(text).always, "{text}");
        }
    }

    #[test]
    fn parameters_that_get_their_type_elsewhere_are_passed() {
        for text in [
            "SELECT $1::int + $2::int",
            "SELECT to_char(CAST($1 AS numeric), '999')",
            "SELECT * FROM t WHERE a = $1 AND b <> $2 AND c LIKE $3 AND d BETWEEN $4 AND $5",
            "SELECT * FROM t WHERE a IN ($1, $2) AND b = ANY($3) LIMIT $4",
            "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4) RETURNING a",
            "UPDATE t SET a = $1, b = coalesce($2, b) WHERE (c = $3)",
            "SELECT doc -> 'a' ->> $1, name || $2 FROM t WHERE tags @> $3",
            "SELECT count(*), f(a + 1) FROM t WHERE a = $1",
            "SELECT '$1 + $2'",
            "SELECT $1, $2",
            "INSERT INTO t SELECT $1, $2",
            "INSERT INTO t SELECT a FROM u WHERE EXISTS (SELECT 1 FROM v WHERE b = $1)",
            "SELECT * FROM t WHERE a = ANY (ARRAY[$1, $2]::int[])",
            "SELECT * FROM t WHERE a = ANY ($1) AND b[$2] = 1",
            "UPDATE t SET a = CASE WHEN b = $1 THEN $2 ELSE a END",
            "SELECT * FROM t WHERE $1 IS NULL OR a = $1",
            "SELECT * FROM t WHERE $1::int IS NULL OR a = $2; END",
        ] {
            assert!(!Untyped::of(text).always, "{text}");
        }
    }
    #[test]
    fn parameters_may_choose_an_element_of_json() {
        assert_eq!(Untyped::of("SELECT doc -> $2 ->> $1, a - b->$3::int FROM t").indexes, [2, 1]);
        assert!(Untyped::of("SELECT doc #>> $1, a -$2 FROM t").indexes.is_empty());
    }
}
