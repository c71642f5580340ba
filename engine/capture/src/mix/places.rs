//! Finds the column to which each `$n` of a statement belongs, from the words around it.

use super::columns::Columns;
use crate::sql::tokens::{SqlToken, TokenKind, Tokens};

/// The text with which PostgreSQL 18's pg_stat_statements replaces all but the first value of a list.
const REST_OF_LIST: &str = "/*, ... */";

/// The meaning of a parameter in its statement. Columns are indexes into [`Columns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A value of the column.
    Value(usize),
    /// The lower end of a range of the column's values.
    Low(usize),
    /// The upper end of a range of the column's values.
    High(usize),
    /// Several values of the column with commas between them.
    List(usize),
    /// An array of several values of the column.
    Array(usize),
    /// A value that an INSERT stores in the column.
    Stored(usize),
    Limit,
    Offset,
    /// A number that the statement adds, subtracts, multiplies by or divides by.
    Step,
}

/// A statement whose placeholders are numbered in the order in which they stand in the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Normalized {
    pub text: String,
    /// The byte offsets at which the placeholders begin.
    pub places: Vec<u32>,
    /// The number that each placeholder had in the original text, and what the placeholder stands for.
    pub meanings: Vec<(u32, Meaning)>,
}

/// Finds the meaning of each parameter of a statement. Returns `None` if a parameter belongs to no known column.
pub fn normalize(query: &str, columns: &Columns) -> Option<Normalized> {
    let all: Vec<_> = Tokens::of(query).collect();
    let parser = Parser {
        tokens: all.iter().copied().filter(|token| !token.is_blank()).collect(),
        columns,
        tables: Vec::new(),
        stored: Vec::new(),
    };
    let parser = parser.with_tables();
    let mut found = Normalized::default();
    for token in &all {
        match token.parameter() {
            Some(number) => {
                let is_list = all
                    .iter()
                    .skip_while(|other| other.at <= token.at)
                    .find(|other| other.kind != TokenKind::Space)
                    .is_some_and(|next| next.text == REST_OF_LIST);
                let meaning = match parser.meaning(token)? {
                    Meaning::Value(column) if is_list => Meaning::List(column),
                    _ if is_list => return None,
                    meaning => meaning,
                };
                found.places.push(found.text.len() as u32);
                found.meanings.push((number, meaning));
                found.text += &format!("${}", found.meanings.len());
            }
            None if token.text == REST_OF_LIST => {}
            None if token.kind == TokenKind::Comment && !token.text.starts_with("/*+") => found.text.push(' '),
            None => found.text += token.text,
        }
    }
    pair_ranges(&mut found.meanings, &parser);
    Some(found)
}

/// Finds pairs of parameters of which one is a lower limit and the other an upper limit of the same column, and makes
/// them the two ends of one range.
fn pair_ranges(meanings: &mut [(u32, Meaning)], parser: &Parser<'_, '_>) {
    let sides: Vec<Option<Side>> = parser.parameters().map(|at| parser.side(at)).collect();
    for low in 0..meanings.len() {
        let (Meaning::Value(column), Some(Side::Above)) = (meanings[low].1, sides[low]) else { continue };
        let is_other =
            |other: &usize| meanings[*other].1 == Meaning::Value(column) && sides[*other] == Some(Side::Below);
        if let Some(high) = (0..meanings.len()).find(is_other) {
            meanings[low].1 = Meaning::Low(column);
            meanings[high].1 = Meaning::High(column);
        }
    }
}

/// The side of a parameter on which the values that a comparison selects lie: above the parameter for `column > $1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

/// A table that the statement names, and the alias under which the statement refers to the table's columns. `table` is
/// its name in [`Columns`].
struct Named {
    table: String,
    alias: String,
}

struct Parser<'a, 'c> {
    /// The tokens of the statement without spaces and comments.
    tokens: Vec<SqlToken<'a>>,
    columns: &'c Columns,
    tables: Vec<Named>,
    /// The columns into which an INSERT stores, in the order of its values.
    stored: Vec<usize>,
}

/// Words that may follow a table's name and are not its alias.
const NO_ALIAS: [&str; 28] = [
    "as",
    "cross",
    "default",
    "except",
    "fetch",
    "for",
    "full",
    "group",
    "having",
    "inner",
    "intersect",
    "join",
    "left",
    "limit",
    "natural",
    "offset",
    "on",
    "order",
    "overriding",
    "returning",
    "right",
    "select",
    "set",
    "tablesample",
    "union",
    "using",
    "values",
    "where",
];

impl<'a> Parser<'a, '_> {
    fn token(&self, at: usize) -> Option<&SqlToken<'a>> {
        self.tokens.get(at)
    }

    fn is_word(&self, at: usize, words: &[&str]) -> bool {
        self.token(at).is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    }

    fn is_symbol(&self, at: usize, symbols: &str) -> bool {
        self.token(at).is_some_and(|token| token.kind == TokenKind::Symbol && symbols.contains(token.text))
    }

    /// Returns the name that stands at token `at`, folded to lower case unless it is quoted, as PostgreSQL stores
    /// names.
    fn name(&self, at: usize) -> Option<String> {
        let token = self.token(at)?;
        match token.kind {
            TokenKind::Word => Some(token.text.to_lowercase()),
            TokenKind::QuotedName => Some(token.text.trim_matches('"').replace("\"\"", "\"")),
            _ => None,
        }
    }

    /// Returns the indexes of the parameters among the tokens.
    fn parameters(&self) -> impl Iterator<Item = usize> {
        (0..self.tokens.len()).filter(|at| self.tokens[*at].kind == TokenKind::Parameter)
    }

    fn with_tables(mut self) -> Self {
        let mut at = 0;
        while at < self.tokens.len() {
            let is_insert = self.is_word(at, &["into"]);
            let is_begin = is_insert || self.is_word(at, &["from", "join", "update", "using"]);
            at += 1;
            if is_begin {
                at = self.take_tables(at, is_insert);
            }
        }
        self
    }

    /// Reads the list of tables that begins at token `at`. Returns the index of the token behind the list.
    fn take_tables(&mut self, mut at: usize, is_insert: bool) -> usize {
        loop {
            let after_only = at + usize::from(self.is_word(at, &["only"]));
            let Some(next) = self.take_table(after_only) else { return at };
            if is_insert {
                return self.take_stored(next);
            }
            if !self.is_symbol(next, ",") {
                return next;
            }
            at = next + 1;
        }
    }

    /// Reads a table and its alias. Returns the index of the token behind them.
    fn take_table(&mut self, at: usize) -> Option<usize> {
        let mut table = self.name(at)?;
        let mut end = at + 1;
        let mut alias = table.clone();
        if self.is_symbol(end, ".") {
            alias = self.name(end + 1)?;
            table = format!("{table}.{alias}");
            end += 2;
        }
        end += usize::from(self.is_word(end, &["as"]));
        if let Some(name) = self.name(end).filter(|_| !self.is_word(end, &NO_ALIAS)) {
            alias = name;
            end += 1;
        }
        self.tables.push(Named { table, alias });
        Some(end)
    }

    /// Reads the list of columns of an INSERT. Without a list, the INSERT stores into all columns of its table.
    fn take_stored(&mut self, at: usize) -> usize {
        let table = self.tables.last().map(|named| named.table.clone()).unwrap_or_default();
        self.stored = self.columns.table(&table).unwrap_or(&[]).to_vec();
        let closing = self.token(at).filter(|token| token.is_symbol("(")).and_then(|_| self.closing(at));
        let Some(closing) = closing.filter(|_| !self.is_word(at + 1, &["select", "with", "values"])) else { return at };
        let names = (at + 1..closing).step_by(2).filter_map(|place| self.name(place));
        // An unknown column is kept as a gap, so that the columns behind it still match their values.
        self.stored = names.map(|name| self.columns.find(&table, &name).unwrap_or(usize::MAX)).collect();
        closing + 1
    }

    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..self.tokens.len()).find(|at| {
            depth += i32::from(self.is_symbol(*at, "(")) - i32::from(self.is_symbol(*at, ")"));
            depth == 0
        })
    }

    /// Returns the index of the innermost opening parenthesis around token `at`, and the number of commas that stand
    /// between that parenthesis and the token outside of further parentheses.
    fn opening(&self, at: usize) -> Option<(usize, usize)> {
        let (mut depth, mut commas) = (0, 0);
        for before in (0..at).rev() {
            if self.is_symbol(before, ")") {
                depth += 1;
            } else if self.is_symbol(before, "(") {
                if depth == 0 {
                    return Some((before, commas));
                }
                depth -= 1;
            }
            commas += usize::from(depth == 0 && self.is_symbol(before, ","));
        }
        None
    }

    /// Returns the column whose name ends at token `end`. A cast may stand behind the name.
    fn column_before(&self, end: usize) -> Option<usize> {
        let mut at = end;
        if at >= 3 && self.is_symbol(at - 1, ":") && self.is_symbol(at - 2, ":") {
            at -= 3;
        }
        let name = self.name(at)?;
        let qualifier = if at >= 2 && self.is_symbol(at - 1, ".") { Some(self.name(at - 2)?) } else { None };
        self.resolve(qualifier.as_deref(), &name)
    }

    /// Returns the column before an operator that is a word, such as LIKE. NOT may stand between them.
    fn column_of(&self, word: usize) -> Option<usize> {
        let before = word.checked_sub(1)?;
        self.column_before(before.checked_sub(usize::from(self.is_word(before, &["not"])))?)
    }

    /// Returns the column whose name begins at token `at`.
    fn column_behind(&self, at: usize) -> Option<usize> {
        let name = self.name(at)?;
        if self.is_symbol(at + 1, ".") {
            self.resolve(Some(&name), &self.name(at + 2)?)
        } else {
            self.resolve(None, &name)
        }
    }

    fn resolve(&self, qualifier: Option<&str>, name: &str) -> Option<usize> {
        let mut tables = self.tables.iter().filter(|named| qualifier.is_none_or(|alias| named.alias == alias));
        let found = tables.find_map(|named| self.columns.find(&named.table, name));
        found.filter(|column| self.columns.has_values(*column))
    }

    fn meaning(&self, token: &SqlToken<'_>) -> Option<Meaning> {
        let at = self.tokens.iter().position(|other| other.at == token.at)?;
        let mut before = at.checked_sub(1)?;
        // A type may stand before the parameter, as in `date $1`.
        if self.is_word(before, &["date", "time", "timestamp", "timestamptz"]) {
            before = before.checked_sub(1)?;
        }
        if self.is_word(before, &["limit", "first", "next"]) {
            return Some(Meaning::Limit);
        }
        if self.is_word(before, &["offset"]) {
            return Some(Meaning::Offset);
        }
        if self.is_word(before, &["like", "ilike", "between"]) {
            let column = self.column_of(before)?;
            let is_range = self.is_word(before, &["between"]);
            return Some(if is_range { Meaning::Low(column) } else { Meaning::Value(column) });
        }
        if let Some(column) = self.end_of_between(before) {
            return Some(Meaning::High(column));
        }
        if self.is_symbol(before, "+-*/") {
            return Some(Meaning::Step);
        }
        if self.is_symbol(before, "=<>!") {
            return self.column_before(self.before_operator(before)?).map(Meaning::Value);
        }
        self.in_brackets(at).or_else(|| self.compared_behind(at))
    }

    /// Returns the index of the token before an operator whose last token is `end`.
    fn before_operator(&self, end: usize) -> Option<usize> {
        (0..end).rev().find(|at| !self.is_symbol(*at, "=<>!"))
    }

    /// Returns the column of a `column BETWEEN ... AND` whose AND is the token `and`; `None` if this AND does not
    /// belong to a BETWEEN.
    fn end_of_between(&self, and: usize) -> Option<usize> {
        if !self.is_word(and, &["and"]) {
            return None;
        }
        let between = (0..and).rev().take_while(|at| !self.is_word(*at, &["and", "or", "where"]));
        let between = between.filter(|at| self.is_word(*at, &["between"])).last()?;
        self.column_of(between)
    }

    /// Returns what a parameter in `IN (...)`, in `= ANY (...)` or among the values of an INSERT stands for.
    fn in_brackets(&self, at: usize) -> Option<Meaning> {
        let (open, commas) = self.opening(at)?;
        let word = open.checked_sub(1)?;
        if self.is_word(word, &["in"]) {
            return self.column_of(word).map(Meaning::Value);
        }
        if self.is_word(word, &["any", "some", "all"]) {
            return self.column_before(self.before_operator(word)?).map(Meaning::Array);
        }
        let is_alone = self.is_symbol(at - 1, "(,") && (self.is_symbol(at + 1, "),:"));
        // In a further row of VALUES, the opening parenthesis follows a closing parenthesis and a comma.
        let is_row =
            self.is_word(word, &["values"]) || (word > 0 && self.is_symbol(word, ",") && self.is_symbol(word - 1, ")"));
        let column = self.stored.get(commas).copied().filter(|column| *column != usize::MAX);
        column.filter(|column| is_alone && is_row && self.columns.has_values(*column)).map(Meaning::Stored)
    }

    /// Returns what a parameter before an operator, as in `$1 = column`, stands for.
    fn compared_behind(&self, at: usize) -> Option<Meaning> {
        let behind = (at + 1..self.tokens.len()).find(|at| !self.is_symbol(*at, "=<>!"))?;
        if behind == at + 1 {
            return None;
        }
        self.column_behind(behind).map(Meaning::Value)
    }

    /// Returns the side of the parameter on which a comparison such as `column > $1` selects values; `None` if the
    /// parameter is not in such a comparison.
    fn side(&self, at: usize) -> Option<Side> {
        let first = self.before_operator(at)? + 1;
        if first == at {
            return None;
        }
        match self.token(first)?.text {
            ">" => Some(Side::Above),
            "<" if !self.is_symbol(first + 1, ">") => Some(Side::Below),
            _ => None,
        }
    }
}
