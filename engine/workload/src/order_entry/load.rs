//! The load of a run, which all clients share.

use std::sync::Arc;

use super::mix::{TransactionKind, TransactionMix};
use super::nurand::Constants;
use super::statements;
use crate::program::{CommandInfo, ScriptInfo};
use wire::statement::{QueryMode, Statement};

/// The way in which transactions are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransactionStyle {
    /// Each statement is sent by itself.
    #[default]
    Statements,
    /// The transaction is sent as the call of a stored procedure.
    Procedures,
}

/// The load of a run on tables of a given number of warehouses.
pub struct OrderEntry {
    pub warehouses: i64,
    /// The number of clients of the whole run.
    pub clients: usize,
    pub mix: TransactionMix,
    pub style: TransactionStyle,
    pub constants: Constants,
    /// The statements by their numbers.
    pub statements: Vec<Statement>,
    pub scripts: Vec<ScriptInfo>,
}

impl OrderEntry {
    /// Makes the load for this number of clients on tables that were filled from `seed_of_load`; all engines of a run
    /// have the same `seed`.
    pub fn new(
        warehouses: u32,
        clients: usize,
        mix: TransactionMix,
        style: TransactionStyle,
        (seed, seed_of_load): (u64, u64),
        mode: QueryMode,
    ) -> Arc<Self> {
        let texts = statements::texts();
        let commands: Vec<_> = texts.iter().map(|text| CommandInfo { line: text.clone(), is_sql: true }).collect();
        let script = |kind: TransactionKind| ScriptInfo {
            description: kind.name().to_owned(),
            weight: mix.weight(kind),
            commands: commands.clone(),
        };
        Arc::new(Self {
            warehouses: warehouses.into(),
            clients,
            mix,
            style,
            constants: Constants::of_run(seed, seed_of_load),
            statements: texts.iter().enumerate().map(|(id, text)| statements::compile(id, text, mode)).collect(),
            scripts: TransactionKind::all().map(script).to_vec(),
        })
    }
}
