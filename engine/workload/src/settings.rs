//! Options that a test declares, and the values that were chosen: what a front end reads for programs.

use std::collections::BTreeMap;

/// An option that a test declares.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    /// The option's name, as the test's help prints it. Dashes and underscores are the same.
    pub name: String,
    pub description: String,
    /// The default value, which also determines the type of values that can be chosen.
    pub default: OptionValue,
}

impl OptionSpec {
    /// Makes an option that a test declares.
    pub fn new(name: &str, description: &str, default: OptionValue) -> Self {
        Self { name: name.to_owned(), description: description.to_owned(), default }
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A size in bytes as it was written, such as `64K`; it may be wrong ([`ground::c_numbers::size`]).
    Size(String),
    /// A text; `None` if the option has no default and no value was chosen.
    Text(Option<String>),
    List(Vec<String>),
}

/// All options of a run, general ones and the test's, by their names with underscores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<String, OptionValue>,
}

impl Settings {
    /// Sets the value of an option, and replaces a former value.
    pub fn set(&mut self, name: &str, value: OptionValue) {
        self.values.insert(name.replace('-', "_"), value);
    }

    /// Returns an option's value, if there is such an option.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.get(name)
    }

    /// Returns the options in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value of an option as a whole number: 0 if there is no number of this name; the digits behind the
    /// point of a double are cut.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number,
            Some(OptionValue::Double(number)) => *number as i64,
            _ => 0,
        }
    }

    /// Returns the value of an option as a double; 0 if there is no number of this name.
    pub fn double(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number as f64,
            Some(OptionValue::Double(number)) => *number,
            _ => 0.0,
        }
    }

    /// Returns true if a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), Some(OptionValue::Bool(true)))
    }

    /// Returns the text of an option, if there is a text option of this name. The text of a size is returned as the
    /// user wrote it.
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
