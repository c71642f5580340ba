//! Finds the setting that a statement changes for its session: `SET name TO value`, `SET NAMES value`, `RESET name` or
//! `set_config('name', value, ...)`.

use super::tokens::Tokens;

/// A change of a setting of the session. Names and values are in lower case and without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    Set { name: String, value: String },
    Reset { name: String },
    ResetAll,
}

impl SettingChange {
    /// Returns the change that a statement makes, or `None` if it changes no setting.
    pub fn of(text: &str) -> Option<Self> {
        let tokens = Tokens::of(text).filter(|token| !token.is_blank());
        let words: Vec<String> =
            tokens.map(|token| token.text.trim_matches(['\'', '"']).to_ascii_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let set = |name: &str, value: &str| Self::Set { name: name.to_owned(), value: value.to_owned() };
        match words[..] {
            ["set", "session" | "local", "names", value, ..] | ["set", "names", value, ..] => {
                Some(set("client_encoding", value))
            }
            ["set", "session" | "local", name, "to" | "=", value, ..] | ["set", name, "to" | "=", value, ..] => {
                Some(set(name, value))
            }
            ["reset" | "discard", "all", ..] => Some(Self::ResetAll),
            ["reset", name, ..] => Some(Self::Reset { name: name.to_owned() }),
            _ => words.windows(5).find_map(|call| match *call {
                ["set_config", "(", name, ",", value] => Some(set(name, value)),
                _ => None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_settings_are_recognized() {
        let set = |name: &str, value: &str| Some(SettingChange::Set { name: name.to_owned(), value: value.to_owned() });
        for (text, change) in [
            ("SET client_encoding TO $1", set("client_encoding", "$1")),
            ("set names 'latin1'", set("client_encoding", "latin1")),
            ("SET SESSION client_encoding = 'SJIS'", set("client_encoding", "sjis")),
            ("set local names $1", set("client_encoding", "$1")),
            ("set \"work_mem\" = /* small */ 1", set("work_mem", "1")),
            ("select pg_catalog.set_config('search_path', 'a', false)", set("search_path", "a")),
            ("reset client_encoding", Some(SettingChange::Reset { name: "client_encoding".to_owned() })),
            ("RESET ALL", Some(SettingChange::ResetAll)),
            ("discard all", Some(SettingChange::ResetAll)),
            ("select client_encoding", None),
            ("update names set a = 1", None),
            ("", None),
        ] {
            assert_eq!(SettingChange::of(text), change, "{text}");
        }
    }
}
