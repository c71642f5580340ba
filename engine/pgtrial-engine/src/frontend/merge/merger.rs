//! The merger: lines of the machines in, in whatever order they come, events of the whole out.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::hello;
use super::said::{Clients, Other, Said, read};
use super::seconds::{Complete, Seconds};
use super::stream::{FailedTask, Place, State, Stream, name_of};
use crate::event::second;
use crate::frontend::merge::report;
use crate::frontend::merge::report::Totals;

/// Exit status of a run of which a machine was lost.
const LOST: u8 = 2;

/// An event of the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub t: f64,
    pub event: Cow<'static, str>,
    pub body: Value,
}

/// Adds up what machines say.
pub struct Merger {
    streams: Vec<Stream>,
    /// The running ones by how far they have come.
    running: BTreeSet<(Place, usize)>,
    seconds: Seconds,
    totals: Totals,
    /// To be written.
    out: Vec<Event>,
    /// What came before the first event of the whole could be written.
    early: Vec<Event>,
    said_hello: bool,
    said_ready: bool,
    said_connected: bool,
    /// Something was heard that the whole's `connected` or `ready` may have waited for.
    heard_of_clients: bool,
    /// When the load began on the whole's clock; known from the first phase on.
    began: Option<f64>,
    /// The time of the last event: the whole's clock does not go back.
    now: f64,
    status: Option<u8>,
}

impl Merger {
    /// Of machines with these names.
    pub fn new(machines: impl IntoIterator<Item = String>) -> Self {
        let streams: Vec<_> = machines.into_iter().map(Stream::new).collect();
        Self {
            running: streams.iter().enumerate().map(|(machine, stream)| (stream.next, machine)).collect(),
            streams,
            seconds: Seconds::default(),
            totals: Totals::default(),
            out: Vec::new(),
            early: Vec::new(),
            said_hello: false,
            said_ready: false,
            said_connected: false,
            heard_of_clients: false,
            began: None,
            now: 0.0,
            status: None,
        }
    }

    /// A line of a machine, without its end. The error is a sentence.
    pub fn take(&mut self, machine: usize, line: &[u8]) -> Result<(), String> {
        let stream = &mut self.streams[machine];
        stream.lines += 1;
        let stood = stream.next;
        let heard = read(line).and_then(|said| self.hear(machine, said));
        heard.map_err(|problem| {
            let stream = &self.streams[machine];
            format!("machine {}, line {}: {problem}", stream.name, stream.lines)
        })?;
        self.advance(machine, stood);
        self.settle()
    }

    /// Nothing more is to come from a machine.
    pub fn end(&mut self, machine: usize) -> Result<(), String> {
        if self.streams[machine].is_running() {
            self.lose(machine);
            self.advance(machine, self.streams[machine].next);
        }
        self.settle()
    }

    /// The machine that is the furthest behind, if any is running.
    pub fn last(&self) -> Option<usize> {
        self.running.first().map(|(_, machine)| *machine)
    }

    /// How many machines there are.
    pub fn machines(&self) -> usize {
        self.streams.len()
    }

    /// Whether more is to come from a machine.
    pub fn is_running(&self, machine: usize) -> bool {
        self.streams[machine].is_running()
    }

    /// The events that can be written.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out)
    }

    /// The exit status, when all machines have come to their end.
    pub fn status(&self) -> Option<u8> {
        self.status
    }

    fn hear(&mut self, machine: usize, said: Said<'_>) -> Result<(), String> {
        let stream = &mut self.streams[machine];
        if !stream.is_running() {
            return Err("comes after the end of the run".to_owned());
        }
        if stream.hello.is_some() == matches!(said, Said::Hello(_)) {
            return Err(
                if stream.hello.is_some() { "is a second hello" } else { "is no hello, and the first" }.to_owned()
            );
        }
        match said {
            Said::Hello(hello) => stream.hello = Some(*hello),
            Said::Ready(clients) => {
                stream.ready = Some(clients);
                self.heard_of_clients = true;
            }
            Said::Connected(clients) => {
                stream.connected = Some(clients);
                self.heard_of_clients = true;
            }
            Said::Phase(phase) => {
                stream.begin(&phase)?;
                self.seconds.begin(&phase, stream.since_beginning(phase.t));
            }
            Said::Tick(second) => {
                stream.pass(&second)?;
                let (since, tasks) = (stream.since_beginning(second.t), stream.take_tasks());
                self.seconds.add(machine, &second, since, tasks)?;
            }
            Said::Task(task) => stream.keep(task),
            Said::Done(done) => stream.end(done)?,
            Said::Other(other) => self.pass_on(machine, other),
        }
        Ok(())
    }

    /// An event that is not to be added up: with the machine's name.
    fn pass_on(&mut self, machine: usize, other: Other) {
        let Other { event, t, mut body } = other;
        let stream = &self.streams[machine];
        body.insert("machine".to_owned(), stream.name.clone().into());
        let t = self.began.filter(|_| stream.began.is_some()).map_or(t, |began| began + stream.since_beginning(t));
        self.say_early(t, event.into(), Value::Object(body));
    }

    fn lose(&mut self, machine: usize) {
        let stream = &mut self.streams[machine];
        stream.state = State::Lost;
        let begun = stream.began.is_some();
        let phase = begun.then(|| name_of(stream.next.phase));
        let second = stream.next.number().filter(|_| begun);
        let body = json!({ "machine": stream.name, "phase": phase, "second": second });
        let tasks = stream.take_tasks();
        self.say_early(self.now, "lost".into(), body);
        self.tell_of_tasks(tasks);
    }

    /// A machine has come further than where it stood, or to its end.
    fn advance(&mut self, machine: usize, stood: Place) {
        let stream = &self.streams[machine];
        if !stream.is_running() {
            self.running.remove(&(stood, machine));
            self.heard_of_clients = true;
        } else if stream.next != stood {
            self.running.remove(&(stood, machine));
            self.running.insert((stream.next, machine));
        }
    }

    /// Says what has become complete.
    fn settle(&mut self) -> Result<(), String> {
        if !self.said_hello && !self.say_hello()? {
            return Ok(());
        }
        if std::mem::take(&mut self.heard_of_clients) {
            self.said_connected = self.said_connected || self.say_clients("connected", |stream| stream.connected);
            self.said_ready = self.said_ready || self.say_clients("ready", |stream| stream.ready);
        }
        let frontier = self.running.first().map(|(place, _)| *place);
        for complete in self.seconds.complete(frontier) {
            self.tell_of(complete);
        }
        if frontier.is_none() && self.status.is_none() {
            self.say_done()?;
        }
        Ok(())
    }

    /// Whether the first event of the whole has been said, now that all machines have said theirs.
    fn say_hello(&mut self) -> Result<bool, String> {
        if self.streams.iter().any(|stream| stream.is_running() && stream.hello.is_none()) {
            return Ok(false);
        }
        let parts: Vec<_> =
            self.streams.iter().filter_map(|stream| Some((stream.name.as_str(), stream.hello.as_ref()?))).collect();
        if parts.is_empty() {
            let names: Vec<_> = self.streams.iter().map(|stream| stream.name.as_str()).collect();
            return Err(format!("no machine said anything of a run: {}", names.join(", ")));
        }
        let t = parts.iter().fold(0.0, |last: f64, (_, hello)| last.max(hello.t));
        let body = hello::whole(&parts, self.streams.len())?;
        self.said_hello = true;
        self.say(t, "hello".into(), body);
        for Event { t, event, body } in std::mem::take(&mut self.early) {
            self.say(t, event, body);
        }
        Ok(true)
    }

    /// Whether all machines that are to have clients have said that these are connected, and the whole has.
    fn say_clients(&mut self, event: &'static str, of: impl Fn(&Stream) -> Option<Clients>) -> bool {
        let there: Vec<_> = self.streams.iter().filter(|stream| stream.state != State::Lost).collect();
        if there.iter().any(|stream| stream.is_running() && of(stream).is_none()) {
            return false;
        }
        let told: Vec<_> = there.into_iter().filter_map(of).collect();
        if told.is_empty() {
            return false;
        }
        let longest = |of: fn(&Clients) -> f64| told.iter().map(of).fold(0.0, f64::max);
        let clients: u64 = told.iter().map(|told| told.clients.0).sum();
        let (t, connect_s) = (longest(|told| told.t), longest(|told| told.connect_s));
        self.say(t, event.into(), json!({ "clients": clients, "connect_s": connect_s }));
        true
    }

    fn tell_of(&mut self, complete: Complete) {
        let began = *self.began.get_or_insert_with(|| {
            self.streams.iter().filter_map(|stream| stream.began).fold(0.0, |last, began| last.max(began.t))
        });
        match complete {
            Complete::Phase { phase, since, at } => {
                let mut body = json!({ "phase": phase });
                if let (Some(at), Some(body)) = (at, body.as_object_mut()) {
                    body.insert("at".to_owned(), at.into());
                }
                self.say(began + since, "phase".into(), body);
            }
            Complete::Second { tick, since, tasks } => {
                self.tell_of_tasks(tasks);
                self.say(began + since, "tick".into(), second(&tick, self.seconds.kind));
                self.totals.add(&tick);
            }
        }
    }

    /// Tasks that failed, in the order in which they ended.
    fn tell_of_tasks(&mut self, mut tasks: Vec<FailedTask>) {
        tasks.sort_by(|one, other| one.ended.total_cmp(&other.ended));
        let began = self.began.unwrap_or_default();
        for FailedTask { arrived, ended, body: told } in tasks {
            let mut body = Map::new();
            body.extend(told);
            body.insert("arrived_s".to_owned(), nanoseconds(began + arrived).into());
            self.say(began + ended, "task".into(), Value::Object(body));
        }
    }

    fn say_done(&mut self) -> Result<(), String> {
        let lost = self.streams.iter().any(|stream| stream.state == State::Lost);
        let reports = || self.streams.iter().filter_map(|stream| stream.done.as_deref());
        let worst = reports().map(|done| done.status).max().unwrap_or_default();
        let status = if lost { LOST } else { worst };
        let since = |stream: &Stream| stream.done.as_ref().map(|done| stream.since_beginning(done.t));
        let last = self.streams.iter().filter_map(since).fold(0.0, f64::max);
        let body = report::done(&self.streams, &self.totals, self.seconds.kind, status)?;
        self.status = Some(status);
        self.say(self.began.unwrap_or_default() + last, "done".into(), body);
        Ok(())
    }

    fn say_early(&mut self, t: f64, event: Cow<'static, str>, body: Value) {
        if self.said_hello {
            self.say(t, event, body);
        } else {
            self.early.push(Event { t, event, body });
        }
    }

    fn say(&mut self, t: f64, event: Cow<'static, str>, body: Value) {
        self.now = self.now.max(nanoseconds(t));
        self.out.push(Event { t: self.now, event, body });
    }
}

/// Seconds to the nanosecond, as the engine's clock has them.
fn nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}
