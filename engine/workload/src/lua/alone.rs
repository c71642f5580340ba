//! A Lua state of the main thread, which belongs to no client of the load. It runs the script's top level, calls
//! `init`, `done` or report hooks, and executes a command. An executor of its own sends the statements of the script to
//! the server.

use std::sync::Arc;

use mlua::{IntoLua, Value};

use super::client::LuaClient;
use super::shared::{SharedStates, broken};
use super::state::LuaState;
use crate::program::{AbortReason, Executor, Fatal, Program};

/// A Lua state of the main thread, with the executor that carries out its requests.
pub struct MainState {
    client: LuaClient,
    executor: Box<dyn Executor>,
    shared: Arc<SharedStates>,
}

impl MainState {
    /// Makes a Lua state whose script sees `tid` as its thread number, and runs the script's top level in it.
    pub fn begin(shared: &Arc<SharedStates>, tid: usize, executor: Box<dyn Executor>) -> Result<Self, Fatal> {
        let state = LuaState::new(shared, tid).map_err(broken)?;
        let chunk = &shared.chunk;
        let script = state.script(shared).map_err(|error| match (error, &chunk.module) {
            (mlua::Error::SyntaxError { message, .. }, Some(module)) => {
                let path = chunk.name.trim_start_matches('@');
                Fatal::new(format!("error loading module '{module}' from file '{path}':\n\t{message}"))
            }
            (mlua::Error::SyntaxError { message, .. }, None) => Fatal::new(message),
            (error, _) => broken(error),
        })?;
        let load = state.function("load").and_then(|load| load.call((script, chunk.module.as_deref())));
        let client = load.and_then(|life| LuaClient::living(state, life)).map_err(broken)?;
        let mut alone = Self { client, executor, shared: Arc::clone(shared) };
        alone.live()?.map_or(Ok(alone), |failure| Err(Fatal::new(failure)))
    }

    /// Returns the Lua state, so that the caller can read the script's globals.
    pub fn state(&self) -> &LuaState {
        self.client.state()
    }

    /// Calls a function of the script. `name` is its name in messages. Returns the reason for which the function
    /// failed; `None` if it succeeded.
    pub fn call(&mut self, name: &str, function: Value, argument: impl IntoLua) -> Result<Option<String>, Fatal> {
        let life = self.state().function("call").and_then(|call| call.call((name, function, argument)));
        life.and_then(|life| self.client.live(life)).map_err(broken)?;
        self.live()
    }

    /// Executes the script's command `name`, and carries out the requests that it makes.
    pub fn perform(&mut self, name: &str) -> Result<(), Fatal> {
        self.client.mark_by(&self.shared);
        let life = self.state().function("perform").and_then(|perform| perform.call(name));
        life.and_then(|life| self.client.live(life)).map_err(broken)?;
        self.live()?.map_or(Ok(()), |failure| Err(Fatal::new(failure)))
    }

    /// Carries out the requests of the script's coroutine until the coroutine ends. The coroutine gets no events to
    /// run. Returns the reason for which it failed; `None` if it succeeded.
    fn live(&mut self) -> Result<Option<String>, Fatal> {
        let before = self.client.counters();
        let mut ended = Ok(());
        while ended.is_ok() && !self.client.is_finished() {
            self.client.stop();
            ended = self.executor.carry_out(&mut self.client);
        }
        self.shared.uncounted.add(&self.client.counters(), &before);
        match ended {
            Ok(()) => Ok(self.client.failure()),
            Err(AbortReason::Fatal(lines)) => Err(Fatal { lines }),
            Err(reason) => Err(Fatal::new(reason)),
        }
    }
}
