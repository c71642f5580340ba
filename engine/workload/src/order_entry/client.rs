//! A client of order entry: a terminal at which one transaction after another is entered.

use std::sync::Arc;
use std::time::Duration;

use super::load::{OrderEntry, TransactionStyle};
use super::mix::TransactionKind;
use super::terminal::Terminal;
use super::transactions::{self, ClientTransaction, StatementRequest};
use super::values::Values;
use crate::program::{AbortReason, Action, Program, ScriptInfo, Workload};
use ground::random::Random;
use wire::ResultSet;

impl Workload for Arc<OrderEntry> {
    /// Returns a script for each kind of transaction, so that reports list the kinds separately. A command's index is
    /// the number of its statement, so every script has the statements of all kinds as its commands.
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.scripts.clone()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program> {
        Box::new(OrderEntryClient::new(Arc::clone(self), client, random))
    }
}

/// A client of an order-entry run.
pub struct OrderEntryClient {
    load: Arc<OrderEntry>,
    terminal: Terminal,
    transactions: [Box<dyn ClientTransaction>; 5],
    /// The index of the current transaction's object among the five in `transactions`.
    current: usize,
    /// The kind of the current transaction.
    kind: TransactionKind,
    /// The kind of the previous transaction, if there was one.
    before: Option<TransactionKind>,
    values: Values,
    /// The number of the statement that was sent last.
    sent: usize,
}

impl OrderEntryClient {
    /// Makes a client. `client` is its number among all clients of the run, on all engines.
    pub fn new(load: Arc<OrderEntry>, client: usize, random: Random) -> Self {
        let terminal = Terminal::new(client, load.clients, load.warehouses, load.constants, random);
        Self {
            load,
            terminal,
            transactions: transactions::all(),
            current: 0,
            kind: TransactionKind::NewOrder,
            before: None,
            values: Values::default(),
            sent: 0,
        }
    }
}

impl Program for OrderEntryClient {
    fn begin(&mut self, choose: &mut Random) -> usize {
        self.current = self.load.mix.choose(choose);
        let transaction = &mut self.transactions[self.current];
        let is_rolled_back = transaction.draw(&mut self.terminal);
        transaction.start(&mut self.values);
        self.kind = if is_rolled_back { TransactionKind::RolledBack } else { TransactionKind::all()[self.current] };
        self.kind as usize
    }

    fn pause(&mut self) -> Duration {
        let thinking = self.before.replace(self.kind).map(|kind| kind.think(&mut self.terminal.random));
        thinking.unwrap_or_default() + self.kind.keying()
    }

    fn retry(&mut self) {
        self.transactions[self.current].start(&mut self.values);
    }

    fn next_action(&mut self) -> Action<'_> {
        let transaction = &mut self.transactions[self.current];
        let StatementRequest { statement, rows, last } = match self.load.style {
            TransactionStyle::Statements => transaction.next(&mut self.values),
            TransactionStyle::Procedures => StatementRequest::end(transaction.call(&mut self.values)),
        };
        self.sent = statement;
        let values = self.values.all();
        Action::Query { command: statement, statement: &self.load.statements[statement], values, rows, last }
    }

    fn store(&mut self, results: &[ResultSet]) -> Result<(), AbortReason> {
        let nothing = ResultSet::default();
        let result = results.last().unwrap_or(&nothing);
        let stored = self.transactions[self.current].store(result, &mut self.values);
        stored.map_err(|error| AbortReason::Rows {
            command: self.sent,
            query: 0,
            reason: error.to_string(),
            detail: None,
        })
    }
}
