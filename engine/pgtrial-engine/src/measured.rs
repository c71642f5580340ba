//! The little that benchmarks and fuzz targets reach: steps of the hot path, and readers of what comes from outside. No
//! interface for anybody else.

use std::sync::Arc;

pub use crate::frontend::sysbench::measured::read_options;
use ground::random::Random;
pub use latency::Latencies;
pub use wire::measured::{read_replies, read_whole_reply};
use wire::message::Message;
use wire::statement::{Hole, QueryMode, Statement};
use wire::value::Value;
use workload::pgbench::{Environment, Scripts, parse};
use workload::{Action, Program, Workload};

/// A prepared statement with one parameter.
pub struct Select {
    statement: Statement,
    values: [Value; 1],
    message: Message,
}

impl Select {
    /// The statement of select-only.
    pub fn new() -> Self {
        let pieces = vec![b"SELECT abalance FROM pgbench_accounts WHERE aid = ".to_vec(), b";".to_vec()];
        let hole = Hole { slot: 0, name: "aid".to_owned() };
        Self {
            statement: Statement::new(0, "P_0", pieces, vec![hole]),
            values: [Value::Unset],
            message: Message::default(),
        }
    }

    /// The messages of one execution with this value.
    #[inline]
    pub fn encode(&mut self, aid: i64) -> &[u8] {
        self.values[0] = Value::Int(aid);
        self.message.clear();
        self.statement.encode(QueryMode::Prepared, true, &self.values, &mut self.message);
        self.message.as_bytes()
    }
}

impl Default for Select {
    fn default() -> Self {
        Self::new()
    }
}

/// One client of a script.
pub struct Client {
    program: Box<dyn Program>,
    choose: Random,
}

/// The most actions of a transaction that are asked for.
const MOST_ACTIONS: usize = 10_000;

impl Client {
    /// A client of a script with this text, with `scale` 1; `None` if the text is refused.
    pub fn compile(text: &[u8]) -> Option<Self> {
        let environment = Environment {
            mode: QueryMode::Prepared,
            timed: false,
            variables: vec![("scale".to_owned(), Value::Int(1))],
            default_seed: 1,
        };
        let scripts = Arc::new(Scripts::link(vec![parse("script", 1, text).ok()?], &environment).ok()?);
        Some(Self { program: scripts.client(0, Random::seeded(1)), choose: Random::seeded(2) })
    }

    /// Runs one transaction as if the server answered nothing; how many statements it has sent.
    #[inline]
    pub fn transaction(&mut self) -> usize {
        self.program.begin(&mut self.choose);
        let mut statements = 0;
        for _ in 0..MOST_ACTIONS {
            if self.program.next_query().is_some() {
                statements += 1;
                continue;
            }
            match self.program.next() {
                Action::Query { .. } => statements += 1,
                Action::End | Action::Abort(_) => break,
                _ => {}
            }
        }
        statements
    }
}
