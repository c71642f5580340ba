//! Tests that the merged events are the sums of the machines' events.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The largest allowed difference between two standard deviations, in microseconds. They are not exactly equal, since
/// they are computed as differences of large squares.
const DEVIATION: f64 = 0.01;

fn parsed(lines: &[Vec<u8>], kind: &str) -> Vec<Value> {
    let all = lines.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap());
    all.filter(|event| event["event"] == kind).collect()
}

/// Checks that two events are equal. Counts, histograms and percentiles must be identical; means, deviations and rates
/// may differ in their last digits.
fn assert_alike(found: &Value, expected: &Value) -> Result<(), TestCaseError> {
    for (key, expected) in expected.as_object().into_iter().flatten() {
        let found = &found[key];
        match (key.as_str(), found, expected) {
            ("event" | "t", ..) => {}
            (_, Value::Object(_), Value::Object(_)) => assert_alike(found, expected)?,
            ("mean" | "stddev" | "tps", Value::Number(one), Value::Number(other)) => {
                let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
                let near = if key == "stddev" { DEVIATION } else { 1e-9 * other.abs() };
                prop_assert!((one - other).abs() <= near, "{key}: {one} for {other}");
            }
            _ => prop_assert_eq!(found, expected, "{}", key),
        }
    }
    Ok(())
}

fn assert_whole(events: &[MergedEvent], whole: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let (ticks, expected) = (of_kind(events, "tick"), parsed(whole, "tick"));
    prop_assert_eq!(ticks.len(), expected.len());
    for (found, expected) in ticks.iter().zip(&expected) {
        assert_alike(found, expected)?;
    }
    let (done, expected) = (of_kind(events, "done")[0], &parsed(whole, "done")[0]);
    for key in ["warmup", "measure", "drain"] {
        assert_alike(&done[key], &expected[key])?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_the_whole_however_their_lines_arrive(
        all in transactions(80),
        machines in 1usize..5,
        has_schedule in any::<bool>(),
        order in prop::collection::vec(any::<usize>(), 40),
        machine_of in prop::collection::vec(any::<usize>(), 80),
    ) {
        let mut per_machine = vec![Vec::new(); machines];
        all.iter().zip(&machine_of).for_each(|(transaction, machine)| per_machine[machine % machines].push(*transaction));
        let parts = per_machine.iter().enumerate();
        let streams: Vec<_> =
            parts.map(|(index, part)| engine(part, 2, 0.3 + index as f64, has_schedule)).collect();
        let whole = engine(&all, 2 * machines as u64, 0.3, has_schedule);
        let mut order = order.iter().cycle();
        let (events, status) = merged(&streams, |_| *order.next().unwrap()).unwrap();
        prop_assert_eq!(status, 0);
        prop_assert_eq!(&of_kind(&events, "hello")[0]["plan"]["clients"], &json!(2 * machines));
        prop_assert!(events.is_sorted_by(|one, next| one.t <= next.t));
        assert_whole(&events, &whole)?;
        let kinds: Vec<_> = events.iter().map(|event| &*event.event).collect();
        let second = ["tick"; 4];
        let expected = [&["hello", "connected", "phase"][..], &second, &["phase"], &second, &["phase"], &second, &["done"]];
        prop_assert_eq!(kinds, expected.concat());
        let in_turns = in_turns(&streams).unwrap().0;
        let bodies = |events: &[MergedEvent]| events.iter().map(|event| (event.t, event.body.clone())).collect::<Vec<_>>();
        prop_assert_eq!(bodies(&events), bodies(&in_turns));
    }
}

#[test]
fn one_machine_is_the_whole() {
    let all: Vec<_> = (0..50u64)
        .map(|n| MergedTransaction {
            phase: (n % 3) as usize,
            second: (n % 4) as u32,
            latency_ns: n * n * 7919,
            failed: n % 7 == 0,
        })
        .collect();
    let whole = engine(&all, 4, 0.25, true);
    let (events, _) = in_turns(std::slice::from_ref(&whole)).unwrap();
    assert_whole(&events, &whole).unwrap();
    let times: Vec<_> = events.iter().map(|event| event.t).collect();
    let own = whole.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap()["t"].as_f64().unwrap());
    assert_eq!(times, own.collect::<Vec<_>>());
    let hello = of_kind(&events, "hello")[0];
    assert_eq!(hello["plan"], parsed(&whole, "hello")[0]["plan"]);
}

#[test]
fn the_last_event_lists_each_machine() {
    let all = [MergedTransaction { phase: 1, second: 0, latency_ns: 3_000_000, failed: false }; 8];
    let (events, _) = in_turns(&[engine(&all, 3, 2.0, true), engine(&all[..4], 1, 1.0, true)]).unwrap();
    let done = of_kind(&events, "done")[0];
    assert_eq!(
        done["machines"],
        json!([
            { "machine": "m0", "clients": 3, "transactions": 8, "tps": 2.0, "cpu_user_s": 1.0, "cpu_system_s": 0.5,
              "busiest_thread_share": 0.1 * 3.0, "lag_p99_us": 1000.447, "began_at": 1_795_270_325.0, "status": 0 },
            { "machine": "m1", "clients": 1, "transactions": 4, "tps": 1.0, "cpu_user_s": 1.0, "cpu_system_s": 0.5,
              "busiest_thread_share": 0.1, "lag_p99_us": 1000.447, "began_at": 1_795_270_324.0, "status": 0 },
        ])
    );
    assert_eq!((&done["measure"]["tps"], &done["measure"]["duration_s"]), (&json!(3.0), &json!(4.0)));
    assert_eq!(done["client"]["cpu_per_transaction_us"], json!(3.0 * 1e6 / 12.0));
    assert_eq!(of_kind(&events, "connected")[0], &json!({ "clients": 4, "connect_s": 0.5 }));
    assert_eq!(of_kind(&events, "phase")[0], &json!({ "phase": "warmup", "at": 1_795_270_324.0 }));
}

#[test]
fn a_phase_and_its_seconds_wait_for_the_slowest() {
    let streams = [engine(&[], 1, 1.0, false), engine(&[], 1, 1.0, false)];
    let mut merger = Merger::new(["fast", "slow"].map(str::to_owned));
    let mut said = Vec::new();
    streams[0].iter().for_each(|line| merger.add_line(0, line).unwrap());
    assert_eq!((events(&mut merger), merger.last()), (vec![], Some(1)));
    for line in &streams[1][..5] {
        merger.add_line(1, line).unwrap();
        said.push(events(&mut merger).iter().map(|event| event.event.clone()).collect::<Vec<_>>());
    }
    assert_eq!(said, [["hello"], ["connected"], ["phase"], ["tick"], ["tick"]]);
}

#[test]
fn a_machine_that_is_far_behind_holds_up_nothing_but_its_seconds() {
    let seconds = 50;
    let stream = |latency_ns: u64| -> Vec<Vec<u8>> {
        let phase = Phase::Measure;
        let tick = |number: u32| {
            let of = MergedTransaction {
                phase: 1,
                second: number,
                latency_ns: latency_ns * u64::from(number + 1),
                failed: false,
            };
            line("tick", f64::from(number) + 2.0, measurement(&[&of], true).tick(phase, number, 1.0))
        };
        let begin = [hello(json!({})), line("phase", 1.0, json!({ "phase": phase }))];
        begin.into_iter().chain((0..seconds).map(tick)).collect()
    };
    let streams = [stream(10_000), stream(30_000), stream(70_000)];
    let mut one_after_the_other = Merger::new(["a", "b", "c"].map(str::to_owned));
    let mut held = Vec::new();
    for (machine, stream) in streams.iter().enumerate() {
        stream.iter().for_each(|line| one_after_the_other.add_line(machine, line).unwrap());
        held.push(events(&mut one_after_the_other));
    }
    assert!(held[0].is_empty() && held[1].is_empty());
    let ticks = of_kind(&held[2], "tick");
    assert_eq!(ticks.len(), seconds as usize);
    assert_eq!(ticks, of_kind(&in_turns(&streams).unwrap().0, "tick"));
    assert_eq!((&ticks[49]["latency_us"]["p50"], &ticks[49]["lag_us"]["p99"]), (&json!(1500.159), &json!(1167.359)));
}
