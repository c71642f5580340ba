//! Micro-benchmarks of the code that runs for every transaction: encoding a statement, reading a reply, recording a
//! latency and computing the values of a script. Run them with `cargo bench --bench hot_path`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use ground::random::Random;
use latency::Latencies;
use wire::Rows;
use wire::frame::{Flow, Reader};
use wire::order::Form;
use wire::reply::{Exchange, Receiving};
use wire::session_mark::SessionMark;
use wire::statement::{Hole, QueryMode, RequestEnd, ResultFormat, Statement};
use wire::usual::UsualReplies;
use wire::value::Value;
use workload::pgbench::{ScriptEnvironment, Scripts, parse};
use workload::{Program, Workload};

/// The server's reply to a prepared statement, as bytes of the wire protocol: BindComplete, RowDescription, one DataRow
/// with one integer, CommandComplete, and ReadyForQuery.
const REPLY: &[u8] = b"2\0\0\0\x04T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

const ARITHMETIC: &str = "\\set a random(1, 100000 * :scale)\n\\set b (:a * 7 + 3) % 1000 - :a / 2\nSELECT :b;\n";

fn encode(c: &mut Criterion) {
    let pieces = vec![b"SELECT abalance FROM pgbench_accounts WHERE aid = ".to_vec(), b";".to_vec()];
    let select = Statement::new(0, "P_0", pieces, vec![Hole { slot: 0, name: "aid".to_owned() }]);
    let mut message = Vec::new();
    c.bench_function("encode select", |b| {
        b.iter(|| {
            message.clear();
            let values = [Value::Int(black_box(1_234_567))];
            select.encode(
                SessionMark::NONE,
                (QueryMode::Prepared, true),
                &values,
                RequestEnd { format: ResultFormat::Text, describes: true, syncs: true },
                &mut message,
            );
            message.len()
        });
    });
}

/// Reads `REPLY` in pieces of `size` bytes. Returns the transaction status in its ReadyForQuery message, or `None` if
/// the reply is not complete.
fn status(reader: &mut Reader, receiving: &mut Receiving<'_>, size: usize) -> Option<u8> {
    receiving.exchange.expect_of(0, Rows::Skipped, Form::Described);
    let last = black_box(REPLY).chunks(size).map(|piece| reader.take(piece, receiving)).last();
    matches!(last, Some(Ok(Flow::Stop))).then(|| receiving.exchange.take_reply().status)
}

fn read_reply(c: &mut Criterion) {
    let (mut reader, mut exchange, mut usual) = (Reader::default(), Exchange::default(), UsualReplies::default());
    let mut receiving = Receiving { exchange: &mut exchange, usual: &mut usual };
    for (name, size) in [("parse reply", REPLY.len()), ("parse reply in two pieces", 20)] {
        assert_eq!(status(&mut reader, &mut receiving, size), Some(b'I'));
        c.bench_function(name, |b| b.iter(|| status(&mut reader, &mut receiving, size)));
    }
}

fn record(c: &mut Criterion) {
    let mut latencies = Latencies::default();
    let mut latency = 100_000;
    c.bench_function("record latency", |b| {
        b.iter(|| {
            latency = latency * 31 % 10_000_019;
            latencies.record(black_box(latency));
        });
    });
}

/// Returns a client that runs a pgbench script with this text, in which the variable `scale` is 1. Returns `None` if
/// the script is invalid.
fn client(text: &str) -> Option<Box<dyn Program>> {
    let variables = vec![("scale".to_owned(), Value::Int(1))];
    let environment = ScriptEnvironment {
        mode: QueryMode::Prepared,
        timed: false,
        announced: false,
        needs_values: false,
        lists: Vec::new(),
        variables,
        default_seed: 1,
    };
    let scripts = Scripts::link(vec![parse("script", 1, text.as_bytes()).ok()?], &environment).ok()?;
    Some(Arc::new(scripts).client(0, Random::seeded(1)))
}

fn evaluate(c: &mut Criterion) {
    for (name, text) in [
        ("transaction of one draw", "\\set aid random(1, 100000)\nSELECT :aid;\n"),
        ("transaction of arithmetic", ARITHMETIC),
    ] {
        let Some(mut client) = client(text) else { panic!("{name} is refused") };
        let mut choose = Random::seeded(2);
        c.bench_function(name, |b| {
            b.iter(|| {
                client.begin(&mut choose);
                black_box(client.next_action());
            });
        });
    }
}

criterion_group!(hot_path, encode, read_reply, record, evaluate);
criterion_main!(hot_path);
