//! The load of a test of the machine after its options were read: the work of the threads, and the reports.

use std::sync::Arc;

use super::client::{HostClient, Work};
use crate::program::{CommandInfo, Fatal, Program, ScriptInfo, StagedActions, Workload};
use crate::settings::Settings;
use crate::statistics::Hooks;
use ground::random::Random;

/// The load of a test of the machine.
pub struct MachineLoad {
    pub workload: Arc<dyn Workload<StagedActions>>,
    pub hooks: Box<dyn Hooks>,
    /// The number of events that each thread runs; `None` if the test does not limit it.
    pub events_each: Option<u64>,
    /// True if `--events` limits the number of events of all threads together; false if the test ignores that option.
    pub obeys_events: bool,
}

/// The function that makes the work of a thread from the thread's number and its random generator.
type MakeWork<W> = dyn Fn(usize, Random) -> W + Send + Sync;

impl MachineLoad {
    /// Makes a load that only sysbench's general options limit. `work` is called in each thread and makes the work that
    /// the thread does.
    pub fn new<W: Work>(
        name: &'static str,
        hooks: impl Hooks + 'static,
        work: impl Fn(usize, Random) -> W + Send + Sync + 'static,
    ) -> Self {
        let workload = Arc::new(HostWorkload { name, work: Box::new(work) });
        Self { workload, hooks: Box::new(hooks), events_each: None, obeys_events: true }
    }
}

struct HostWorkload<W> {
    name: &'static str,
    work: Box<MakeWork<W>>,
}

impl<W: Work> Workload<StagedActions> for HostWorkload<W> {
    fn scripts(&self) -> Vec<ScriptInfo> {
        let commands = vec![CommandInfo { line: self.name.to_owned(), is_sql: false }];
        vec![ScriptInfo { description: self.name.to_owned(), weight: 1, commands }]
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<StagedActions>> {
        Box::new(HostClient::new((self.work)(client, random)))
    }
}

/// Reads an option as a number that is at least `min`. The error has the wording of sysbench's general options.
pub fn number(settings: &Settings, name: &str, min: u64) -> Result<u64, Fatal> {
    let given = settings.int(&name.replace('-', "_"));
    let number = u64::try_from(given).ok().filter(|number| *number >= min);
    number.ok_or_else(|| Fatal::new(format_args!("Invalid value for --{name}: {given}.\n")))
}

/// Allocates `count` values. The error is `message`, which has sysbench's wording.
pub fn allocate<T>(count: u64, make: impl FnMut() -> T, message: &str) -> Result<Vec<T>, Fatal> {
    let mut values = Vec::new();
    let count = usize::try_from(count).map_err(|_| Fatal::new(message))?;
    values.try_reserve_exact(count).map_err(|_| Fatal::new(message))?;
    values.resize_with(count, make);
    Ok(values)
}
