//! The options that a test or a Lua script declares, and the values that the user has chosen for them.

use std::collections::BTreeMap;

/// An option that a test or a script declares.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionSpec {
    /// The name of the option in the test's help. Dashes and underscores in it mean the same.
    pub name: String,
    pub description: String,
    /// The default value. Its type is also the type of the values that the user can give.
    pub default: OptionValue,
}

impl OptionSpec {
    /// Declares an option with its description and its default.
    pub fn new(name: &str, description: &str, default: OptionValue) -> Self {
        Self { name: name.to_owned(), description: description.to_owned(), default }
    }
}

/// The value of an option, with its type.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A size in bytes as the user wrote it, such as `64K`. It is not checked yet ([`ground::c_numbers::size`]).
    Size(String),
    /// A text; `None` if the user has given no value and the option has no default.
    Text(Option<String>),
    List(Vec<String>),
}

/// The values of all options of a run, both the general ones and those of the test. The keys are the options' names
/// with underscores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<String, OptionValue>,
}

impl Settings {
    /// Sets the value of an option. An earlier value is replaced.
    pub fn set(&mut self, name: &str, value: OptionValue) {
        self.values.insert(name.replace('-', "_"), value);
    }

    /// Returns the value of an option; `None` if there is no such option.
    pub fn get(&self, name: &str) -> Option<&OptionValue> {
        self.values.get(name)
    }

    /// Returns all options, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value of an option as a whole number, without the digits behind the decimal point. Returns 0 if no
    /// option of this name has a number.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number,
            Some(OptionValue::Double(number)) => *number as i64,
            _ => 0,
        }
    }

    /// Returns the value of an option as a double. Returns 0 if no option of this name has a number.
    pub fn double(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(OptionValue::Int(number)) => *number as f64,
            Some(OptionValue::Double(number)) => *number,
            _ => 0.0,
        }
    }

    /// True if the option is on. False if it is off, or if there is no switch of this name.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), Some(OptionValue::Bool(true)))
    }

    /// Returns the text of an option. Returns `None` if no option of this name has a text. A size is returned as the
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
