//! Parses the list of bound parameters that the server logs, such as `$1 = 'it''s', $2 = NULL`.

/// The values of a statement's parameters in their order; `None` is NULL.
pub type Values = Vec<Option<String>>;

/// Parses a list of parameters. Returns `None` if the text is not such a list.
pub fn parse(text: &str) -> Option<Values> {
    let mut values = Values::new();
    let mut rest = text;
    loop {
        rest = rest.strip_prefix('$')?.strip_prefix(&(values.len() + 1).to_string())?.strip_prefix(" = ")?;
        if let Some(after) = rest.strip_prefix("NULL") {
            values.push(None);
            rest = after;
        } else {
            let (value, after) = take_quoted(rest)?;
            values.push(Some(value));
            rest = after;
        }
        match rest.strip_prefix(", ") {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(values),
        }
    }
}

/// Splits a text in single quotes, in which quotes are doubled, off the beginning of `text`. Returns its value and the
/// rest.
fn take_quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let at = memchr::memchr(b'\'', rest.as_bytes())?;
        value.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, rest)),
        }
    }
}

/// True if the server may have shortened a value because of log_parameter_max_length, since the value ends in three
/// dots.
pub fn may_be_cut(value: &str) -> bool {
    value.ends_with("...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(values in prop::collection::vec(prop::option::of("[a',$= \n\"é]*"), 1..12)) {
            let logged: Vec<_> = values.iter().zip(1..).map(|(value, number)| match value {
                None => format!("${number} = NULL"),
                Some(value) => format!("${number} = '{}'", value.replace('\'', "''")),
            }).collect();
            prop_assert_eq!(parse(&logged.join(", ")), Some(values));
        }
    }

    #[test]
    fn other_texts_are_no_lists() {
        for text in ["", "$1", "$1 = 5", "$2 = 'a'", "$1 = 'a", "$1 = 'a' and", "$1 = 'a', ", "$1 = NULLS"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
