//! The scripts of a run, as pgbench and tasks have them, and the workload that runs them.

use std::sync::Arc;

use super::failure::Failure;
use super::options::RunOptions;
use wire::value::Value;
use workload::pgbench::{Parsed, ScriptEnvironment, Scripts};

/// The scripts of a run, with the variables that the command line defines.
#[derive(Debug, Default)]
pub struct ScriptSources {
    pub scripts: Vec<Parsed>,
    /// The variables of `--define`, with their values. Each name occurs once.
    pub variables: Vec<(String, String)>,
    /// The variables of `--values`, each with its list of values. At the beginning of each transaction a variable gets
    /// a random value of its list.
    pub lists: Vec<(String, Vec<Value>)>,
    /// True if a client is aborted when a statement in extended or prepared mode uses a variable that has no value. If
    /// false, the server gets NULL as the value, as from pgbench.
    pub needs_values: bool,
    /// True if there is a built-in script of pgbench, which needs pgbench's tables.
    pub needs_tables: bool,
    /// True if a script is read from standard input.
    pub reads_stdin: bool,
}

impl ScriptSources {
    /// Returns the seed of pgbench's hash functions, if the command line defines it by the variable `default_seed`.
    pub fn seed_of_hashes(&self) -> Option<u64> {
        let defined = self.variables.iter().find(|(name, _)| name == "default_seed");
        defined.map(|(_, value)| value.trim().parse::<i64>().unwrap_or(0) as u64)
    }

    /// Prepares the scripts for running: connects the variables in them with their first values. `automatic` are the
    /// variables that pgbench sets by itself; the command line can replace their values.
    pub fn link(
        &self,
        run: &RunOptions,
        automatic: &[(&str, i64)],
        seed_of_hashes: u64,
    ) -> Result<Arc<Scripts>, Failure> {
        let mut variables: Vec<_> = self
            .variables
            .iter()
            .map(|(name, value)| (name.clone(), Value::Text(ground::text::bytes(value).as_ref().into())))
            .collect();
        for (name, value) in automatic {
            if variables.iter().all(|(known, _)| known != name) {
                variables.push(((*name).to_owned(), Value::Int(*value)));
            }
        }
        let environment = ScriptEnvironment {
            mode: run.mode,
            timed: run.script.timed_commands,
            announced: run.script.notes.steps,
            needs_values: self.needs_values,
            lists: self.lists.clone(),
            variables,
            default_seed: seed_of_hashes as i64,
        };
        Scripts::link(self.scripts.clone(), &environment).map(Arc::new).map_err(Failure::error)
    }
}
