//! Counters of the tasks of applications with pools of connections: what became of each task, and of all together.

use super::counts::Failures;
use super::own::ModeCounts;
use ground::clock::Nanos;
use latency::{Latencies, Moments};

/// The kind of failure of a task that got no connection in time; the others go by SQLSTATE.
pub const POOL_TIMEOUT: &str = "pool-timeout";

/// The kind of failure of a task whose script could not go on.
pub const SCRIPT: &str = "script";

/// Responses below this are counted separately, as in the published study.
const HALF_OF_ATTENTION: Nanos = 5_000_000_000;

/// The limits of J. Nielsen's classes of response times: felt as instant, the flow of thought is kept, attention is
/// kept (Usability Engineering, 1993, chapter 5).
pub const CLASSES: [Nanos; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The number of the task's application and the task's number in it, both counted from 0.
    pub app: usize,
    pub number: u32,
    /// The time of the task's arrival on the run's clock.
    pub arrived: Nanos,
    /// The time in the queue of the pool, until the task got a connection or was given up, nanoseconds.
    pub waited: Nanos,
    /// The time with the connection, nanoseconds; 0 if the task got none.
    pub served: Nanos,
    /// The number of the application's tasks that had a connection when this one ended. It includes this one if it had
    /// one.
    pub running: usize,
    /// The kind of failure, if the task failed.
    pub failure: Option<Box<str>>,
}

impl Task {
    /// Returns the response time: from the task's arrival to its end, nanoseconds.
    pub fn response(&self) -> Nanos {
        self.waited + self.served
    }

    /// Returns the time of the task's end on the run's clock.
    pub fn ended(&self) -> Nanos {
        self.arrived + self.response()
    }

    /// Returns true if the task failed because it got no connection.
    pub fn got_no_connection(&self) -> bool {
        self.failure.as_deref() == Some(POOL_TIMEOUT)
    }
}

/// The counters of connection pools in one period.
#[derive(Debug, Clone, Default)]
pub struct PooledTasks {
    /// The time in the queue and the time with the connection, of completed tasks.
    pub queue: Latencies,
    pub service: Latencies,
    /// The waiting times of tasks that got no connection, microseconds.
    pub timeouts: Moments,
    /// The tasks that ended, one by one. They are kept until the run's observer has seen them.
    pub tasks: Vec<Task>,
}

impl PooledTasks {
    /// Counts a task that has ended.
    pub fn add(&mut self, task: Task) {
        if task.failure.is_none() {
            self.queue.record(task.waited);
            self.service.record(task.served);
        } else if task.got_no_connection() {
            self.timeouts.add(task.waited as f64 / 1000.0);
        }
        self.tasks.push(task);
    }
}

impl ModeCounts for PooledTasks {
    fn merge(&mut self, other: &PooledTasks) {
        self.queue.merge(&other.queue);
        self.service.merge(&other.service);
        self.timeouts.merge(&other.timeouts);
        self.tasks.extend_from_slice(&other.tasks);
    }

    /// Sorts the tasks by the time of their end.
    fn complete(&mut self) {
        self.tasks.sort_by_key(Task::ended);
    }
}

/// The totals of all tasks of a run. They are exact, since they are not taken from histograms.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    /// The number of tasks that were to be run.
    pub planned: u64,
    /// Response times of the completed tasks, in the order in which they were counted.
    responses: Vec<Nanos>,
    /// Moments of the response times of completed tasks, microseconds.
    pub response: Moments,
    pub queue: Moments,
    pub service: Moments,
    pub failures: Failures,
    /// The waiting times of tasks that got no connection, microseconds.
    pub timeouts: Moments,
}

impl Tasks {
    /// Makes the empty totals of a run with this number of tasks.
    pub fn new(planned: u64) -> Self {
        Self { planned, ..Self::default() }
    }

    /// Counts a task that has ended.
    pub fn add(&mut self, task: &Task) {
        let us = |time: Nanos| time as f64 / 1000.0;
        let Some(kind) = &task.failure else {
            self.responses.push(task.response());
            self.response.add(us(task.response()));
            self.queue.add(us(task.waited));
            self.service.add(us(task.served));
            return;
        };
        if task.got_no_connection() {
            self.timeouts.add(us(task.waited));
        }
        *self.failures.entry(kind.to_string()).or_default() += 1;
    }

    /// Moves the tasks out of the counters of a period into these totals.
    pub(crate) fn drain(&mut self, pooled: &mut PooledTasks) {
        pooled.tasks.drain(..).for_each(|task| self.add(&task));
    }

    /// Returns the number of tasks that were completed.
    pub fn completed(&self) -> u64 {
        self.response.count
    }

    /// Returns the number of tasks that failed for any reason.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns the number of tasks that had not ended when the run was interrupted.
    pub fn unfinished(&self) -> u64 {
        self.planned.saturating_sub(self.completed() + self.failed())
    }

    /// Returns the median of the response times, microseconds; of an even number the mean of the middle two. `None`
    /// without any completed task.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.responses.clone();
        sorted.sort_unstable();
        let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
        Some((*low as f64 + *high as f64) / 2000.0)
    }

    /// Returns the number of tasks that were completed in less than five seconds.
    pub fn under_five_seconds(&self) -> u64 {
        self.responses.iter().filter(|response| **response < HALF_OF_ATTENTION).count() as u64
    }

    /// Returns the number of tasks that were completed within each of [`CLASSES`] and not within the one before. The
    /// last number counts the other completed tasks.
    pub fn classes(&self) -> [u64; CLASSES.len() + 1] {
        let mut classes = [0; CLASSES.len() + 1];
        for response in &self.responses {
            classes[CLASSES.partition_point(|limit| limit < response)] += 1;
        }
        classes
    }
}

impl ModeCounts for Tasks {
    fn merge(&mut self, other: &Tasks) {
        self.planned += other.planned;
        self.responses.extend_from_slice(&other.responses);
        self.response.merge(&other.response);
        self.queue.merge(&other.queue);
        self.service.merge(&other.service);
        self.timeouts.merge(&other.timeouts);
        for (kind, count) in &other.failures {
            *self.failures.entry(kind.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(waited: Nanos, served: Nanos, failure: Option<&str>) -> Task {
        Task { app: 0, number: 0, arrived: 7, waited, served, running: 1, failure: failure.map(Into::into) }
    }

    #[test]
    fn figures_are_of_completed_tasks_and_every_task_is_one_or_the_other() {
        let mut tasks = Tasks::new(7);
        let ms = 1_000_000;
        for (waited, served) in [(50 * ms, 50 * ms), (0, 1000 * ms), (4000 * ms, 2000 * ms), (0, 11_000 * ms)] {
            tasks.add(&task(waited, served, None));
        }
        tasks.add(&task(200 * ms, 0, Some(POOL_TIMEOUT)));
        tasks.add(&task(200 * ms, 10 * ms, Some("40001")));
        assert_eq!((tasks.completed(), tasks.failed(), tasks.unfinished()), (4, 2, 1));
        assert_eq!((tasks.classes(), tasks.under_five_seconds()), ([1, 1, 1, 1], 2));
        assert_eq!((tasks.median(), tasks.response.max), (Some(3_500_000.0), 11_000_000.0));
        assert!((tasks.queue.mean() + tasks.service.mean() - tasks.response.mean()).abs() < 1e-6);
        assert_eq!((tasks.timeouts.count, tasks.timeouts.min), (1, 200_000.0));
    }

    #[test]
    fn without_tasks_there_is_no_median() {
        assert_eq!(Tasks::new(3).median(), None);
    }
}
