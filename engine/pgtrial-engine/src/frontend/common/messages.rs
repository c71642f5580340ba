//! Writes the messages of front ends to standard error. Each message begins with the name of the front end.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use super::failure::{Failure, FailurePart};
use ground::options::{ERROR, Stop, exit_status};
use ground::output::print_stderr;
use ground::text;
use wire::target::User;

/// The functions that show text to the user and ask for a password. Text goes to standard error. A password is read
/// from the terminal or, if the process has no terminal, from standard input.
pub const USER: User =
    User { tell: |line| print_stderr(format_args!("{line}\n")), show: |text| print_stderr(text), ask: prompt };

/// Asks for a password with `text`, and reads it. The terminal does not show the password.
fn prompt(text: &str) -> io::Result<String> {
    if File::open("/dev/tty").is_ok() {
        return rpassword::prompt_password(text);
    }
    print_stderr(text);
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    // The terminal shows neither the password nor the line feed at its end, so one is printed here.
    print_stderr("\n");
    read?;
    Ok(ground::text::of(&line).trim_end_matches(['\r', '\n']).to_owned())
}

/// The name of a front end, and the form in which it reports failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontEnd {
    pub name: &'static str,
    /// The exit status after a failure, and also if an output that the user asked for could not be written.
    pub failed: u8,
    form: FailureForm,
}

/// The form in which a failure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureForm {
    /// A failure is printed as PostgreSQL's client programs print it: one line for each error, detail and hint.
    Lines,
    /// Only the first error is printed, followed by the advice to read the help.
    Sentence,
}

impl FrontEnd {
    /// Makes a front end that prints failures as PostgreSQL's client programs do, and exits with the status `failed`
    /// after a failure.
    pub const fn as_client(name: &'static str, failed: u8) -> Self {
        Self { name, failed, form: FailureForm::Lines }
    }

    /// Makes a front end that prints only the first error of a failure, as one sentence, and exits with status 3 after
    /// a failure.
    pub const fn new(name: &'static str) -> Self {
        Self { name, failed: ERROR, form: FailureForm::Sentence }
    }

    /// Writes information for the user to standard error, such as a random seed that was chosen. For problems, use
    /// [`Self::warning`] or [`Self::error`].
    pub fn info(&self, message: impl Display) {
        print_stderr(format_args!("{}: {message}\n", self.name));
    }

    /// Writes a warning to standard error.
    pub fn warning(&self, message: impl Display) {
        print_stderr(format_args!("{}: warning: {message}\n", self.name));
    }

    /// Writes an error that does not end the run to standard error.
    pub fn error(&self, message: impl Display) {
        print_stderr(format_args!("{}: error: {message}\n", self.name));
    }

    /// Writes a failure that does not end the run to standard error. Unlike [`Self::error`], it may have details and
    /// hints.
    pub fn report(&self, failure: &Failure) {
        print_stderr(format_args!("{}\n", self.describe(failure)));
    }

    /// Prints the failure that `done` contains, or the text if an option such as `--help` asked for one. Returns the
    /// exit status of the program, with which the front end ends.
    pub fn exit_status(&self, done: Result<u8, Stop<Failure>>) -> ExitCode {
        exit_status(done, self.failed, |failure| self.describe(failure))
    }

    /// Returns the text that is printed for a failure, without a line feed at its end.
    pub fn describe(&self, failure: &Failure) -> String {
        match self.form {
            FailureForm::Lines => self.lines(failure),
            FailureForm::Sentence => self.sentence(failure),
        }
    }

    fn lines(&self, failure: &Failure) -> String {
        let name = self.name;
        let mut lines: Vec<_> = failure
            .parts
            .iter()
            .map(|part| match part {
                FailurePart::Error(text) => format!("{name}: error: {text}"),
                // glibc's `getopt_long` does not write `error:`, and begins its messages with the path by which the
                // program was called.
                FailurePart::Usage(text) => format!("{}: {text}", called_name(name)),
                FailurePart::Detail(text) => format!("{name}: detail: {text}"),
                FailurePart::Hint(text) => format!("{name}: hint: {text}"),
                FailurePart::Plain(text) => text.clone(),
            })
            .collect();
        if failure.is_misuse {
            lines.push(format!("{name}: hint: Try \"{name} --help\" for more information."));
        }
        lines.join("\n")
    }

    fn sentence(&self, failure: &Failure) -> String {
        let name = self.name;
        let first = failure.parts.iter().find_map(|part| match part {
            FailurePart::Error(text) | FailurePart::Usage(text) => Some(text.as_str()),
            FailurePart::Detail(_) | FailurePart::Hint(_) | FailurePart::Plain(_) => None,
        });
        let hint = if failure.is_misuse { format!("; try \"{name} --help\"") } else { String::new() };
        format!("{name}: error: {}{hint}", first.unwrap_or_default())
    }
}

/// Returns the path by which the program was called, if that is a link with the front end's name (such as
/// `/usr/bin/pgbench`). Otherwise returns the name of the front end.
fn called_name(name: &str) -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let is_link = Path::new(&called).file_name() == Some(OsStr::new(name));
    if is_link { text::of(called.as_bytes()) } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ground::getopt::GetoptError;

    const CLIENT: FrontEnd = FrontEnd::as_client("pgbench", 1);
    const OURS: FrontEnd = FrontEnd::new("pgtrial-engine tasks");

    #[test]
    fn a_failure_is_written_in_the_form_of_its_front_end() {
        let failure = Failure::error("no").and("not at all").detail("why").hint("what").plain("a list\n");
        let lines = "pgbench: error: no\npgbench: error: not at all\npgbench: detail: why\npgbench: hint: what\na list";
        assert_eq!(CLIENT.describe(&failure), lines);
        assert_eq!(OURS.describe(&failure), "pgtrial-engine tasks: error: no");
    }

    #[test]
    fn a_misused_command_line_is_told_with_the_help() {
        let failure = Failure::from(GetoptError::InvalidShort('x'));
        assert_eq!(
            CLIENT.describe(&failure),
            "pgbench: invalid option -- 'x'\npgbench: hint: Try \"pgbench --help\" for more information."
        );
        assert_eq!(
            OURS.describe(&failure),
            "pgtrial-engine tasks: error: invalid option -- 'x'; try \"pgtrial-engine tasks --help\""
        );
        assert!(CLIENT.describe(&Failure::misuse("wrong")).starts_with("pgbench: error: wrong\npgbench: hint: Try"));
    }
}
