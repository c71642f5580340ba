//! Options that a test declares, and the values that were chosen: what a front end reads for programs.

use std::collections::BTreeMap;

/// An option that a test declares.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    /// As the test's help prints it. Dashes and underscores are the same.
    pub name: String,
    pub description: String,
    /// Its kind is the option's.
    pub default: OptionValue,
}

impl OptionSpec {
    /// An option that a test declares.
    pub fn new(name: &str, description: &str, default: OptionValue) -> Self {
        Self { name: name.to_owned(), description: description.to_owned(), default }
    }
}

/// An option's value.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A size in bytes as it was written, such as `64K`; it may be wrong ([`ground::c_numbers::size`]).
    Size(String),
    /// `None` where there is neither a default nor a choice.
    Text(Option<String>),
    List(Vec<String>),
}

/// All options of a run, general ones and the test's, by their names with underscores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<String, OptionValue>,
}

impl Settings {
    /// Sets an option, whatever it was.
    pub fn set(&mut self, name: &str, value: OptionValue) {
        self.values.insert(name.replace('-', "_"), value);
    }

    /// An option's value, if there is such an option.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.get(name)
    }

    /// The options in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A whole number; 0 where there is none of this name, or a double's whole part.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number,
            Some(OptionValue::Double(number)) => *number as i64,
            _ => 0,
        }
    }

    /// A number; 0 where there is none of this name.
    pub fn double(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number as f64,
            Some(OptionValue::Double(number)) => *number,
            _ => 0.0,
        }
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), Some(OptionValue::Bool(true)))
    }

    /// A text, if there is one of this name; of a size what was written.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(OptionValue::Text(Some(text)) | OptionValue::Size(text)) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_by_names_with_underscores() {
        let mut settings = Settings::default();
        settings.set("table-size", OptionValue::Int(7));
        settings.set("skip_trx", OptionValue::Bool(true));
        settings.set("rand_type", OptionValue::Text(Some("special".to_owned())));
        assert_eq!((settings.int("table_size"), settings.is_on("skip_trx")), (7, true));
        assert_eq!((settings.text("rand_type"), settings.text("table_size")), (Some("special"), None));
        assert_eq!(settings.double("table_size"), 7.0);
    }
}
