//! Makes from the options of a front end everything that the event loop needs: the seeds of the random numbers, the
//! workload that runs scripts, and the plan with all settings of the run.

use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use super::messages::FrontEnd;
use super::options::{LogOptions, RunOptions};
use super::sent_statements::listed;
use drive::plan::{Load, Plan, ScriptOptions};
use drive::statistics::log::LogPlan;
use drive::{ClosedPlan, PooledPlan};
use ground::output::CouldNot;
use wire::target::Target;
use wire::value::Value;
use workload::Workload;
use workload::pgbench::{Parsed, ScriptEnvironment, Scripts};
use workload::seeds::Seeds;

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
        let settings = &run.load.settings;
        let environment = ScriptEnvironment {
            mode: settings.mode,
            timed: settings.script.timed_commands,
            announced: settings.script.notes.steps,
            needs_values: self.needs_values,
            lists: self.lists.clone(),
            variables,
            default_seed: seed_of_hashes as i64,
        };
        Scripts::link(self.scripts.clone(), &environment).map(Arc::new).map_err(Failure::error)
    }
}

impl RunOptions {
    /// Returns the seeds of the run's clients, threads and hash functions. If `of_hashes` is given, it is used as the
    /// seed of the hash functions.
    pub fn seeds(&self, of_hashes: Option<u64>) -> Seeds {
        let share = &self.load.share;
        let apps = share.pools.map_or(0, |pools| pools.apps);
        Seeds::derive(self.load.seed, &share.part, apps, share.jobs, of_hashes)
    }

    /// Returns the plan of a run of this workload. Lines that the run's threads print begin with the name of
    /// `front_end`. `origin` is the time since 1970 at which the run's clock shows 0. Fails if the file of
    /// `--list-statements` cannot be created.
    pub fn plan(
        &self,
        front_end: FrontEnd,
        target: Arc<Target>,
        workload: Arc<dyn Workload>,
        seeds: Seeds,
        origin: Duration,
    ) -> Result<Plan, CouldNot> {
        let (share, settings) = (&self.load.share, &self.load.settings);
        let workload = listed(workload, settings.mode, self.output.statements.as_deref())?;
        let script_options = ScriptOptions {
            log: self.log.as_ref().map(|log| self.log_plan(log, origin)),
            program: front_end.name,
            ..settings.script.clone()
        };
        let load = match share.pools {
            Some(pools) => Load::new(workload, PooledPlan { pools, options: script_options }),
            None => Load::new(
                workload,
                ClosedPlan {
                    limit: self.load.limit,
                    interval_ns: settings.interval_ns,
                    alarm: None,
                    reconnect: settings.reconnect,
                    wait_for_server: settings.wait_for_server,
                    thinks: settings.thinks,
                    options: script_options,
                },
            ),
        };
        Ok(Plan {
            start: settings.start,
            slices: self.load.slices,
            jobs: share.jobs,
            mode: settings.mode,
            describes: !settings.no_describe,
            warmup: settings.warmup,
            time_includes_connecting: settings.time_includes_connecting,
            exit_on_abort: settings.exit_on_abort,
            ..Plan::new(Some(target), share.part, seeds, load)
        })
    }

    fn log_plan(&self, log: &LogOptions, origin: Duration) -> LogPlan {
        let settings = &self.load.settings;
        LogPlan {
            prefix: log.prefix.clone(),
            aggregate: log.aggregate,
            sampling_rate: log.sampling_rate,
            throttled: settings.interval_ns.is_some(),
            limited: settings.script.latency_limit.is_some(),
            retried: settings.script.tries != Some(1),
            failures_detailed: self.output.failures_detailed,
            other_failures: settings.script.continue_on_error,
            origin,
        }
    }
}
