//! pgbench scripts as programs: a set of compiled scripts shared by all clients, and a small state for each client.

pub mod builtin;
mod expression;
mod script;
mod symbols;

use std::sync::Arc;

use super::random::Random;
use super::value::Value;
use super::{Action, Program, ScriptInfo, Workload};
pub use script::ScriptError;
use script::{Operation, Script};
use symbols::Symbols;

/// Scripts with their weights and the variables every client starts with.
#[derive(Debug)]
pub struct Scripts {
    scripts: Vec<Script>,
    symbols: Symbols,
    initial: Vec<Value>,
    client_id: usize,
    total_weight: u64,
    timed: bool,
}

/// A script to be compiled: description, weight and text.
#[derive(Debug, Clone)]
pub struct Source {
    pub description: String,
    pub weight: u64,
    pub text: String,
}

impl Scripts {
    /// Compiles `sources`. `variables` are set in every client before its first transaction; with `timed`, client-side
    /// commands are reported to the reactor so that it can time them.
    pub fn compile(sources: &[Source], variables: &[(&str, i64)], timed: bool) -> Result<Self, ScriptError> {
        let mut symbols = Symbols::default();
        let mut scripts = Vec::new();
        let mut statements = 0;
        for source in sources {
            let script = script::compile(&source.description, source.weight, &source.text, statements, &mut symbols)?;
            statements += script.commands.iter().filter(|c| matches!(c.operation, Operation::Sql(_))).count();
            scripts.push(script);
        }
        let client_id = symbols.slot("client_id");
        let slots: Vec<_> = variables.iter().map(|(name, value)| (symbols.slot(name), *value)).collect();
        let mut initial = vec![Value::Unset; symbols.len()];
        for (slot, value) in slots {
            initial[slot] = Value::Int(value);
        }
        let total_weight = scripts.iter().map(|s| s.weight).sum();
        Ok(Self { scripts, symbols, initial, client_id, total_weight, timed })
    }

    /// A script's index, drawn by weight; a single script costs no draw, as in pgbench.
    fn choose(&self, random: &mut Random) -> usize {
        if self.scripts.len() == 1 {
            return 0;
        }
        let mut left = random.range(0, self.total_weight as i64 - 1) as u64;
        self.scripts
            .iter()
            .position(|script| {
                let chosen = left < script.weight;
                left = left.wrapping_sub(script.weight);
                chosen
            })
            .unwrap_or(0)
    }
}

impl Workload for Arc<Scripts> {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.scripts
            .iter()
            .map(|script| ScriptInfo {
                description: script.description.clone(),
                weight: script.weight,
                commands: script.commands.iter().map(|c| c.first_line.clone()).collect(),
            })
            .collect()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program> {
        let mut values = self.initial.clone();
        values[self.client_id] = Value::Int(client as i64);
        Box::new(Client { scripts: Arc::clone(self), values, random, script: 0, command: 0 })
    }
}

/// One client: its variables, its generator and where it is.
struct Client {
    scripts: Arc<Scripts>,
    values: Vec<Value>,
    random: Random,
    script: usize,
    command: usize,
}

impl Program for Client {
    fn begin(&mut self, choose: &mut Random) -> usize {
        self.script = self.scripts.choose(choose);
        self.command = 0;
        self.script
    }

    #[inline]
    fn next(&mut self) -> Action<'_> {
        let scripts = &*self.scripts;
        loop {
            let command = self.command;
            let Some(current) = scripts.scripts[self.script].commands.get(command) else {
                return Action::End;
            };
            self.command += 1;
            match &current.operation {
                Operation::Sql(statement) => return Action::Query { command, statement, values: &self.values },
                Operation::Set { slot, expression } => {
                    match expression.evaluate(&self.values, &scripts.symbols, &mut self.random) {
                        Ok(value) => self.values[*slot] = Value::Int(value),
                        Err(message) => return Action::Abort { command, message },
                    }
                    if scripts.timed {
                        return Action::Local { command };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(name: &str, timed: bool) -> Arc<Scripts> {
        let builtin = builtin::find(name).unwrap();
        let source = Source { description: builtin.description.into(), weight: 1, text: builtin.text.into() };
        Arc::new(Scripts::compile(&[source], &[("scale", 3)], timed).unwrap())
    }

    #[test]
    fn select_only_is_one_query_and_the_end() {
        let mut client = builtin("select", false).client(0, Random::seeded(1));
        let mut choose = Random::seeded(2);
        for _ in 0..100 {
            client.begin(&mut choose);
            match client.next() {
                Action::Query { command: 1, values, .. } => {
                    assert!(values.iter().any(|v| matches!(v, Value::Int(aid) if (1..=300_000).contains(aid))));
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(client.next(), Action::End));
        }
    }

    #[test]
    fn timed_clients_report_local_commands() {
        let mut client = builtin("tpcb", true).client(0, Random::seeded(1));
        client.begin(&mut Random::seeded(2));
        for expected in 0..4 {
            assert!(matches!(client.next(), Action::Local { command } if command == expected));
        }
        assert!(matches!(client.next(), Action::Query { command: 4, .. }));
    }

    #[test]
    fn scripts_are_chosen_by_weight() {
        let source = |weight| Source { description: String::new(), weight, text: "SELECT 1;".into() };
        let scripts = Scripts::compile(&[source(1), source(0), source(3)], &[], false).unwrap();
        let mut random = Random::seeded(3);
        let mut counts = [0; 3];
        (0..4000).for_each(|_| counts[scripts.choose(&mut random)] += 1);
        assert_eq!(counts[1], 0);
        assert!((800..1200).contains(&counts[0]), "{counts:?}");
    }
}
