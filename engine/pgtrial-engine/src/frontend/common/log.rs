//! The options of the transaction log, and the check that they fit together.

use super::failure::Failure;

/// The options of the transaction log.
#[derive(Debug, Default)]
pub struct LogOptions {
    pub is_on: bool,
    pub prefix: Option<String>,
    /// The fraction of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: Option<f64>,
    /// The length of the intervals for which the log contains totals, in seconds. `None` if the log has a line for each
    /// transaction.
    pub aggregate_interval: Option<u32>,
}

impl LogOptions {
    /// Rejects options of the log that contradict each other, in the same order as pgbench. `duration` is the time limit
    /// of the run in seconds, if there is one.
    pub fn check(&self, duration: Option<u32>) -> Result<(), Failure> {
        let Self { is_on, prefix, sampling_rate, aggregate_interval } = self;
        let contradictions = [
            (
                sampling_rate.is_some() && !is_on,
                "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
            ),
            (
                sampling_rate.is_some() && aggregate_interval.is_some(),
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
            ),
            (
                aggregate_interval.is_some() && !is_on,
                "log aggregation is allowed only when actually logging transactions",
            ),
            (
                prefix.is_some() && !is_on,
                "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
            ),
        ];
        if let Some((_, message)) = contradictions.into_iter().find(|(is_one, _)| *is_one) {
            return Err(Failure::error(message));
        }
        let (Some(duration), Some(interval)) = (duration, *aggregate_interval) else { return Ok(()) };
        if interval > duration {
            return Err(Failure::error(format!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({duration})"
            )));
        }
        if duration % interval != 0 {
            return Err(Failure::error(format!(
                "duration ({duration}) must be a multiple of aggregation interval ({interval})"
            )));
        }
        Ok(())
    }
}
