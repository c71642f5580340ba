//! The errors for which events cannot be merged.

use events::EventError;
use ground::output::CouldNot;
use thiserror::Error;

/// The error in one line of a machine's events. [`MergeError::Line`] writes the machine and the number of the line
/// before the message.
#[derive(Debug, PartialEq, Error)]
pub enum LineError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("comes after the end of the run")]
    AfterTheEnd,
    #[error("is a second hello")]
    SecondHello,
    #[error("is no hello, and the first")]
    NoHello,
    #[error("begins the phase {0} a second time or too late")]
    LatePhase(&'static str),
    #[error("has second {second} of {phase} out of its order")]
    SecondOutOfOrder { second: u32, phase: &'static str },
    #[error("reports {reported} transactions of {phase}, and its seconds have {counted}: events are missing")]
    MissingEvents { reported: u64, counted: u64, phase: &'static str },
}

/// The reason why the events cannot be merged: they are not from one run, or a file cannot be read or written. Each
/// message is a whole sentence.
#[derive(Debug, Error)]
pub enum MergeError {
    #[error(transparent)]
    File(#[from] CouldNot),
    #[error("{input} has a line of more than {longest} bytes, which is no event")]
    LongLine { input: String, longest: usize },
    #[error("line {line} of standard input does not begin with a machine's number, from 0 to {most}, and a tab")]
    NoMachine { line: u64, most: usize },
    #[error("machine {machine}, line {line}: {error}")]
    Line { machine: String, line: u64, error: LineError },
    #[error("no machine said anything of a run: {}", .0.join(", "))]
    NoRun(Vec<String>),
    #[error("the machines' events ended before the run did")]
    NoEnd,
    #[error(
        "machine {second} has no part of the run of machine {first}: \"{key}\" is {theirs} there and {mine} on {second}"
    )]
    OtherRun { first: String, second: String, key: String, theirs: String, mine: String },
    #[error("machine {machine} does not say which part of the run it had ({reason}): {text}")]
    NoShard { machine: String, reason: String, text: String },
    #[error("machine {whole} had a load of its own, and machine {part} part {number} of {of} of one")]
    OwnLoad { whole: String, part: String, number: u64, of: u64 },
    #[error("machine {machine} had part {number} of {of}, and there {}", machines(.fleet))]
    OtherFleet { machine: String, number: u64, of: u64, fleet: usize },
    #[error("machines {first} and {second} both had part {number} of {of}")]
    SameShard { first: String, second: String, number: u64, of: u64 },
    #[error("machine {machine} reports {scripts} scripts, the machines before it {before}")]
    OtherScripts { machine: String, scripts: usize, before: usize },
    #[error("machine {machine}: a script {error}")]
    Script { machine: String, error: EventError },
    #[error("machine {machine}: its tasks {error}")]
    Tasks { machine: String, error: EventError },
}

fn machines(number: &usize) -> String {
    if *number == 1 { "is 1 machine".to_owned() } else { format!("are {number} machines") }
}
