//! The clients' programs of a script.

use std::sync::Arc;

use super::client::{LuaClient, Role};
use super::random::Generator;
use super::shared::{Shared, broken};
use crate::program::{AbortReason, Action, Fatal, Program, ScriptInfo, Workload};
use crate::sb_rand::Distributions;
use ground::random::Random;

struct LuaWorkload {
    shared: Arc<Shared>,
    role: Role,
    is_quiet: bool,
    distributions: Arc<Distributions>,
}

/// The workload of a script that has been configured. A command that one client executes alone is executed by the state
/// that has loaded the script in sysbench; here that client's state repeats the top level and prints nothing of it.
pub fn new(shared: &Arc<Shared>, role: Role, is_parallel: bool) -> Result<Arc<dyn Workload>, Fatal> {
    let (Some(settings), Some(distributions)) = (shared.settings.get(), shared.distributions.get()) else {
        return Err(Fatal::new("the script has not been configured"));
    };
    let is_quiet = !is_parallel || settings.int("threads") <= 1;
    Ok(Arc::new(LuaWorkload { shared: shared.clone(), role, is_quiet, distributions: distributions.clone() }))
}

impl Workload for LuaWorkload {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo { description: self.shared.name().to_owned(), weight: 1, commands: Vec::new() }]
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program> {
        let generator = Generator { random, distributions: self.distributions.clone() };
        match LuaClient::new(&self.shared, &self.role, self.is_quiet, client, generator) {
            Ok(client) => Box::new(client),
            Err(error) => Box::new(Stillborn(broken(error))),
        }
    }
}

/// A client whose state could not be made.
struct Stillborn(Fatal);

impl Program for Stillborn {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        0
    }

    fn next_action(&mut self) -> Action<'_> {
        Action::Abort(AbortReason::Fatal(self.0.lines.clone()))
    }
}
