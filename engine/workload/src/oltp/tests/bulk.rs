//! Checks the test `bulk_insert`.

use super::settings;
use crate::oltp::find;
use crate::program::{Action, ActionResult, Management, Program, StagedActions, StagedRequest};
use ground::random::Random;
use ground::shard::Shard;
use wire::{Answered, Rows};

/// Returns the rows that `bulk_insert` has sent after `events` events, and the number of rows that it sends at its end.
fn bulk_rows(events: usize) -> (Vec<String>, usize) {
    let workload = find("bulk_insert").unwrap().workload(&settings(&[]), Shard::WHOLE).unwrap();
    let mut client = workload.client(2, Random::seeded(1));
    assert!(matches!(client.next_action(), Action::Step(Management::Connect(0))));
    client.complete(ActionResult::Done(&Answered::default()));
    assert!(matches!(client.next_action(), Action::End));
    let (mut sent, mut rows) = (Vec::new(), 0);
    let mut drain = |client: &mut Box<dyn Program<StagedActions>>| {
        loop {
            match client.next_action() {
                Action::Request(StagedRequest::Text { sql, rows: Rows::Counted }) => {
                    rows += sql.matches('(').count();
                    sent.push(sql.to_owned());
                }
                Action::End => break,
                other => panic!("{other:?}"),
            }
        }
    };
    for _ in 0..events {
        client.begin(&mut Random::seeded(1));
        drain(&mut client);
    }
    client.stop();
    drain(&mut client);
    (sent, rows)
}

#[test]
fn bulk_inserts_send_every_row_in_long_statements() {
    let (sent, rows) = bulk_rows(100_000);
    assert_eq!(rows, 100_000);
    assert!(sent.len() > 1 && sent.iter().all(|sql| sql.len() < 512 * 1024));
    assert!(sent[..sent.len() - 1].iter().all(|sql| sql.len() > 512 * 1024 - 20));
    assert!(sent[0].starts_with("INSERT INTO sbtest3 VALUES(1,1),(2,2),"), "{}", &sent[0][..60]);
    assert!(sent.last().unwrap().ends_with(",(100000,100000)"));
    assert_eq!(bulk_rows(0).0, Vec::<String>::new());
}
