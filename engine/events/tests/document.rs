//! Checks that `docs/engine-events.md` documents each key of the event types, and no other key.

use std::collections::{BTreeMap, BTreeSet};

use events::{
    ClientError, ClientUsage, Connected, Count, CountsRecord, DistributionRecord, Done, Drain, Event, EventLine,
    Extent, Hello, Lost, MachineShare, OtherTemplates, PauseRecord, PhaseStart, PlanRecord, PoolTimeouts, Pools,
    QueriesRecord, QueryRecord, QueueRecord, ReplayCounts, ReplayPlanRecord, ReplayRecord, ReplaySessions,
    ReplayTemplate, ResponseClasses, ResponseTime, ScriptRecord, ShardRecord, SliceRecord, SlicesRecord,
    SuitePlanRecord, Summary, TaskRecord, TasksRecord, TickRecord, Times, Warning, to_map,
};
use ground::clock::Phase;
use latency::Percentiles;
use serde_json::{Map, Value};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engine-events.md");

/// The keys that all lines have, which the tables of the page do not list.
const COMMON: [&str; 2] = ["event", "t"];

/// The keys that only ticks, the events of single seconds, have, and not the summary of a phase.
const POSITION: [&str; 5] = ["phase", "second", "seconds", "slice", "queue"];

type Keys = BTreeMap<String, BTreeSet<String>>;

const COUNT: Count = Count(1);
const PERCENTILES: Percentiles = Percentiles { p50: 1.0, p90: 1.0, p95: 1.0, p99: 1.0, p999: 1.0 };
const EXTENT: Extent = Extent { mean: 1.0, min: 1.0, max: 1.0 };

fn latency(percentiles: Option<Percentiles>) -> Option<DistributionRecord> {
    Some(DistributionRecord { mean: 1.0, stddev: 1.0, min: 1.0, percentiles, max: 1.0 })
}

fn counts(queries: Option<QueriesRecord>) -> CountsRecord {
    let failures = [("40001".to_owned(), COUNT)].into();
    CountsRecord { transactions: COUNT, failures, skipped: COUNT, late: COUNT, retried: COUNT, retries: COUNT, queries }
}

fn times() -> Times {
    let histogram = Some(String::new());
    Times {
        latency_us: latency(Some(PERCENTILES)),
        histogram: String::new(),
        service_us: Some(Some(PERCENTILES)),
        service_histogram: histogram.clone(),
        lag_us: Some(Some(PERCENTILES)),
        lag_histogram: histogram.clone(),
        queue_us: Some(Some(PERCENTILES)),
        queue_histogram: histogram,
        pool_timeouts: Some(PoolTimeouts { count: COUNT, waited_us: Some(EXTENT) }),
    }
}

fn summary() -> Summary {
    Summary {
        duration_s: 1.0,
        counts: counts(Some(QueriesRecord::default())),
        tps: 1.0,
        client_s: Some(1.0),
        times: times(),
    }
}

fn hello() -> Hello {
    let pools = Pools { apps: 1, tasks: 1, arrival: String::new(), size: 1, timeout_s: 1.0, lifetime_s: Some(1.0) };
    let plan = PlanRecord {
        scripts: vec![String::new()],
        clients: 1,
        jobs: 1,
        query_mode: String::new(),
        scale: Some(1),
        warmup_s: 1.0,
        duration_s: Some(1.0),
        transactions_per_client: Some(1),
        transactions: Some(1),
        random_seed: String::new(),
        shard: Some(ShardRecord { number: 1, of: 1, clients: 1 }),
        pools: Some(pools),
        slices: Some(SlicesRecord { length_s: 1.0, number: 1, of: 1, seed: String::new() }),
        replay: Some(ReplayPlanRecord {
            capture: String::new(),
            sessions: COUNT,
            statements: COUNT,
            recorded_s: 1.0,
            most_at_once: 1,
            speed: None,
            sample_percent: 100.0,
            copies: 1,
        }),
        suite: Some(SuitePlanRecord { runs: 1, limit_s: 1.0, pauses: true }),
    };
    Hello {
        protocol: 1,
        engine: String::new(),
        frontend: String::new(),
        pid: 1,
        started: String::new(),
        server_version: None,
        plan: to_map(&plan),
        machines: Some(vec![String::new()]),
    }
}

fn replay() -> ReplayRecord {
    let counts = ReplayCounts {
        statements: COUNT,
        rows: COUNT,
        rows_hash: Some(String::new()),
        other_rows: COUNT,
        expected_failures: [].into(),
        unexpected_failures: [].into(),
        missing_failures: [].into(),
        consequences: [].into(),
        missing_consequences: [].into(),
        time_us: latency(Some(PERCENTILES)),
        histogram: String::new(),
    };
    let sessions = ReplaySessions {
        begun: COUNT,
        finished: COUNT,
        refused: COUNT,
        lost: COUNT,
        begun_before: COUNT,
        left_open: COUNT,
    };
    ReplayRecord {
        sessions,
        statements: COUNT,
        transactions: COUNT,
        rows: COUNT,
        other_rows: COUNT,
        expected_failures: [].into(),
        unexpected_failures: [].into(),
        missing_failures: [].into(),
        templates: vec![ReplayTemplate { template: 1, text: String::new(), counts: counts.clone() }],
        other_templates: Some(OtherTemplates { templates: 1, counts }),
    }
}

fn done() -> Done {
    let tasks = TasksRecord {
        planned: COUNT,
        completed: COUNT,
        failed: COUNT,
        failures: [].into(),
        unfinished: COUNT,
        response_us: Some(ResponseTime { extent: EXTENT, median: Some(1.0) }),
        queue_us: Some(EXTENT),
        service_us: Some(EXTENT),
        timeout_waited_us: Some(EXTENT),
        under_5_s: COUNT,
        classes: ResponseClasses { instant: COUNT, flow: COUNT, attention: COUNT, longer: COUNT },
    };
    let machine = MachineShare {
        machine: String::new(),
        clients: None,
        transactions: COUNT,
        tps: None,
        cpu_user_s: None,
        cpu_system_s: None,
        busiest_thread_share: None,
        lag_p99_us: None,
        began_at: None,
        status: None,
    };
    Done {
        status: 0,
        interrupted: false,
        clients_aborted: COUNT,
        connect_s: 1.0,
        // Summaries have a section of their own on the page.
        warmup: None,
        measure: None,
        drain: Drain { duration_s: 1.0, transactions: COUNT, failures: [].into() },
        scripts: vec![ScriptRecord {
            counts: counts(None),
            latency_us: latency(Some(PERCENTILES)),
            histogram: Some(String::new()),
        }],
        client: ClientUsage {
            cpu_user_s: 1.0,
            cpu_system_s: 1.0,
            busiest_thread_share: 1.0,
            cpu_per_transaction_us: None,
            warnings: vec![Warning { kind: String::new(), message: String::new() }],
        },
        tasks: Some(tasks),
        replay: Some(replay()),
        machines: Some(vec![machine]),
    }
}

/// Returns each event with all keys that it can have.
fn all_events() -> Vec<Event> {
    let connected = Connected { clients: COUNT, connect_s: 1.0 };
    let all = vec![
        Event::Hello(Box::new(hello())),
        Event::Connected(connected),
        Event::Ready(connected),
        Event::Phase(PhaseStart { phase: Phase::Drain, at: Some(1.0), planned_at: Some(1.0) }),
        Event::Tick(Box::new(TickRecord {
            phase: Phase::Drain,
            second: 1,
            seconds: 1.0,
            slice: Some(SliceRecord {
                round: 1,
                planned_begin_s: 1.0,
                planned_end_s: 1.0,
                begin_s: Some(1.0),
                end_s: Some(1.0),
                client_s: 1.0,
            }),
            counts: counts(Some(QueriesRecord::default())),
            queue: Some(QueueRecord::default()),
            times: times(),
        })),
        Event::Task(TaskRecord {
            application: 1,
            task: 1,
            failure: None,
            arrived_s: 1.0,
            waited_s: 1.0,
            served_s: 1.0,
            more: Map::new(),
        }),
        Event::Pause(PauseRecord { query: String::new(), phase: Phase::Measure, run: 1 }),
        Event::Query(QueryRecord {
            query: String::new(),
            phase: Phase::Measure,
            run: 1,
            time_us: None,
            over_limit: false,
            rows: 1,
            rows_hash: None,
            sqlstate: None,
            message: None,
        }),
        Event::Error(ClientError {
            client: 1,
            script: 1,
            command: None,
            kind: "",
            sqlstate: None,
            message: String::new(),
        }),
        Event::Lost(Lost { machine: String::new(), phase: None, second: None }),
        Event::Done(Box::new(done())),
    ];
    // A new event must be added to the list above.
    for event in &all {
        match event {
            Event::Hello(_) | Event::Connected(_) | Event::Ready(_) | Event::Phase(_) | Event::Tick(_) => {}
            Event::Task(_)
            | Event::Pause(_)
            | Event::Query(_)
            | Event::Error(_)
            | Event::Lost(_)
            | Event::Done(_)
            | Event::Other(_) => {}
        }
    }
    all
}

/// Adds the keys of a value to `paths`, each with its path, such as `plan.clients`. The keys of a map are not part of
/// the protocol and are left out.
fn add_paths(prefix: &str, value: &Value, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                if !path.ends_with("failures") {
                    add_paths(&path, value, paths);
                }
                paths.insert(path);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| add_paths(prefix, value, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keys_of_types() -> Keys {
    let mut keys = Keys::new();
    for event in all_events() {
        let name = event.name().to_owned();
        let line = serde_json::to_value(EventLine { t: 1.0, event }).unwrap();
        let paths = keys.entry(name).or_default();
        add_paths("", &line, paths);
        COMMON.iter().for_each(|key| assert!(paths.remove(*key), "{key}"));
    }
    let mut paths = BTreeSet::new();
    add_paths("", &serde_json::to_value(summary()).unwrap(), &mut paths);
    let of_ticks: BTreeSet<_> =
        keys["tick"].iter().filter(|key| !POSITION.contains(&key.split('.').next().unwrap())).cloned().collect();
    assert!(paths.is_superset(&of_ticks));
    keys.insert("summary".to_owned(), paths.difference(&of_ticks).cloned().collect());
    keys
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The keys that the page abbreviates as `*percentiles*`. The page abbreviates all keys of a distribution, which are
/// these keys and `OTHER_DISTRIBUTION_KEYS`, as `*distribution*`.
const PERCENTILE_KEYS: &str = "`p50`, `p90`, `p95`, `p99`, `p99.9`";
/// The keys of a distribution that are not percentiles.
const OTHER_DISTRIBUTION_KEYS: &str = "`mean`, `stddev`, `min`, `max`";

/// Returns the keys in the tables `| key | meaning |` of the page's part "Events", by section.
fn documented_keys() -> Keys {
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let legend =
        format!("*Percentiles* stands for {PERCENTILE_KEYS}; *distribution* for these and {OTHER_DISTRIBUTION_KEYS}.");
    assert!(document.contains(&legend), "{legend}");
    let document = document
        .replace(": *percentiles*", &format!(": {PERCENTILE_KEYS}"))
        .replace(": *distribution*", &format!(": {PERCENTILE_KEYS}, {OTHER_DISTRIBUTION_KEYS}"));
    let part = document.split("\n## ").find(|part| part.starts_with("Events\n")).unwrap();
    let mut keys = Keys::new();
    for section in part.split("\n### ").skip(1) {
        let (name, text) = section.split_once('\n').unwrap();
        let paths = keys.entry(name.to_owned()).or_default();
        let table = text.lines().skip_while(|line| *line != "| key | meaning |").skip(2);
        for row in table.take_while(|line| line.starts_with('|')) {
            let cell = row.split('|').nth(1).unwrap();
            match cell.split_once(':') {
                Some((object, keys)) => {
                    let object = in_backticks(object).next().unwrap();
                    // A row for `a.b` documents the key `a`, too.
                    paths.extend(object.match_indices('.').map(|(end, _)| object[..end].to_owned()));
                    paths.insert(object.to_owned());
                    paths.extend(in_backticks(keys).map(|key| format!("{object}.{key}")));
                }
                None => paths.extend(in_backticks(cell).map(str::to_owned)),
            }
        }
    }
    keys
}

#[test]
fn the_document_has_the_events_and_keys_of_the_types() {
    let (types, documented) = (keys_of_types(), documented_keys());
    let names = |keys: &Keys| keys.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&documented), names(&types));
    for (name, keys) in &types {
        let missing: Vec<_> = keys.difference(&documented[name]).collect();
        let unknown: Vec<_> = documented[name].difference(keys).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{name}: not documented {missing:?}, unknown {unknown:?}");
    }
}
