//! Checks that any text is either accepted as a pgbench script or rejected, and that an accepted script runs to its end
//! or stops with an error.

#![no_main]

use std::sync::Arc;

use ground::random::Random;
use libfuzzer_sys::fuzz_target;
use wire::statement::QueryMode;
use wire::value::Value;
use workload::pgbench::{ScriptEnvironment, Scripts, parse};
use workload::{Action, Program, Workload};

/// The maximum number of actions of a transaction that are run, since a script can be long.
const MOST_ACTIONS: usize = 10_000;

fuzz_target!(|text: &[u8]| {
    // A script can run any shell command, which must not happen here.
    if text.windows(5).any(|word| word.eq_ignore_ascii_case(b"shell")) {
        return;
    }
    if let Some(mut client) = client(text) {
        for _ in 0..3 {
            transaction(client.as_mut());
        }
    }
});

/// Returns a client that runs a script with this text and `scale` 1. Returns `None` if the text is rejected.
fn client(text: &[u8]) -> Option<Box<dyn Program>> {
    let variables = vec![("scale".to_owned(), Value::Int(1))];
    let environment = ScriptEnvironment { mode: QueryMode::Prepared, timed: false, announced: false, needs_values: false, lists: Vec::new(), variables, default_seed: 1 };
    let scripts = Scripts::link(vec![parse("script", 1, text).ok()?], &environment).ok()?;
    Some(Arc::new(scripts).client(0, Random::seeded(1)))
}

/// Runs one transaction, in which queries return no rows.
fn transaction(client: &mut dyn Program) {
    client.begin(&mut Random::seeded(2));
    for _ in 0..MOST_ACTIONS {
        if matches!(client.next_action(), Action::End | Action::Abort(_)) {
            break;
        }
    }
}
