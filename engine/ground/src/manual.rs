//! The description of a front end and its options as data. Its help text, its manual page and the completion of shells
//! are made from it.

use std::fmt::Write;

use serde::Serialize;

use crate::options::OptionRow;

/// The description of a front end. Its texts consist of paragraphs with an empty line between them. Lines that begin
/// with a space are not wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manual {
    pub about: &'static str,
    /// The command lines that call the front end, one on each line.
    pub usage: &'static [&'static str],
    pub description: &'static str,
    pub options: Vec<OptionEntry>,
    pub notes: String,
}

/// An option of a front end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptionEntry {
    /// The heading under which the help shows the option. If it is empty, the help shows an empty line in place of a
    /// heading.
    pub group: &'static str,
    pub short: Option<char>,
    pub long: &'static str,
    /// The name of the option's argument in the help text.
    pub argument: Option<&'static str>,
    /// True if the option may be given without its argument.
    pub argument_is_optional: bool,
    /// The explanation of the option, which may have several lines.
    pub help: String,
    /// The names and the argument of the option, as the help shows them.
    #[serde(skip)]
    pub spec: &'static str,
}

impl OptionEntry {
    /// Makes the entry for a row of the option table. `title` is the heading of the row's group.
    pub fn of<T, E, G>(row: &OptionRow<T, E, G>, title: &'static str) -> Self {
        Self {
            group: title,
            short: row.short(),
            long: row.long(),
            argument: row.argument(),
            argument_is_optional: false,
            help: row.help.to_owned(),
            spec: row.spec,
        }
    }
}

/// Returns the entries of an option table, in the order of the table. `title` returns the heading of a group.
pub fn entries<T, E, G>(table: &[&[OptionRow<T, E, G>]], title: impl Fn(&G) -> &'static str) -> Vec<OptionEntry> {
    table.iter().copied().flatten().map(|row| OptionEntry::of(row, title(&row.group))).collect()
}

impl Manual {
    /// Returns the text of `--help`.
    pub fn help(&self) -> String {
        let mut text = format!("{}\n\nUsage:\n", self.about);
        for line in self.usage {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {line}");
        }
        if !self.description.is_empty() {
            let _ = write!(text, "\n{}\n", self.description);
        }
        let mut heading = None;
        for entry in &self.options {
            if heading != Some(entry.group) {
                heading = Some(entry.group);
                text += if entry.group.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{}", entry.group);
            }
            text += &help_line(entry.spec, &entry.help);
        }
        if !self.notes.is_empty() {
            let _ = write!(text, "\n{}\n", self.notes);
        }
        text
    }
}

/// The column of the help text at which explanations begin, as in pgbench's help.
const COLUMN: usize = 27;

/// Returns the lines of the help text that describe one option.
fn help_line(spec: &str, help: &str) -> String {
    let gap = format!("\n{:COLUMN$}", "");
    let mut text = format!("  {spec}");
    if text.len() < COLUMN {
        let _ = write!(text, "{:1$}", "", COLUMN - text.len());
    } else {
        text += &gap;
    }
    text + &help.replace('\n', &gap) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Stop;

    type Row = OptionRow<bool, String, &'static str>;

    const TABLE: &[Row] = &[
        Row::switch("-q, --quiet", "First:", "say less", |quiet| quiet),
        Row::value("--number-of-things=NUM", "First:", "so many", |_, _| Ok(())),
        Row::action("-?, --a-very-long-name-indeed", "", "one\ntwo", |_| Err(Stop::Print("help".to_owned()))),
    ];

    #[test]
    fn the_help_has_groups_and_a_column_of_explanations() {
        let manual = Manual {
            about: "It is a test.",
            usage: &["test [OPTION]..."],
            description: "Nothing is tested.",
            options: entries(&[TABLE], |title| title),
            notes: "The end.".to_owned(),
        };
        let expected = "\
It is a test.

Usage:
  test [OPTION]...

Nothing is tested.

First:
  -q, --quiet              say less
  --number-of-things=NUM   so many

  -?, --a-very-long-name-indeed
                           one
                           two

The end.
";
        assert_eq!(manual.help(), expected);
    }

    #[test]
    fn an_entry_has_the_parts_of_its_row() {
        let entries = entries(&[TABLE], |title| title);
        let parts: Vec<_> = entries.iter().map(|entry| (entry.short, entry.long, entry.argument)).collect();
        let expected = [
            (Some('q'), "quiet", None),
            (None, "number-of-things", Some("NUM")),
            (Some('?'), "a-very-long-name-indeed", None),
        ];
        assert_eq!(parts, expected);
    }
}
