//! The kinds of values that options have, and functions that convert the written text of an option to its value.

use ground::c_numbers;
use workload::settings::OptionValue;

/// The kind of value that an option has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Bool,
    Int,
    /// The value is a number of bytes. A letter K, M, G or T after the number multiplies it by a power of 1024.
    Size,
    Double,
    Text,
    List,
    /// The value is the name of a file with more options.
    File,
}

impl OptionKind {
    /// Returns the kind of an option whose default value is `default`.
    pub fn of(default: &OptionValue) -> Self {
        match default {
            OptionValue::Bool(_) => Self::Bool,
            OptionValue::Int(_) => Self::Int,
            OptionValue::Double(_) => Self::Double,
            OptionValue::Size(_) => Self::Size,
            OptionValue::Text(_) => Self::Text,
            OptionValue::List(_) => Self::List,
        }
    }

    /// Returns the placeholder for the value that the help shows after the name of an option.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Bool => "[=on|off]",
            Self::Int | Self::Double => "=N",
            Self::Size => "=SIZE",
            Self::Text => "=STRING",
            Self::List => "=[LIST,...]",
            Self::File => "=FILENAME",
        }
    }
}

/// The value of an option as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The option was written without a value: `--debug`.
    Nothing,
    /// The value from a command line: the text after the first equals sign.
    Text(String),
    /// The value from a line of a file: one word or several words.
    Words(Vec<String>),
}

impl Written {
    /// Returns the value as messages show it.
    pub fn shown(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) => text.clone(),
            Self::Words(words) => words.join(","),
        }
    }

    /// Returns the value if it is a single word, an empty text if there is no value, and `None` if there are several
    /// words.
    fn single(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Text(text) => Some(text),
            Self::Words(words) => match words.as_slice() {
                [] => Some(""),
                [word] => Some(word),
                _ => None,
            },
        }
    }

    /// Returns the elements of a list. A text from the command line is split at commas, and empty elements are left
    /// out.
    fn list(&self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Text(text) => text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect(),
            Self::Words(words) => words.clone(),
        }
    }
}

/// Converts the written value of an option of this kind. Returns `None` if the value is not valid for the kind.
pub fn evaluate(kind: OptionKind, written: &Written) -> Option<OptionValue> {
    if kind == OptionKind::List {
        return Some(OptionValue::List(written.list()));
    }
    let text = written.single()?;
    match kind {
        OptionKind::Bool if *written == Written::Nothing => Some(OptionValue::Bool(true)),
        OptionKind::Bool => switch(text).map(OptionValue::Bool),
        OptionKind::Int => integer(text).map(OptionValue::Int),
        OptionKind::Size => c_numbers::size(text).map(OptionValue::Int),
        OptionKind::Double => double(text).map(OptionValue::Double),
        OptionKind::Text | OptionKind::List | OptionKind::File => {
            Some(OptionValue::Text((!text.is_empty()).then(|| text.to_owned())))
        }
    }
}

/// The forms in which whole numbers may be written in the options of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Numbers are written with digits only.
    Plain,
    /// Numbers may also be written as floating-point numbers such as `1e6`, which sysbench's own Lua tests accept.
    Doubles,
    /// Numbers may also be written as floating-point numbers or as sizes such as `64K`, because scripts do not declare
    /// which of their numbers are sizes.
    Sizes,
}

/// Converts the written value of an option that a test declares with this default value. A size is returned as it was
/// written, since the test itself checks sizes. Returns `None` if the value is not valid.
pub fn evaluate_for_test(default: &OptionValue, written: &Written, numbers: Numbers) -> Option<OptionValue> {
    if let OptionValue::Size(_) = default {
        return Some(OptionValue::Size(written.single()?.to_owned()));
    }
    evaluate(OptionKind::of(default), written).or_else(|| match default {
        OptionValue::Int(_) if numbers != Numbers::Plain => match double(written.single()?) {
            Some(number) => whole(number).map(OptionValue::Int),
            None => (numbers == Numbers::Sizes).then(|| evaluate(OptionKind::Size, written))?,
        },
        _ => None,
    })
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a whole number that fits in 32 bits with a sign.
fn integer(text: &str) -> Option<i64> {
    let number = c_numbers::integer(text.as_bytes()).ok()?;
    i32::try_from(number).ok().map(i64::from)
}

fn double(text: &str) -> Option<f64> {
    c_numbers::double(text.as_bytes()).ok().filter(|number| number.is_finite())
}

/// Converts a floating-point number to an integer. Returns `None` if it has a fraction, or if its magnitude is 2^53 or
/// more, above which not every integer can be represented.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64)
}

/// Returns a default value as the help shows it, in the form in which it would be written on a command line. Returns
/// `None` for an option without a default.
pub fn show(value: &OptionValue) -> Option<String> {
    match value {
        OptionValue::Bool(true) => Some("on".to_owned()),
        OptionValue::Bool(false) => Some("off".to_owned()),
        OptionValue::Int(number) => Some(number.to_string()),
        OptionValue::Double(number) => Some(number.to_string()),
        OptionValue::Size(text) => Some(text.clone()),
        OptionValue::Text(text) => text.clone(),
        OptionValue::List(items) => Some(items.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> Written {
        Written::Text(text.to_owned())
    }

    fn words(words: &[&str]) -> Written {
        Written::Words(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn list(items: &[&str]) -> Option<OptionValue> {
        Some(OptionValue::List(items.iter().map(|item| (*item).to_owned()).collect()))
    }

    #[test]
    fn switches_take_the_words_of_the_original_and_no_others() {
        for on in [Written::Nothing, text("on"), text("true"), text("1"), words(&["on"])] {
            assert_eq!(evaluate(OptionKind::Bool, &on), Some(OptionValue::Bool(true)), "{on:?}");
        }
        for off in ["off", "false", "0"] {
            assert_eq!(evaluate(OptionKind::Bool, &text(off)), Some(OptionValue::Bool(false)), "{off}");
        }
        for wrong in [text(""), text("yes"), text("ON"), text("TRUE"), words(&[]), words(&["on", "off"])] {
            assert_eq!(evaluate(OptionKind::Bool, &wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn whole_numbers_are_of_32_bits() {
        assert_eq!(evaluate(OptionKind::Int, &text(" +5")), Some(OptionValue::Int(5)));
        assert_eq!(evaluate(OptionKind::Int, &text("-2147483648")), Some(OptionValue::Int(-2_147_483_648)));
        for wrong in ["", "x", "5 ", "2147483648", "1.5", "0x1", "1K"] {
            assert_eq!(evaluate(OptionKind::Int, &text(wrong)), None, "{wrong}");
        }
        assert_eq!(evaluate(OptionKind::Int, &Written::Nothing), None);
    }

    #[test]
    fn sizes_take_a_letter() {
        for (written, bytes) in [("64K", 65_536), ("5k", 5_120), ("1M", 1 << 20), ("5G", 5 << 30), ("7", 7)] {
            assert_eq!(evaluate(OptionKind::Size, &text(written)), Some(OptionValue::Int(bytes)), "{written}");
        }
        for wrong in ["", "K", "x", "64Q", "5kB", "-1", "+1", "9999999999T", "é"] {
            assert_eq!(evaluate(OptionKind::Size, &text(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn doubles_are_finite() {
        assert_eq!(evaluate(OptionKind::Double, &text("1e3")), Some(OptionValue::Double(1000.0)));
        for wrong in ["", "x", "1x", "inf", "nan"] {
            assert_eq!(evaluate(OptionKind::Double, &text(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn lists_are_split_at_commas_unless_they_came_as_words() {
        assert_eq!(evaluate(OptionKind::List, &text(",a,,b c,")), list(&["a", "b c"]));
        assert_eq!(evaluate(OptionKind::List, &words(&["a,b", "c"])), list(&["a,b", "c"]));
        assert_eq!(evaluate(OptionKind::List, &Written::Nothing), list(&[]));
    }

    #[test]
    fn an_empty_text_is_none() {
        assert_eq!(evaluate(OptionKind::Text, &text("")), Some(OptionValue::Text(None)));
        assert_eq!(evaluate(OptionKind::Text, &text("a=b")), Some(OptionValue::Text(Some("a=b".to_owned()))));
        assert_eq!(evaluate(OptionKind::Text, &words(&["a", "b"])), None);
    }

    #[test]
    fn a_tests_whole_numbers_may_be_written_as_doubles() {
        let int = OptionValue::Int(1);
        assert_eq!(evaluate_for_test(&int, &text("1e6"), Numbers::Doubles), Some(OptionValue::Int(1_000_000)));
        assert_eq!(
            evaluate_for_test(&int, &text("3000000000"), Numbers::Doubles),
            Some(OptionValue::Int(3_000_000_000))
        );
        for wrong in ["x", "", "1.5", "1e30", "inf"] {
            assert_eq!(evaluate_for_test(&int, &text(wrong), Numbers::Sizes), None, "{wrong}");
        }
        for wrong in ["1e6", "3000000000", "4K"] {
            assert_eq!(evaluate_for_test(&int, &text(wrong), Numbers::Plain), None, "{wrong}");
        }
    }

    #[test]
    fn a_scripts_whole_numbers_may_be_sizes() {
        let int = OptionValue::Int(1);
        assert_eq!(evaluate_for_test(&int, &text("4K"), Numbers::Sizes), Some(OptionValue::Int(4096)));
        assert_eq!(evaluate_for_test(&int, &text("4K"), Numbers::Doubles), None);
    }

    #[test]
    fn a_size_of_a_test_stays_as_it_was_written() {
        let size = |written: &Written| evaluate_for_test(&OptionValue::Size(String::new()), written, Numbers::Plain);
        for written in ["1K", "3x", ""] {
            assert_eq!(size(&text(written)), Some(OptionValue::Size(written.to_owned())));
        }
        assert_eq!(
            (size(&Written::Nothing), size(&words(&["1", "2"]))),
            (Some(OptionValue::Size(String::new())), None)
        );
    }

    fn kind() -> impl Strategy<Value = OptionKind> {
        prop::sample::select(vec![
            OptionKind::Bool,
            OptionKind::Int,
            OptionKind::Size,
            OptionKind::Double,
            OptionKind::Text,
            OptionKind::List,
            OptionKind::File,
        ])
    }

    proptest! {
        #[test]
        fn any_text_has_a_value_or_none(kind in kind(), written in "[-+ 0-9a-zA-Zé.,]{0,12}") {
            let _ = evaluate(kind, &text(&written));
        }

        #[test]
        fn a_shown_value_reads_as_itself(number in any::<i32>(), double in -1e9..1e9f64, on in any::<bool>()) {
            for value in [OptionValue::Int(number.into()), OptionValue::Double(double), OptionValue::Bool(on)] {
                let shown = text(&show(&value).unwrap_or_default());
                prop_assert_eq!(evaluate(OptionKind::of(&value), &shown), Some(value));
            }
        }
    }
}
