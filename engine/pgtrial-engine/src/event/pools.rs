//! What events say of tasks on pools of connections.

use serde_json::{Value, json};

use super::extend;
use drive::ledger::tasks::{Pooled, Task, Tasks};
use drive::plan::PoolPlan;
use latency::Moments;

/// Of completed tasks the times in the queue and with the connection; of those that got none how long they waited.
pub fn times(pooled: Option<&Pooled>) -> Value {
    let nothing = Pooled::default();
    let pooled = pooled.unwrap_or(&nothing);
    json!({
        "service_us": pooled.service.percentiles(),
        "service_histogram": pooled.service.encode(),
        "queue_us": pooled.queue.percentiles(),
        "queue_histogram": pooled.queue.encode(),
        "pool_timeouts": { "count": pooled.timeouts.count, "waited_us": extent(&pooled.timeouts) },
    })
}

/// A task that failed.
pub fn task(task: &Task) -> Value {
    json!({
        "application": task.app + 1,
        "task": task.number + 1,
        "failure": task.failure,
        "arrived_s": task.arrived as f64 / 1e9,
        "waited_s": task.waited as f64 / 1e9,
        "served_s": task.served as f64 / 1e9,
    })
}

/// Mean and extremes; `None` without values.
pub fn extent(moments: &Moments) -> Option<Value> {
    let Moments { count, min, max, .. } = *moments;
    (count > 0).then(|| json!({ "mean": moments.mean(), "min": min, "max": max }))
}

/// The plan.
pub fn describe(pools: &PoolPlan) -> Value {
    json!({
        "apps": pools.apps,
        "tasks": pools.tasks,
        "arrival": pools.arrival.to_string(),
        "size": pools.size,
        "timeout_s": pools.timeout.as_secs_f64(),
        "lifetime_s": pools.lifetime.map(|lifetime| lifetime.as_secs_f64()),
    })
}

/// All tasks of a run: exact figures.
pub fn tasks(tasks: &Tasks) -> Value {
    let us = |moments: &Moments, median: Option<f64>| {
        let mut figures = extent(moments)?;
        extend(&mut figures, json!({ "median": median }));
        Some(figures)
    };
    let [instant, flow, attention, longer] = tasks.classes();
    json!({
        "planned": tasks.planned,
        "completed": tasks.completed(),
        "failed": tasks.failed(),
        "failures": tasks.failures,
        "unfinished": tasks.unfinished(),
        "response_us": us(&tasks.response, tasks.median()),
        "queue_us": extent(&tasks.queue),
        "service_us": extent(&tasks.service),
        "timeout_waited_us": extent(&tasks.timeouts),
        "under_5_s": tasks.under_five_seconds(),
        "classes": { "up_to_0.1_s": instant, "up_to_1_s": flow, "up_to_10_s": attention, "longer": longer },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::ledger::tasks::POOL_TIMEOUT;

    #[test]
    fn a_task_is_told_with_what_it_waited_and_all_with_their_classes() {
        let failed = Task {
            app: 0,
            number: 4,
            arrived: 0,
            waited: 200_000_000,
            served: 0,
            running: 2,
            failure: Some(POOL_TIMEOUT.into()),
        };
        let told = task(&failed);
        assert_eq!((&told["application"], &told["task"]), (&json!(1), &json!(5)));
        assert_eq!((&told["failure"], &told["waited_s"]), (&json!("pool-timeout"), &json!(0.2)));
        let mut all = Tasks::new(3);
        all.add(&failed);
        all.add(&Task { waited: 0, served: 500_000_000, failure: None, ..failed });
        let told = tasks(&all);
        assert_eq!((&told["completed"], &told["failed"], &told["unfinished"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!((&told["response_us"]["median"], &told["classes"]["up_to_1_s"]), (&json!(500_000.0), &json!(1)));
        assert_eq!(told["timeout_waited_us"]["min"], json!(200_000.0));
        assert_eq!(times(None)["queue_us"], Value::Null);
    }
}
