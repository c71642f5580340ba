//! Passes each statement that the clients of a load send to a function.
//!
//! A workload is wrapped for this only if its statements are needed, for example to explain them. Other runs do not use
//! this module and pay no price for it.

use std::sync::Arc;
use std::time::Duration;

use crate::program::{AbortReason, Action, ActionResult, Actions, Program, ScriptInfo, Workload};
use ground::random::Random;
use wire::ResultSet;
use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// An execution of a statement, as a client sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentStatement {
    /// The statement as the server parses it, with `$1` and so on for its parameters.
    pub sql: String,
    /// The values of the parameters as text. `None` stands for NULL, or for a value that is not known.
    pub values: Vec<Option<String>>,
    /// The text with its values, if it is sent as one text: in the query mode `simple`, and for requests without
    /// parameters. `None` otherwise, and if a value is not known.
    pub whole: Option<String>,
}

impl SentStatement {
    /// Returns the execution of a statement with these values; `None` if the statement's text is not UTF-8.
    pub fn of(statement: &Statement, values: &[Value], mode: QueryMode) -> Option<Self> {
        let sql = statement.text()?.to_owned();
        let of_parameters: Vec<_> = statement.slots().map(|slot| text(&values[slot])).collect();
        let whole = (mode == QueryMode::Simple && of_parameters.iter().all(Option::is_some)).then(|| {
            let mut whole = Vec::new();
            statement.write_text(values, &mut whole);
            ground::text::of(&whole)
        });
        Some(Self { sql, values: of_parameters, whole })
    }
}

/// Returns a value as text; `None` if the value is not known.
fn text(value: &Value) -> Option<String> {
    let mut written = Vec::new();
    value.write_text(&mut written);
    (*value != Value::Unset).then(|| ground::text::of(&written))
}

/// A function that receives each statement before it is sent. All threads of a load call it.
pub type Listener = Arc<dyn Fn(SentStatement) + Send + Sync>;

/// Returns a workload that behaves like the given one, and that calls `listener` with each statement before it is sent.
/// `mode` is the query mode of the run.
pub fn with_listener<A: Actions>(
    workload: Arc<dyn Workload<A>>,
    mode: QueryMode,
    listener: Listener,
) -> Arc<dyn Workload<A>> {
    Arc::new(WorkloadWithListener { workload, mode, listener })
}

struct WorkloadWithListener<A: Actions> {
    workload: Arc<dyn Workload<A>>,
    mode: QueryMode,
    listener: Listener,
}

impl<A: Actions> Workload<A> for WorkloadWithListener<A> {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.workload.scripts()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<A>> {
        let program = self.workload.client(client, random);
        Box::new(ProgramWithListener { program, mode: self.mode, listener: self.listener.clone() })
    }
}

struct ProgramWithListener<A: Actions> {
    program: Box<dyn Program<A>>,
    mode: QueryMode,
    listener: Listener,
}

impl<A: Actions> Program<A> for ProgramWithListener<A> {
    fn begin(&mut self, choose: &mut Random) -> usize {
        self.program.begin(choose)
    }

    fn retry(&mut self) {
        self.program.retry();
    }

    fn pause(&mut self) -> Duration {
        self.program.pause()
    }

    fn next_action(&mut self) -> Action<'_, A> {
        let action = self.program.next_action();
        let sent = match &action {
            Action::Query { statement, values, .. } => SentStatement::of(statement, values, self.mode),
            Action::Request(request) => A::text(request).map(|text| SentStatement {
                sql: text.to_owned(),
                values: Vec::new(),
                whole: Some(text.to_owned()),
            }),
            _ => None,
        };
        sent.into_iter().for_each(|sent| (self.listener)(sent));
        action
    }

    fn store(&mut self, results: &[ResultSet]) -> Result<(), AbortReason> {
        self.program.store(results)
    }

    fn foresee(&mut self, begins: bool) {
        self.program.foresee(begins);
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        self.program.complete(result);
    }

    fn stop(&mut self) {
        self.program.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::program::{Management, StagedActions, StagedRequest};
    use wire::Rows;

    /// A client that sends a text and then rolls back.
    struct Asking(usize);

    impl Program<StagedActions> for Asking {
        fn begin(&mut self, _choose: &mut Random) -> usize {
            0
        }

        fn next_action(&mut self) -> Action<'_, StagedActions> {
            self.0 += 1;
            match self.0 {
                1 => Action::Step(Management::Connect(0)),
                2 => Action::Request(StagedRequest::Text { sql: "SELECT 1", rows: Rows::Counted }),
                3 => Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped }),
                _ => Action::End,
            }
        }
    }

    struct Askers;

    impl Workload<StagedActions> for Askers {
        fn scripts(&self) -> Vec<ScriptInfo> {
            Vec::new()
        }

        fn client(&self, _client: usize, _random: Random) -> Box<dyn Program<StagedActions>> {
            Box::new(Asking(0))
        }
    }

    #[test]
    fn the_listener_gets_the_texts_of_the_load_and_no_others() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        let listener: Listener = Arc::new(move |sent| hears.lock().unwrap().push(sent));
        let mut client = with_listener(Arc::new(Askers), QueryMode::Prepared, listener).client(0, Random::seeded(1));
        while !matches!(client.next_action(), Action::End) {}
        let expected =
            SentStatement { sql: "SELECT 1".to_owned(), values: Vec::new(), whole: Some("SELECT 1".to_owned()) };
        assert_eq!(*heard.lock().unwrap(), [expected]);
    }

    #[test]
    fn values_are_those_of_the_parameters_and_in_simple_mode_in_the_text() {
        let statement = Statement::with_parameters(0, b"SELECT $1, $2", 2);
        let sent = SentStatement::of(&statement, &[Value::Int(7), Value::Unset], QueryMode::Prepared).unwrap();
        assert_eq!((sent.sql.as_str(), sent.whole), ("SELECT $1, $2", None));
        assert_eq!(sent.values, [Some("7".to_owned()), None]);
    }
}
