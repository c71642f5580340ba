//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output. What several of them need stands
//! beside them.

pub mod capture;
mod connections;
mod elapsed;
pub mod merge;
pub mod order_entry;
pub mod pgbench;
pub mod replay;
pub mod self_check;
pub mod sharing;
pub mod sysbench;
pub mod tasks;

#[cfg(test)]
mod lines {
    use ground::options::Stop;

    /// What a line of options gives, or what is said of the mistake in it.
    pub fn parsed<O, E>(
        line: &str,
        parse: fn(Vec<String>) -> Result<O, Stop<E>>,
        describe: fn(&E) -> String,
    ) -> Result<O, String> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|stop| match stop {
            Stop::Error(mistake) => describe(&mistake),
            Stop::Print(text) | Stop::List(text) => panic!("{line}: {text}"),
        })
    }
}

#[cfg(test)]
mod never_run {
    use ground::random::Random;
    use workload::{Program, ScriptInfo, Workload};

    /// A workload for plans of which only the numbers count.
    pub struct Nothing;

    impl Workload for Nothing {
        fn scripts(&self) -> Vec<ScriptInfo> {
            Vec::new()
        }

        fn client(&self, _client: usize, _random: Random) -> Box<dyn Program> {
            unreachable!("the plan is not run")
        }
    }
}
