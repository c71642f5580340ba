//! The options of pools of connections, which take the place of clients; what they cannot be combined with is refused.

use super::reader::Reader;
use super::table::Id;
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pooling;
use ground::shard::{ClientShare, Shard};

/// What has no meaning where tasks share pools, and why.
const EXCLUDED: [(Id, &str, &str); 9] = [
    (Id::Client, "-c/--client", "the pools say how many connections there are"),
    (Id::Connect, "-C/--connect", "a pool keeps its connections"),
    (Id::Transactions, "-t/--transactions", "--tasks says how many there are"),
    (Id::Time, "-T/--time", "--tasks says how many there are"),
    (Id::Rate, "-R/--rate", "--arrival says when they start"),
    (Id::Warmup, "--warmup", "all tasks count"),
    (Id::Log, "-l/--log", "a log of tasks is written by \"pgtrial-engine tasks --csv\""),
    (Id::ExitOnAbort, "--exit-on-abort", "a task that fails gives no client up"),
    (Id::WaitForServer, "--wait-for-server", "a pool replaces what breaks, and tasks wait as --pool-timeout says"),
];

impl Reader {
    /// Takes one of the options.
    pub fn take_for_pools(&mut self, id: Id, value: &str) -> Result<(), Failure> {
        let pooling = &mut self.pooling;
        match id {
            Id::Apps => pooling::number(value, "--apps").map(|apps| pooling.apps = Some(apps)),
            Id::Arrival => pooling::arrival(value).map(|arrival| pooling.arrival = Some(arrival)),
            Id::Pool => pooling::number(value, "--pool").map(|size| pooling.size = Some(size)),
            Id::PoolLifetime => {
                pooling::seconds(value, "--pool-lifetime").map(|lifetime| pooling.lifetime = Some(lifetime))
            }
            Id::PoolTimeout => pooling::seconds(value, "--pool-timeout").map(|timeout| pooling.timeout = Some(timeout)),
            _ => pooling::tasks(value).map(|tasks| pooling.tasks = Some(tasks)),
        }
        .map_err(Failure::error)
    }

    /// Has the pools take the place of clients.
    pub fn settle_pools(&mut self) -> Result<(), Failure> {
        let (Some(tasks), Some(size)) = (self.pooling.tasks, self.pooling.size) else {
            let message = "tasks on pools of connections need both --tasks and --pool";
            return Err(Failure::error(message));
        };
        if let Some((_, option, reason)) = EXCLUDED.into_iter().find(|(id, ..)| self.given.contains(id)) {
            return Err(Failure::error(format!("{option} cannot be combined with --pool: {reason}")));
        }
        let (shard, apps) = (self.shard.unwrap_or(Shard::WHOLE), self.pooling.apps.unwrap_or(1));
        let plan = self.pooling.plan(shard, apps, tasks, size).map_err(Failure::error)?;
        let options = &mut self.options;
        options.part = ClientShare::of_pools(shard, apps, size);
        options.jobs = options.jobs.min(plan.apps);
        options.continue_on_error = true;
        options.pools = Some(plan);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Command, Options, parse};
    use super::*;

    fn read(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn options(line: &str) -> Options {
        match read(line) {
            Ok(Command::Benchmark(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn slots_of_pools_take_the_place_of_clients() {
        let options = options("-S --apps 3 --tasks 50 --pool 4 --arrival poisson:20 -j 8");
        assert_eq!((options.clients, options.jobs, options.continue_on_error), (12, 3, true));
        assert_eq!(options.pools.map(|pools| pools.all_tasks()), Some(150));
    }

    #[test]
    fn what_cannot_be_combined_is_refused_in_a_sentence() {
        for (line, message) in [
            ("-S --pool 4", "tasks on pools of connections need both --tasks and --pool"),
            ("-S --arrival at-once", "tasks on pools of connections need both --tasks and --pool"),
            ("-S --pool 4 --tasks 3 -c 2", "-c/--client cannot be combined with --pool"),
            ("-S --pool 4 --tasks 3 -T 2", "-T/--time cannot be combined with --pool"),
            ("-S --pool 4 --tasks 0", "invalid value \"0\" for option --tasks"),
            ("-S --pool 4 --tasks 3 --arrival soon", "invalid value \"soon\" for option --arrival"),
            ("-i --pool 4 --tasks 3", "some of the specified options cannot be used in initialization (-i) mode"),
        ] {
            let found = read(line).unwrap_err().to_string();
            assert!(found.starts_with(&format!("pgbench: error: {message}")), "{line}: {found}");
        }
    }
}
