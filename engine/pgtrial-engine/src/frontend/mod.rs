//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output. What they have in common is
//! in `common`, and none of them knows another one.

pub mod capture;
pub mod common;
pub mod generate;
pub mod merge;
pub mod order_entry;
pub mod pgbench;
pub mod replay;
pub mod suite;
pub mod sysbench;
pub mod tasks;

#[cfg(test)]
mod lines {
    use ground::options::Stop;

    use super::common::failure::Failure;

    /// Returns what a line of options gives, or the mistake in it.
    pub fn parsed<O>(line: &str, parse: fn(Vec<String>) -> Result<O, Stop<Failure>>) -> Result<O, Failure> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|stop| match stop {
            Stop::Error(mistake) => mistake,
            Stop::Print(text) | Stop::List(text) => panic!("{line}: {text}"),
        })
    }
}

#[cfg(test)]
mod never_run {
    use ground::random::Random;
    use workload::{Actions, Program, ScriptInfo, Workload};

    /// A workload for plans of which only the numbers count.
    pub struct Nothing;

    impl<A: Actions> Workload<A> for Nothing {
        fn scripts(&self) -> Vec<ScriptInfo> {
            Vec::new()
        }

        fn client(&self, _client: usize, _random: Random) -> Box<dyn Program<A>> {
            unreachable!("the plan is not run")
        }
    }
}
