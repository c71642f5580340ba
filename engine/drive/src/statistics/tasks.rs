//! Counters of the tasks of applications with connection pools: how each task ended, and the totals of all tasks.

use super::counts::Failures;
use ground::clock::Nanos;
use latency::{Latencies, Moments};

/// The failure of a task that got no connection in time. Other failures are named by their SQLSTATE or [`SCRIPT`].
pub const POOL_TIMEOUT: &str = "pool-timeout";

/// The failure of a task whose script could not go on, for example because of an error in a command that needs no
/// server.
pub const SCRIPT: &str = "script";

/// The limit below which a response counts as fast: 5 s, as in the study "PostgreSQL: Linux VS Windows" (2016), whose
/// tasks this load repeats.
const HALF_OF_ATTENTION: Nanos = 5_000_000_000;

/// The limits of J. Nielsen's classes of response times (Usability Engineering, 1993, chapter 5): up to 0.1 s a
/// response feels instant, up to 1 s the user's flow of thought is kept, and up to 10 s the user's attention is kept.
pub const CLASSES: [Nanos; 3] = [100_000_000, 1_000_000_000, 10_000_000_000];

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The number of the task's application, counted from 0.
    pub app: usize,
    /// The number of the task within its application, counted from 0.
    pub number: u32,
    /// The time of the task's arrival on the run's clock.
    pub arrived: Nanos,
    /// The time for which the task waited in the queue of the pool, until it got a connection or was given up, in
    /// nanoseconds.
    pub waited: Nanos,
    /// The time for which the task had its connection, in nanoseconds; 0 if it got none.
    pub served: Nanos,
    /// The number of the application's tasks that had a connection when this task ended. This task is included if it
    /// had a connection.
    pub running: usize,
    /// The name of the failure, if the task failed: an SQLSTATE, [`POOL_TIMEOUT`] or [`SCRIPT`].
    pub failure: Option<Box<str>>,
}

impl Task {
    /// Returns the response time, from the task's arrival to its end, in nanoseconds.
    pub fn response(&self) -> Nanos {
        self.waited + self.served
    }

    /// Returns the time of the task's end on the run's clock.
    pub fn ended(&self) -> Nanos {
        self.arrived + self.response()
    }

    /// Returns true if the task failed because it got no connection in time.
    pub fn got_no_connection(&self) -> bool {
        self.failure.as_deref() == Some(POOL_TIMEOUT)
    }
}

/// The counters of all connection pools for one period.
#[derive(Debug, Clone, Default)]
pub struct PooledTasks {
    /// The times for which completed tasks waited in the queue of the pool until they got a connection.
    pub queue: Latencies,
    /// The times for which completed tasks had their connection.
    pub service: Latencies,
    /// The waiting times of tasks that got no connection in time, in microseconds.
    pub timeouts: Moments,
    /// The tasks that ended in this period. They are kept one by one until the run's observer, which receives the
    /// events of the run, has seen them.
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

    /// Adds the counters of another thread or period.
    pub(super) fn merge(&mut self, other: &PooledTasks) {
        self.queue.merge(&other.queue);
        self.service.merge(&other.service);
        self.timeouts.merge(&other.timeouts);
        self.tasks.extend_from_slice(&other.tasks);
    }

    /// Sorts the tasks of the period by the time of their end.
    pub(super) fn complete(&mut self) {
        self.tasks.sort_by_key(Task::ended);
    }
}

/// The totals of all tasks of a run. They are exact, since they are computed from each response time and not from a
/// histogram.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    /// The number of tasks that the run was planned to have.
    pub planned: u64,
    /// The response times of the completed tasks, in nanoseconds, in the order in which the tasks were counted.
    responses: Vec<Nanos>,
    /// The mean and other moments of the completed tasks' response times, in microseconds.
    pub response: Moments,
    pub queue: Moments,
    pub service: Moments,
    pub failures: Failures,
    /// The waiting times of tasks that got no connection in time, in microseconds.
    pub timeouts: Moments,
}

impl Tasks {
    /// Makes the empty totals of a run that is planned to have this number of tasks.
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
    pub(super) fn drain(&mut self, pooled: &mut PooledTasks) {
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

    /// Returns the median of the response times in microseconds. With an even number of tasks it is the mean of the
    /// middle two. `None` if no task was completed.
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

    /// Returns the number of completed tasks in each class of response times: up to the first limit of [`CLASSES`],
    /// between each limit and the next, and above the last limit.
    pub fn classes(&self) -> [u64; CLASSES.len() + 1] {
        let mut classes = [0; CLASSES.len() + 1];
        for response in &self.responses {
            classes[CLASSES.partition_point(|limit| limit < response)] += 1;
        }
        classes
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
