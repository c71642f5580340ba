//! The settings and statements of an order-entry run, which all clients share.

use std::sync::Arc;

use super::mix::{TransactionKind, TransactionMix};
use super::nurand::Constants;
use super::statements;
use crate::program::{CommandInfo, ScriptInfo};
use wire::statement::{QueryMode, Statement};

/// The way in which the clients send transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransactionStyle {
    /// Clients send each statement of a transaction by itself.
    #[default]
    Statements,
    /// Clients send one CALL of a stored procedure for each transaction.
    Procedures,
}

/// An order-entry run on tables with a given number of warehouses.
pub struct OrderEntry {
    pub warehouses: i64,
    /// The number of clients of the whole run, on all engines.
    pub clients: usize,
    pub mix: TransactionMix,
    pub style: TransactionStyle,
    pub constants: Constants,
    /// The statements of the run, in the order of their numbers (see [`super::statements::StatementNumber`]).
    pub statements: Vec<Statement>,
    pub scripts: Vec<ScriptInfo>,
}

impl OrderEntry {
    /// Makes the load for `clients` clients. `seed_of_load` is the seed with which the tables were filled, and `seed`
    /// is the seed of this run. All engines that share the run must get the same two seeds.
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
