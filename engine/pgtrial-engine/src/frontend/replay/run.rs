//! Runs a replay with the options of the command line, and reports its results.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::description::{describe, names};
use super::examples;
use super::options::{REPLAY, ReplayOptions};
use super::report::report;
use crate::event::{ReplayDescription, RunDescription, RunEvents};
use crate::frontend::common::connection::{connection_limit, reserve_files};
use crate::frontend::common::end::status_of_run;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::USER;
use crate::frontend::common::self_check;
use drive::plan::{Load, Plan, ReplayPlan};
use drive::{Abortion, Began, Observer, Outcome};
use ground::clock::{Clock, Phase};
use ground::interrupt;
use ground::output::print_stdout;
use ground::shard::ClientShare;
use wire::params::Given;
use wire::session::Session;
use wire::target::Target;
use workload::replay::{Replay, Survey};
use workload::seeds::Seeds;

/// The client encoding of the replay's connections. Captures are always in UTF-8, whatever the encoding of the recorded
/// database was.
const ENCODING: &str = "UTF8";

/// Replays the capture. Returns the exit status.
pub fn run(options: &ReplayOptions) -> Result<u8, Failure> {
    if !options.examples.is_empty() {
        examples::print(&options.directory, &options.examples).map_err(Failure::error)?;
        return Ok(0);
    }
    let clock = Clock::start();
    let replay = Replay::open(&options.directory, options.choice()).map_err(Failure::error)?;
    check_statements(&replay, &options.directory)?;
    let replay = Arc::new(if options.hashes_results { replay.hashing_results() } else { replay });
    let given = Given { fallback_application_name: "pgtrial replay".to_owned(), ..options.server.clone() };
    let target = Target::of_encoding(&given, ENCODING, USER).map_err(Failure::error)?;
    let mut session = Session::open(&target).map_err(|error| Failure::error(error.message))?;
    let clients = connections(options, replay.survey(), &mut session)?;
    reserve_files(clients as u64)?;
    warn_of_differences(&replay, &target);
    let plan = plan(options, &replay, target, clients);
    let described = describe(options, &replay);
    let interrupt = interrupt::catch()?;
    let hello = RunDescription {
        server: Some(&session.server.version),
        replay: Some(&described),
        ..RunDescription::new("replay", &plan, options.seed(), REPLAY.failed)
    };
    let complain = |problem: &str| REPLAY.error(problem);
    let mut events =
        RunEvents::open(options.events.as_ref(), clock, &hello, &interrupt, complain).map_err(Failure::error)?;
    drop(session);
    let outcome = events.run(&plan, clock, &mut Messages::default()).map_err(Failure::error)?;
    Ok(finish(options, &plan, &described, &outcome, &mut events))
}

/// Writes the last event, the report, and the warnings. Returns the exit status.
fn finish(
    options: &ReplayOptions,
    plan: &Plan,
    described: &ReplayDescription,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = events.done(outcome, status_of_run(outcome), &warnings);
    if !options.has_only_events() {
        print_stdout(report(plan, described, outcome, options.listed));
    }
    REPLAY.qualify_results(outcome, &warnings);
    status
}

/// Checks that the capture (the recorded sessions) contains statements. Fails if there is nothing to replay.
fn check_statements(replay: &Replay, directory: &Path) -> Result<(), Failure> {
    if replay.survey().statements > 0 {
        return Ok(());
    }
    let directory = directory.display();
    let message =
        format!("the capture in \"{directory}\" has no statements: make a capture from logs that contain statements");
    Err(Failure::error(message))
}

/// Returns the greatest number of connections that the replay opens at the same time. Fails if the server allows fewer.
fn connections(options: &ReplayOptions, survey: &Survey, session: &mut Session) -> Result<usize, Failure> {
    let recorded = survey.most_at_once;
    let wanted = options.max_connections.unwrap_or(recorded);
    match connection_limit(session) {
        Some((most, what)) if wanted > most => {
            let who = match options.max_connections {
                Some(_) => format!("--max-connections={wanted} is more than the server allows"),
                None => format!("up to {wanted} sessions are open at the same time, more than the server allows"),
            };
            Err(Failure::error(format!(
                "{who}: it allows this user at most {most} connections ({what}). Choose --max-connections={most} or \
                 less, so that sessions wait for one another, or raise that limit"
            )))
        }
        // More connections than sessions would never be used.
        _ => Ok(wanted.min(usize::try_from(survey.sessions).unwrap_or(usize::MAX))),
    }
}

/// Warns if the replay must differ from the recorded load, because sessions used several databases or because values
/// were made anonymous.
fn warn_of_differences(replay: &Replay, target: &Target) {
    let databases: Vec<_> = replay.survey().databases.iter().map(String::as_str).collect();
    if databases.len() > 1 {
        let (names, dbname) = (databases.join(", "), &target.params.dbname);
        REPLAY.warning(format_args!(
            "the recorded sessions used several databases ({names}); all sessions are replayed in \"{dbname}\""
        ));
    }
    if replay.about().anonymized {
        REPLAY.warning(
            "the capture is anonymized: its values are tokens, so rows and plans may differ from the recorded ones",
        );
    }
}

fn plan(options: &ReplayOptions, replay: &Arc<Replay>, target: Arc<Target>, clients: usize) -> Plan {
    let part = ClientShare::whole(clients);
    let jobs = options.jobs.min(clients);
    let seeds = Seeds::derive(options.seed(), &part, 0, jobs, None);
    let load = ReplayPlan { timing: options.timing(), time: options.time, accounts: names(replay) };
    Plan {
        start: options.start,
        jobs,
        exit_on_abort: true,
        ..Plan::new(Some(target), part, seeds, Load::replayed(Arc::new(Arc::clone(replay)), load))
    }
}

/// The observer of a replay, which the event loop calls with the messages of its threads. It prints each message once,
/// even if several threads report it.
#[derive(Default)]
struct Messages {
    printed: HashSet<String>,
}

impl Observer for Messages {
    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        began.and_then(Began::lateness).iter().for_each(|message| REPLAY.warning(message));
    }

    fn aborted(&mut self, abortion: &Abortion) {
        REPLAY.error(&abortion.cause);
    }

    fn note(&mut self, text: &str) {
        if self.printed.insert(text.to_owned()) {
            REPLAY.info(text);
        }
    }
}
