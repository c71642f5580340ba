//! The workload of a Lua script, which makes the programs of the clients.

use std::sync::Arc;

use super::client::{LuaClient, Role};
use super::random::Generator;
use super::shared::{SharedStates, broken};
use crate::program::{AbortReason, Action, Fatal, Program, ScriptInfo, StagedActions, Workload};
use crate::sb_rand::Distributions;
use ground::random::Random;

struct LuaWorkload {
    shared: Arc<SharedStates>,
    role: Role,
    distributions: Arc<Distributions>,
}

/// Makes the workload of a script whose options have been set.
pub fn new(shared: &Arc<SharedStates>, role: Role) -> Result<Arc<dyn Workload<StagedActions>>, Fatal> {
    let unknown = || Fatal::new("the script has not been configured");
    let distributions = shared.distributions.get().ok_or_else(unknown)?.clone();
    Ok(Arc::new(LuaWorkload { shared: shared.clone(), role, distributions }))
}

impl Workload<StagedActions> for LuaWorkload {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo { description: self.shared.name().to_owned(), weight: 1, commands: Vec::new() }]
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<StagedActions>> {
        let generator = Generator { random, distributions: self.distributions.clone() };
        match LuaClient::new(&self.shared, &self.role, client, generator) {
            Ok(client) => Box::new(client),
            Err(error) => Box::new(FailedClient(AbortReason::Fatal(broken(error).lines))),
        }
    }
}

/// A client whose Lua state could not be made. It only reports the reason.
struct FailedClient(AbortReason);

impl Program<StagedActions> for FailedClient {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        0
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        Action::Abort(&self.0)
    }
}
