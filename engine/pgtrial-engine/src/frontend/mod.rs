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
    use super::common::messages::FrontEnd;

    /// Parses a command line with the function `parse`. Returns the parsed options or the error.
    pub fn parsed<O>(line: &str, parse: fn(Vec<String>) -> Result<O, Stop<Failure>>) -> Result<O, Failure> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|stop| match stop {
            Stop::Error(mistake) => mistake,
            Stop::Print(text) | Stop::List(text) => panic!("{line}: {text}"),
        })
    }

    /// Asserts that the function `parse` of a front end rejects each command line with one sentence, which begins with
    /// the message after it.
    pub fn all_refused<O>(
        front_end: FrontEnd,
        parse: fn(Vec<String>) -> Result<O, Stop<Failure>>,
        lines: &[(&str, &str)],
    ) {
        for (line, message) in lines {
            let found = parsed(line, parse).err().map(|failure| front_end.describe(&failure)).unwrap_or_default();
            let expected = format!("{}: error: {message}", front_end.name);
            assert!(found.starts_with(&expected) && !found.contains('\n'), "{line}: {found}");
        }
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
