//! Runs scripts step by step: tests see each action that a script asks for, and make up the answer.

mod declarations;
mod errors;
mod exchange_buffer;
mod interface;
mod lives;
mod queries;

use std::sync::Arc;

use super::{Invocation, LuaScript, Role, ScriptOrigin, Voice};
use crate::program::{
    AbortReason, Action, ActionResult, Executor, Executors, Fatal, Management, Program, StagedActions, StagedRequest,
};
use crate::queries::Queries;
use crate::settings::{OptionValue, Settings};
use ground::random::Random;
use ground::shard::Shard;
use wire::error::ServerError;
use wire::value::Value;
use wire::{Answered, QueryKind};

/// An action, in the form in which tests compare it.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Connect(usize),
    Use(usize),
    Disconnect(usize),
    Text(String),
    /// A statement of this name is prepared.
    Prepare(String),
    Query(String, Vec<Value>),
    Leave,
    /// The script has itself counted these statements and this number of events.
    Count(Queries, u64),
    /// The client sleeps for this number of microseconds.
    Sleep(u128),
    End,
    Abort(Vec<String>),
}

fn text(sql: &str) -> Seen {
    Seen::Text(sql.to_owned())
}

/// A client of a script that a test runs step by step.
struct Hand {
    program: Box<dyn Program<StagedActions>>,
    /// The directory with the script's file. It is deleted when this field is dropped.
    _directory: tempfile::TempDir,
}

/// Writes a script with this text to a file `t.lua` in a new directory, and loads it.
fn load(source: &str, command: &str) -> (Result<LuaScript, Fatal>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.lua");
    std::fs::write(&path, source).unwrap();
    let invocation = Invocation {
        argv: ["sysbench", "t.lua", command].map(str::to_owned).to_vec(),
        test: Some(path.to_str().unwrap().to_owned()),
        command: Some(command.to_owned()),
        driver: None,
    };
    (LuaScript::load(ScriptOrigin::Path(path), &invocation, Arc::new(Silence), nobody()), directory)
}

/// A destination of output that drops everything.
struct Silence;

impl Voice for Silence {
    fn say(&self, _is_fatal: bool, _text: &str) {}
    fn print(&self, _text: &[u8]) {}
}

/// Returns executors for scripts that send no statements outside of a load.
fn nobody() -> Executors {
    struct Nobody;

    impl Executor for Nobody {
        fn carry_out(&mut self, program: &mut dyn Program<StagedActions>) -> Result<(), AbortReason> {
            match program.next_action() {
                Action::End => Ok(()),
                action => Err(AbortReason::Fatal(vec![format!("nobody carries out {action:?}")])),
            }
        }
    }

    Box::new(|| Box::new(Nobody))
}

fn settings() -> Arc<Settings> {
    let mut settings = Settings::default();
    settings.set("threads", OptionValue::Int(1));
    settings.set("table_size", OptionValue::Int(100));
    settings.set("tables", OptionValue::Int(1));
    settings.set("db_ps_mode", OptionValue::Text(Some("auto".to_owned())));
    Arc::new(settings)
}

impl Hand {
    fn of_role(source: &str, role: Role) -> Self {
        let (script, directory) = load(source, "run");
        let script = script.unwrap();
        script.configure(settings(), Shard::WHOLE).unwrap();
        let program = script.workload(role).unwrap().client(0, Random::seeded(1));
        Self { program, _directory: directory }
    }

    /// Makes a client that runs the events of a script.
    fn events(source: &str) -> Self {
        Self::of_role(source, Role::Events)
    }

    /// Makes a client that executes the command `prepare`, whose function has the given body.
    fn body(body: &str) -> Self {
        let source = format!("function prepare()\n{body}\nend");
        Self::of_role(&source, Role::Command("prepare".to_owned()))
    }

    fn next(&mut self) -> Seen {
        match self.program.next_action() {
            Action::Step(Management::Connect(number)) => Seen::Connect(number),
            Action::Step(Management::Use(number)) => Seen::Use(number),
            Action::Step(Management::Disconnect(number)) => Seen::Disconnect(number),
            Action::Request(StagedRequest::Text { sql, .. }) => Seen::Text(sql.to_owned()),
            Action::Request(StagedRequest::Prepare { statement }) => Seen::Prepare(format!("sbstmt{}", statement.id)),
            Action::Query { statement, values, .. } => Seen::Query(format!("sbstmt{}", statement.id), values.to_vec()),
            Action::Step(Management::Leave) => Seen::Leave,
            Action::Step(Management::Count { queries, events }) => Seen::Count(queries, events),
            Action::Sleep { time, .. } => Seen::Sleep(time.as_micros()),
            Action::End => Seen::End,
            Action::Abort(AbortReason::Fatal(lines)) => Seen::Abort(lines.clone()),
            other => panic!("no script asks for {other:?}"),
        }
    }

    /// Returns all actions up to the end. Each action except `Use` and `Disconnect` gets an empty success as its
    /// answer.
    fn rest(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let next = self.next();
            seen.push(next.clone());
            match next {
                Seen::End | Seen::Abort(_) => return seen,
                Seen::Use(_) | Seen::Disconnect(_) | Seen::Leave | Seen::Count(..) | Seen::Sleep(_) => {}
                _ => self.done(&Answered::default()),
            }
        }
    }

    fn begin(&mut self) {
        assert_eq!(self.program.begin(&mut Random::seeded(1)), 0);
    }

    fn done(&mut self, answered: &Answered) {
        self.program.complete(ActionResult::Done(answered));
    }

    fn fail(&mut self, sqlstate: &str, message: &str) {
        let error = ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            ..ServerError::default()
        };
        self.program.complete(ActionResult::Failed(&error));
    }

    /// Takes the action with which the script opens its connection, and gives it a success as its answer, so that the
    /// test continues after it.
    fn connected(mut self) -> Self {
        assert_eq!(self.next(), Seen::Connect(0));
        self.done(&Answered::default());
        self
    }
}

/// Returns an answer with rows of one text column.
fn rows(values: &[Option<&str>]) -> Answered {
    let mut data = Vec::new();
    for value in values {
        let body = match value {
            Some(text) => [&(text.len() as i32).to_be_bytes()[..], text.as_bytes()].concat(),
            None => (-1i32).to_be_bytes().to_vec(),
        };
        data.push(b'D');
        data.extend_from_slice(&(body.len() as u32 + 6).to_be_bytes());
        data.extend_from_slice(&[0, 1]);
        data.extend_from_slice(&body);
    }
    let columns = [&[0, 1][..], b"name\0", &[0; 18]].concat();
    Answered { kind: QueryKind::Read, rows: values.len() as u64, columns: Some(columns), data, ..Answered::default() }
}
