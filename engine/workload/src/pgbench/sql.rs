//! Compiles the text of a statement to a text with gaps or parameters for its variables.

use super::error::ScriptError;
use super::symbols::Symbols;
use ground::sql::is_name;
use wire::statement::{Hole, QueryMode, Statement};

/// The greatest number of parameters of a statement, in the query modes that send values as parameters.
const MAX_PARAMETERS: usize = 255;

/// The greatest number of bytes of a statement's first line that reports show.
const MAX_LINE: usize = 127;

/// Compiles a statement. `id` is its number among all statements of the run.
pub fn compile(text: &[u8], id: usize, mode: QueryMode, symbols: &mut Symbols) -> Result<Statement, ScriptError> {
    let (mut pieces, mut holes, mut piece) = (Vec::new(), Vec::new(), Vec::<u8>::new());
    let mut rest = text;
    while let Some(colon) = rest.iter().position(|c| *c == b':') {
        let (before, from_colon) = rest.split_at(colon);
        piece.extend_from_slice(before);
        let length = variable(&from_colon[1..]);
        if length > 0 {
            let name = shown(&from_colon[1..=length]);
            pieces.push(std::mem::take(&mut piece));
            holes.push(Hole { slot: symbols.slot(&name), name });
            rest = &from_colon[1 + length..];
        } else {
            // Two colons are a cast and not the beginning of a variable.
            let colons = from_colon.iter().take_while(|c| **c == b':').count();
            piece.extend_from_slice(&from_colon[..colons]);
            rest = &from_colon[colons..];
        }
    }
    piece.extend_from_slice(rest);
    pieces.push(piece);
    if mode != QueryMode::Simple && holes.len() > MAX_PARAMETERS {
        let text = shown(text);
        return Err(ScriptError::new(format!(
            "statement has too many arguments (maximum is {MAX_PARAMETERS}): {text}"
        )));
    }
    Ok(Statement::new(id, &format!("P_{id}"), pieces, holes))
}

/// Returns the length of a variable's name at the beginning of `text`; 0 if there is none. A name does not begin with a
/// digit.
fn variable(text: &[u8]) -> usize {
    match text.first() {
        Some(c) if !c.is_ascii_digit() => text.iter().take_while(|c| is_name(**c)).count(),
        _ => 0,
    }
}

/// Returns the first line of a statement, shortened if it is long.
pub fn first_line(text: &[u8]) -> String {
    let text = &text[..text.len().min(MAX_LINE)];
    let length = text.iter().position(|c| matches!(c, b'\n' | b'\r')).unwrap_or(text.len());
    shown(&text[..length])
}

fn shown(text: &[u8]) -> String {
    ground::text::of(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::value::Value;

    fn simple_text(sql: &str) -> String {
        let mut symbols = Symbols::default();
        let statement = compile(sql.as_bytes(), 0, QueryMode::Simple, &mut symbols).unwrap();
        let mut values = vec![Value::Int(5); symbols.names().len()];
        if let Some(unset) = symbols.names().iter().position(|name| name == "unset") {
            values[unset] = Value::Unset;
        }
        let mut text = Vec::new();
        statement.write_text(&values, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn variables_are_replaced_and_casts_are_not() {
        assert_eq!(simple_text("SELECT :a + :b_2;"), "SELECT 5 + 5;");
        assert_eq!(simple_text("SELECT '1'::int, :a::text;"), "SELECT '1'::int, 5::text;");
        assert_eq!(simple_text("SELECT ':a' :::b :a:b"), "SELECT '5' :::b 55");
        assert_eq!(simple_text("SELECT a[1:2] : ;"), "SELECT a[1:2] : ;");
    }

    #[test]
    fn a_variable_without_a_value_stays_as_written() {
        assert_eq!(simple_text("SELECT :unset, :a"), "SELECT :unset, 5");
    }

    #[test]
    fn parameters_are_limited_where_they_are_used() {
        let sql = ":a".repeat(256);
        let compiled = |mode| compile(sql.as_bytes(), 0, mode, &mut Symbols::default()).map(|_| ());
        assert!(compiled(QueryMode::Simple).is_ok());
        let error = compiled(QueryMode::Prepared).unwrap_err().to_string();
        assert!(error.starts_with("statement has too many arguments (maximum is 255): :a:a"), "{error}");
    }

    #[test]
    fn the_first_line_is_cut() {
        assert_eq!(first_line(b"SELECT\r\n1;"), "SELECT");
        assert_eq!(first_line("x".repeat(200).as_bytes()).len(), 127);
    }
}
