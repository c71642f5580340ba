//! What an engine says of its part of a run: one line of its events, as far as the whole needs it.

mod end;
mod second;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::event::PROTOCOL;
pub use end::{Done, Summary, Tasks};
use ground::clock::Phase;
use latency::MOST;
pub use second::{Fractions, Second};

/// How a second begins as the engine writes it; with other blanks or another order of keys it is found out as well.
const TICK: &[u8] = br#"{"event":"tick","#;

/// So much of a line that is no event is shown.
const SHOWN: usize = 60;

/// One event.
pub enum Said<'a> {
    Hello(Box<Hello>),
    /// All clients are connected and wait for the start.
    Ready(Clients),
    Connected(Clients),
    Phase(PhaseBegins),
    Tick(Box<Second<'a>>),
    Task(Task),
    Done(Box<Done>),
    /// An error, or an event that is not known here.
    Other(Other),
}

/// How many of something: a number that can be added up without an overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "u64")]
pub struct Count(pub u64);

impl TryFrom<u64> for Count {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if number <= MOST { Ok(Self(number)) } else { Err(format!("{number} is more than there can be")) }
    }
}

/// What every first line has, whatever the version.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    protocol: Option<Value>,
}

/// The part of the run that follows.
#[derive(Deserialize)]
pub struct Hello {
    pub t: f64,
    pub engine: String,
    pub frontend: String,
    pub started: String,
    pub server_version: Option<String>,
    pub plan: Map<String, Value>,
}

/// Clients that are connected.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Clients {
    pub t: f64,
    pub clients: Count,
    pub connect_s: f64,
}

/// A phase begins.
#[derive(Deserialize)]
pub struct PhaseBegins {
    pub t: f64,
    pub phase: Phase,
    /// On the machine's clock, seconds since 1970; only of the first phase.
    pub at: Option<f64>,
}

/// A task that failed.
pub struct Task {
    pub arrived_s: f64,
    pub waited_s: f64,
    pub served_s: f64,
    /// All that is said of it.
    pub body: Map<String, Value>,
}

/// An event that goes on as it is.
pub struct Other {
    pub event: String,
    pub t: f64,
    pub body: Map<String, Value>,
}

/// Reads a line; the error is the rest of a sentence that begins with the machine and the line.
pub fn read(line: &[u8]) -> Result<Said<'_>, String> {
    if line.starts_with(TICK) {
        return parse(line).map(Said::Tick);
    }
    let head: Head<'_> = parse(line)?;
    Ok(match &*head.event {
        "hello" => {
            refuse_other_protocol(head.protocol)?;
            Said::Hello(parse(line)?)
        }
        "ready" => Said::Ready(parse(line)?),
        "connected" => Said::Connected(parse(line)?),
        "phase" => Said::Phase(parse(line)?),
        "tick" => Said::Tick(parse(line)?),
        "task" => Said::Task(task(parse(line)?)?),
        "done" => Said::Done(parse(line)?),
        _ => Said::Other(other(parse(line)?)?),
    })
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
        let more = if line.len() > SHOWN { "..." } else { "" };
        // The line's number within a single line says nothing.
        let reason = error.to_string().replace(" at line 1 column", " at column");
        format!("is no event of this protocol ({reason}): {start:?}{more}")
    })
}

fn refuse_other_protocol(version: Option<Value>) -> Result<(), String> {
    match version {
        Some(version) if version == PROTOCOL => Ok(()),
        version => Err(format!(
            "speaks version {} of the event protocol and this program version {PROTOCOL}; install the same release of \
             pgtrial on all machines",
            version.unwrap_or_default()
        )),
    }
}

fn task(mut body: Map<String, Value>) -> Result<Task, String> {
    body.remove("event");
    body.remove("t");
    let seconds = |key: &str| number(&body, key);
    let (arrived_s, waited_s, served_s) = (seconds("arrived_s")?, seconds("waited_s")?, seconds("served_s")?);
    Ok(Task { arrived_s, waited_s, served_s, body })
}

fn other(mut body: Map<String, Value>) -> Result<Other, String> {
    let t = number(&body, "t")?;
    body.remove("t");
    match body.shift_remove("event") {
        Some(Value::String(event)) => Ok(Other { event, t, body }),
        _ => Err("is no event".to_owned()),
    }
}

fn number(body: &Map<String, Value>, key: &str) -> Result<f64, String> {
    body.get(key).and_then(Value::as_f64).ok_or_else(|| format!("says no number for \"{key}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        read(line.as_bytes()).err().unwrap_or_default()
    }

    #[test]
    fn what_is_no_event_is_told_with_its_beginning() {
        assert_eq!(refused("nonsense"), "is no event of this protocol (expected ident at column 2): \"nonsense\"");
        assert!(refused("{\"event\":\"tick\",\"t\":1").contains("EOF while parsing an object at column 21"));
        assert!(refused("[1,2]").starts_with("is no event of this protocol ("));
        assert!(refused("{\"event\":\"phase\",\"t\":1,\"phase\":\"later\"}").contains("unknown variant `later`"));
        assert!(refused("{\"event\":\"task\",\"t\":1}").starts_with("says no number for \"arrived_s\""));
    }

    #[test]
    fn a_number_that_could_overflow_is_refused() {
        let line = |clients: &str| format!("{{\"event\":\"connected\",\"t\":1,\"clients\":{clients},\"connect_s\":1}}");
        assert_eq!(refused(&line("17592186044416")), "");
        assert!(refused(&line("17592186044417")).contains("17592186044417 is more than there can be"));
        assert!(refused(&line("-1")).contains("invalid value"));
    }

    #[test]
    fn another_version_is_told_apart_from_nonsense() {
        let line = "{\"event\":\"hello\",\"protocol\":2,\"something\":\"else\"}";
        assert!(
            refused(line).starts_with("speaks version 2 of the event protocol and this program version 1; install")
        );
        assert!(refused("{\"event\":\"hello\"}").starts_with("speaks version null"));
    }

    #[test]
    fn a_second_is_known_however_its_keys_are_ordered() {
        let line = "{ \"t\": 1.5, \"event\": \"tick\", \"phase\": \"measure\", \"second\": 4, \"seconds\": 1,\
                    \"transactions\": 0, \"failures\": {\"40001\": 2}, \"skipped\": 0, \"late\": 0, \"retried\": 0,\
                    \"retries\": 0, \"latency_us\": null, \"histogram\": \"\\u0041B\", \"later\": [1, {}]}";
        let Ok(Said::Tick(second)) = read(line.as_bytes()) else { panic!("{}", refused(line)) };
        assert_eq!((second.phase, second.second, &*second.histogram.0), (Phase::Measure, 4, &b"AB"[..]));
        assert_eq!(second.failures["40001"], Count(2));
    }
}
