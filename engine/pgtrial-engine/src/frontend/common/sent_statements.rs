//! Writes the statements that the clients of a run send to a file (option `--list-statements`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::messages::USER;
use ground::output::{CouldNot, OutputFile};
use wire::statement::QueryMode;
use workload::sent::{SentStatement, with_listener};
use workload::{Actions, Workload};

/// The number of executions that are written for each statement text. Six are enough to see which plans PostgreSQL
/// uses: it makes a custom plan for each of the first five executions of a prepared statement, and decides at the sixth
/// whether to use a generic plan.
const EXECUTIONS: usize = 6;

/// The greatest number of different statement texts that are written. There is a limit because a load without
/// parameters sends a new text for each new value, and the file would grow without end.
const TEXTS: usize = 5000;

/// Returns the workload unchanged if `path` is `None`. Otherwise returns a workload that also writes the statements
/// that its clients send to the file `path`, as JSON Lines.
pub fn listed<A: Actions>(
    workload: Arc<dyn Workload<A>>,
    mode: QueryMode,
    path: Option<&Path>,
) -> Result<Arc<dyn Workload<A>>, CouldNot> {
    let Some(path) = path else { return Ok(workload) };
    let out = OutputFile::create("statements file ", path)?;
    let list = Mutex::new(List { out: Some(out), executions: HashMap::new() });
    let listener = move |sent| list.lock().unwrap_or_else(PoisonError::into_inner).add(&sent);
    Ok(with_listener(workload, mode, Arc::new(listener)))
}

/// The open file of statements, and how often each statement has been sent.
struct List {
    /// The open file, or `None` after an error in writing to it.
    out: Option<OutputFile>,
    /// The number of executions so far, for each statement text.
    executions: HashMap<String, usize>,
}

impl List {
    fn add(&mut self, sent: &SentStatement) {
        if self.executions.len() >= TEXTS && !self.executions.contains_key(&sent.sql) {
            return;
        }
        let count = self.executions.entry(sent.sql.clone()).or_default();
        *count += 1;
        if *count > EXECUTIONS {
            return;
        }
        let line = serde_json::json!({"sql": sent.sql, "values": sent.values, "sent": sent.whole});
        let written = self.out.as_mut().map(|out| out.write(|file| writeln!(file, "{line}")));
        if let Some(Err(problem)) = written {
            (USER.tell)(&format!("error: {problem}"));
            self.out = None;
        }
    }
}
