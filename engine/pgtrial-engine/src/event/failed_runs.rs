//! Tests of the events that are written if the run fails because of a bug in the engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Events, RunDescription, RunEvents};
use drive::Observer;
use drive::plan::{Load, Plan, StagedPlan};
use ground::clock::Clock;
use ground::random::Random;
use ground::shard::ClientShare;
use workload::seeds::Seeds;
use workload::{Action, Program, ScriptInfo, StagedActions, Workload};

/// A workload whose second client panics when its first transaction begins.
struct Faulty;

impl Workload<StagedActions> for Faulty {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo { description: "faulty".to_owned(), weight: 1, commands: Vec::new() }]
    }

    fn client(&self, client: usize, _random: Random) -> Box<dyn Program<StagedActions>> {
        Box::new(FaultyClient { client })
    }
}

struct FaultyClient {
    client: usize,
}

impl Program<StagedActions> for FaultyClient {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        assert!(self.client != 1, "a fault of the engine");
        0
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        Action::End
    }
}

struct Nobody;

impl Observer for Nobody {}

#[test]
fn a_thread_that_panics_ends_the_run_with_an_error_and_the_events_with_their_last_line() {
    let file = std::env::temp_dir().join(format!("pgtrial-failed-run-{}", std::process::id()));
    let part = ClientShare::whole(2);
    let seeds = Seeds::derive(1, &part, 0, 2, None);
    let load = Load::staged(Arc::new(Faulty), StagedPlan::default());
    let plan = Plan { jobs: 2, ..Plan::new(None, part, seeds, load) };
    let description = RunDescription::new("test", &plan, 1, 7);
    let (clock, stop) = (Clock::start(), AtomicBool::new(false));
    let option = Events::File(file.clone());
    let mut events = RunEvents::open(Some(&option), clock, &description, &stop, |_| {}).unwrap();
    let error = events.run(&plan, clock, &mut Nobody).map(drop).unwrap_err();
    let text = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    assert_eq!(error.to_string(), "a client thread panicked, which is a bug in pgtrial-engine");
    let last = text.unwrap().lines().last().map(str::to_owned).unwrap_or_default();
    assert!(last.contains("\"event\":\"done\"") && last.contains("\"status\":7"), "{last}");
}
