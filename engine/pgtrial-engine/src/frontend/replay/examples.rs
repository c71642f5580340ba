//! Prints an example of each template (a statement text without its values), which can be used for EXPLAIN. The example
//! is the first recorded statement of the template that did not fail.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use capture::format::{Capture, Error, Parameters, Template};
use ground::output::print_stdout;

/// A recorded statement, as its client sent it.
#[derive(Serialize)]
struct Example {
    template: u32,
    /// The text of the statement as it was recorded. It contains the literals in place of which the template has
    /// placeholders.
    text: String,
    /// The values of the bound parameters as text. A null stands for the SQL value NULL.
    values: Vec<Option<String>>,
}

/// Prints an example statement for each of `templates` (the numbers of statement texts without values) as one line of
/// JSON, in the order in which the capture (the recording) contains the examples.
pub fn print(directory: &Path, templates: &BTreeSet<u32>) -> Result<(), Error> {
    let capture = Capture::open(directory)?;
    let mut wanted = templates.clone();
    for session in capture.sessions()? {
        let mut reader = capture.read(&session?);
        while !wanted.is_empty() && reader.advance()? {
            let statement = reader.statement();
            if statement.failure.is_none() && wanted.remove(&statement.template) {
                let template = &capture.templates()[statement.template as usize];
                let line = serde_json::to_string(&example(template, reader.parameters()));
                print_stdout(format_args!("{}\n", line.expect("texts and numbers are JSON")));
            }
        }
    }
    Ok(())
}

fn example(template: &Template, parameters: Parameters<'_>) -> Example {
    if !template.has_literals() {
        let values = parameters.map(|value| value.map(text_of)).collect();
        return Example { template: template.id, text: template.text.clone(), values };
    }
    let mut text = Vec::new();
    template.write_text(parameters, &mut text);
    Example { template: template.id, text: text_of(&text), values: Vec::new() }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
