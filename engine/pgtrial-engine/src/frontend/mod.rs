//! The front ends, which are the commands of the program. Each front end reads a command line, makes the plan of a run,
//! and writes the output. Code that front ends share is in `common`; no front end depends on another.

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

    /// Parses a command line with the function `parse`. Returns the parsed options or the error.
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

    /// A workload without scripts, for tests of plans and reports that run no load.
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
