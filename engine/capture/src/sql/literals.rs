//! Splits the text of a statement into a template and its literals. [`crate::format::Template::write_text`] puts the
//! literals back.
//!
//! Literals are strings, numbers, the text of comments, and words as values of settings that applications have defined
//! (`SET app.tenant = acme`). The following stay in the template, because they belong to
//! the form of the statement and not to its values:
//!
//! - a span of time behind the word `interval`
//! - numbers in the parentheses of a type: `numeric(10, 2)`, `x::vector(3)`
//! - numbers of columns: `ORDER BY 1, 2`
//! - hints: comments that begin with `/*+`
//!
//! A list of literals behind `IN (` or `ARRAY[` counts as one literal, so that lists of different lengths share a
//! template.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::{Backslashes, SqlToken, TokenKind, Tokens};
use super::units::UNITS;

/// A template and its literals. The same object can be filled for one text after another, so that its memory is reused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// The text with a placeholder in place of each literal.
    pub template: String,
    /// The byte offsets at which the placeholders begin in the template.
    pub places: Vec<u32>,
    /// The number of the first placeholder. It follows the highest `$n` of the original text.
    pub first: u32,
    /// The ranges of bytes that the literals have in the original text.
    pub literals: Vec<Range<usize>>,
}

impl Split {
    /// Splits `text` into a template and its literals. `backslashes` says what a backslash means in the text's strings.
    pub fn fill(&mut self, text: &str, backslashes: Backslashes) {
        self.first = highest_parameter(text) + 1;
        self.literals.clear();
        self.places.clear();
        self.template.clear();
        let mut scope = Scope::default();
        let mut tokens = Tokens::with(text, backslashes);
        while let Some(token) = tokens.next() {
            let literal = match token.kind {
                TokenKind::Comment => comment_text(&token),
                TokenKind::Text if !(scope.is_interval() && is_span(token.text)) => Some(token.at..token.end()),
                TokenKind::Number if !scope.keeps_numbers() => Some(token.at..token.end()),
                TokenKind::Word if scope.setting == Setting::Value && !token.is_word("default") => {
                    Some(token.at..token.end())
                }
                _ => None,
            };
            self.literals.extend(literal);
            if !token.is_blank() {
                scope.step(&token);
            }
            if scope.begins_list() {
                if let Some((list, rest)) = list(tokens.clone()) {
                    self.literals.push(list);
                    tokens = rest;
                }
            }
        }
        self.write_template(text);
    }

    /// Treats the whole `text` as one literal.
    pub fn fill_whole(&mut self, text: &str) {
        *self = Self { first: 1, ..Self::default() };
        self.literals.push(0..text.len());
        self.write_template(text);
    }

    fn write_template(&mut self, text: &str) {
        let mut done = 0;
        for (literal, number) in self.literals.iter().zip(self.first..) {
            self.template.push_str(&text[done..literal.start]);
            self.places.push(self.template.len() as u32);
            self.template.push('$');
            self.template.push_str(&number.to_string());
            done = literal.end;
        }
        self.template.push_str(&text[done..]);
    }
}

/// The greatest number of digits that a number of units of time has. A longer number is the value of something else.
const LONGEST_COUNT: usize = 9;

/// True if a quoted text is a span of time: its words are units of time, or it is an ISO 8601 interval such as
/// `P1DT2H`.
fn is_span(quoted: &str) -> bool {
    if quoted.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > LONGEST_COUNT) {
        return false;
    }
    let mut words = quoted.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.all(|word| word.len() <= 2 || UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit)))
}

/// Returns the highest number n of all `$n` in a text, or 0.
pub fn highest_parameter(text: &str) -> u32 {
    if !text.contains('$') {
        return 0;
    }
    Tokens::of(text).filter_map(|token| token.parameter()).max().unwrap_or(0)
}

/// Returns the text without comments, because libraries write a different identifier of each request into them, which
/// would make each statement a template of its own. Hints stay.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("/*") && !text.contains("--") {
        return Cow::Borrowed(text);
    }
    let kept = Tokens::of(text).map(|token| if comment_text(&token).is_some() { " " } else { token.text });
    Cow::Owned(kept.collect())
}

/// Returns the range of a comment's text without its delimiters. Returns `None` for hints and empty comments.
fn comment_text(token: &SqlToken<'_>) -> Option<Range<usize>> {
    let is_hint = token.text.starts_with("/*+");
    if token.kind != TokenKind::Comment || is_hint {
        return None;
    }
    let is_closed = token.text.len() >= 4 && token.text.starts_with("/*") && token.text.ends_with("*/");
    let text = token.at + 2..token.end() - if is_closed { 2 } else { 0 };
    (!text.is_empty()).then_some(text)
}

/// Reads a list of literals, with commas between them, up to the closing bracket. Returns the range of the whole list,
/// which becomes one literal, and the tokens from the bracket on. Returns `None` if the list contains something else.
fn list(mut tokens: Tokens<'_>) -> Option<(Range<usize>, Tokens<'_>)> {
    let mut range: Option<Range<usize>> = None;
    let mut is_complete = false;
    loop {
        let before = tokens.clone();
        let token = tokens.by_ref().find(|token| token.kind != TokenKind::Space)?;
        match token.kind {
            TokenKind::Text | TokenKind::Number if !is_complete => {
                is_complete = true;
                range = Some(range.map_or(token.at, |range| range.start)..token.end());
            }
            TokenKind::Symbol if token.text == "," && is_complete => is_complete = false,
            TokenKind::Symbol if matches!(token.text, "+" | "-") && !is_complete => {
                range = Some(range.unwrap_or(token.at..token.end()));
            }
            TokenKind::Symbol if matches!(token.text, ")" | "]") && is_complete => return Some((range?, before)),
            _ => return None,
        }
    }
}

/// The tokens before the current one, as far as they decide whether the current token is a literal.
#[derive(Default)]
struct Scope<'a> {
    depth: u32,
    /// The last three tokens that are neither spaces nor comments, the last one first.
    last: [Option<SqlToken<'a>>; 3],
    /// The depth of parentheses at which the current list behind `ORDER BY` or `GROUP BY` stands; `None` outside of
    /// such a list.
    by: Option<u32>,
    /// The depth of the parentheses of a type, such as `numeric(10, 2)`; `None` outside of such parentheses.
    in_type: Option<u32>,
    setting: Setting,
}

/// The part of a statement `SET app.tenant = acme` that the next token belongs to. The name of a setting that an
/// application has defined contains a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Setting {
    /// The next token begins a statement.
    #[default]
    Start,
    /// The name of the setting, or SESSION or LOCAL before it.
    Name {
        has_point: bool,
    },
    Value,
    /// The statement sets no such setting.
    Other,
}

impl Setting {
    fn behind(self, token: &SqlToken<'_>) -> Self {
        match self {
            _ if token.is_symbol(";") => Self::Start,
            Self::Start if token.is_word("set") => Self::Name { has_point: false },
            Self::Name { .. } if token.is_symbol(".") => Self::Name { has_point: true },
            Self::Name { has_point: true } if token.is_symbol("=") || token.is_word("to") => Self::Value,
            Self::Name { .. } if matches!(token.kind, TokenKind::Word | TokenKind::QuotedName) => self,
            Self::Value => Self::Value,
            Self::Start | Self::Name { .. } | Self::Other => Self::Other,
        }
    }
}

/// Types that may have numbers in parentheses, and that are recognized without a cast before them.
const TYPES: [&str; 14] = [
    "bit",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "interval",
    "nchar",
    "numeric",
    "time",
    "timestamp",
    "timestamptz",
    "varchar",
    "varying",
];

/// True if `BY` behind this token begins a list that may have the numbers of columns. Elsewhere `by` may be a name.
fn begins_by(token: &SqlToken<'_>) -> bool {
    ["group", "order", "partition"].iter().any(|word| token.is_word(word))
}

/// The keywords that end a list behind `BY`, such as LIMIT in `ORDER BY 1, 2 LIMIT 3`.
const ENDS_OF_BY: [&str; 13] = [
    "except",
    "fetch",
    "for",
    "from",
    "groups",
    "having",
    "intersect",
    "limit",
    "offset",
    "range",
    "rows",
    "union",
    "window",
];

impl<'a> Scope<'a> {
    fn step(&mut self, token: &SqlToken<'a>) {
        match token.text {
            "(" | "[" => {
                self.depth += 1;
                if self.is_behind_type() && self.in_type.is_none() {
                    self.in_type = Some(self.depth);
                }
            }
            ")" | "]" => {
                self.in_type = self.in_type.filter(|depth| *depth < self.depth);
                self.by = self.by.filter(|depth| *depth < self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            ";" => self.by = None,
            _ if token.is_word("by") && self.last_is(begins_by) => self.by = Some(self.depth),
            _ if self.by == Some(self.depth) && ENDS_OF_BY.iter().any(|word| token.is_word(word)) => self.by = None,
            _ => {}
        }
        self.last = [Some(*token), self.last[0], self.last[1]];
        self.setting = self.setting.behind(token);
    }

    fn last_is(&self, is_it: impl FnOnce(&SqlToken<'a>) -> bool) -> bool {
        self.last[0].as_ref().is_some_and(is_it)
    }

    /// True if the last token is the name of a type: one of [`TYPES`], or any name behind `::`.
    fn is_behind_type(&self) -> bool {
        let is_colon = |token: &Option<SqlToken<'a>>| token.is_some_and(|token| token.is_symbol(":"));
        let is_cast = is_colon(&self.last[1]) && is_colon(&self.last[2]);
        self.last_is(|token| token.kind == TokenKind::Word && (is_cast || TYPES.iter().any(|word| token.is_word(word))))
    }

    fn is_interval(&self) -> bool {
        self.last_is(|token| token.is_word("interval"))
    }

    fn keeps_numbers(&self) -> bool {
        let is_column =
            self.by == Some(self.depth) && self.last_is(|token| token.is_word("by") || token.is_symbol(","));
        self.in_type.is_some() || is_column
    }

    /// True if the last tokens are `IN (` or `ARRAY[`, which begin a list of values.
    fn begins_list(&self) -> bool {
        let [Some(bracket), Some(word), _] = &self.last else { return false };
        (bracket.is_symbol("(") && word.is_word("in")) || (bracket.is_symbol("[") && word.is_word("array"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> (String, Vec<&str>) {
        let mut split = Split::default();
        split.fill(text, Backslashes::Plain);
        (split.template, split.literals.into_iter().map(|range| &text[range]).collect())
    }

    #[test]
    fn literals_become_placeholders() {
        for (text, template, literals) in [
            ("select 1", "select $1", &["1"][..]),
            (
                "select * from t1 where a = 'x''y' and b=-5.0",
                "select * from t1 where a = $1 and b=-$2",
                &["'x''y'", "5.0"],
            ),
            ("update t set a=a+1 where \"1\"=E'\\''", "update t set a=a+$1 where \"1\"=$2", &["1", "E'\\''"]),
            ("do $$begin null; end$$", "do $1", &["$$begin null; end$$"]),
            ("select '2026-01-01'::date, date '2026-01-01'", "select $1::date, date $2", &["'2026-01-01'"; 2]),
            ("set local app.tenant to acme; set role acme", "set local app.tenant to $1; set role acme", &["acme"]),
            ("SET app.tenant = DEFAULT", "SET app.tenant = DEFAULT", &[]),
            ("update t set a.b = c", "update t set a.b = c", &[]),
            ("select interval '4111222233334444'", "select interval $1", &["'4111222233334444'"]),
            ("", "", &[]),
        ] {
            assert_eq!(split(text), (template.to_owned(), literals.to_vec()));
        }
    }

    #[test]
    fn what_is_part_of_the_shape_stays() {
        for text in [
            "select now() - interval '1 day'",
            "create table t (a numeric(10, 2), b varchar(20), c character varying(7), d timestamp (3))",
            "select a::vector(3), b :: pg(2)",
            "select a from t group by 1, 2 order by 1, 2 desc",
            "select /*+ SeqScan(t1) */ a from t",
            "select a1, t.\"2\" from x2",
        ] {
            assert_eq!(split(text), (text.to_owned(), vec![]));
        }
        assert_eq!(split("select by, 7 from t"), ("select by, $1 from t".to_owned(), vec!["7"]));
        let text = "select a from t order by f(a, 1), 2 limit 5";
        assert_eq!(split(text), ("select a from t order by f(a, $1), 2 limit $2".to_owned(), vec!["1", "5"]));
    }

    #[test]
    fn lists_of_any_length_share_a_template() {
        for list in ["1", "1, 2", "-1,+2 , 'a'"] {
            assert_eq!(split(&format!("select a in ({list})")), ("select a in ($1)".to_owned(), vec![list]));
        }
        assert_eq!(split("select array[1,2], b"), ("select array[$1], b".to_owned(), vec!["1,2"]));
        assert_eq!(split("a in (1, b)"), ("a in ($1, b)".to_owned(), vec!["1"]));
        assert_eq!(split("a in (select 1)"), ("a in (select $1)".to_owned(), vec!["1"]));
    }

    #[test]
    fn comments_are_values() {
        let text = "select 1 /* trace 17 */ -- end\n + 2 /**/";
        assert_eq!(split(text), ("select $1 /*$2*/ --$3\n + $4 /**/".to_owned(), vec!["1", " trace 17 ", " end", "2"]));
        assert_eq!(without_comments("a/*b*/ /*+c*/ '--d'--e\nf"), "a  /*+c*/ '--d' \nf");
    }

    #[test]
    fn placeholders_are_numbered_behind_those_of_the_text() {
        assert_eq!(split("prepare p as select $2, $1, 7"), ("prepare p as select $2, $1, $3".to_owned(), vec!["7"]));
        assert_eq!(highest_parameter("select $2, '$9', \"$8\", $3"), 3);
    }

    fn join(split: &Split, text: &str) -> String {
        let mut joined = String::new();
        let mut done = 0;
        for ((place, number), literal) in split.places.iter().zip(split.first..).zip(&split.literals) {
            joined += &split.template[done..*place as usize];
            joined += &text[literal.clone()];
            done = *place as usize + format!("${number}").len();
        }
        joined + &split.template[done..]
    }

    proptest! {
        #[test]
        fn literals_put_back_give_the_text(
            text in "([-a-z0-9_ '\"$.;:,()\\[\\]/*\\\\\né]|'a'|E'| in \\(1,| by | interval |::n\\(|\\$\\$|\\$1|/\\*|\\*/|--){0,40}"
        ) {
            let mut split = Split::default();
            split.fill(&text, Backslashes::Plain);
            prop_assert_eq!(join(&split, &text), text);
        }

        #[test]
        fn texts_that_differ_in_values_share_a_template(a in 0_u32..1_000_000, b in "[a-z' ]{0,9}") {
            let quoted = b.replace('\'', "''");
            let text = format!("select * from t where a = {a} and b = '{quoted}' limit {a}");
            prop_assert_eq!(split(&text).0, "select * from t where a = $1 and b = $2 limit $3");
        }
    }
}
