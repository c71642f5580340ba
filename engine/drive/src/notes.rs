//! The debugging lines about clients, with the texts that pgbench prints for `--debug` and `--verbose-errors`.

use crate::client::Client;
use crate::shell::{Shell, TransportOf};
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::Connection;
use wire::error::ServerError;
use wire::statement::{QueryMode, Statement};
use workload::Actions;

impl<M, S: Shell> Thread<'_, M, S> {
    /// Prints that a client begins a script.
    #[cold]
    pub fn note_script<O, A: Actions>(&self, client: &Client<O, A, S>) {
        let script = &self.plan.scripts()[client.transaction.script].description;
        self.note(client.number, format_args!("executing script \"{script}\""));
    }

    /// Prints that a client has sent a statement and, outside of a pipeline, that it waits for the answer.
    #[cold]
    #[inline(never)]
    pub fn note_sending(&self, client: usize, connection: &Connection<TransportOf<S>>, statement: &Statement) {
        let text = match self.plan.mode {
            QueryMode::Prepared => None,
            QueryMode::Simple | QueryMode::Extended => connection.sent_text().or_else(|| statement.text()),
        };
        self.note(client, format_args!("sending {}", text.unwrap_or_else(|| statement.name())));
        if !connection.is_in_pipeline() {
            self.note_receiving(client);
        }
    }

    /// Prints that a client waits for the server's answer. pgbench prints this line again each time that it checks for
    /// the answer.
    #[inline]
    pub fn note_receiving(&self, client: usize) {
        if self.options.notes.steps {
            self.note(client, format_args!("receiving"));
        }
    }

    /// Prints that a client executes a command, if the command is a backslash command.
    #[cold]
    pub fn note_command<O, A: Actions>(&self, client: &Client<O, A, S>, command: usize) {
        let script = &self.plan.scripts()[client.transaction.script];
        if let Some(info) = script.commands.get(command).filter(|info| !info.is_sql) {
            self.note(client.number, format_args!("executing {}", without_expression(&info.line)));
        }
    }

    /// Prints that a client's statement failed.
    pub fn note_failure<O, A: Actions>(&self, client: &Client<O, A, S>, command: usize, error: &ServerError) {
        let script = client.transaction.script;
        self.note(client.number, format_args!("got an error in command {command} (SQL) of script {script}; {error}"));
    }

    /// Prints that a client tries its failed transaction again (`again` is true), or that it does not.
    pub fn note_try<O, A: Actions>(&self, client: &Client<O, A, S>, again: bool, now: Nanos) {
        let what = if again { "repeats the transaction after the error" } else { "ends the failed transaction" };
        let most = self.options.tries.map_or_else(String::new, |tries| format!("/{tries}"));
        let used = self.options.latency_limit.map_or_else(String::new, |limit| {
            let share = 100.0 * (now - client.transaction.scheduled) as f64 / limit.as_nanos() as f64;
            format!(", {share:.3}% of the maximum time of tries was used")
        });
        self.note(client.number, format_args!("{what} (try {}{most}{used})", client.transaction.tries));
    }

    /// Writes a line about a client. A line feed at the end of `text`, such as that of a statement, does not cause an
    /// empty line.
    pub fn note(&self, client: usize, text: std::fmt::Arguments<'_>) {
        let text = text.to_string();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        self.tell(&format!("client {client} {text}"));
    }

    /// Writes an error after which the client goes on.
    pub fn write_error(&self, error: &ServerError) {
        self.tell(&format!("error: {error}"));
    }

    fn tell(&self, text: &str) {
        if let Some(target) = &self.plan.target {
            (target.user.tell)(&format!("{}: {text}", self.options.program));
        }
    }
}

/// Returns a backslash command as pgbench prints it: without the expression of `\set`, `\if` and `\elif`.
fn without_expression(line: &str) -> String {
    let mut words: Vec<_> = line.split_whitespace().collect();
    match words.first().map(|word| word.to_ascii_lowercase()).as_deref() {
        Some("\\set") => words.truncate(2),
        Some("\\if" | "\\elif") => words.truncate(1),
        // pgbench prints the unit twice: after the number, and as a word of its own.
        Some("\\sleep") if words.len() == 2 && !words[1].starts_with(':') => {
            words.extend(words[1].find(|c: char| c.is_ascii_alphabetic()).map(|unit| &words[1][unit..]));
        }
        _ => {}
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_left_out() {
        for (line, shown) in [
            ("\\set x 1 + 1", "\\set x"),
            ("\\if :x = 2", "\\if"),
            ("\\sleep  1 us", "\\sleep 1 us"),
            ("\\sleep 1us", "\\sleep 1us us"),
            ("\\Sleep :x", "\\Sleep :x"),
            ("\\SET x 1 + 1", "\\SET x"),
            ("\\setshell y echo   4", "\\setshell y echo 4"),
        ] {
            assert_eq!(without_expression(line), shown);
        }
    }
}
