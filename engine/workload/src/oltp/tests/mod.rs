mod bulk;
mod events;
mod failures;
mod legacy;
mod options;

use std::sync::Arc;

use super::client::OltpClient;
use super::event::OltpEvent;
use super::*;
use crate::program::{Action, ActionResult, Management, Program, StagedRequest};
use crate::settings::OptionValue;
use ground::random::Random;
use wire::session_mark::SessionMark;
use wire::statement::Statement;
use wire::value::Value;
use wire::{Answered, Rows};

fn settings(options: &[(&str, OptionValue)]) -> Settings {
    let mut settings = Settings::default();
    settings.set("rand_seed", OptionValue::Int(1));
    options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
    settings
}

fn number(number: i64) -> OptionValue {
    OptionValue::Int(number)
}

fn switch(is_on: bool) -> OptionValue {
    OptionValue::Bool(is_on)
}

fn event(name: &str, options: &[(&str, OptionValue)]) -> Arc<OltpEvent> {
    let (test, settings) = (find(name).unwrap(), settings(options));
    let parameters = TestParameters::read(test.kind, &settings).unwrap();
    Arc::new(OltpEvent::new(test, parameters, test.mode(&settings), Distributions::new(&settings).unwrap()))
}

/// Makes a client that has connected and prepared its statements.
fn client(event: &Arc<OltpEvent>, number: usize) -> OltpClient {
    let mut client = OltpClient::new(Arc::clone(event), number, Random::seeded(77));
    loop {
        match client.next_action() {
            Action::Step(Management::Connect(0)) | Action::Request(StagedRequest::PrepareAll { .. }) => {}
            Action::End => return client,
            other => panic!("{other:?}"),
        }
        client.complete(ActionResult::Done(&Answered::default()));
    }
}

fn text_of(statement: &Statement) -> String {
    let parse = statement.parse_message(SessionMark::NONE);
    let text = parse[5..].split(|byte| *byte == 0).nth(1).unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

/// Returns the text that a client sends if it does not prepare statements.
fn sent_text(statement: &Statement, values: &[Value]) -> String {
    let mut text = Vec::new();
    statement.write_text(values, &mut text);
    String::from_utf8(text).unwrap()
}

/// A query of an event.
struct Query {
    /// The statement's text as it is prepared.
    parsed: String,
    /// The text that is sent if statements are not prepared.
    sent: String,
    last: bool,
}

/// Returns the queries that a client sends in one event.
fn queries(client: &mut OltpClient) -> Vec<Query> {
    client.begin(&mut Random::seeded(1));
    let mut queries = Vec::new();
    loop {
        match client.next_action() {
            Action::Query { statement, values, rows: Rows::Counted, last, .. } => {
                queries.push(Query { parsed: text_of(statement), sent: sent_text(statement, values), last });
                if last {
                    return queries;
                }
            }
            Action::End => return queries,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the texts that are sent, with `T` in place of each drawn string and `N` in place of each drawn number.
fn shapes(queries: &[Query]) -> Vec<String> {
    let shape = |query: &Query| {
        let pieces = query.sent.split('\'').enumerate();
        let text: String = pieces.map(|(number, piece)| if number % 2 == 1 { "T" } else { piece }).collect();
        let words = text.split_inclusive([' ', '=', '(', ',', ')']);
        words
            .map(|word| match word.trim_end_matches([' ', '=', ',', ')']) {
                number if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) => word.replace(number, "N"),
                _ => word.to_owned(),
            })
            .collect()
    };
    queries.iter().map(shape).collect()
}
