//! Tests of the script language as a whole. The files in `reference/` have what pgbench 18 answered with
//! `--random-seed=5`. Each line has an input, a tab, and pgbench's answer. In the inputs and in the answers, `\n`,
//! `\t`, `\r`, `\v`, `\f` and `\\` are escapes.

mod clients;
mod properties;
mod reference;

use std::sync::Arc;

use super::error::ScriptError;
use super::expression::fold::Resolver;
use super::expression::functions::Context;
use super::expression::{Expression, Scalar, Syntax, parse as parse_expression};
use super::symbols::Symbols;
use super::*;
use crate::program::{AbortReason, Action, Program, ScriptStep, StartPipeline, Workload};
use crate::seeds::Seeds;
use ground::random::Random;
use ground::shard::ClientShare;
use wire::statement::QueryMode;
use wire::value::Value;

/// The seed with which pgbench made the reference files.
const SEED: u64 = 5;

fn seeds() -> Seeds {
    Seeds::derive(SEED, &ClientShare::whole(1), 0, 1, None)
}

fn environment(mode: QueryMode) -> ScriptEnvironment {
    let variables = vec![("scale".to_owned(), Value::Int(1)), ("random_seed".to_owned(), Value::Int(SEED as i64))];
    ScriptEnvironment {
        mode,
        timed: false,
        announced: false,
        needs_values: false,
        lists: Vec::new(),
        variables,
        default_seed: seeds().hashes as i64,
    }
}

fn link(text: &str, environment: &ScriptEnvironment) -> Result<Arc<Scripts>, ScriptError> {
    Ok(Arc::new(Scripts::link(vec![parse("script.sql", 1, text.as_bytes())?], environment)?))
}

/// Returns a client that has begun its first transaction.
fn client(text: &str, environment: &ScriptEnvironment) -> Box<dyn Program> {
    let mut client = link(text, environment).unwrap().client(0, seeds().clients[0].clone());
    client.begin(&mut Random::seeded(1));
    client
}

/// Runs a script in a client until it ends. Returns the statements that the client sends, and errors in pgbench's
/// wording.
fn transcript(program: &mut dyn Program) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        match program.next_action() {
            Action::Query { statement, values, .. } => {
                let mut text = Vec::new();
                statement.write_text(values, &mut text);
                lines.push(format!("> {}", String::from_utf8_lossy(&text)));
            }
            Action::Request(StartPipeline { statements, .. }) => lines.push(format!("start {}", statements.len())),
            Action::Step(ScriptStep::SyncPipeline { .. }) => lines.push("sync".to_owned()),
            Action::Step(ScriptStep::EndPipeline { .. }) => lines.push("end".to_owned()),
            Action::Sleep { .. } => {}
            Action::Step(ScriptStep::Announce { command }) => lines.push(format!("announce {command}")),
            Action::Step(ScriptStep::Local { command }) => lines.push(format!("local {command}")),
            Action::End => return lines,
            Action::Abort(AbortReason::Command { command, word, reason, detail }) => {
                lines.extend(detail.as_ref().map(|detail| format!("error: {detail}")));
                lines.push(format!("error: client 0 aborted in command {command} ({word}) of script 0; {reason}"));
                return lines;
            }
            action @ Action::Pause => {
                panic!("no script of pgbench asks for {action:?}")
            }
            Action::Abort(trouble) => {
                lines.push(format!("error: client 0 aborted: {trouble}"));
                return lines;
            }
        }
    }
}

/// Returns everything that pgbench would print and send for a script in simple mode.
fn said(text: &str) -> String {
    match link(text, &environment(QueryMode::Simple)) {
        Err(error) => format!("error: {error}"),
        Ok(scripts) => {
            let mut client = scripts.client(0, seeds().clients[0].clone());
            client.begin(&mut Random::seeded(1));
            transcript(client.as_mut()).join("\n")
        }
    }
}

/// Replaces the names in an expression by slots (indexes of variables). If `fold` is true, `variables` are constants,
/// which are replaced by their values; if it is false, they are variables with initial values, which are returned too.
fn resolve(syntax: &Syntax, variables: &[(&str, Value)], fold: bool) -> (Expression, Symbols, Vec<Value>) {
    let mut symbols = Symbols::default();
    let constants = variables
        .iter()
        .filter(|_| fold)
        .filter_map(|(name, value)| {
            Some(((*name).to_owned(), expression::scalar::of_variable(value, String::new).ok()?))
        })
        .collect();
    let expression = Resolver { symbols: &mut symbols, constants: &constants }.resolve(syntax);
    let given = |name: &String| variables.iter().find(|(given, _)| given == name);
    let values = symbols.names().iter().map(|name| given(name).map_or(Value::Unset, |(_, v)| v.clone())).collect();
    (expression, symbols, values)
}

fn evaluate(
    (expression, symbols, values): &(Expression, Symbols, Vec<Value>),
    random: &mut Random,
) -> Result<Scalar, Option<String>> {
    let mut context = Context { values, symbols, random, script: 0, command: 0 };
    expression.evaluate(&mut context).map_err(|error| error.into_sentence())
}

/// Returns the lines of a reference file as pairs of input and answer.
fn reference(file: &str) -> Vec<(String, String)> {
    let unescape = |text: &str| {
        let mut out = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            out.push(match (c, if c == '\\' { chars.next() } else { None }) {
                (_, Some('n')) => '\n',
                (_, Some('t')) => '\t',
                (_, Some('r')) => '\r',
                (_, Some('v')) => '\u{b}',
                (_, Some('f')) => '\u{c}',
                (_, Some(other)) => other,
                (c, None) => c,
            });
        }
        out
    };
    let lines: Vec<_> = file
        .lines()
        .map(|line| {
            let (given, answer) = line.split_once('\t').unwrap();
            (unescape(given), unescape(answer))
        })
        .collect();
    assert!(lines.len() > 10, "a reference file is not empty");
    lines
}
