//! The merger: the events of machines that each ran a part of one load, as those of the whole run.

mod hello;
mod help;
mod merger;
mod options;
mod report;
mod said;
mod seconds;
mod source;
mod stream;
#[cfg(test)]
mod tests;

use std::io;
use std::process::ExitCode;

use crate::event::EventWriter;
use ground::output::plain_io_message;
use ground::output::{print_stderr, print_stdout};
use merger::{Event, Merger};
use options::Command;

/// What this front end is called in messages.
const NAME: &str = "pgtrial-engine merge";

/// Merges with `args` (without the program's name). The exit status is the highest of the engines' own, 2 if a machine was
/// lost, 1 for what is refused.
pub fn main(args: Vec<String>) -> ExitCode {
    let done = match options::parse(args) {
        Ok(Command::Print(text)) => {
            print_stdout(text);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Live { machines }) => {
            merge(machines, |merger, write| source::merge_live(merger, io::stdin(), write))
        }
        Ok(Command::Files { machines, paths }) => {
            merge(machines, |merger, write| source::merge_files(merger, &paths, write))
        }
        Err(message) => Err(message),
    };
    super::ended(NAME, done)
}

type Write<'a> = &'a mut dyn FnMut(&mut Merger) -> Result<(), String>;

/// The exit status.
fn merge(machines: Vec<String>, read: impl FnOnce(&mut Merger, Write<'_>) -> Result<(), String>) -> Result<u8, String> {
    let mut merger = Merger::new(machines);
    let mut writer = EventWriter::stdout();
    let mut write = |merger: &mut Merger| write_events(&mut writer, merger.events());
    let read = read(&mut merger, &mut write);
    // What could be said before a refusal is said.
    let written = write(&mut merger);
    read.and(written)?;
    merger.status().ok_or_else(|| "the machines' events ended before the run did".to_owned())
}

fn write_events(writer: &mut EventWriter, events: Vec<Event>) -> Result<(), String> {
    for Event { t, event, body } in events {
        if event == "lost" {
            tell_of_loss(&body);
        }
        let written = writer.write_at(t, &event, body);
        written.map_err(|error| format!("could not write events: {}", plain_io_message(&error)))?;
    }
    Ok(())
}

fn tell_of_loss(lost: &serde_json::Value) {
    let text = |key: &str| lost[key].as_str().unwrap_or_default();
    let place = match (lost["second"].as_u64(), text("phase")) {
        (_, "") => "before its load began".to_owned(),
        (second, phase) => format!("in second {} of {phase}", second.unwrap_or_default()),
    };
    print_stderr(format_args!("{NAME}: warning: machine {} was lost {place}\n", text("machine")));
}
