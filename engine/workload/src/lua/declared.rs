//! The options that a script declares.

use mlua::Table;

use crate::settings::{OptionSpec, OptionValue};

/// The kinds of options, as scripts number them.
mod kind {
    pub const BOOL: i64 = 1;
    pub const INT: i64 = 2;
    pub const SIZE: i64 = 3;
    pub const DOUBLE: i64 = 4;
    pub const LIST: i64 = 6;
}

/// Takes over the definitions that the prelude has read, each a table with `name`, `description`, `kind` and `default`.
pub fn take_over(definitions: &Table) -> mlua::Result<Vec<OptionSpec>> {
    definitions.sequence_values::<Table>().map(|definition| option(&definition?)).collect()
}

fn option(definition: &Table) -> mlua::Result<OptionSpec> {
    let default: Option<String> = definition.get("default")?;
    Ok(OptionSpec {
        name: definition.get("name")?,
        description: definition.get("description")?,
        default: default_value(definition.get("kind")?, default),
    })
}

fn default_value(kind: i64, default: Option<String>) -> OptionValue {
    let text = default.as_deref().unwrap_or("");
    match kind {
        kind::BOOL => OptionValue::Bool(matches!(text, "on" | "true" | "1")),
        kind::INT => OptionValue::Int(whole(text)),
        kind::SIZE => OptionValue::Int(size(text)),
        kind::DOUBLE => OptionValue::Double(text.trim().parse().unwrap_or(0.0)),
        kind::LIST if text.is_empty() => OptionValue::List(Vec::new()),
        kind::LIST => OptionValue::List(text.split(',').map(|item| item.trim().to_owned()).collect()),
        _ => OptionValue::Text(default),
    }
}

/// As C's `strtol` reads it: what is no number counts as 0.
fn whole(text: &str) -> i64 {
    text.trim().parse().unwrap_or_else(|_| text.trim().parse::<f64>().unwrap_or(0.0) as i64)
}

/// A number of bytes with a unit, e.g. `64K`.
fn size(text: &str) -> i64 {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = match text[digits.len()..].bytes().next().map(|unit| unit.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        _ => 1,
    };
    whole(digits).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_read_by_their_kind() {
        let of = |kind, text: &str| default_value(kind, Some(text.to_owned()));
        assert_eq!(of(kind::BOOL, "on"), OptionValue::Bool(true));
        assert_eq!(of(kind::INT, "7"), OptionValue::Int(7));
        assert_eq!(of(kind::SIZE, "64K"), OptionValue::Int(65536));
        assert_eq!(of(kind::DOUBLE, "2.5"), OptionValue::Double(2.5));
        assert_eq!(of(kind::LIST, "a,b"), OptionValue::List(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(default_value(5, None), OptionValue::Text(None));
    }
}
