//! Tests of the keys of events, and of the values that events report for tasks, CPU time and times.

use super::*;
use drive::statistics::ScheduleStatistics;
use drive::statistics::tasks::POOL_TIMEOUT;
use serde_json::{Value, json};

fn json_of(event: impl serde::Serialize) -> Value {
    serde_json::to_value(event).unwrap()
}

fn summary(statistics: &LoadStatistics, sections: Sections) -> Value {
    json_of(measurement(statistics, None, sections).summary(1.0))
}

#[test]
fn service_times_and_lags_are_there_with_a_rate_only() {
    let (without_schedule, with_schedule) = (Sections::default(), Sections { schedule: true, ..Sections::default() });
    let mut statistics = LoadStatistics::default();
    statistics.commit(2_000_000);
    assert!(summary(&statistics, without_schedule).get("lag_us").is_none());
    assert_eq!(summary(&LoadStatistics::default(), with_schedule).get("lag_us"), Some(&Value::Null));
    let mut schedule = ScheduleStatistics::default();
    schedule.service.record(1_500_000);
    schedule.lags.record(500_000);
    statistics.schedule = Some(Box::new(schedule));
    let times = summary(&statistics, with_schedule);
    assert_eq!(
        (&times["latency_us"]["p50"], &times["service_us"]["p50"], &times["lag_us"]["p99"]),
        (&json!(2000.0), &json!(1500.159), &json!(500.223))
    );
    assert!(times["lag_histogram"].is_string() && times["service_histogram"].is_string());
}

#[test]
fn statements_are_there_where_they_are_counted() {
    let mut statistics = LoadStatistics::default();
    statistics.counts.queries.writes = 3;
    let sections = Sections { queries: true, ..Sections::default() };
    let queries = json!({ "reads": 0, "writes": 3, "others": 0, "errors": 0, "reconnects": 0 });
    assert_eq!(summary(&statistics, sections)["queries"], queries);
    assert!(summary(&statistics, Sections::default()).get("queries").is_none());
}

#[test]
fn the_cost_of_a_transaction_is_that_of_the_measured_part() {
    let mut outcome = Outcome::default();
    assert_eq!(cpu_per_transaction_us(&outcome), None);
    outcome.measure.commit(1000);
    outcome.measure.commit(1000);
    outcome.cpu.user = Duration::from_micros(30);
    outcome.cpu.system = Duration::from_micros(10);
    assert_eq!(cpu_per_transaction_us(&outcome), Some(20.0));
}

#[test]
fn unix_seconds_are_read_back_to_the_microsecond() {
    let time = Duration::from_nanos(1_795_270_323_123_456_789);
    assert_eq!(json!(unix_seconds(time)).to_string(), "1795270323.123457");
}

#[test]
fn a_task_reports_its_wait_and_all_tasks_their_classes() {
    let failed = Task {
        app: 0,
        number: 4,
        arrived: 0,
        waited: 200_000_000,
        served: 0,
        running: 2,
        failure: Some(POOL_TIMEOUT.into()),
    };
    let task = json_of(task_event(&failed));
    assert_eq!((&task["application"], &task["task"]), (&json!(1), &json!(5)));
    assert_eq!((&task["failure"], &task["waited_s"]), (&json!("pool-timeout"), &json!(0.2)));
    let mut all = Tasks::new(3);
    all.add(&failed);
    all.add(&Task { waited: 0, served: 500_000_000, failure: None, ..failed });
    let tasks = json_of(tasks_event(&all));
    assert_eq!((&tasks["completed"], &tasks["failed"], &tasks["unfinished"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!((&tasks["response_us"]["median"], &tasks["classes"]["up_to_1_s"]), (&json!(500_000.0), &json!(1)));
    assert_eq!(tasks["timeout_waited_us"]["min"], json!(200_000.0));
    let pools = Sections { pools: true, ..Sections::default() };
    assert_eq!(summary(&LoadStatistics::default(), pools).get("queue_us"), Some(&Value::Null));
}
