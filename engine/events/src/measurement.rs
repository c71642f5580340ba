//! Counts and times in a form that can be added, over threads or machines and over the seconds of a phase.

use latency::{Decoder, Latencies, Moments};

use ground::clock::Phase;

use crate::error::EventError;
use crate::measured::{
    CountsRecord, DistributionRecord, Extent, PoolTimeouts, QueueRecord, SliceRecord, Summary, TickRecord, Times,
    moments_of,
};

/// The counts and times of a second or a summary. Which of the optional fields are set depends on the kind of load; see
/// [`Times`].
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    pub counts: CountsRecord,
    pub moments: Moments,
    pub latencies: Latencies,
    pub service: Option<Latencies>,
    pub lags: Option<Latencies>,
    pub queue: Option<Latencies>,
    /// The waiting times of tasks that got no connection in time, in microseconds.
    pub timeouts: Option<Moments>,
    /// The slice of time that was measured. If several were added, it is the first one, with the sum of all client
    /// times.
    pub slice: Option<SliceRecord>,
    /// The queue at the end of a second. For several machines it is the sum.
    pub backlog: Option<QueueRecord>,
}

/// The sums of numbers that are not integers. Their last digits depend on the order in which they are added.
#[derive(Debug, Clone, Copy)]
pub struct FloatSums {
    moments: Moments,
    timeouts: Option<Moments>,
    slice: Option<SliceRecord>,
}

impl Measurement {
    /// Adds the counts and times of another measurement.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.latencies.merge(&other.latencies);
        for (mine, theirs) in
            [(&mut self.service, &other.service), (&mut self.lags, &other.lags), (&mut self.queue, &other.queue)]
        {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
        self.add_backlog(other.backlog);
        self.add_float_sums(&FloatSums { moments: other.moments, timeouts: other.timeouts, slice: other.slice });
    }

    /// Adds the counts and histograms of a second to this measurement. Returns the second's sums of non-integers. The
    /// caller must add them with [`Self::add_float_sums`], in an order that is always the same.
    pub fn add_tick(&mut self, tick: &TickRecord, decoder: &mut Decoder) -> Result<FloatSums, EventError> {
        let TickRecord { counts, times, .. } = tick;
        let mut add = |encoded: &str, sum: &mut Latencies, key: &'static str| {
            decoder.add(encoded.as_bytes(), sum).map_err(|problem| EventError::Histogram { key, problem })
        };
        let added = add(&times.histogram, &mut self.latencies, "histogram")?;
        if added != counts.transactions.0 {
            return Err(EventError::OtherSum { transactions: counts.transactions.0, added });
        }
        for (encoded, sum, key) in [
            (&times.service_histogram, &mut self.service, "service_histogram"),
            (&times.lag_histogram, &mut self.lags, "lag_histogram"),
            (&times.queue_histogram, &mut self.queue, "queue_histogram"),
        ] {
            if let Some(encoded) = encoded {
                add(encoded, sum.get_or_insert_default(), key)?;
            }
        }
        self.counts.merge(counts);
        self.add_backlog(tick.queue);
        let moments =
            moments_of(counts.transactions, times.latency_us.map(|figures| figures.moments(counts.transactions)))?;
        let timeouts = times.pool_timeouts.map(|PoolTimeouts { count, waited_us }| {
            moments_of(count, waited_us.map(|figures| figures.moments(count)))
        });
        Ok(FloatSums { moments, timeouts: timeouts.transpose()?, slice: tick.slice })
    }

    /// Adds the sums that [`Self::add_tick`] has returned.
    pub fn add_float_sums(&mut self, sums: &FloatSums) {
        self.moments.merge(&sums.moments);
        if let Some(timeouts) = &sums.timeouts {
            self.timeouts.get_or_insert_default().merge(timeouts);
        }
        match (&mut self.slice, &sums.slice) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => *mine = *theirs,
            (Some(_), None) => {}
        }
    }

    fn add_backlog(&mut self, other: Option<QueueRecord>) {
        if let Some(QueueRecord { waiting, busy }) = other {
            let mine = self.backlog.get_or_insert_default();
            mine.waiting += waiting;
            mine.busy += busy;
        }
    }

    /// Returns all histograms. Their order does not change until another measurement is added.
    pub fn histograms(&mut self) -> impl Iterator<Item = &mut Latencies> {
        [Some(&mut self.latencies), self.service.as_mut(), self.lags.as_mut(), self.queue.as_mut()]
            .into_iter()
            .flatten()
    }

    /// Returns the event of a second with these counts and times.
    pub fn tick(&self, phase: Phase, second: u32, seconds: f64) -> TickRecord {
        TickRecord {
            phase,
            second,
            seconds,
            slice: self.slice,
            counts: self.counts.clone(),
            queue: self.backlog,
            times: self.times(),
        }
    }

    /// Returns the summary of a phase that lasted `duration_s` seconds.
    pub fn summary(&self, duration_s: f64) -> Summary {
        let tps = self.counts.transactions.0 as f64 / duration_s;
        Summary {
            duration_s,
            counts: self.counts.clone(),
            tps,
            client_s: self.slice.map(|slice| slice.client_s),
            times: self.times(),
        }
    }

    fn times(&self) -> Times {
        let percentiles = |part: &Option<Latencies>| part.as_ref().map(Latencies::percentiles);
        let histogram = |part: &Option<Latencies>| part.as_ref().map(Latencies::encode);
        let latency = self.latencies.percentiles();
        Times {
            latency_us: latency.and_then(|percentiles| DistributionRecord::new(&self.moments, Some(percentiles))),
            histogram: self.latencies.encode(),
            service_us: percentiles(&self.service),
            service_histogram: histogram(&self.service),
            lag_us: percentiles(&self.lags),
            lag_histogram: histogram(&self.lags),
            queue_us: percentiles(&self.queue),
            queue_histogram: histogram(&self.queue),
            pool_timeouts: self
                .timeouts
                .as_ref()
                .map(|timeouts| PoolTimeouts { count: timeouts.count.into(), waited_us: Extent::new(timeouts) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keys_are_there_if_the_load_has_the_part() {
        let mut measurement = Measurement::default();
        measurement.latencies.record(2_000_000);
        measurement.moments.add(2000.0);
        let keys = |measurement: &Measurement| serde_json::to_value(measurement.summary(1.0)).unwrap();
        assert_eq!(keys(&measurement)["latency_us"]["p50"], json!(2000.0));
        assert!(keys(&measurement).get("lag_us").is_none());
        measurement.lags = Some(Latencies::default());
        assert_eq!(keys(&measurement).get("lag_us"), Some(&Value::Null));
        assert!(keys(&measurement)["lag_histogram"].is_string());
    }

    #[test]
    fn the_slice_of_several_machines_lasts_from_the_first_begin_to_the_last_end() {
        let slice = |begin_s, end_s, client_s| {
            let (planned_begin_s, planned_end_s) = (1.0, 2.0);
            let slice = Some(SliceRecord { round: 3, planned_begin_s, planned_end_s, begin_s, end_s, client_s });
            Measurement { slice, ..Measurement::default() }
        };
        let mut sum = Measurement::default();
        for part in [slice(Some(1.25), Some(2.0), 0.75), slice(None, None, 0.0), slice(Some(1.0), Some(2.5), 1.5)] {
            let added = sum.add_tick(&part.tick(Phase::Measure, 0, 1.0), &mut Decoder::default()).unwrap();
            sum.add_float_sums(&added);
        }
        assert_eq!(sum.slice, slice(Some(1.0), Some(2.5), 2.25).slice);
        assert_eq!(sum.summary(1.0).client_s, Some(2.25));
    }

    #[test]
    fn a_tick_is_added_to_a_sum_in_two_steps() {
        let mut part = Measurement::default();
        part.latencies.record(2_000_000);
        part.moments.add(2000.0);
        part.counts.transactions.0 = 1;
        part.queue = Some(Latencies::default());
        part.backlog = Some(QueueRecord { waiting: 3.into(), busy: 2.into() });
        let (tick, mut sum, mut decoder) =
            (part.tick(Phase::Measure, 0, 1.0), Measurement::default(), Decoder::default());
        for _ in 0..2 {
            let float_sums = sum.add_tick(&tick, &mut decoder).unwrap();
            sum.add_float_sums(&float_sums);
        }
        part.merge(&part.clone());
        assert_eq!(sum.tick(Phase::Measure, 0, 1.0), part.tick(Phase::Measure, 0, 1.0));
        let wrong = TickRecord { counts: CountsRecord::default(), ..tick };
        assert_eq!(
            sum.add_tick(&wrong, &mut decoder).unwrap_err().to_string(),
            "has 0 transactions, but 1 in its histogram"
        );
    }
}
