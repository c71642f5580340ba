//! A line of the events: its event with the event's keys, and the time at which it happened.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::done::Done;
use crate::error::EventError;
use crate::measured::TickRecord;
use crate::start::{Connected, Hello, OLDEST_PROTOCOL, PROTOCOL, PhaseStart, to_map};
use crate::suite::{PauseRecord, QueryRecord};
use ground::clock::Phase;
use ground::output::{CouldNot, OutputFile};

/// The maximum number of bytes of a line that error messages show.
const SHOWN_BYTES: usize = 60;

/// One line of the events: an event, and the time at which it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLine {
    /// The time since the engine started, in seconds.
    pub t: f64,
    pub event: Event,
}

/// An event of a run, with the keys that only this kind of event has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    Hello(Box<Hello>),
    Connected(Connected),
    /// All clients are connected, and wait for the planned start of the load.
    Ready(Connected),
    Phase(PhaseStart),
    Tick(Box<TickRecord>),
    Task(TaskRecord),
    Pause(PauseRecord),
    Query(QueryRecord),
    Error(ClientError),
    Lost(Lost),
    Done(Box<Done>),
    Other(Other),
}

/// The event that a task has failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The number of the task's application. Applications and their tasks are numbered from 1.
    pub application: u64,
    pub task: u64,
    pub failure: Option<String>,
    pub arrived_s: f64,
    pub waited_s: f64,
    pub served_s: f64,
    /// The keys that a later version of the protocol adds.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The event that a client was aborted, with the error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientError {
    pub client: usize,
    pub script: usize,
    pub command: Option<usize>,
    pub kind: &'static str,
    pub sqlstate: Option<String>,
    pub message: String,
}

/// A machine whose events ended without the last event, `done`. `phase` and `second` name the first second that the
/// machine has not reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub machine: String,
    pub phase: Option<Phase>,
    pub second: Option<u64>,
}

/// An event whose keys are passed on unchanged: an error, or an event that a later version of the protocol adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Other {
    #[serde(skip)]
    pub name: String,
    #[serde(flatten)]
    pub keys: Map<String, Value>,
}

impl Event {
    /// Returns the name of the event, which is the value of the key `event`.
    pub fn name(&self) -> &str {
        match self {
            Self::Hello(_) => "hello",
            Self::Connected(_) => "connected",
            Self::Ready(_) => "ready",
            Self::Phase(_) => "phase",
            Self::Tick(_) => "tick",
            Self::Task(_) => "task",
            Self::Pause(_) => "pause",
            Self::Query(_) => "query",
            Self::Error(_) => "error",
            Self::Lost(_) => "lost",
            Self::Done(_) => "done",
            Self::Other(other) => &other.name,
        }
    }

    /// Returns the event in the form in which it is passed on unchanged, whatever event it is.
    pub fn into_other(self) -> Other {
        match self {
            Self::Other(other) => other,
            event => Other { name: event.name().to_owned(), keys: to_map(&event) },
        }
    }
}

impl Serialize for EventLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Keys<'a> {
            event: &'a str,
            t: f64,
            #[serde(flatten)]
            keys: &'a Event,
        }
        Keys { event: self.event.name(), t: self.t, keys: &self.event }.serialize(serializer)
    }
}

impl EventLine {
    /// Writes the line and flushes it, so that a reader can follow the run.
    pub fn write(&self, out: &mut OutputFile) -> Result<(), CouldNot> {
        out.write(|out| {
            let line = serde_json::to_string(self)?;
            out.write_all(ground::text::utf8(&line).as_bytes())?;
            out.write_all(b"\n")
        })
    }
}

/// The keys that tell the version of the event protocol. They are read separately, because the first line of another
/// version may have different keys.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    t: Option<f64>,
    protocol: Option<Value>,
}

impl EventLine {
    /// Reads a line, given without its line end. Unknown keys are ignored; in events that are passed on unchanged they
    /// are kept.
    pub fn read(line: &[u8]) -> Result<Self, EventError> {
        let Head { event, t, protocol } = parse(line)?;
        let event = match &*event {
            "hello" => {
                reject_other_protocol(protocol)?;
                Event::Hello(parse(line)?)
            }
            "ready" => Event::Ready(parse(line)?),
            "connected" => Event::Connected(parse(line)?),
            "phase" => Event::Phase(parse(line)?),
            "tick" => Event::Tick(parse(line)?),
            "task" => {
                let task: Map<String, Value> = own_keys(line)?;
                for key in ["arrived_s", "waited_s", "served_s"] {
                    task.get(key).and_then(Value::as_f64).ok_or(EventError::NoNumber(key))?;
                }
                Event::Task(serde_json::from_value(task.into()).map_err(|error| no_event(line, &error))?)
            }
            "done" => Event::Done(parse(line)?),
            name => Event::Other(Other { name: name.to_owned(), keys: own_keys(line)? }),
        };
        Ok(Self { t: t.ok_or(EventError::NoNumber("t"))?, event })
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, EventError> {
    serde_json::from_slice(line).map_err(|error| no_event(line, &error))
}

/// Returns the keys of a line without those that all events have in common.
fn own_keys(line: &[u8]) -> Result<Map<String, Value>, EventError> {
    let mut keys: Map<String, Value> = parse(line)?;
    keys.shift_remove("event");
    keys.shift_remove("t");
    Ok(keys)
}

fn no_event(line: &[u8], error: &serde_json::Error) -> EventError {
    let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
    // Each line is parsed alone, so that its number in the parser's message is always 1 and is removed.
    let reason = error.to_string().replace(" at line 1 column", " at column");
    EventError::NoEvent { reason, start, is_cut: line.len() > SHOWN_BYTES }
}

fn reject_other_protocol(version: Option<Value>) -> Result<(), EventError> {
    match version {
        Some(version) if (OLDEST_PROTOCOL..=PROTOCOL).any(|known| version == known) => Ok(()),
        version => Err(EventError::OtherProtocol { version: version.unwrap_or_default(), known: PROTOCOL }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Count;

    fn rejected(line: &str) -> String {
        EventLine::read(line.as_bytes()).err().map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn a_line_that_is_no_event_is_shown_with_its_beginning() {
        assert_eq!(rejected("nonsense"), "is not an event of this protocol (expected ident at column 2): \"nonsense\"");
        assert!(rejected("{\"event\":\"tick\",\"t\":1").contains("EOF while parsing an object at column 21"));
        assert!(rejected("[1,2]").starts_with("is not an event of this protocol ("));
        assert!(rejected("{\"event\":\"phase\",\"t\":1,\"phase\":\"later\"}").contains("unknown variant `later`"));
        assert!(rejected("{\"event\":\"task\",\"t\":1}").starts_with("has no number for the key \"arrived_s\""));
        assert_eq!(rejected("{\"event\":\"later\"}"), "has no number for the key \"t\"");
    }

    #[test]
    fn a_number_that_could_overflow_is_rejected() {
        let line = |clients: &str| format!("{{\"event\":\"connected\",\"t\":1,\"clients\":{clients},\"connect_s\":1}}");
        assert_eq!(rejected(&line("17592186044416")), "");
        assert!(rejected(&line("17592186044417")).contains("17592186044417 is more than any run can have"));
        assert!(rejected(&line("-1")).contains("invalid value"));
    }

    #[test]
    fn another_version_has_a_message_of_its_own() {
        let line = "{\"event\":\"hello\",\"protocol\":3,\"something\":\"else\"}";
        assert!(
            rejected(line)
                .starts_with("speaks version 3 of the event protocol, but this program speaks version 2; install")
        );
        assert!(rejected("{\"event\":\"hello\"}").starts_with("speaks version null"));
    }

    #[test]
    fn a_second_is_known_however_its_keys_are_ordered() {
        let line = "{ \"t\": 1.5, \"event\": \"tick\", \"phase\": \"measure\", \"second\": 4, \"seconds\": 1,\
                    \"transactions\": 0, \"failures\": {\"40001\": 2}, \"skipped\": 0, \"late\": 0, \"retried\": 0,\
                    \"retries\": 0, \"latency_us\": null, \"histogram\": \"\\u0041B\", \"later\": [1, {}]}";
        let Ok(EventLine { t, event: Event::Tick(tick) }) = EventLine::read(line.as_bytes()) else {
            panic!("{}", rejected(line))
        };
        assert_eq!((t, tick.phase, tick.second, &*tick.times.histogram), (1.5, Phase::Measure, 4, "AB"));
        assert_eq!(tick.counts.failures["40001"], Count(2));
    }

    #[test]
    fn an_unknown_event_is_written_as_it_was_read() {
        let line = "{\"event\":\"later\",\"t\":1.5,\"b\":[1],\"a\":null}";
        assert_eq!(serde_json::to_string(&EventLine::read(line.as_bytes()).unwrap()).unwrap(), line);
    }
}
