//! Writes a line for each task (one transaction of an application): as text in the format of the published benchmark
//! that this front end reproduces, or as CSV with more columns.

use std::time::{Duration, SystemTime};

use crate::event::timestamp;
use drive::statistics::tasks::Task;
use ground::clock::Nanos;
use ground::output::{CouldNot, OutputFile};

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    Text,
    Csv,
}

/// An output, a file or standard output, to which a line is written for each task (one transaction of an application).
pub struct TaskLines {
    pub form: LineFormat,
    pub out: OutputFile,
    /// The time of day at which the run's clock shows 0.
    pub origin: SystemTime,
}

impl TaskLines {
    /// Writes the first line, with the names of the columns.
    pub fn begin(&mut self) -> Result<(), CouldNot> {
        let header = match self.form {
            LineFormat::Text => "ApplicationId | Running Tasks | Task Duration | EndTime",
            LineFormat::Csv => "application,task,running_tasks,task_duration_s,end_time,queue_s,service_s,failure",
        };
        self.out.write(|out| writeln!(out, "{header}"))
    }

    /// Writes a line for each task, and flushes the output.
    pub fn write(&mut self, tasks: &[Task]) -> Result<(), CouldNot> {
        self.out.write(|out| {
            for task in tasks {
                let ended = timestamp(self.origin + Duration::from_nanos(task.ended()));
                let line = match self.form {
                    LineFormat::Text => text(task, &ended),
                    LineFormat::Csv => csv(task, &ended),
                };
                writeln!(out, "{line}")?;
            }
            Ok(())
        })
    }
}

fn seconds(time: Nanos) -> String {
    format!("{:.6}", time as f64 / 1e9)
}

/// Returns the text line of a task. In place of the duration, it contains -1 if the task got no connection in time, and
/// the kind of failure if the task failed for another reason.
fn text(task: &Task, ended: &str) -> String {
    let duration = match &task.failure {
        None => seconds(task.response()),
        Some(_) if task.got_no_connection() => "-1".to_owned(),
        Some(kind) => format!("failed {kind}"),
    };
    format!("{} | {} | {duration} | {ended}", task.app + 1, task.running)
}

fn csv(task: &Task, ended: &str) -> String {
    let (app, number, running) = (task.app + 1, task.number + 1, task.running);
    let (duration, service) = if task.got_no_connection() {
        ("-1".to_owned(), String::new())
    } else {
        (seconds(task.response()), seconds(task.served))
    };
    let (queue, failure) = (seconds(task.waited), task.failure.as_deref().unwrap_or_default());
    format!("{app},{number},{running},{duration},{ended},{queue},{service},{failure}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::statistics::tasks::POOL_TIMEOUT;

    #[test]
    fn a_line_is_the_published_one() {
        let task = |failure: Option<&str>| Task {
            app: 1,
            number: 6,
            arrived: 0,
            waited: 250_000_000,
            served: if failure == Some(POOL_TIMEOUT) { 0 } else { 500_000 },
            running: 100,
            failure: failure.map(Into::into),
        };
        assert_eq!(text(&task(None), "T"), "2 | 100 | 0.250500 | T");
        assert_eq!(text(&task(Some(POOL_TIMEOUT)), "T"), "2 | 100 | -1 | T");
        assert_eq!(text(&task(Some("57014")), "T"), "2 | 100 | failed 57014 | T");
        assert_eq!(csv(&task(None), "T"), "2,7,100,0.250500,T,0.250000,0.000500,");
        assert_eq!(csv(&task(Some(POOL_TIMEOUT)), "T"), "2,7,100,-1,T,0.250000,,pool-timeout");
        assert_eq!(csv(&task(Some("57014")), "T"), "2,7,100,0.250500,T,0.250000,0.000500,57014");
    }
}
