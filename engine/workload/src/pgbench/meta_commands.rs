//! Meta-commands: a table of their names, the functions that parse them, and the steps into which they are compiled.
//! `steps.rs` executes the steps.

use super::compiler::Compiler;
use super::error::ScriptError;
use super::expression;
use super::expression::functions::RANDOM;
use super::expression::{Expression, Syntax, Tree};
use super::shell::ShellCommand;
use super::steps::{Amount, Operation, Sleep, Store, Unit, VariableTarget};
use super::words;
use super::words::Word;
use ground::c_numbers;
use ground::random::Span;

/// The greatest number of words of a command, including its name.
const MAX_WORDS: usize = 256;

/// A meta-command that was parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum MetaCommand {
    Set { name: String, expression: Syntax },
    SetShell { name: String, words: Vec<Word> },
    Shell { words: Vec<Word> },
    Sleep { word: String, amount: Word, unit: Unit },
    If(Syntax),
    Elif(Syntax),
    Else,
    EndIf,
    Store(Store),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// The position of a backslash command: the name and the text of its script, the line (counted from 1), and the offset
/// of the backslash (`start`).
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub script: &'a str,
    pub text: &'a [u8],
    pub line: usize,
    pub start: usize,
}

impl Place<'_> {
    /// Returns the command's text up to byte `end` of the script, without a line end behind it.
    pub fn text_until(&self, end: usize) -> String {
        let mut text = &self.text[self.start..end];
        while let [rest @ .., b'\n' | b'\r'] = text {
            text = rest;
        }
        ground::text::of(text)
    }

    /// Makes an error about the backslash command at this position. The error names the given command or, if `command`
    /// is `None`, only the script.
    pub fn error(&self, command: Option<&str>, message: &str, more: Option<&str>) -> ScriptError {
        let Self { script, line, .. } = self;
        let more = more.map_or(String::new(), |more| format!(" ({more})"));
        let command = command.map_or(String::new(), |command| format!(" in command \"{command}\""));
        ScriptError::new(format!("{script}:{line}: {message}{more}{command}"))
    }
}

/// A function that parses the arguments of a command.
type Reader = fn(&mut Arguments) -> Result<MetaCommand, ScriptError>;

/// The meta-commands: their names, with the functions that parse their arguments.
const META_COMMANDS: [(&str, Reader); 13] = [
    ("set", |a| {
        let Some(name) = words::next(a.place.text, a.at) else {
            return Err(a.place.error(Some(a.word), "missing argument", None));
        };
        Ok(MetaCommand::Set { name: name.shown(), expression: a.expression()? })
    }),
    ("if", |a| a.expression().map(MetaCommand::If)),
    ("elif", |a| a.expression().map(MetaCommand::Elif)),
    ("else", |a| a.nothing(MetaCommand::Else)),
    ("endif", |a| a.nothing(MetaCommand::EndIf)),
    ("sleep", sleep),
    ("shell", |a| match a.words()? {
        words if words.is_empty() => Err(a.refuse("missing command")),
        words => Ok(MetaCommand::Shell { words }),
    }),
    ("setshell", |a| match a.words()? {
        words if words.len() < 2 => Err(a.refuse("missing argument")),
        mut words => Ok(MetaCommand::SetShell { name: words.remove(0).shown(), words }),
    }),
    ("gset", |a| a.store(false)),
    ("aset", |a| a.store(true)),
    ("startpipeline", |a| a.nothing(MetaCommand::StartPipeline)),
    ("syncpipeline", |a| a.nothing(MetaCommand::SyncPipeline)),
    ("endpipeline", |a| a.nothing(MetaCommand::EndPipeline)),
];

impl MetaCommand {
    /// Adds the command's steps to the script that is being compiled.
    pub fn compile(self, compiler: &mut Compiler) {
        let operation = match self {
            Self::Set { name, expression } => {
                let expression = compiler.resolve(&expression);
                match (compiler.target(&name), known_span(&expression)) {
                    (VariableTarget::Slot(slot), Some(span)) => Operation::Draw { slot, span },
                    (target, _) => Operation::Set { target, expression },
                }
            }
            Self::SetShell { name, words } => Operation::SetShell {
                target: compiler.target(&name),
                command: ShellCommand::new(&words, compiler.symbols),
            },
            Self::Shell { words } => Operation::Shell(ShellCommand::new(&words, compiler.symbols)),
            Self::Sleep { word, amount, unit } => {
                let amount = match amount.text.strip_prefix(b":") {
                    Some(name) => {
                        let name = ground::text::of(name);
                        Amount::Variable { slot: compiler.symbols.slot(&name), name }
                    }
                    None => Amount::Literal(c_numbers::atoi(&amount.text)),
                };
                Operation::Sleep(Sleep { word, amount, unit })
            }
            Self::If(condition) => return compiler.begin_if(&condition),
            Self::Elif(condition) => {
                compiler.end_branch();
                return compiler.branch("elif", &condition);
            }
            Self::Else => return compiler.end_branch(),
            Self::EndIf => return compiler.end_if(),
            // The command is already a part of the step of its statement.
            Self::Store(_) => return,
            Self::StartPipeline => Operation::StartPipeline(compiler.pipeline()),
            Self::SyncPipeline => Operation::SyncPipeline,
            Self::EndPipeline => Operation::EndPipeline,
        };
        compiler.push(operation);
    }
}

/// The conditional blocks that are open in a script. The value of each is true if its `\else` has been seen.
#[derive(Default)]
pub struct OpenConditions(Vec<bool>);

impl OpenConditions {
    /// Checks the next command against the open blocks, and updates them. The error is pgbench's message.
    pub fn add(&mut self, command: &MetaCommand) -> Result<(), &'static str> {
        use MetaCommand::*;
        match (command, self.0.last_mut()) {
            (If(_), _) => self.0.push(false),
            (Elif(_), None) => return Err("\\elif without matching \\if"),
            (Elif(_), Some(true)) => return Err("\\elif after \\else"),
            (Elif(_), Some(false)) => {}
            (Else, None) => return Err("\\else without matching \\if"),
            (Else, Some(true)) => return Err("\\else after \\else"),
            (Else, Some(seen)) => *seen = true,
            (EndIf, None) => return Err("\\endif without matching \\if"),
            (EndIf, Some(_)) => {
                self.0.pop();
            }
            (Set { .. } | SetShell { .. } | Shell { .. } | Sleep { .. } | Store(_), _) => {}
            (StartPipeline | SyncPipeline | EndPipeline, _) => {}
        }
        Ok(())
    }

    /// Checks that no block is open at the end of the script. The error is pgbench's message.
    pub fn end(&self) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err("\\if without matching \\endif") }
    }
}

/// Returns the range of the random draw, if the expression is a single uniform draw whose range is known when scripts
/// are linked. Returns `None` for other expressions.
fn known_span(expression: &Expression) -> Option<Span> {
    let Tree::Call(function, arguments) = expression else { return None };
    if function.name != RANDOM {
        return None;
    }
    let [Tree::Constant(low), Tree::Constant(high)] = &**arguments else { return None };
    let (low, high) = (low.int().ok()?, high.int().ok()?);
    let fits = high.checked_sub(low).is_some_and(|difference| difference > 0 && difference < i64::MAX);
    fits.then(|| Span::new(low, high))
}

/// Parses the command behind a backslash, and moves `at` behind its line. Also returns the command's text. Returns
/// `None` if nothing follows the backslash.
pub fn parse(place: Place, at: &mut usize) -> Result<Option<(MetaCommand, String)>, ScriptError> {
    let Some(word) = words::next(place.text, at).map(|word| word.shown()) else { return Ok(None) };
    let known = META_COMMANDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
    let mut arguments = Arguments { place, word: &word, at };
    let command = match known {
        Some((_, read)) => read(&mut arguments)?,
        None => {
            arguments.words()?;
            return Err(arguments.refuse("invalid command"));
        }
    };
    Ok(Some((command, place.text_until(*at))))
}

/// The arguments of a command. They are parsed from byte `at` on.
struct Arguments<'a> {
    place: Place<'a>,
    word: &'a str,
    at: &'a mut usize,
}

impl Arguments<'_> {
    fn expression(&mut self) -> Result<Syntax, ScriptError> {
        let place = self.place;
        match expression::parse(place.text, *self.at) {
            Ok((tree, end)) => {
                *self.at = end;
                Ok(tree)
            }
            Err(error) => {
                let mistake = error.mistake;
                // The column of the last byte of the token in question.
                let column = (mistake.at - 1).saturating_sub(place.start);
                Err(place
                    .error(Some(self.word), mistake.message, mistake.more.as_deref())
                    .at(place.text_until(error.end), Some(column)))
            }
        }
    }

    /// Returns all remaining words of the command.
    fn words(&mut self) -> Result<Vec<Word>, ScriptError> {
        let mut words = Vec::new();
        while let Some(next) = words::next(self.place.text, self.at) {
            if words.len() + 1 >= MAX_WORDS {
                return Err(self.place.error(Some(self.word), "too many arguments", None));
            }
            words.push(next);
        }
        Ok(words)
    }

    /// Returns the given command, which must not have arguments.
    fn nothing(&mut self, command: MetaCommand) -> Result<MetaCommand, ScriptError> {
        if self.words()?.is_empty() { Ok(command) } else { Err(self.refuse("unexpected argument")) }
    }

    /// Parses the optional argument of `\gset` or `\aset`.
    fn store(&mut self, all: bool) -> Result<MetaCommand, ScriptError> {
        let words = self.words()?;
        if words.len() > 1 {
            return Err(self.refuse("too many arguments"));
        }
        let prefix = words.first().map(Word::shown).unwrap_or_default();
        Ok(MetaCommand::Store(Store { prefix, all, ..Store::default() }))
    }

    /// Makes an error about the command as a whole. All of its words must have been read before.
    fn refuse(&self, message: &str) -> ScriptError {
        self.place.error(Some(self.word), message, None).at(self.place.text_until(*self.at), None)
    }

    fn refuse_at(&self, message: &str, more: Option<&str>, at: usize) -> ScriptError {
        let column = at - self.place.start;
        self.place.error(Some(self.word), message, more).at(self.place.text_until(*self.at), Some(column))
    }
}

/// Parses the arguments of `\sleep`: a number or a variable, and a unit. The unit may directly follow the number.
fn sleep(arguments: &mut Arguments) -> Result<MetaCommand, ScriptError> {
    let words = arguments.words()?;
    let Some(amount) = words.first() else { return Err(arguments.refuse("missing argument")) };
    if let Some(extra) = words.get(2) {
        return Err(arguments.refuse_at("too many arguments", None, extra.at));
    }
    let mut unit = words.get(1).cloned();
    if !amount.text.starts_with(b":") {
        let signs = usize::from(matches!(amount.text.first(), Some(b'+' | b'-')));
        let digits = amount.text[signs..].iter().take_while(|c| c.is_ascii_digit()).count();
        let behind = signs + digits;
        if behind < amount.text.len() {
            if unit.is_some() || digits == 0 {
                let message = "invalid sleep time, must be an integer";
                return Err(arguments.refuse_at(message, Some(&amount.shown()), amount.at));
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
                return Err(arguments.refuse_at(message, Some(&word.shown()), word.at));
            }
        },
    };
    Ok(MetaCommand::Sleep { word: arguments.word.to_owned(), amount: amount.clone(), unit })
}
