//! Finds out where the strings of a statement end. A log does not say this: it depends on
//! `standard_conforming_strings`, which decides what a backslash means, and a statement that failed may have one quote
//! too many.

use super::settings::SettingChange;
use super::tokens::{Backslashes, Tokens};

/// Returns the meaning of backslashes with which every quote of a text has its partner, as valid SQL requires. `known`
/// is the meaning that the session has set, if it has set one.
///
/// Returns `None` if quotes are unpaired with either meaning, or paired with both meanings but at different places.
pub fn backslashes_of(text: &str, known: Option<Backslashes>) -> Option<Backslashes> {
    let pairs = |backslashes: &Backslashes| has_paired_quotes(text, *backslashes);
    if let Some(known) = known {
        return Some(known).filter(pairs);
    }
    if !text.contains('\\') {
        return Some(Backslashes::Plain).filter(pairs);
    }
    match [Backslashes::Plain, Backslashes::Escape].map(|backslashes| pairs(&backslashes)) {
        [true, false] => Some(Backslashes::Plain),
        [false, true] => Some(Backslashes::Escape),
        [true, true] if Tokens::of(text).eq(Tokens::with(text, Backslashes::Escape)) => Some(Backslashes::Plain),
        [true, true] | [false, false] => None,
    }
}

/// True if every quoted text and every comment ends, and there is no backslash outside of them.
fn has_paired_quotes(text: &str, backslashes: Backslashes) -> bool {
    // If a literal or a comment does not end, the appended semicolon becomes a part of it.
    let longer = format!("{text}\n;");
    let mut last_is_symbol = false;
    for token in Tokens::with(&longer, backslashes) {
        if token.is_symbol("\\") {
            return false;
        }
        last_is_symbol = token.is_symbol(";");
    }
    last_is_symbol
}

/// Returns the meaning of backslashes that a statement sets with `standard_conforming_strings`. Returns `Some(None)` if
/// the statement resets the setting to its default, and `None` if it does not change the setting.
pub fn chosen_backslashes(text: &str) -> Option<Option<Backslashes>> {
    if !may_choose(text) {
        return None;
    }
    match SettingChange::of(text)? {
        SettingChange::Set { name, value } if name == SETTING => Some(meaning(&value)),
        SettingChange::Reset { name } if name == SETTING => Some(None),
        SettingChange::ResetAll => Some(None),
        SettingChange::Set { .. } | SettingChange::Reset { .. } => None,
    }
}

/// True if a statement may change `standard_conforming_strings`. This quick check spares most statements the parsing:
/// it is false for nearly all statements that do not change the setting, and true for all that do.
fn may_choose(text: &str) -> bool {
    let has = |word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
    let is_short = text.len() < 100;
    has("conforming") || has("CONFORMING") || (is_short && (has("all") || has("ALL")))
}

const SETTING: &str = "standard_conforming_strings";

/// Returns the meaning of backslashes for a value of `standard_conforming_strings`. Returns `None` for the word
/// DEFAULT, because the log does not show the server's default.
fn meaning(value: &str) -> Option<Backslashes> {
    match value {
        "on" | "true" | "yes" | "1" => Some(Backslashes::Plain),
        "off" | "false" | "no" | "0" => Some(Backslashes::Escape),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Option<Backslashes> = Some(Backslashes::Plain);
    const ESCAPE: Option<Backslashes> = Some(Backslashes::Escape);

    #[test]
    fn quotes_tell_what_backslashes_mean() {
        for (text, found) in [
            ("select 1", PLAIN),
            ("select 'it''s' -- don't", PLAIN),
            ("select 'C:\\', 'x'", PLAIN),
            ("select 'a\\\\b'", PLAIN),
            ("select E'a\\'b'", PLAIN),
            ("select 'O\\'Brien', 'x'", ESCAPE),
            ("select 'O\\'Brien', 'D\\'Arcy'", ESCAPE),
            ("select 'O\\'', 'D\\''", ESCAPE),
            ("select 'O'Brien', 'Street 5'", None),
            ("select \"a", None),
            ("select 1 /* a", None),
            ("select $$a", None),
            ("select 'a\\' b -- c\\''", None),
        ] {
            assert_eq!(backslashes_of(text, None), found, "{text}");
        }
        assert_eq!(backslashes_of("select 'O\\'Brien'", PLAIN), None);
        assert_eq!(backslashes_of("select 'O\\'Brien'", ESCAPE), ESCAPE);
        assert_eq!(backslashes_of("select 'C:\\', 'x'", ESCAPE), None);
    }

    #[test]
    fn a_session_chooses_what_backslashes_mean() {
        for (text, chosen) in [
            ("SET standard_conforming_strings TO off", Some(ESCAPE)),
            ("set session standard_conforming_strings = 'off';", Some(ESCAPE)),
            ("set local \"standard_conforming_strings\" = on", Some(PLAIN)),
            ("SET standard_conforming_strings TO DEFAULT", Some(None)),
            ("reset standard_conforming_strings", Some(None)),
            ("RESET ALL", Some(None)),
            ("discard all", Some(None)),
            ("select pg_catalog.set_config('standard_conforming_strings', 'off', false)", Some(ESCAPE)),
            ("set work_mem = '1MB'", None),
            ("select 'standard_conforming_strings'", None),
            ("", None),
        ] {
            assert_eq!(chosen_backslashes(text), chosen, "{text}");
        }
    }
}
