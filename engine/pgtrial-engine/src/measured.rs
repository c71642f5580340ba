//! The little that benchmarks and fuzz targets reach: steps of the hot path, and readers of what comes from outside. No
//! interface for anybody else.

pub use crate::frontend::sysbench::measured::read_options;
pub use latency::Latencies;
pub use wire::measured::{read_replies, read_whole_reply};
use wire::message::Message;
use wire::statement::{Hole, QueryMode, Statement};
use wire::value::Value;

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
