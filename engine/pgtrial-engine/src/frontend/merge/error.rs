//! The errors that make it impossible to merge the events of several machines into one run.

use events::EventError;
use ground::output::CouldNot;
use thiserror::Error;

/// The error in one line of a machine's events. [`MergeError::Line`] writes the machine and the number of the line
/// before the message.
#[derive(Debug, PartialEq, Error)]
pub enum LineError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("comes after the last event of the machine, \"done\"")]
    AfterTheEnd,
    #[error("is a second event \"hello\", but a machine sends only one")]
    SecondHello,
    #[error("is not the event \"hello\", which must be the first event of a machine")]
    NoHello,
    #[error("begins the phase \"{0}\", but this phase or a later one has begun already")]
    LatePhase(&'static str),
    #[error("reports second {second} of the phase \"{phase}\" out of order")]
    SecondOutOfOrder { second: u32, phase: &'static str },
    #[error(
        "reports {reported} transactions in the phase \"{phase}\", but the seconds of this phase have {counted} in \
         total: events are missing"
    )]
    MissingEvents { reported: u64, counted: u64, phase: &'static str },
}

/// The reason why the events cannot be merged: they are not from one run, or a file cannot be read or written. Each
/// message is a whole sentence.
#[derive(Debug, Error)]
pub enum MergeError {
    #[error(transparent)]
    File(#[from] CouldNot),
    #[error("{input} has a line of more than {longest} bytes, which cannot be an event")]
    LongLine { input: String, longest: usize },
    #[error("line {line} of standard input does not begin with a machine's number, from 0 to {most}, and a tab")]
    NoMachine { line: u64, most: usize },
    #[error("machine {machine}: line {line} {error}")]
    Line { machine: String, line: u64, error: LineError },
    #[error("no machine sent any event, so there is nothing to merge; the machines are {}", .0.join(", "))]
    NoRun(Vec<String>),
    #[error("the input ended before all machines had sent their last event, \"done\"")]
    NoEnd,
    #[error(
        "machine {second} did not take part in the run of machine {first}: \"{key}\" is {theirs} on {first} and {mine} \
         on {second}"
    )]
    OtherRun { first: String, second: String, key: String, theirs: String, mine: String },
    #[error("machine {machine} does not report which shard of the run it ran ({reason}): {text}")]
    NoShard { machine: String, reason: String, text: String },
    #[error("machine {whole} ran a whole load, but machine {part} ran only shard {number} of {of} of a load")]
    OwnLoad { whole: String, part: String, number: u64, of: u64 },
    #[error(
        "machine {machine} ran shard {number} of {of}, but there {}; give the events of all machines of one run",
        machines(.fleet)
    )]
    OtherFleet { machine: String, number: u64, of: u64, fleet: usize },
    #[error("machines {first} and {second} both ran shard {number} of {of}; each shard may occur only once")]
    SameShard { first: String, second: String, number: u64, of: u64 },
    #[error("machine {machine} reports {scripts} scripts, but the machines before it report {before}")]
    OtherScripts { machine: String, scripts: usize, before: usize },
    #[error("machine {machine}: the record of a script {error}")]
    Script { machine: String, error: EventError },
    #[error("machine {machine}: the record of its tasks {error}")]
    Tasks { machine: String, error: EventError },
}

fn machines(number: &usize) -> String {
    if *number == 1 { "is 1 machine".to_owned() } else { format!("are {number} machines") }
}
