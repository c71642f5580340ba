//! Shows the line of a statement in which an error occurred, with a mark below the position of the error, as libpq
//! does.

use unicode_width::UnicodeWidthChar;

/// The maximum width of the part of a line that is shown, in columns of the screen.
const WIDEST: usize = 60;

/// The distance of the mark from the right end of the part that is shown, in columns of the screen.
const RIGHT_MARGIN: usize = 10;

/// Returns `LINE 2: ...` and, in a second line, `^` below the character at `position`. The position counts the
/// characters of the whole statement from 1.
///
/// A line that is too wide is cut to 60 columns around the position. Returns `None` if the position is 0 or lies beyond
/// the end of the statement.
pub fn mark(statement: &str, position: usize) -> Option<String> {
    let characters: Vec<char> = statement.chars().collect();
    let place = position.checked_sub(1).filter(|place| *place <= characters.len())?;
    let (before, after) = characters.split_at(place);
    let first = before.iter().rposition(is_break).map_or(0, |at| at + 1);
    let last = after.iter().position(is_break).map_or(characters.len(), |at| place + at);
    let (begin, end) = window(&characters, first, place, last);

    let piece: String = characters[begin..end].iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
    let cut = |is_cut| if is_cut { "..." } else { "" };
    let head = format!("LINE {}: {}", line_number(before), cut(begin > first));
    let indent = head.len() + width(&characters[begin..place]);
    Some(format!("{head}{piece}{}\n{:indent$}^", cut(end < last), ""))
}

/// Returns the range of the characters to show of the line `first..last`: the line is cut at its right end if that
/// suffices, else at both ends. Takes time in proportion to the length of the line.
fn window(characters: &[char], first: usize, place: usize, last: usize) -> (usize, usize) {
    let (mut before, mut after) = (width(&characters[first..place]), width(&characters[place..last]));
    let (mut begin, mut end) = (first, last);
    let is_cut_left = before + after > WIDEST && before + RIGHT_MARGIN > WIDEST;
    let widest_after = if is_cut_left { RIGHT_MARGIN } else { WIDEST.saturating_sub(before) };
    while after > widest_after {
        end -= 1;
        after -= columns(characters[end]);
    }
    while before + after > WIDEST {
        before -= columns(characters[begin]);
        begin += 1;
    }
    (begin, end)
}

/// Returns the number of the line that begins after the characters `before`. A carriage return begins a new line, and
/// so does a line feed, but the two together begin only one.
fn line_number(before: &[char]) -> usize {
    let pairs = before.windows(2).filter(|pair| *pair == ['\r', '\n']).count();
    1 + before.iter().filter(|c| is_break(c)).count() - pairs
}

fn is_break(character: &char) -> bool {
    matches!(character, '\r' | '\n')
}

/// Returns the width of these characters on a screen, in columns.
fn width(characters: &[char]) -> usize {
    characters.iter().copied().map(columns).sum()
}

/// Returns the width of a character on a screen, in columns. A character that has no width of its own counts as one
/// column.
fn columns(character: char) -> usize {
    character.width().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_place_is_marked_in_its_line() {
        assert_eq!(mark("select 1\nfrom x\n", 15).as_deref(), Some("LINE 2: from x\n             ^"));
        assert_eq!(mark("a\r\nb\rc", 6).as_deref(), Some("LINE 3: c\n        ^"));
        assert_eq!(mark("a\tb", 3).as_deref(), Some("LINE 1: a b\n          ^"));
        assert_eq!(mark("ab", 3).as_deref(), Some("LINE 1: ab\n          ^"));
        assert_eq!(mark("ab", 4), None);
        assert_eq!(mark("ab", 0), None);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(mark("'日本' x", 6).as_deref(), Some("LINE 1: '日本' x\n               ^"));
        assert_eq!(mark("'é' x", 5).as_deref(), Some("LINE 1: 'é' x\n            ^"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let line: String = ('a'..='z').chain('A'..='Z').chain('a'..='z').collect();
        let shown = |position| mark(&line, position).unwrap();
        assert_eq!(shown(1), format!("LINE 1: {}...\n        ^", &line[..60]));
        assert_eq!(shown(51), format!("LINE 1: {}...\n{:58}^", &line[..60], ""));
        assert_eq!(shown(52), format!("LINE 1: ...{}...\n{:61}^", &line[1..61], ""));
        assert_eq!(shown(78), format!("LINE 1: ...{}\n{:70}^", &line[18..], ""));
    }

    #[test]
    fn a_line_of_any_length_is_cut_in_one_pass() {
        let long = "x".repeat(3_000_000);
        assert_eq!(
            mark(&format!("{long}!"), 3_000_001).as_deref(),
            Some(format!("LINE 1: ...{}!\n{:70}^", &long[..59], "").as_str())
        );
        assert_eq!(
            mark(&format!("!{long}"), 1).as_deref(),
            Some(format!("LINE 1: !{}...\n        ^", &long[..59]).as_str())
        );
        assert_eq!(
            mark(&format!("{long}!{long}"), 3_000_001).as_deref(),
            Some(format!("LINE 1: ...{}!{}...\n{:61}^", &long[..50], &long[..9], "").as_str())
        );
    }

    proptest! {
        #[test]
        fn any_place_in_any_text_is_marked_or_not(text in "[a\\r\\n\\t日é]{0,150}", position in 0usize..160) {
            let marked = mark(&text, position);
            prop_assert_eq!(marked.is_some(), (1..=text.chars().count() + 1).contains(&position));
        }
    }
}
