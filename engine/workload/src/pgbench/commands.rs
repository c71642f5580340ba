//! Backslash commands as they stand in a script.

use super::error::ScriptError;
use crate::pgbench::expression;
use crate::pgbench::expression::Syntax;
use crate::pgbench::words;
use crate::pgbench::words::Word;

/// How many words a command may have, its name included.
pub const MAX_WORDS: usize = 256;

/// What a backslash command says.
#[derive(Debug, Clone, PartialEq)]
pub enum Meta {
    Set {
        name: String,
        expression: Syntax,
    },
    SetShell {
        name: String,
        words: Vec<Word>,
    },
    Shell {
        words: Vec<Word>,
    },
    Sleep {
        word: String,
        amount: Word,
        unit: Unit,
    },
    If(Syntax),
    Elif(Syntax),
    Else,
    EndIf,
    /// Results of the statement before go into variables whose names begin with `prefix`; of `\aset` those of all its
    /// queries.
    Store {
        prefix: String,
        all: bool,
    },
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// Units of `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

/// Where a backslash command stands: the script's name and text, the line (from 1) and the offset of the backslash.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub script: &'a str,
    pub text: &'a [u8],
    pub line: usize,
    pub start: usize,
}

impl Place<'_> {
    /// The command's text up to `end`, without the end of its last line.
    pub fn text_until(&self, end: usize) -> String {
        let mut text = &self.text[self.start..end];
        while let [rest @ .., b'\n' | b'\r'] = text {
            text = rest;
        }
        String::from_utf8_lossy(text).into_owned()
    }

    /// An error at this place. Without a command's name it is one of the script's.
    pub fn error(&self, command: Option<&str>, message: &str, more: Option<&str>) -> ScriptError {
        let Self { script, line, .. } = self;
        let more = more.map_or(String::new(), |more| format!(" ({more})"));
        let command = command.map_or(String::new(), |command| format!(" in command \"{command}\""));
        ScriptError::new(format!("{script}:{line}: {message}{more}{command}"))
    }
}

/// Reads the command whose backslash has just been read; `at` moves behind its line. A lone backslash is no command.
pub fn parse(place: Place, at: &mut usize) -> Result<Option<(Meta, String)>, ScriptError> {
    let Some(first) = words::next(place.text, at) else { return Ok(None) };
    let word = first.shown();
    let meta = match word.to_ascii_lowercase().as_str() {
        "set" => {
            let Some(name) = words::next(place.text, at) else {
                return Err(place.error(Some(&word), "missing argument", None));
            };
            Meta::Set { name: name.shown(), expression: expression(place, &word, at)? }
        }
        "if" => Meta::If(expression(place, &word, at)?),
        "elif" => Meta::Elif(expression(place, &word, at)?),
        known => plain(known, Rest { place, word: &word, words: rest(place, &word, at)?, end: *at })?,
    };
    Ok(Some((meta, place.text_until(*at))))
}

fn expression(place: Place, word: &str, at: &mut usize) -> Result<Syntax, ScriptError> {
    match expression::parse(place.text, *at) {
        Ok((tree, end)) => {
            *at = end;
            Ok(tree)
        }
        Err(error) => {
            let mistake = error.mistake;
            // The column of the last byte that was read.
            let column = (mistake.at - 1).saturating_sub(place.start);
            Err(place
                .error(Some(word), mistake.message, mistake.more.as_deref())
                .at(place.text_until(error.end), Some(column)))
        }
    }
}

fn rest(place: Place, word: &str, at: &mut usize) -> Result<Vec<Word>, ScriptError> {
    let mut found = Vec::new();
    while let Some(next) = words::next(place.text, at) {
        if found.len() + 1 >= MAX_WORDS {
            return Err(place.error(Some(word), "too many arguments", None));
        }
        found.push(next);
    }
    Ok(found)
}

/// A command's words behind its name, up to `end`.
struct Rest<'a> {
    place: Place<'a>,
    word: &'a str,
    words: Vec<Word>,
    end: usize,
}

fn plain(command: &str, mut rest: Rest) -> Result<Meta, ScriptError> {
    let bare = |meta| match rest.words.is_empty() {
        true => Ok(meta),
        false => Err(rest.refuse("unexpected argument")),
    };
    match command {
        "sleep" => sleep(rest),
        "shell" if rest.words.is_empty() => Err(rest.refuse("missing command")),
        "shell" => Ok(Meta::Shell { words: rest.words }),
        "setshell" if rest.words.len() < 2 => Err(rest.refuse("missing argument")),
        "setshell" => {
            let name = rest.words.remove(0).shown();
            Ok(Meta::SetShell { name, words: rest.words })
        }
        "gset" | "aset" if rest.words.len() > 1 => Err(rest.refuse("too many arguments")),
        "gset" | "aset" => {
            let prefix = rest.words.first().map(Word::shown).unwrap_or_default();
            Ok(Meta::Store { prefix, all: command == "aset" })
        }
        "else" => bare(Meta::Else),
        "endif" => bare(Meta::EndIf),
        "startpipeline" => bare(Meta::StartPipeline),
        "syncpipeline" => bare(Meta::SyncPipeline),
        "endpipeline" => bare(Meta::EndPipeline),
        _ => Err(rest.refuse("invalid command")),
    }
}

impl Rest<'_> {
    fn refuse(&self, message: &str) -> ScriptError {
        self.place.error(Some(self.word), message, None).at(self.place.text_until(self.end), None)
    }

    fn refuse_at(&self, message: &str, more: Option<&str>, at: usize) -> ScriptError {
        let column = at - self.place.start;
        self.place.error(Some(self.word), message, more).at(self.place.text_until(self.end), Some(column))
    }
}

/// `\sleep` takes a number or a variable, and a unit that may stick to the number.
fn sleep(rest: Rest) -> Result<Meta, ScriptError> {
    let Some(amount) = rest.words.first() else { return Err(rest.refuse("missing argument")) };
    if let Some(extra) = rest.words.get(2) {
        return Err(rest.refuse_at("too many arguments", None, extra.at));
    }
    let mut unit = rest.words.get(1).cloned();
    if !amount.text.starts_with(b":") {
        let signs = usize::from(matches!(amount.text.first(), Some(b'+' | b'-')));
        let digits = amount.text[signs..].iter().take_while(|c| c.is_ascii_digit()).count();
        let behind = signs + digits;
        if behind < amount.text.len() {
            if unit.is_some() || digits == 0 {
                let message = "invalid sleep time, must be an integer";
                return Err(rest.refuse_at(message, Some(&amount.shown()), amount.at));
            }
            unit = Some(Word { text: amount.text[behind..].to_vec(), at: amount.at + behind });
        }
    }
    let unit = match unit {
        None => Unit::Seconds,
        Some(word) => match word.text.to_ascii_lowercase().as_slice() {
            b"us" => Unit::Microseconds,
            b"ms" => Unit::Milliseconds,
            b"s" => Unit::Seconds,
            _ => {
                let message = "unrecognized time unit, must be us, ms or s";
                return Err(rest.refuse_at(message, Some(&word.shown()), word.at));
            }
        },
    };
    Ok(Meta::Sleep { word: rest.word.to_owned(), amount: amount.clone(), unit })
}
