//! The end of a run: its exit status, and what is printed after its report.

use super::messages::FrontEnd;
use drive::Outcome;
use events::Warning;
use ground::interrupt;

/// The exit status of a run in which clients were aborted.
const ABORTED: u8 = 2;

/// Returns the exit status of a run with this outcome.
pub fn status_of_run(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.aborted) {
        (true, _) => interrupt::STATUS,
        (false, 0) => 0,
        (false, _) => ABORTED,
    }
}

impl FrontEnd {
    /// Writes to standard error what limits the results of a run: the warnings about the load generator and, if the user
    /// interrupted the run, the time that the results cover.
    pub fn qualify_results(&self, outcome: &Outcome, warnings: &[Warning]) {
        warnings.iter().for_each(|warning| self.warning(&warning.message));
        if outcome.interrupted {
            let seconds = outcome.elapsed_s;
            self.info(format_args!("the run was interrupted after {seconds:.1} s; the results cover only this time"));
        }
    }
}
