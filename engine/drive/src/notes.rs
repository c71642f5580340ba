//! What is told of each step where somebody wants to see it, in the words of pgbench's `--debug`.

use super::Report;
use super::client::Client;
use super::thread::Thread;

impl Thread<'_> {
    /// A client begins a script.
    #[cold]
    pub fn note_script(&self, client: &Client) {
        let script = &self.plan.workload.scripts()[client.script].description;
        self.note(client, format!("executing script \"{script}\""));
    }

    /// A client sends this text, or the prepared statement of this name.
    #[cold]
    pub fn note_sending(&self, client: usize, text: &str) {
        self.report(Report::Note(format!("client {} sending {text}", self.number_of(client))));
    }

    /// A client executes a backslash command.
    pub fn note_command(&self, client: &Client, command: usize) {
        if self.plan.options().notes.steps {
            let script = &self.plan.workload.scripts()[client.script];
            if let Some(info) = script.commands.get(command).filter(|info| !info.is_sql) {
                self.note(client, format!("executing {}", without_expression(&info.line)));
            }
        }
    }

    fn note(&self, client: &Client, text: String) {
        self.report(Report::Note(format!("client {} {text}", self.number_of(client.index))));
    }
}

/// A command as pgbench shows it: its words, but not an expression.
fn without_expression(line: &str) -> String {
    let mut words: Vec<_> = line.split_whitespace().collect();
    match words.first() {
        Some(&"\\set") => words.truncate(2),
        Some(&("\\if" | "\\elif")) => words.truncate(1),
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
            ("\\setshell y echo   4", "\\setshell y echo 4"),
        ] {
            assert_eq!(without_expression(line), shown);
        }
    }
}
