//! Finds parameters whose types decide which function or operator a statement calls. Clients may send the types of
//! parameters, but logs do not contain them. In a replay the server chooses the types, so it may call another function,
//! or fail.

use super::tokens::{SqlToken, TokenKind, Tokens};

/// True if a statement has a parameter without a cast that is an operand of arithmetic, is compared with another
/// parameter without a cast, or is an argument of a function. In other positions the type is certain: a parameter that
/// is compared with a column or stored in it gets the column's type.
pub fn has_untyped_parameter(text: &str) -> bool {
    let tokens: Vec<SqlToken<'_>> = Tokens::of(text).filter(|token| !token.is_blank()).collect();
    let mut calls = Vec::new();
    for at in 0..tokens.len() {
        match tokens[at].text {
            "(" => calls.push(Opened::at(&tokens, at)),
            ")" => drop(calls.pop()),
            _ if tokens[at].kind == TokenKind::Parameter && !has_cast(&tokens, at) => {
                let is_argument = is_whole(&tokens, at) && calls.last() == Some(&Opened::Call);
                if is_argument || is_operand(&tokens, at) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// The kind of text that stands in a pair of parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// The arguments of a function. Their types decide which function of this name is called.
    Call,
    Other,
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
}

/// True if a cast gives the parameter its type, as in `$1::date` or `CAST($1 AS date)`.
fn has_cast(tokens: &[SqlToken<'_>], at: usize) -> bool {
    let is = |at: Option<usize>, what: &str| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_symbol(what) || token.is_word(what))
    };
    let colons = is(Some(at + 1), ":") && is(Some(at + 2), ":");
    colons || is(at.checked_sub(2), "cast") && is(Some(at + 1), "as")
}

/// True if the parameter stands alone between two commas or parentheses, as the second argument of `f(a, $1)` does,
/// without a cast or an operator.
fn is_whole(tokens: &[SqlToken<'_>], at: usize) -> bool {
    let is_one_of = |token: Option<&SqlToken<'_>>, symbols: [&str; 2]| {
        token.is_some_and(|token| symbols.iter().any(|symbol| token.is_symbol(symbol)))
    };
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    is_one_of(before, ["(", ","]) && is_one_of(tokens.get(at + 1), [")", ","])
}

/// True if the parameter is an operand of arithmetic, or of a comparison with another parameter.
fn is_operand(tokens: &[SqlToken<'_>], at: usize) -> bool {
    let before = tokens[..at].iter().rposition(|token| !is_operator(token)).map_or(0, |last| last + 1);
    let after = tokens[at + 1..].iter().position(|token| !is_operator(token)).map_or(tokens.len(), |end| at + 1 + end);
    let is_arithmetic = |operator: &str| matches!(operator, "+" | "-" | "*" | "/" | "%" | "^");
    // An operator ends at a space. So in `= -$1` the equals sign and the minus are two operators.
    let last = tokens[before..at].chunk_by(are_adjacent).last().map(text_of).unwrap_or_default();
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
        ] {
            assert!(has_untyped_parameter(text), "{text}");
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
        ] {
            assert!(!has_untyped_parameter(text), "{text}");
        }
    }
}
