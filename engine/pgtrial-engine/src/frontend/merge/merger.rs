//! Makes the events of the whole run from the events of the machines that shared it. The lines of different machines
//! may arrive in any order.

use events::{Connected, Count, Event, EventLine, Lost, Other, PhaseStart};

use super::error::{LineError, MergeError};
use super::hello;
use super::report::{self, Totals};
use super::seconds::{Merged, Seconds};
use super::stream::{FailedTask, MachineStream, Position, StreamState};

/// The exit status of a run in which a machine was lost: its events ended before the run did.
const LOST_STATUS: u8 = 2;

/// Merges the streams of events of several machines.
#[derive(Default)]
pub struct Merger {
    streams: Vec<MachineStream>,
    seconds: Seconds,
    totals: Totals,
    /// The merged events that are complete and have not been written yet.
    lines: Vec<EventLine>,
    /// Events that can be written only after the merged `hello`. `None` once the merged `hello` has been made.
    early: Option<Vec<EventLine>>,
    has_connected: bool,
    has_ready: bool,
    /// The time on the clock of the merged events at which the load began. `None` before the first phase.
    began: Option<f64>,
    /// The time of the last merged event. No later event gets an earlier time.
    now: f64,
    status: Option<u8>,
}

impl Merger {
    /// Makes a merger for machines with these names.
    pub fn new(machines: impl IntoIterator<Item = String>) -> Self {
        let streams = machines.into_iter().map(MachineStream::new).collect();
        Self { streams, early: Some(Vec::new()), ..Self::default() }
    }

    /// Adds one line from a machine, without the line feed at its end.
    pub fn add_line(&mut self, machine: usize, line: &[u8]) -> Result<(), MergeError> {
        self.streams[machine].lines += 1;
        let added = EventLine::read(line).map_err(LineError::from).and_then(|line| self.add_event(machine, line));
        added.map_err(|error| {
            let MachineStream { name, lines, .. } = &self.streams[machine];
            MergeError::Line { machine: name.clone(), line: *lines, error }
        })?;
        self.push_complete()
    }

    /// Records that a machine sends no more lines. If its last event was not `done`, the machine counts as lost.
    pub fn end_stream(&mut self, machine: usize) -> Result<(), MergeError> {
        if self.streams[machine].is_running() {
            self.lose(machine);
        }
        self.push_complete()
    }

    /// Returns the running machine that is furthest behind: its next event is about the earliest second of the run.
    /// `None` if no machine is running.
    pub fn last(&self) -> Option<usize> {
        self.frontier().map(|(_, machine)| machine)
    }

    /// Returns the number of machines.
    pub fn machines(&self) -> usize {
        self.streams.len()
    }

    /// Returns true if more lines are expected from a machine. Returns false once it has sent `done` or is lost.
    pub fn is_running(&self, machine: usize) -> bool {
        self.streams[machine].is_running()
    }

    /// Returns the merged events that can be written now, and removes them from the merger.
    pub fn take_lines(&mut self) -> Vec<EventLine> {
        std::mem::take(&mut self.lines)
    }

    /// Returns the exit status of the whole run, or `None` while a machine is still running.
    pub fn status(&self) -> Option<u8> {
        self.status
    }

    /// Returns the first position (the beginning of a phase, or a second) that some running machine has not reported
    /// yet, and this machine. Everything before the position is complete. `None` if no machine is running.
    fn frontier(&self) -> Option<(Position, usize)> {
        let running = self.streams.iter().enumerate().filter(|(_, stream)| stream.is_running());
        running.map(|(machine, stream)| (stream.next, machine)).min()
    }

    fn add_event(&mut self, machine: usize, EventLine { t, event }: EventLine) -> Result<(), LineError> {
        let stream = &mut self.streams[machine];
        if !stream.is_running() {
            return Err(LineError::AfterTheEnd);
        }
        match (&stream.hello, &event) {
            (Some(_), Event::Hello(_)) => return Err(LineError::SecondHello),
            (Some(_), _) | (None, Event::Hello(_)) => {}
            (None, _) => return Err(LineError::NoHello),
        }
        match event {
            Event::Hello(hello) => stream.hello = Some((t, *hello)),
            Event::Ready(clients) => stream.ready = Some((t, clients)),
            Event::Connected(clients) => stream.connected = Some((t, clients)),
            Event::Phase(start) => {
                stream.begin_phase(t, &start)?;
                self.seconds.begin_phase(&start, stream.since_start(t));
            }
            Event::Tick(tick) => {
                let tasks = stream.end_second(&tick)?;
                self.seconds.add(machine, &tick, stream.since_start(t), tasks)?;
            }
            Event::Task(task) => stream.add_task(task),
            Event::Done(done) => stream.finish(t, done)?,
            Event::Pause(_) | Event::Query(_) | Event::Error(_) | Event::Lost(_) | Event::Other(_) => {
                self.pass_on(machine, t, event.into_other());
            }
        }
        Ok(())
    }

    /// Writes an event that concerns a single machine, such as an error. It is not merged with other events, but gets
    /// the machine's name.
    fn pass_on(&mut self, machine: usize, t: f64, mut other: Other) {
        let stream = &self.streams[machine];
        other.keys.insert("machine".to_owned(), stream.name.clone().into());
        let t = self.began.filter(|_| stream.began.is_some()).map_or(t, |began| began + stream.since_start(t));
        self.push_after_hello(t, Event::Other(other));
    }

    fn lose(&mut self, machine: usize) {
        let stream = &mut self.streams[machine];
        stream.state = StreamState::Lost;
        let next = stream.began.map(|_| stream.next);
        let (phase, second) = (next.map(|next| next.phase), next.and_then(|next| next.second));
        let (machine, tasks) = (stream.name.clone(), stream.take_tasks());
        self.push_after_hello(self.now, Event::Lost(Lost { machine, phase, second }));
        self.push_tasks(tasks);
    }

    /// Makes every merged event for which all running machines have sent their own event.
    fn push_complete(&mut self) -> Result<(), MergeError> {
        if self.early.is_some() && !self.push_hello()? {
            return Ok(());
        }
        if !self.has_connected {
            let connected = self.common(|stream| stream.connected);
            self.has_connected = connected.is_some();
            connected.into_iter().for_each(|(t, clients)| self.push(t, Event::Connected(clients)));
        }
        if !self.has_ready {
            let ready = self.common(|stream| stream.ready);
            self.has_ready = ready.is_some();
            ready.into_iter().for_each(|(t, clients)| self.push(t, Event::Ready(clients)));
        }
        let frontier = self.frontier().map(|(position, _)| position);
        while let Some((position, merged)) = self.seconds.next_complete(frontier) {
            self.push_merged(position, merged);
        }
        if frontier.is_none() && self.status.is_none() {
            self.push_done()?;
        }
        Ok(())
    }

    /// Makes the merged `hello` event, if every running machine has sent its `hello`. Returns true if the event was
    /// made.
    fn push_hello(&mut self) -> Result<bool, MergeError> {
        if self.streams.iter().any(|stream| stream.is_running() && stream.hello.is_none()) {
            return Ok(false);
        }
        let parts: Vec<_> = self
            .streams
            .iter()
            .filter_map(|stream| stream.hello.as_ref().map(|(_, hello)| (stream.name.as_str(), hello)))
            .collect();
        let t =
            self.streams.iter().filter_map(|stream| stream.hello.as_ref()).fold(0.0, |t: f64, (one, _)| t.max(*one));
        let Some(hello) = hello::merged(&parts, self.streams.len())? else {
            return Err(MergeError::NoRun(self.streams.iter().map(|stream| stream.name.clone()).collect()));
        };
        self.push(t, Event::Hello(Box::new(hello)));
        for EventLine { t, event } in self.early.take().unwrap_or_default() {
            self.push(t, event);
        }
        Ok(true)
    }

    /// Merges the machines' events about connected clients, except those of lost machines, into one event: the sum of
    /// the numbers of clients, at the latest of the times. `of` returns the event of a machine. Returns `None` if a
    /// running machine has not sent the event yet.
    fn common(&self, of: impl Fn(&MachineStream) -> Option<(f64, Connected)>) -> Option<(f64, Connected)> {
        if self.streams.iter().any(|stream| stream.is_running() && of(stream).is_none()) {
            return None;
        }
        let reported = self.streams.iter().filter(|stream| stream.state != StreamState::Lost).filter_map(of);
        reported.reduce(|(t, all), (other_t, other)| {
            let clients = Count(all.clients.0 + other.clients.0);
            (t.max(other_t), Connected { clients, connect_s: all.connect_s.max(other.connect_s) })
        })
    }

    fn push_merged(&mut self, Position { phase, second }: Position, merged: Merged) {
        let began = *self.began.get_or_insert_with(|| {
            self.streams.iter().filter_map(|stream| stream.began).fold(0.0, |last, began| last.max(began.t))
        });
        let Merged { since, at, seconds, sum, tasks, .. } = merged;
        let event = match second {
            None => Event::Phase(PhaseStart { phase, at, planned_at: None }),
            Some(second) => {
                self.push_tasks(tasks);
                self.totals.add(phase, seconds, &sum);
                Event::Tick(Box::new(sum.tick(phase, second as u32, seconds)))
            }
        };
        self.push(began + since, event);
    }

    /// Adds the events of failed tasks, in the order in which the tasks ended.
    fn push_tasks(&mut self, mut tasks: Vec<FailedTask>) {
        tasks.sort_by(|one, other| one.ended.total_cmp(&other.ended));
        let began = self.began.unwrap_or_default();
        for FailedTask { arrived, ended, mut task } in tasks {
            task.arrived_s = to_nanoseconds(began + arrived);
            self.push(began + ended, Event::Task(task));
        }
    }

    fn push_done(&mut self) -> Result<(), MergeError> {
        let done = || self.streams.iter().filter_map(|stream| Some((stream, stream.done.as_ref()?)));
        let is_lost = self.streams.iter().any(|stream| stream.state == StreamState::Lost);
        let highest = done().map(|(_, (_, done))| done.status).max().unwrap_or_default();
        let status = if is_lost { LOST_STATUS } else { highest };
        let last = done().map(|(stream, (t, _))| stream.since_start(*t)).fold(0.0, f64::max);
        let done = report::done(&self.streams, &self.totals, status)?;
        self.status = Some(status);
        self.push(self.began.unwrap_or_default() + last, Event::Done(Box::new(done)));
        Ok(())
    }

    fn push_after_hello(&mut self, t: f64, event: Event) {
        match &mut self.early {
            Some(early) => early.push(EventLine { t, event }),
            None => self.push(t, event),
        }
    }

    fn push(&mut self, t: f64, event: Event) {
        self.now = self.now.max(to_nanoseconds(t));
        self.lines.push(EventLine { t: self.now, event });
    }
}

/// Rounds seconds to nanoseconds, the unit of the engine's clock.
fn to_nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}
