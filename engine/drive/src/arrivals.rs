//! The times at which the transactions of a load with a fixed rate start, and the times at which the tasks of an
//! application arrive. These times do not depend on whether the server or the connection pool keeps up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::plan::{Arrival, Plan};
use ground::clock::{Nanos, SECOND};
use ground::random::Random;
use ground::shard::TaskShare;

/// One thread's share of the schedule of a load with a rate. The schedule is drawn from a Poisson process and does not
/// depend on the server: while all clients wait for a slow server, starts stay scheduled, and the response times of the
/// delayed transactions count from their scheduled starts. Thus the slowness is measured and not hidden. If several
/// engines take turns in slices of time, the times of the schedule count only this engine's slices, as if these
/// followed each other without a pause.
pub struct Throttle {
    /// The mean time between two starts on this thread, in nanoseconds.
    mean: f64,
    random: Random,
    /// The start that was drawn last, in whole nanoseconds.
    last: Nanos,
    /// The fraction of a nanosecond that has to be added to `last`.
    fraction: f64,
    /// Starts that were drawn and that no client has taken yet.
    open: BinaryHeap<Reverse<Nanos>>,
    /// The number of starts that were drawn.
    #[cfg(test)]
    drawn: u64,
}

impl Throttle {
    /// Returns the schedule of thread `thread`, or `None` if the load has no rate.
    pub fn of_thread(plan: &Plan, thread: usize) -> Option<Self> {
        let random = plan.seeds.threads[thread].throttle.clone();
        plan.interval_ns().map(|interval| Self::new(plan.part.mean_ns(interval), plan.jobs, random))
    }

    /// Makes the schedule of a thread. `interval_ns` is the mean time between two starts of the whole engine, and each
    /// of its `jobs` threads has an equal share of the starts.
    fn new(interval_ns: f64, jobs: usize, random: Random) -> Self {
        Self {
            mean: interval_ns * jobs as f64,
            random,
            last: 0,
            fraction: 0.0,
            open: BinaryHeap::new(),
            #[cfg(test)]
            drawn: 0,
        }
    }

    /// Begins the schedule at `now`.
    pub fn start(&mut self, now: Nanos) {
        self.last = now;
    }

    /// Returns the next scheduled start if it is before `end`. A start at `end` or later stays in the schedule for the
    /// next call.
    pub fn next_before(&mut self, end: Nanos) -> Option<Nanos> {
        let start = match self.open.pop() {
            Some(Reverse(start)) => start,
            None => self.draw(),
        };
        if start < end {
            #[cfg(test)]
            crate::simulation::note_start(start);
            return Some(start);
        }
        self.give_back(start);
        None
    }

    /// Puts a scheduled start back whose client did not begin its transaction. The next client that asks for a start
    /// gets it.
    pub fn give_back(&mut self, start: Nanos) {
        self.open.push(Reverse(start));
    }

    /// Draws the next start: the time since the last start is exponentially distributed (drawn by inversion).
    fn draw(&mut self) -> Nanos {
        #[cfg(test)]
        {
            self.drawn += 1;
        }
        let uniform = 1.0 - self.random.unit();
        let wait = -uniform.ln() * self.mean + self.fraction;
        let whole = wait as Nanos;
        self.fraction = wait - whole as f64;
        self.last = self.last.saturating_add(whole);
        self.last
    }

    /// Returns the number of scheduled starts that clients have taken and have not put back.
    #[cfg(test)]
    pub fn taken(&self) -> u64 {
        self.drawn - self.open.len() as u64
    }

    /// Estimates how many transactions were scheduled to start by `now` but have not been taken by a client.
    pub fn backlog(&self, now: Nanos) -> u64 {
        let open = self.open.iter().filter(|Reverse(start)| *start <= now).count() as u64;
        open + (now.saturating_sub(self.last) as f64 / self.mean) as u64
    }
}

/// The tasks of one application that have not arrived yet. If several engines share the tasks of a run, only the tasks
/// of this engine are returned.
pub struct Arrivals {
    arrival: Arrival,
    random: Random,
    task_share: TaskShare,
    start: Nanos,
    /// The number of the next task in the whole run, counted from 0.
    number: u32,
    /// The arrival time of the next task, in seconds since the start.
    next_s: f64,
}

impl Arrivals {
    /// Makes the schedule of the tasks of one application. `task_share` says which of the tasks belong to this engine.
    pub fn new(arrival: Arrival, task_share: TaskShare, random: Random) -> Self {
        Self { arrival, random, task_share, start: 0, number: 0, next_s: 0.0 }
    }

    /// Begins the arrivals at `now`, which is the start of the load.
    pub fn start(&mut self, now: Nanos) {
        self.start = now;
        self.next_s = self.distance();
        self.pass_others();
    }

    /// Returns the time at which the next task arrives, or `None` if all tasks have arrived.
    pub fn next(&self) -> Option<Nanos> {
        (self.number < self.task_share.tasks)
            .then(|| self.start.saturating_add((self.next_s * SECOND as f64 + 0.5) as Nanos))
    }

    /// Returns the number and the arrival time of the next task if it has arrived by `now`, and removes this task from
    /// the schedule.
    pub fn next_until(&mut self, now: Nanos) -> Option<(u32, Nanos)> {
        let at = self.next().filter(|at| *at <= now)?;
        let number = self.number;
        self.advance();
        self.pass_others();
        Some((number, at))
    }

    /// Skips the arrivals of tasks that belong to other engines.
    fn pass_others(&mut self) {
        while self.number < self.task_share.tasks && !self.task_share.is_own(self.number) {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.number += 1;
        self.next_s = match self.arrival {
            // Computed from the task's number and not from the arrival before it, so that rounding errors do not add
            // up.
            Arrival::Rate(rate) => f64::from(self.number) / rate,
            Arrival::AtOnce | Arrival::Poisson(_) => self.next_s + self.distance(),
        };
    }

    /// Draws the seconds from one arrival, or from the start, to the next arrival: exponentially distributed (drawn by
    /// inversion) if tasks arrive by a Poisson process. Returns 0 for the other two schedules, which are not random:
    /// all tasks arrive at once, or the caller computes the arrival times from a fixed rate.
    fn distance(&mut self) -> f64 {
        match self.arrival {
            Arrival::AtOnce | Arrival::Rate(_) => 0.0,
            Arrival::Poisson(rate) => -(1.0 - self.random.unit()).ln() / rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::time::Duration;

    use super::*;
    use crate::schedule::Schedule;
    use crate::slices::Slices;
    use ground::clock::nanos;
    use ground::shard::Shard;

    fn arrivals(arrival: Arrival, task_share: TaskShare, start: Nanos) -> Arrivals {
        let mut arrivals = Arrivals::new(arrival, task_share, Random::seeded(1));
        arrivals.start(start);
        arrivals
    }

    fn all(arrival: Arrival, task_share: TaskShare) -> Vec<(u32, Nanos)> {
        let mut arrivals = arrivals(arrival, task_share, 1000);
        std::iter::from_fn(|| arrivals.next_until(Nanos::MAX)).collect()
    }

    fn times(arrival: Arrival, tasks: u32) -> Vec<Nanos> {
        let task_share = TaskShare { shard: Shard::WHOLE, tasks, size: 1 };
        all(arrival, task_share).into_iter().map(|(_, at)| at).collect()
    }

    #[test]
    fn starts_come_at_the_rate_and_at_random() {
        let mut throttle = Throttle::new(500_000.0, 2, Random::seeded(1));
        throttle.start(1_000);
        let starts: Vec<_> = (0..10_000).map_while(|_| throttle.next_before(Nanos::MAX)).collect();
        let gaps: Vec<_> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 1e6 - 1.0).abs() < 0.05, "{mean}");
        assert!((deviation / 1e6 - 1.0).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn a_rate_above_one_start_each_nanosecond_is_kept() {
        for mean in [0.3, 1.0, 2.5] {
            let mut throttle = Throttle::new(mean, 1, Random::seeded(1));
            throttle.start(0);
            let last = (0..100_000).map_while(|_| throttle.next_before(Nanos::MAX)).last().unwrap();
            assert!((last as f64 / (100_000.0 * mean) - 1.0).abs() < 0.02, "{last} of {mean}");
        }
    }

    #[test]
    fn a_start_without_a_client_is_the_next_clients_and_counts_as_waiting() {
        let mut throttle = Throttle::new(1_000.0, 1, Random::seeded(1));
        let first = throttle.next_before(Nanos::MAX).unwrap();
        assert_eq!(throttle.next_before(first), None);
        let second = throttle.next_before(Nanos::MAX).unwrap();
        throttle.give_back(second);
        throttle.give_back(first);
        assert_eq!(throttle.backlog(second), 2);
        assert_eq!((throttle.next_before(Nanos::MAX), throttle.next_before(Nanos::MAX)), (Some(first), Some(second)));
        assert_eq!(throttle.backlog(second + 3_500), 3);
    }

    #[test]
    fn tasks_arrive_at_once_or_at_equal_distances() {
        assert_eq!(times(Arrival::AtOnce, 3), [1000; 3]);
        assert_eq!(times(Arrival::Rate(3.0), 4), [1000, 333_334_333, 666_667_667, 1_000_001_000]);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_its_deviation() {
        let times = times(Arrival::Poisson(500.0), 10_001);
        let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 2.0 - 1.0).abs() < 0.05, "{mean}");
        assert!((deviation / 2.0 - 1.0).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn none_arrives_before_its_time() {
        let task_share = TaskShare { shard: Shard::WHOLE, tasks: 2, size: 1 };
        let mut arrivals = arrivals(Arrival::Rate(1.0), task_share, 0);
        assert_eq!((arrivals.next_until(5), arrivals.next_until(5)), (Some((0, 0)), None));
        assert_eq!(arrivals.next(), Some(1_000_000_000));
        assert_eq!((arrivals.next_until(1_000_000_000), arrivals.next()), (Some((1, 1_000_000_000)), None));
    }

    /// Simulates clients that take all scheduled starts of one thread during `rounds` rounds of slices. Returns for
    /// each start: the number of its round, its time without the slices of other engines, and its time on the clock.
    /// The start number `i` is put back once and then taken again if `returned[i]` is true.
    fn starts_in_slices(schedule: &Schedule, rounds: u64, returned: &[bool]) -> Vec<(u64, Nanos, Nanos)> {
        let mut throttle = Throttle::new(700_000.0, 1, Random::seeded(5));
        throttle.start(schedule.start);
        let (mut period, mut starts, mut returned) = (schedule.first(), Vec::new(), returned.iter().cycle());
        for round in 0..rounds {
            let (pause, start_deadline) = (schedule.pause(&period), schedule.start_deadline(&period));
            while let Some(start) = throttle.next_before(start_deadline - pause) {
                if *returned.next().unwrap() {
                    throttle.give_back(start);
                    let _ = returned.next();
                    let again = throttle.next_before(start_deadline - pause).unwrap();
                    assert_eq!(again, start);
                }
                starts.push((round, start, start + pause));
            }
            period = schedule.after(&period);
        }
        starts
    }

    proptest! {
        #[test]
        fn the_starts_in_own_slices_are_the_process_without_slices(
            length_ms in 10u64..300,
            of in 1usize..5,
            participant in 0usize..5,
            seed: u64,
            start in 0u64..1_000_000_000,
            returned in prop::collection::vec(any::<bool>(), 1..9),
        ) {
            let length = length_ms * 1_000_000;
            let slices = Slices { length, index: participant % of, of, seed };
            let rounds = 8;
            let time = Duration::from_nanos(rounds * slices.round());
            let schedule = Schedule::new(start, Duration::ZERO, Some(time), Some(slices));
            let mut whole = Throttle::new(700_000.0, 1, Random::seeded(5));
            whole.start(start);
            let expected: Vec<_> = std::iter::from_fn(|| whole.next_before(start + rounds * length)).collect();
            let starts = starts_in_slices(&schedule, rounds, &returned);
            prop_assert_eq!(starts.iter().map(|(_, own, _)| *own).collect::<Vec<_>>(), expected);
            for (round, _, at) in starts {
                let slice = slices.slice(round);
                prop_assert!((start + slice.begins..start + slice.ends).contains(&at), "{at} {slice:?}");
            }
            prop_assert_eq!(schedule.end, start + nanos(time));
        }

        #[test]
        fn the_arrivals_of_all_engines_are_those_of_the_whole_run(
            of in 1usize..6,
            more in 0usize..10,
            tasks in 1u32..300,
            kind in 0..3usize,
        ) {
            let arrival = [Arrival::AtOnce, Arrival::Rate(700.0), Arrival::Poisson(700.0)][kind];
            let task_share = TaskShare { shard: Shard::WHOLE, tasks, size: of + more };
            let shares = (0..of).map(|index| TaskShare { shard: Shard { index, of }, ..task_share });
            let mut of_shards: Vec<_> = shares.flat_map(|share| all(arrival, share)).collect();
            of_shards.sort_unstable();
            prop_assert_eq!(of_shards, all(arrival, task_share));
        }
    }
}
