//! The file with the statements that the clients of a run send.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::messages::USER;
use ground::output::{CouldNot, OutputFile};
use wire::statement::QueryMode;
use workload::sent::{SentStatement, told};
use workload::{Actions, Workload};

/// The number of executions that are written for each text of a statement. PostgreSQL makes a custom plan for the first
/// five executions of a prepared statement, and decides at the sixth whether to use a generic plan.
const EXECUTIONS: usize = 6;

/// The number of different statement texts that are written. It is limited because a load without parameters sends a
/// new text with each new value.
const TEXTS: usize = 5000;

/// Returns the workload. If `path` is given, the returned workload writes each statement that its clients send to that
/// file, as JSON Lines.
pub fn listed<A: Actions>(
    workload: Arc<dyn Workload<A>>,
    mode: QueryMode,
    path: Option<&Path>,
) -> Result<Arc<dyn Workload<A>>, CouldNot> {
    let Some(path) = path else { return Ok(workload) };
    let out = OutputFile::create("statements file ", path)?;
    let list = Mutex::new(List { out: Some(out), executions: HashMap::new() });
    let listener = move |sent| list.lock().unwrap_or_else(PoisonError::into_inner).add(&sent);
    Ok(told(workload, mode, Arc::new(listener)))
}

/// The file of statements, and how often each statement has been written to it.
struct List {
    /// The open file; `None` once it could not be written to.
    out: Option<OutputFile>,
    /// The number of executions of each statement, by the statement's text.
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
