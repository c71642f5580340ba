//! Runs the shell commands of `\shell` and `\setshell`.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::symbols::Symbols;
use super::words::Word;
use ground::c_numbers;
use ground::c_numbers::is_space;
use thiserror::Error;
use wire::value::Value;

/// The length in bytes from which on a command is too long, as in pgbench.
const MAX_COMMAND: usize = 255;

/// The greatest number of bytes that are read from the first line of the output.
const MAX_RESULT: usize = 63;

/// The error of a shell command in pgbench's wording: the first word of the command, and the reason.
#[derive(Debug, Error)]
#[error("{name}: {reason}")]
pub struct ShellError {
    name: String,
    #[source]
    reason: ShellReason,
}

#[derive(Debug, Error)]
enum ShellReason {
    #[error("could not launch shell command")]
    Launch,
    #[error("could not read result of shell command")]
    NoResult,
    #[error("could not run shell command: {0}")]
    Run(#[source] io::Error),
    #[error("shell command must return an integer (not \"{0}\")")]
    NoInteger(String),
    /// A variable of the command has no value. The field is its name with the colon.
    #[error("undefined variable \"{0}\"")]
    Undefined(String),
    #[error("shell command is too long")]
    TooLong,
}

/// A shell command with gaps in which the values of variables are put.
#[derive(Debug)]
pub struct ShellCommand {
    /// The first word of the command as the script has it. Error messages begin with this word.
    name: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(Vec<u8>),
    Variable { slot: usize, written: String },
}

impl ShellCommand {
    /// Makes a command from its words. `:name` stands for the value of a variable, and `::name` for the text `:name`.
    pub fn new(words: &[Word], symbols: &mut Symbols) -> Self {
        let part = |word: &Word| match word.text.as_slice() {
            [b':', rest @ ..] if rest.starts_with(b":") => Part::Text(rest.to_vec()),
            [b':', name @ ..] => Part::Variable { slot: symbols.slot(&ground::text::of(name)), written: word.shown() },
            text => Part::Text(text.to_vec()),
        };
        Self { name: words.first().map(Word::shown).unwrap_or_default(), parts: words.iter().map(part).collect() }
    }

    /// Runs the command. Fails if its exit status is not 0.
    pub fn run(&self, values: &[Value]) -> Result<(), ShellError> {
        let status = self.command(values)?.status();
        if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(self.error(ShellReason::Launch)) }
    }

    /// Runs the command, and returns the integer in the first line of its output. Only the low 32 bits of the integer
    /// count.
    pub fn result(&self, values: &[Value]) -> Result<i64, ShellError> {
        let launched = self.command(values)?.stdout(Stdio::piped()).spawn();
        let mut child = launched.map_err(|_| self.error(ShellReason::Launch))?;
        let line = child.stdout.take().map(first_line).unwrap_or_default();
        let waited = child.wait();
        if line.is_empty() {
            return Err(self.error(ShellReason::NoResult));
        }
        waited.map_err(|error| self.error(ShellReason::Run(error)))?;
        let (number, rest) = c_numbers::integer_prefix(&line);
        if rest.iter().all(|c| is_space(*c)) {
            return Ok(i64::from(number.unwrap_or(0) as i32));
        }
        Err(self.error(ShellReason::NoInteger(ground::text::of(&line))))
    }

    fn command(&self, values: &[Value]) -> Result<Command, ShellError> {
        let mut text = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                text.push(b' ');
            }
            match part {
                Part::Text(word) => text.extend_from_slice(word),
                Part::Variable { slot, written } => match &values[*slot] {
                    Value::Unset => return Err(self.error(ShellReason::Undefined(written.clone()))),
                    value => value.write_text(&mut text),
                },
            }
            if text.len() >= MAX_COMMAND {
                return Err(self.error(ShellReason::TooLong));
            }
        }
        let mut command = Command::new("/bin/sh");
        // The shell is called `sh`, as by C's system(), because the shell's own error messages begin with this name.
        command.arg0("sh").arg("-c").arg(OsStr::from_bytes(&text));
        Ok(command)
    }

    fn error(&self, reason: ShellReason) -> ShellError {
        ShellError { name: self.name.clone(), reason }
    }
}

/// Returns the first line of an output, including its line feed.
fn first_line(mut output: impl Read) -> Vec<u8> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_RESULT && matches!(output.read(&mut byte), Ok(1)) {
        line.push(byte[0]);
        if byte[0] == b'\n' {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::words;

    fn result(text: &str, values: &[Value]) -> Result<i64, ShellError> {
        let mut at = 0;
        let words: Vec<_> = std::iter::from_fn(|| words::next(text.as_bytes(), &mut at)).collect();
        let mut symbols = Symbols::default();
        symbols.slot("v");
        symbols.slot("unset");
        ShellCommand::new(&words, &mut symbols).result(values)
    }

    #[test]
    fn the_first_line_is_the_result() {
        let values = [Value::Int(40), Value::Unset];
        assert_eq!(result("expr :v + 2", &values).unwrap(), 42);
        assert_eq!(result("printf '7 \\n8\\n'", &values).unwrap(), 7);
        assert_eq!(result("echo", &values).unwrap(), 0);
        assert_eq!(result("echo 4294967297", &values).unwrap(), 1);
    }

    #[test]
    fn what_goes_wrong_is_told_in_pgbenchs_words() {
        let values = [Value::Int(1), Value::Unset];
        let refused = |text: &str| result(text, &values).unwrap_err().to_string();
        assert_eq!(refused("echo ::v"), "echo: shell command must return an integer (not \":v\n\")");
        assert_eq!(refused("true"), "true: could not read result of shell command");
        assert_eq!(refused("echo :unset"), "echo: undefined variable \":unset\"");
        assert_eq!(refused(&format!("echo {}", "1".repeat(250))), "echo: shell command is too long");
    }

    #[test]
    fn a_failing_command_could_not_be_launched() {
        let word = |text: &str| Word { text: text.into(), at: 0 };
        let mut symbols = Symbols::default();
        assert!(ShellCommand::new(&[word("true")], &mut symbols).run(&[]).is_ok());
        let failing = ShellCommand::new(&[word("exit"), word("3")], &mut symbols);
        assert_eq!(failing.run(&[]).unwrap_err().to_string(), "exit: could not launch shell command");
    }
}
