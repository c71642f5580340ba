//! Writes the results of a run: the events, and a line for each query for people.

use std::time::{SystemTime, UNIX_EPOCH};

use super::options::{Query, SUITE, SuiteOptions};
use crate::event::{Events, PROTOCOL, timestamp};
use events::{
    ClientError, Connected, Done, Event, EventLine, Hello, PauseRecord, PhaseStart, PlanRecord, QueryRecord,
    SuitePlanRecord, to_map,
};
use ground::clock::{Clock, Phase, seconds};
use ground::output::{CouldNot, OutputFile, print_stdout};

/// The outputs of a run.
pub struct Output {
    events: Option<OutputFile>,
    clock: Clock,
    prints: bool,
    /// True if an event could not be written. The error has been printed, and no further events are written.
    pub is_lost: bool,
    has_begun: bool,
}

impl Output {
    /// Opens the destination of the events and writes the first event, if the option `--events` was given.
    pub fn open(options: &SuiteOptions, queries: &[Query], server: &str, clock: Clock) -> Result<Self, CouldNot> {
        let file = options.events.as_ref().map(|events| match events {
            Events::Stdout => Ok(OutputFile::stdout("events")),
            Events::File(path) => OutputFile::create("events file ", path),
        });
        let prints = !options.has_only_events();
        let mut output = Self { events: file.transpose()?, clock, prints, is_lost: false, has_begun: false };
        output.write(Event::Hello(Box::new(hello(options, queries, server))));
        Ok(output)
    }

    fn write(&mut self, event: Event) {
        let Some(file) = &mut self.events else { return };
        let line = EventLine { t: seconds(self.clock.now()), event };
        if let Err(problem) = line.write(file) {
            SUITE.error(problem);
            self.events = None;
            self.is_lost = true;
        }
    }

    /// Writes the event `connected` about the first connection, which took `connect_s` seconds.
    pub fn connected(&mut self, connect_s: f64) {
        self.write(Event::Connected(Connected { clients: 1.into(), connect_s }));
    }

    /// Writes the event `phase`: the warm-up or the measured part begins.
    pub fn phase(&mut self, phase: Phase) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let at = (!self.has_begun).then_some(now);
        self.has_begun = true;
        self.write(Event::Phase(PhaseStart { phase, at, planned_at: None }));
    }

    /// Writes the event `pause`: the engine waits for a line on standard input before it runs a query.
    pub fn pause(&mut self, pause: PauseRecord) {
        self.write(Event::Pause(pause));
    }

    /// Writes the event `query` with the result of a query. If standard output is not used for events, also prints a
    /// line about the query.
    pub fn query(&mut self, query: QueryRecord) {
        if self.prints {
            print_stdout(line_of(&query));
        }
        self.write(Event::Query(query));
    }

    /// Prints the error that ends the run, such as a lost connection, and writes the event `error` about it.
    pub fn error(&mut self, error: ClientError) {
        SUITE.error(&error.message);
        self.write(Event::Error(error));
    }

    /// Writes the last event, `done`. If standard output is not used for events, also prints a line with the totals of
    /// the measured part.
    pub fn done(&mut self, done: Done) {
        if let Some(measured) = done.measure.as_ref().filter(|_| self.prints) {
            let failed: u64 = measured.counts.failures.values().map(|count| count.0).sum();
            print_stdout(format_args!(
                "{} measured, {failed} failed, {:.3} s\n",
                measured.counts.transactions.0, measured.duration_s
            ));
        }
        self.write(Event::Done(Box::new(done)));
    }
}

fn hello(options: &SuiteOptions, queries: &[Query], server: &str) -> Hello {
    let executions = queries.len() as u64 * u64::from(options.runs);
    let plan = PlanRecord {
        scripts: queries.iter().map(|query| query.name.clone()).collect(),
        clients: 1,
        jobs: 1,
        query_mode: "simple".to_owned(),
        scale: None,
        warmup_s: 0.0,
        duration_s: None,
        transactions_per_client: Some(executions),
        transactions: None,
        random_seed: options.seed.to_string(),
        shard: None,
        pools: None,
        slices: None,
        replay: None,
        suite: Some(SuitePlanRecord {
            runs: options.runs,
            limit_s: options.limit.as_secs_f64(),
            pauses: options.pauses,
        }),
    };
    Hello {
        protocol: PROTOCOL,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        frontend: "suite".to_owned(),
        pid: std::process::id(),
        started: timestamp(SystemTime::now()),
        server_version: Some(server.to_owned()),
        plan: to_map(&plan),
        machines: None,
    }
}

/// Returns the line about a query that is printed for people.
fn line_of(query: &QueryRecord) -> String {
    let QueryRecord { query: name, phase, rows, .. } = query;
    let unmeasured = if *phase == Phase::Warmup { " (not counted)" } else { "" };
    match query.time_us {
        Some(time_us) if query.over_limit => {
            format!("{name:<20} {:>14.3} ms, cancelled at the limit{unmeasured}\n", time_us / 1000.0)
        }
        Some(time_us) => format!("{name:<20} {:>14.3} ms {rows:>12} rows{unmeasured}\n", time_us / 1000.0),
        None => format!("{name:<20} failed: {}{unmeasured}\n", query.message.as_deref().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_or_the_error() {
        let query = |time_us, over_limit, message: Option<&str>| QueryRecord {
            query: "q1".to_owned(),
            phase: Phase::Measure,
            run: 1,
            time_us,
            over_limit,
            rows: 7,
            rows_hash: None,
            sqlstate: None,
            message: message.map(str::to_owned),
        };
        let columns = |query: &QueryRecord| line_of(query).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(columns(&query(Some(1234.5), false, None)), "q1 1.234 ms 7 rows");
        assert_eq!(columns(&query(Some(2e6), true, None)), "q1 2000.000 ms, cancelled at the limit");
        assert_eq!(columns(&query(None, false, Some("ERROR: no"))), "q1 failed: ERROR: no");
        let unmeasured = QueryRecord { phase: Phase::Warmup, ..query(Some(1000.0), false, None) };
        assert_eq!(columns(&unmeasured), "q1 1.000 ms 7 rows (not counted)");
    }
}
