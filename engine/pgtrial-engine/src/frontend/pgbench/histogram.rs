//! The file of the option `--histogram`. For each histogram of the measured part it has one line `NAME BASE64`: the
//! name of what was measured, such as `latency`, and the encoded histogram.

use drive::statistics::LoadStatistics;

/// Returns the content of the file.
pub fn text(measured: &LoadStatistics) -> String {
    let mut text = format!("latency {}\n", measured.latencies.encode());
    if let Some(schedule) = &measured.schedule {
        text += &format!("service {}\nlag {}\n", schedule.service.encode(), schedule.lags.encode());
    }
    if let Some(pooled) = measured.of_mode.tasks() {
        text += &format!("service {}\nqueue {}\n", pooled.service.encode(), pooled.queue.encode());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::statistics::tasks::PooledTasks;
    use drive::statistics::{ModeCounts, ScheduleStatistics};

    #[test]
    fn each_histogram_has_a_line_with_its_name() {
        let mut measured = LoadStatistics::default();
        measured.commit(5000);
        assert_eq!(text(&measured), format!("latency {}\n", measured.latencies.encode()));
        measured.schedule = Some(Box::new(ScheduleStatistics::default()));
        let names: Vec<_> =
            text(&measured).lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
        assert_eq!(names, ["latency", "service", "lag"]);
        let of_mode = ModeCounts::Tasks(PooledTasks::default());
        measured = LoadStatistics { of_mode, ..LoadStatistics::default() };
        let text = text(&measured);
        assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("queue ")), "{text}");
    }
}
