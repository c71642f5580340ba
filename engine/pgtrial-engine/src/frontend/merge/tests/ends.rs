//! Tests of merging the events of lost machines, planned starts, tasks, scripts, and errors, and of the merged last
//! event.

use serde_json::json;

use super::*;

fn some() -> Vec<MergedTransaction> {
    (0..40u64)
        .map(|n| MergedTransaction { phase: 1, second: (n % 4) as u32, latency_ns: n * 100_000, failed: false })
        .collect()
}

/// Returns the stream with the events `more` inserted before its last event.
fn with(mut stream: Vec<Vec<u8>>, more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let last = stream.pop().unwrap();
    stream.extend_from_slice(more);
    stream.push(last);
    stream
}

#[test]
fn a_lost_machine_is_reported_and_its_seconds_count() {
    let whole = engine(&some(), 2, 1.0, false);
    // The first ten events are hello, connected, phase, 4 ticks, phase, and 2 ticks, so this machine is lost after two
    // seconds of the measured part.
    let lost = whole[..10].to_vec();
    let (events, status) = in_turns(&[whole, lost]).unwrap();
    assert_eq!(status, 2);
    assert_eq!(of_kind(&events, "lost"), [&json!({ "machine": "m1", "phase": "measure", "second": 2 })]);
    let done = of_kind(&events, "done")[0];
    assert_eq!((&done["status"], &done["measure"]["transactions"]), (&json!(2), &json!(60)));
    let ticks: Vec<_> = of_kind(&events, "tick").iter().map(|tick| tick["transactions"].clone()).collect();
    assert_eq!(ticks[4..8], [20, 20, 10, 10].map(|count| json!(count)));
    let share = &done["machines"][1];
    assert_eq!((&share["transactions"], &share["tps"], &share["clients"]), (&json!(20), &json!(10.0), &json!(2)));
    assert_eq!(
        (&share["status"], &share["cpu_user_s"], &share["lag_p99_us"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}

#[test]
fn a_machine_that_said_nothing_is_lost_after_the_first_event() {
    let (events, status) = in_turns(&[vec![], engine(&some(), 2, 1.0, false)]).unwrap();
    assert_eq!(events[..2].iter().map(|event| &*event.event).collect::<Vec<_>>(), ["hello", "lost"]);
    assert_eq!((status, &events[1].body), (2, &json!({ "machine": "m0", "phase": null, "second": null })));
    assert_eq!(of_kind(&events, "hello")[0]["machines"], json!(["m1"]));
}

#[test]
fn when_all_are_lost_the_seconds_are_summed_up() {
    let lost = engine(&some(), 2, 1.0, false)[..10].to_vec();
    let (events, status) = in_turns(&[lost.clone(), lost]).unwrap();
    let done = of_kind(&events, "done")[0];
    assert_eq!((status, of_kind(&events, "lost").len()), (2, 2));
    assert_eq!((&done["measure"]["transactions"], &done["measure"]["tps"]), (&json!(40), &json!(20.0)));
    assert_eq!(
        in_turns(&[vec![], vec![]]).unwrap_err().to_string(),
        "no machine sent any event, so there is nothing to merge; the machines are m0, m1"
    );
}

#[test]
fn clients_are_ready_when_those_of_all_machines_are() {
    let ready = |clients: u32, seconds: f64| line("ready", 0.2, json!({ "clients": clients, "connect_s": seconds }));
    let mut merger = Merger::new(["a", "b", "c"].map(str::to_owned));
    let hello = hello(json!({}));
    for machine in 0..3 {
        merger.add_line(machine, &hello).unwrap();
    }
    merger.add_line(0, &ready(3, 0.5)).unwrap();
    merger.add_line(1, &ready(2, 0.7)).unwrap();
    assert_eq!(of_kind(&events(&mut merger), "ready").len(), 0);
    merger.end_stream(2).unwrap();
    assert_eq!(of_kind(&events(&mut merger), "ready"), [&json!({ "clients": 5, "connect_s": 0.7 })]);
}

#[test]
fn errors_go_on_with_the_machines_name() {
    let error = line("error", 4.5, json!({ "client": 7, "message": "gone" }));
    let streams = [with(engine(&[], 1, 1.0, false), &[error]), engine(&[], 1, 1.0, false)];
    let (events, _) = in_turns(&streams).unwrap();
    assert_eq!(of_kind(&events, "error"), [&json!({ "client": 7, "message": "gone", "machine": "m0" })]);
}

#[test]
fn failed_tasks_come_before_their_second_in_the_order_of_their_ends() {
    let task = |t: f64, number: u32, arrived: f64, waited: f64| {
        let body = json!({ "application": 1, "task": number, "failure": "pool-timeout", "arrived_s": arrived,
                           "waited_s": waited, "served_s": 0.0 });
        line("task", t, body)
    };
    let mut streams = [engine(&[], 1, 1.0, false), engine(&[], 1, 3.0, false)];
    streams[0].insert(3, task(2.0, 1, 1.1, 0.5));
    streams[1].insert(3, task(4.0, 2, 3.2, 0.2));
    let (events, _) = in_turns(&streams).unwrap();
    let tasks: Vec<_> =
        of_kind(&events, "task").iter().map(|task| (task["task"].clone(), task["arrived_s"].clone())).collect();
    assert_eq!(tasks, [(json!(2), json!(3.2)), (json!(1), json!(3.1))]);
    let first_tick = events.iter().position(|event| event.event == "tick").unwrap();
    assert_eq!([first_tick - 2, first_tick - 1].map(|index| &*events[index].event), ["task", "task"]);
}

fn changed(stream: &[Vec<u8>], change: impl Fn(&mut Value)) -> Vec<Vec<u8>> {
    let mut stream = stream.to_vec();
    let mut done: Value = serde_json::from_slice(&stream.pop().unwrap()).unwrap();
    change(&mut done);
    stream.push(done.to_string().into_bytes());
    stream
}

#[test]
fn scripts_tasks_warnings_and_statuses_of_all_machines_are_in_the_last_event() {
    let stream = engine(&some(), 2, 1.0, false);
    let part = |status: u8, count: u64, mean: f64| {
        changed(&stream, |done| {
            let script = json!({ "transactions": count, "failures": { "40001": 1 }, "skipped": 0, "late": 1, "retried": 2,
                                 "retries": 3, "latency_us": { "mean": mean, "stddev": 0.0, "min": mean, "max": mean } });
            let figures = json!({ "mean": mean, "min": mean, "max": mean, "median": mean });
            let extra = json!({
                "status": status, "interrupted": status == 130, "clients_aborted": 1, "scripts": [script, script],
                "tasks": { "planned": count + 2, "completed": count, "failed": 1, "failures": { "pool-timeout": 1 },
                           "unfinished": 1, "response_us": figures, "queue_us": figures, "service_us": figures,
                           "timeout_waited_us": figures, "under_5_s": count,
                           "classes": { "up_to_0.1_s": 1, "up_to_1_s": 2, "up_to_10_s": 3, "longer": 4 } },
            });
            extend(done, extra);
            done["client"]["warnings"] = json!([{ "kind": "client-busy", "message": "it was busy" }]);
        })
    };
    let (events, status) = in_turns(&[part(1, 30, 100.0), part(130, 10, 200.0)]).unwrap();
    let done = of_kind(&events, "done")[0];
    assert_eq!((status, &done["interrupted"], &done["clients_aborted"]), (130, &json!(true), &json!(2)));
    assert_eq!(done["scripts"][1]["transactions"], json!(40));
    assert_eq!(done["scripts"][1]["latency_us"]["mean"], json!(125.0));
    assert_eq!(done["scripts"][1]["failures"], json!({ "40001": 2 }));
    let tasks = &done["tasks"];
    assert_eq!((&tasks["planned"], &tasks["completed"], &tasks["unfinished"]), (&json!(44), &json!(40), &json!(2)));
    assert_eq!((&tasks["failures"], &tasks["classes"]["longer"]), (&json!({ "pool-timeout": 2 }), &json!(8)));
    // The mean is exact. The median comes from the histogram of all response times.
    assert_eq!(tasks["response_us"], json!({ "mean": 125.0, "min": 100.0, "max": 200.0, "median": 1900.543 }));
    assert_eq!(tasks["timeout_waited_us"], json!({ "mean": 150.0, "min": 100.0, "max": 200.0 }));
    let messages: Vec<_> =
        done["client"]["warnings"].as_array().unwrap().iter().map(|warning| warning["message"].clone()).collect();
    assert_eq!(messages, ["m0: it was busy", "m1: it was busy"]);
    assert_eq!(
        in_turns(&[part(0, 30, 100.0)]).unwrap().0.last().unwrap().body["tasks"]["response_us"]["median"],
        json!(100.0)
    );
}

#[test]
fn percentiles_of_a_script_are_those_of_all_machines_that_have_its_histogram() {
    let stream = engine(&some(), 2, 1.0, false);
    let part = |us: u64, has_histogram: bool| {
        let mut latencies = Latencies::default();
        (0..10).for_each(|_| latencies.record(us * 1000));
        changed(&stream, |done| {
            let latency = json!({ "mean": us, "stddev": 0.0, "min": us, "max": us });
            let mut script = json!({ "transactions": 10, "failures": {}, "skipped": 0, "late": 0, "retried": 0,
                                     "retries": 0, "latency_us": latency });
            if has_histogram {
                script["histogram"] = json!(latencies.encode());
            }
            extend(done, json!({ "scripts": [script] }));
        })
    };
    let merged = |parts: &[Vec<Vec<u8>>]| in_turns(parts).unwrap().0.last().unwrap().body["scripts"][0].clone();
    let both = merged(&[part(100, true), part(200, true)]);
    assert_eq!((&both["latency_us"]["p50"], &both["latency_us"]["p90"]), (&json!(100.031), &json!(200.0)));
    let one = merged(&[part(100, true), part(200, false)]);
    assert!(one["latency_us"].get("p50").is_none() && one.get("histogram").is_none());
    assert_eq!(one["latency_us"]["mean"], json!(150.0));
}

#[test]
fn missing_events_and_those_out_of_order_are_rejected() {
    let stream = engine(&some(), 2, 1.0, false);
    let without = |index: usize| {
        let mut stream = stream.clone();
        stream.remove(index);
        in_turns(&[stream]).unwrap_err().to_string()
    };
    assert_eq!(
        without(8),
        "machine m0: line 17 reports 40 transactions in the phase \"measure\", but the seconds of this phase have 30 \
         in total: events are missing"
    );
    assert_eq!(without(0), "machine m0: line 1 is not the event \"hello\", which must be the first event of a machine");
    assert_eq!(without(2), "machine m0: line 3 reports second 0 of the phase \"warmup\" out of order");
    let twice = |index: usize| {
        let mut stream = stream.clone();
        stream.insert(index, stream[index].clone());
        in_turns(&[stream]).unwrap_err().to_string()
    };
    assert_eq!(twice(0), "machine m0: line 2 is a second event \"hello\", but a machine sends only one");
    assert_eq!(
        twice(7),
        "machine m0: line 9 begins the phase \"measure\", but this phase or a later one has begun already"
    );
    assert_eq!(twice(8), "machine m0: line 10 reports second 0 of the phase \"measure\" out of order");
    assert_eq!(twice(17), "machine m0: line 19 comes after the last event of the machine, \"done\"");
}
