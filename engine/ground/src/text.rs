//! Texts of the operating system and of servers, which can be any bytes: arguments, environment variables, paths, and
//! names and messages of servers in any encoding.
//!
//! Within the program a text is a [`String`]. Each byte that is not valid UTF-8 becomes a character of a private range,
//! so that no byte is lost, and two texts are equal only if their bytes are equal. When a text leaves the program, to
//! the system, a server or a terminal, these characters become bytes again. Python does the same ("surrogateescape",
//! PEP 383). Rust's strings have no surrogates, so the range is the last one of plane 16, U+10FF80 to U+10FFFF. If a
//! text itself contains a character of this range, each byte of that character is replaced like an invalid byte, so
//! that it is not mistaken.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The start of the private range: the character for a byte is this number plus the byte. Only bytes from 0x80 on
/// occur.
const BASE: u32 = 0x10_FF00;

/// The first byte that the characters of the private range have in UTF-8.
const LEAD: u8 = 0xF4;

fn stands_for(character: char) -> Option<u8> {
    u8::try_from(u32::from(character).checked_sub(BASE)?).ok().filter(|byte| *byte >= 0x80)
}

/// Converts bytes to a text.
pub fn of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let escape = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().filter_map(|byte| char::from_u32(BASE + u32::from(*byte))));
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match stands_for(character) {
                Some(_) => escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
                None => text.push(character),
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

/// Converts a text back to its bytes.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if memchr::memchr(LEAD, text.as_bytes()).is_none() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match stands_for(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Returns the text as valid UTF-8, for files whose format demands it. Each byte that is not UTF-8 becomes U+FFFD.
pub fn utf8(text: &str) -> Cow<'_, str> {
    if memchr::memchr(LEAD, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let replaced = |character| if stands_for(character).is_some() { char::REPLACEMENT_CHARACTER } else { character };
    Cow::Owned(text.chars().map(replaced).collect())
}

/// Returns the path whose bytes the text stands for.
pub fn path(text: &str) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&bytes(text)))
}

/// Returns the text that stands for the bytes of a path.
pub fn of_path(path: &Path) -> String {
    of(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(given: &[u8]) -> Vec<u8> {
        bytes(&of(given)).into_owned()
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept() {
        let latin = b"caf\xe9/\xff\x80.sql";
        assert_eq!(back(latin), latin);
        assert_eq!(path(&of(latin)).as_os_str().as_bytes(), latin);
        assert_eq!(of_path(&path(&of(latin))), of(latin));
        assert_eq!(utf8(&of(b"caf\xe9")), "caf\u{fffd}");
        assert_ne!(of(b"caf\xe9"), of(b"caf\xe8"));
    }

    #[test]
    fn texts_stay_texts() {
        for text in ["", "café", "名", "\u{10ffff}", "\u{10ff7f}", "\u{10ff80}x"] {
            assert_eq!(back(text.as_bytes()), text.as_bytes());
        }
        assert_eq!(of("café".as_bytes()), "café");
        assert_eq!(utf8("café"), "café");
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(given in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(back(&given), given);
        }

        #[test]
        fn any_characters_come_back(text in "[\u{10ff00}-\u{10ffff}aé]{0,20}") {
            prop_assert_eq!(back(text.as_bytes()), text.as_bytes());
        }
    }
}
