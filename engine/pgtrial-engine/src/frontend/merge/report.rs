//! Makes the last event, `done`, of the whole run. The measurements of its phases are sums over all seconds of all
//! machines; all other values come from the `done` of each machine.

use super::error::MergeError;
use events::{
    ClientUsage, Count, CountsRecord, DistributionRecord, Done, Drain, EventError, Extent, MachineShare, Measurement,
    ResponseClasses, ResponseTime, ScriptRecord, Summary, TasksRecord, Warning, add_failures, moments_of,
};

use super::stream::{MachineStream, StreamState};
use drive::statistics::tasks::POOL_TIMEOUT;
use ground::clock::Phase;
use latency::{Decoder, Latencies, Moments};

/// For each phase of the run, the sum of the measurements over all seconds and machines, and the length in seconds.
#[derive(Default)]
pub struct Totals {
    phases: [Measurement; 3],
    seconds: [f64; 3],
}

impl Totals {
    /// Adds a second, which is the sum over all machines, to its phase. `seconds` is the length of this second, which
    /// may be less than 1.
    pub fn add(&mut self, phase: Phase, seconds: f64, sum: &Measurement) {
        self.phases[phase as usize].merge(sum);
        self.seconds[phase as usize] += seconds;
    }

    fn of(&self, phase: Phase) -> &Measurement {
        &self.phases[phase as usize]
    }
}

/// Makes the last event, `done`, of the whole run with this exit status. A lost machine sent no `done`, so only the
/// seconds that it reported are included.
pub fn done(streams: &[MachineStream], totals: &Totals, status: u8) -> Result<Done, MergeError> {
    let parts: Vec<_> =
        streams.iter().filter_map(|stream| stream.done.as_ref().map(|(_, done)| (stream, &**done))).collect();
    let longest = |of: fn(&Done) -> f64| parts.iter().map(|(_, done)| of(done)).fold(0.0, f64::max);
    // If no machine has sent `done`, the length of a phase is the sum of its seconds.
    let summary = |phase, of: fn(&Done) -> Option<&Summary>| {
        let seconds = totals.seconds[phase as usize];
        let so_far = Some(seconds).filter(|_| parts.is_empty() && seconds > 0.0);
        let durations = parts.iter().filter_map(|(_, done)| Some(of(done)?.duration_s));
        Some(totals.of(phase).summary(durations.reduce(f64::max).or(so_far)?))
    };
    let drained = &totals.of(Phase::Drain).counts;
    Ok(Done {
        status,
        interrupted: parts.iter().any(|(_, done)| done.interrupted),
        clients_aborted: parts.iter().map(|(_, done)| done.clients_aborted).sum(),
        connect_s: longest(|done| done.connect_s),
        warmup: summary(Phase::Warmup, |done| done.warmup.as_ref()),
        measure: summary(Phase::Measure, |done| done.measure.as_ref()),
        drain: Drain {
            duration_s: longest(|done| done.drain.duration_s),
            transactions: drained.transactions,
            failures: drained.failures.clone(),
        },
        scripts: scripts(&parts)?,
        client: client(&parts),
        tasks: tasks(&parts, &totals.of(Phase::Measure).latencies)?,
        // A replay cannot be divided into shards, so there is never a replay to merge.
        replay: None,
        machines: Some(streams.iter().map(machine_share).collect()),
    })
}

type Parts<'a> = [(&'a MachineStream, &'a Done)];

/// The sum of one script's measurements over all machines. The histogram is `None` if the record of a machine has none,
/// since a sum without this machine would be wrong.
struct ScriptSum {
    counts: CountsRecord,
    moments: Moments,
    latencies: Option<Latencies>,
}

impl Default for ScriptSum {
    fn default() -> Self {
        Self { counts: CountsRecord::default(), moments: Moments::default(), latencies: Some(Latencies::default()) }
    }
}

impl ScriptSum {
    /// Adds the measurements of the script on one machine. Fails if the record is damaged, for example its histogram.
    fn add(&mut self, script: &ScriptRecord, decoder: &mut Decoder) -> Result<(), EventError> {
        let count = script.counts.transactions;
        self.moments.merge(&moments_of(count, script.latency_us.map(|latency| latency.moments(count)))?);
        self.counts.merge(&script.counts);
        self.latencies = match (self.latencies.take(), &script.histogram) {
            (Some(mut sum), Some(encoded)) => {
                decoder
                    .add(encoded.as_bytes(), &mut sum)
                    .map_err(|problem| EventError::Histogram { key: "histogram", problem })?;
                Some(sum)
            }
            _ => None,
        };
        Ok(())
    }

    fn into_script(self) -> ScriptRecord {
        let percentiles = self.latencies.as_ref().and_then(Latencies::percentiles);
        ScriptRecord {
            counts: self.counts,
            latency_us: DistributionRecord::new(&self.moments, percentiles),
            histogram: self.latencies.as_ref().map(Latencies::encode),
        }
    }
}

fn scripts(parts: &Parts<'_>) -> Result<Vec<ScriptRecord>, MergeError> {
    let (mut sums, mut decoder): (Vec<ScriptSum>, _) = (Vec::new(), Decoder::default());
    for (stream, done) in parts {
        if sums.is_empty() {
            sums.resize_with(done.scripts.len(), Default::default);
        }
        if sums.len() != done.scripts.len() {
            return Err(MergeError::OtherScripts {
                machine: stream.name.clone(),
                scripts: done.scripts.len(),
                before: sums.len(),
            });
        }
        for (sum, script) in sums.iter_mut().zip(&done.scripts) {
            let added = sum.add(script, &mut decoder);
            added.map_err(|error| MergeError::Script { machine: stream.name.clone(), error })?;
        }
    }
    Ok(sums.into_iter().map(ScriptSum::into_script).collect())
}

/// Merges the CPU times and the warnings of the load generators on all machines. CPU times are added up. Each warning
/// begins with the name of its machine.
fn client(parts: &Parts<'_>) -> ClientUsage {
    let sum = |of: fn(&Done) -> f64| parts.iter().map(|(_, done)| of(done)).sum::<f64>();
    let (cpu_user_s, cpu_system_s) = (sum(|done| done.client.cpu_user_s), sum(|done| done.client.cpu_system_s));
    let transactions = sum(|done| done.measure.as_ref().map_or(0.0, |phase| phase.counts.transactions.0 as f64));
    let warnings = parts.iter().flat_map(|(stream, done)| {
        done.client.warnings.iter().map(|Warning { kind, message }| Warning {
            kind: kind.clone(),
            message: format!("{}: {message}", stream.name),
        })
    });
    ClientUsage {
        cpu_user_s,
        cpu_system_s,
        busiest_thread_share: parts.iter().map(|(_, done)| done.client.busiest_thread_share).fold(0.0, f64::max),
        cpu_per_transaction_us: (transactions > 0.0).then(|| (cpu_user_s + cpu_system_s) * 1e6 / transactions),
        warnings: warnings.collect(),
    }
}

/// Merges the totals of the tasks (transactions of applications) of all machines. All figures are exact except the
/// median over several machines, which is computed from the histogram of all response times, `responses`. Returns
/// `None` for a run without connection pools.
fn tasks(parts: &Parts<'_>, responses: &Latencies) -> Result<Option<TasksRecord>, MergeError> {
    let parts: Vec<_> = parts.iter().filter_map(|(stream, done)| Some((*stream, done.tasks.as_ref()?))).collect();
    if parts.is_empty() {
        return Ok(None);
    }
    let sum = |of: fn(&TasksRecord) -> Count| parts.iter().map(|(_, tasks)| of(tasks)).sum();
    let mut failures = events::FailuresRecord::new();
    parts.iter().for_each(|(_, tasks)| add_failures(&mut failures, &tasks.failures));
    let extent = |times: fn(&TasksRecord) -> (Count, Option<Extent>)| {
        let mut all = Moments::default();
        for (stream, tasks) in &parts {
            let (count, extent) = times(tasks);
            let moments = moments_of(count, extent.map(|extent| extent.moments(count)));
            all.merge(&moments.map_err(|error| MergeError::Tasks { machine: stream.name.clone(), error })?);
        }
        Ok::<_, MergeError>(Extent::new(&all))
    };
    let medians: Vec<_> = parts.iter().filter_map(|(_, tasks)| tasks.response_us?.median).collect();
    let median = match medians[..] {
        [only] => Some(only),
        _ => responses.percentile(50.0),
    };
    let response = extent(|tasks| (tasks.completed, tasks.response_us.map(|response| response.extent)))?;
    Ok(Some(TasksRecord {
        planned: sum(|tasks| tasks.planned),
        completed: sum(|tasks| tasks.completed),
        failed: sum(|tasks| tasks.failed),
        failures,
        unfinished: sum(|tasks| tasks.unfinished),
        response_us: response.map(|extent| ResponseTime { extent, median }),
        queue_us: extent(|tasks| (tasks.completed, tasks.queue_us))?,
        service_us: extent(|tasks| (tasks.completed, tasks.service_us))?,
        timeout_waited_us: extent(|tasks| {
            (tasks.failures.get(POOL_TIMEOUT).copied().unwrap_or_default(), tasks.timeout_waited_us)
        })?,
        under_5_s: sum(|tasks| tasks.under_5_s),
        classes: ResponseClasses {
            instant: sum(|tasks| tasks.classes.instant),
            flow: sum(|tasks| tasks.classes.flow),
            attention: sum(|tasks| tasks.classes.attention),
            longer: sum(|tasks| tasks.classes.longer),
        },
    }))
}

/// Returns the record of what one machine contributed to the run. A lost machine sent no `done`: its record has the
/// transactions of the seconds that it reported, and no values that only `done` contains.
fn machine_share(stream: &MachineStream) -> MachineShare {
    let sums = stream.sums(Phase::Measure);
    let done = stream.done.as_ref().map(|(_, done)| done);
    let measure = done.and_then(|done| done.measure.as_ref());
    let lost = stream.state == StreamState::Lost;
    let tps_so_far = (lost && sums.seconds > 0.0).then(|| sums.transactions as f64 / sums.seconds);
    MachineShare {
        machine: stream.name.clone(),
        clients: stream.clients(),
        transactions: sums.transactions.into(),
        tps: measure.map(|measure| measure.tps).or(tps_so_far),
        cpu_user_s: done.map(|done| done.client.cpu_user_s),
        cpu_system_s: done.map(|done| done.client.cpu_system_s),
        busiest_thread_share: done.map(|done| done.client.busiest_thread_share),
        lag_p99_us: measure.and_then(|measure| Some(measure.times.lag_us.flatten()?.p99)),
        began_at: stream.began.and_then(|began| began.at),
        status: done.map(|done| done.status),
    }
}
