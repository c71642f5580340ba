//! Finds out without a server with which values the first transactions of a script send its statements.

use ground::random::Random;
use wire::value::Value;

use super::scripts::Scripts;
use super::steps::{Operation, ScriptState, StepResult};
use crate::sent::SentStatement;

/// An execution of a statement, as a client would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnStatement {
    /// The index of the statement's command in its script.
    pub command: usize,
    /// The statement as it is sent to the server. Values that only a server or a shell command could supply are
    /// missing.
    pub sent: SentStatement,
}

/// Returns the statements that the first client would send in the first `transactions` transactions of one script.
///
/// Nothing is executed outside of this process. Shell commands and pauses are skipped, and queries return no rows, so
/// the variables of `\setshell`, `\gset` and `\aset` have no values. A transaction ends at a command that fails, for
/// example at an expression with such a variable. Branches are taken or skipped according to the values.
pub fn drawn(scripts: &Scripts, script: usize, random: &Random, transactions: usize) -> Vec<DrawnStatement> {
    let mut state = ScriptState {
        values: scripts.initial_values(0),
        random: random.clone(),
        started: random.clone(),
        script,
        step: 0,
        in_pipeline: false,
        is_announced: false,
        aborted: None,
    };
    let mut found = Vec::new();
    for _ in 0..transactions {
        state.step = 0;
        state.in_pipeline = false;
        state.draw_from(&scripts.lists);
        send_all(scripts, &mut state, &mut found);
    }
    found
}

/// Adds the statements of one transaction to `found`.
fn send_all(scripts: &Scripts, state: &mut ScriptState, found: &mut Vec<DrawnStatement>) {
    let script = &scripts.scripts[state.script];
    while let Some(step) = script.steps.get(state.step) {
        state.step += 1;
        match &step.operation {
            Operation::Shell(_) | Operation::SetShell { .. } | Operation::Sleep(_) => continue,
            Operation::Query { store: Some(store), .. } => {
                store.slots.values().for_each(|slot| state.values[*slot] = Value::Unset);
            }
            _ => {}
        }
        match state.execute(&scripts.symbols, scripts.mode, step) {
            Ok(StepResult::Query(index, _)) => {
                let sent = SentStatement::of(&script.statements[index], &state.values, scripts.mode);
                found.extend(sent.map(|sent| DrawnStatement { command: step.command, sent }));
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ScriptEnvironment, parse};
    use super::*;
    use wire::statement::QueryMode;

    fn found(text: &str, mode: QueryMode, lists: &[(&str, &[i64])]) -> Vec<DrawnStatement> {
        let lists = lists.iter().map(|(name, values)| {
            ((*name).to_owned(), values.iter().map(|value| Value::Int(*value)).collect::<Vec<_>>())
        });
        let environment = ScriptEnvironment {
            mode,
            timed: false,
            announced: false,
            needs_values: false,
            lists: lists.collect(),
            variables: Vec::new(),
            default_seed: 0,
        };
        let scripts = Scripts::link(vec![parse("s.sql", 1, text.as_bytes()).unwrap()], &environment).unwrap();
        drawn(&scripts, 0, &Random::seeded(7), 3)
    }

    fn values(found: &[DrawnStatement]) -> Vec<(usize, Vec<Option<&str>>)> {
        found.iter().map(|one| (one.command, one.sent.values.iter().map(Option::as_deref).collect())).collect()
    }

    #[test]
    fn values_are_those_that_the_script_draws() {
        let found = found("\\set a random(1, 1000)\n\\set b :a + 1\nSELECT :a, :b;\n", QueryMode::Prepared, &[]);
        assert_eq!(found.len(), 3);
        let numbers: Vec<i64> = found
            .iter()
            .flat_map(|one| &one.sent.values)
            .map(|value| value.as_ref().unwrap().parse().unwrap())
            .collect();
        assert!(numbers.chunks(2).all(|pair| (1..=1000).contains(&pair[0]) && pair[1] == pair[0] + 1), "{numbers:?}");
        assert!(numbers[0] != numbers[2] || numbers[2] != numbers[4], "{numbers:?}");
        assert!(found.iter().all(|one| one.command == 2 && one.sent.whole.is_none()));
    }

    #[test]
    fn the_simple_mode_has_the_values_in_the_text() {
        let found = found("SELECT :a, ':b';\n", QueryMode::Simple, &[("a", &[5]), ("b", &[6])]);
        assert_eq!(found[0].sent.whole.as_deref(), Some("SELECT 5, '6';"));
    }

    #[test]
    fn what_a_server_or_a_shell_gives_is_not_known_and_no_shell_runs() {
        let script = "\\setshell s false\n\\shell false\nSELECT 1 AS got \\gset\nSELECT :got, :s;\n\\set x :got + 1\nSELECT 2;\n";
        let found = found(script, QueryMode::Extended, &[]);
        assert_eq!(values(&found[..2]), [(2, vec![]), (3, vec![None, None])]);
        assert!(found.iter().all(|one| one.command != 5));
    }

    #[test]
    fn only_the_statements_of_branches_that_are_taken_are_sent() {
        let found = found("\\if 0\nSELECT 1;\n\\else\nSELECT :client_id;\n\\endif\n", QueryMode::Prepared, &[]);
        assert_eq!(values(&found[..1]), [(3, vec![Some("0")])]);
        assert_eq!(found.len(), 3);
    }
}
