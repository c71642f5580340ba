//! Tasks on pools of connections, of all machines.

use serde_json::{Value, json};

use crate::event::{extend, extent};
use crate::frontend::merge::said::{Count, Tasks};
use crate::frontend::merge::stream::Stream;
use drive::ledger::Failures;
use drive::ledger::tasks::POOL_TIMEOUT;
use latency::{Latencies, Moments};

/// All tasks: exact, but for the median of several machines' response times, which is that of the histogram. The error
/// is a sentence.
pub fn whole(parts: &[(&Stream, &Tasks)], responses: &Latencies) -> Result<Value, String> {
    let sum = |of: fn(&Tasks) -> Count| parts.iter().map(|(_, tasks)| of(tasks).0).sum::<u64>();
    let mut failures = Failures::new();
    let [mut response, mut queue, mut service, mut timeouts] = [Moments::default(); 4];
    for (stream, tasks) in parts {
        for (kind, count) in &tasks.failures {
            *failures.entry(kind.clone()).or_default() += count.0;
        }
        let moments =
            tasks.moments(POOL_TIMEOUT).map_err(|problem| format!("machine {}: its tasks {problem}", stream.name))?;
        response.merge(&moments.response);
        queue.merge(&moments.queue);
        service.merge(&moments.service);
        timeouts.merge(&moments.timeouts);
    }
    let medians: Vec<_> = parts.iter().filter_map(|(_, tasks)| tasks.median()).collect();
    let median = match medians[..] {
        [only] => Some(only),
        _ => responses.percentile(50.0).map(|median| median as f64),
    };
    let response_us = extent(&response).map(|mut figures| {
        extend(&mut figures, json!({ "median": median }));
        figures
    });
    Ok(json!({
        "planned": sum(|tasks| tasks.planned),
        "completed": sum(|tasks| tasks.completed),
        "failed": sum(|tasks| tasks.failed),
        "failures": failures,
        "unfinished": sum(|tasks| tasks.unfinished),
        "response_us": response_us,
        "queue_us": extent(&queue),
        "service_us": extent(&service),
        "timeout_waited_us": extent(&timeouts),
        "under_5_s": sum(|tasks| tasks.under_5_s),
        "classes": {
            "up_to_0.1_s": sum(|tasks| tasks.classes.instant),
            "up_to_1_s": sum(|tasks| tasks.classes.flow),
            "up_to_10_s": sum(|tasks| tasks.classes.attention),
            "longer": sum(|tasks| tasks.classes.longer),
        },
    }))
}
