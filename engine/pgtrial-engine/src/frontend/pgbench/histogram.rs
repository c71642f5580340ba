//! The file of the option `--histogram`. For each histogram of the measured part it has one line `NAME BASE64`: the
//! name of what was measured, such as `latency`, and the encoded histogram.

use drive::ledger::Tally;
use drive::ledger::tasks::PooledTasks;

/// Returns the content of the file.
pub fn text(measured: &Tally) -> String {
    let mut text = format!("latency {}\n", measured.latencies.encode());
    if let Some(pace) = &measured.pace {
        text += &format!("service {}\nlag {}\n", pace.service.encode(), pace.lags.encode());
    }
    if let Some(pooled) = measured.own.get::<PooledTasks>() {
        text += &format!("service {}\nqueue {}\n", pooled.service.encode(), pooled.queue.encode());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::ledger::{Own, Pace};

    #[test]
    fn each_histogram_has_a_line_with_its_name() {
        let mut measured = Tally::default();
        measured.commit(5000);
        assert_eq!(text(&measured), format!("latency {}\n", measured.latencies.encode()));
        measured.pace = Some(Box::new(Pace::default()));
        let names: Vec<_> =
            text(&measured).lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect();
        assert_eq!(names, ["latency", "service", "lag"]);
        measured = Tally { own: Own::new(PooledTasks::default()), ..Tally::default() };
        let text = text(&measured);
        assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("queue ")), "{text}");
    }
}
