mod inputs;
mod sequences;

use std::sync::Arc;

use super::client::OrderEntryClient;
use super::*;
use crate::program::{Action, Program};
use ground::random::Random;
use wire::ResultSet;
use wire::Rows;
use wire::statement::QueryMode;

/// Returns a load on ten warehouses with only one kind of transaction.
fn load(place: usize, style: TransactionStyle) -> Arc<OrderEntry> {
    let mut weights = [0; 5];
    weights[place] = 1;
    OrderEntry::new(10, 8, TransactionMix::new(weights).unwrap(), style, (3, 4), QueryMode::Simple)
}

fn client(place: usize) -> OrderEntryClient {
    client_of(place, TransactionStyle::Statements)
}

fn client_of(place: usize, style: TransactionStyle) -> OrderEntryClient {
    OrderEntryClient::new(load(place, style), 2, Random::seeded(21))
}

/// The text of a statement as it is sent, and whether it is the last statement of its transaction.
struct Sent {
    text: String,
    last: bool,
}

/// Returns the next statement. If the statement's result is needed, `answer` returns the row for it, or `None` for no
/// row.
fn step(client: &mut OrderEntryClient, answer: &dyn Fn(&str) -> Option<Vec<&'static str>>) -> Sent {
    let Action::Query { statement, values, rows, last, .. } = client.next_action() else {
        panic!("there is a statement")
    };
    let mut text = Vec::new();
    statement.write_text(values, &mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(!text.replace("::", "").replace("'{", "'").contains([':', '{']), "every value is set: {text}");
    if rows == Rows::Kept {
        let row = answer(&text);
        let last = row.iter().flatten().map(|value| Some(value.as_bytes().to_vec())).collect();
        let result = ResultSet { columns: Vec::new(), rows: u64::from(row.is_some()), last };
        client.store(&[result]).unwrap();
    }
    Sent { text, last }
}

/// Returns the row that a server would usually return for a statement.
fn usual(text: &str) -> Option<Vec<&'static str>> {
    Some(match text {
        _ if text.starts_with("UPDATE district SET d_next_o_id") => vec!["3001", "0.1000"],
        _ if text.starts_with("SELECT i_price") => return (!text.contains("100001")).then(|| vec!["12.34", "n", "d"]),
        _ if text.starts_with("UPDATE stock") => vec!["abcdefghijklmnopqrstuvwx", "50", "data"],
        _ if text.starts_with("UPDATE warehouse") => vec!["ware"],
        _ if text.starts_with("UPDATE district SET d_ytd") => vec!["dist"],
        _ if text.contains("array_agg(c_id") => vec!["77"],
        _ if text.starts_with("SELECT o_id") => vec!["2500"],
        _ if text.starts_with("SELECT no_o_id") => vec!["2101"],
        _ if text.starts_with("UPDATE orders") => vec!["55"],
        _ if text.contains("sum(ol_amount)") => vec!["123.45"],
        _ if text.starts_with("SELECT d_next_o_id") => vec!["3001"],
        _ => panic!("no answer for {text}"),
    })
}

/// Returns the statements of a whole transaction, which the client has already begun.
fn statements_of(client: &mut OrderEntryClient) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let Sent { text, last } = step(client, &usual);
        texts.push(text);
        if last {
            return texts;
        }
    }
}

/// Returns the first words of each statement. If several statements in a row begin with the same words, these words are
/// returned once.
fn outline(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| text.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}
