//! Reads the options for the reports of a run.

use crate::event::Events;
use workload::settings::{OptionValue, Settings};

/// The options for the reports of a run. All times are in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportOptions {
    /// The time between two reports of `--report-interval`.
    pub interval: Option<u64>,
    /// The times at which a checkpoint report is written, in ascending order.
    pub checkpoints: Vec<u64>,
    /// The percentile of the latency in all reports; 0 if reports have no percentile.
    pub percentile: u32,
    /// More percentiles for checkpoint reports and the last report, as the user wrote them.
    pub percentiles: Vec<String>,
    pub histogram: bool,
    pub debug: bool,
    /// True if the load has a rate. Reports then have a line about the queue of waiting events.
    pub has_rate: bool,
    /// The grace period of `--forced-shutdown`: how long clients may go on after the planned end of the run before the
    /// run is stopped by force. `None` without such a limit.
    pub grace: Option<u64>,
    /// The time that clients may take to be ready (`--thread-init-timeout`). `None` without a limit.
    pub init_timeout: Option<u64>,
    pub events: Option<Events>,
    /// True if the command line has one of those options that only pgtrial has and that change the load or the reports,
    /// such as `--jsonl` and `--shard`. Warnings about the load generator are printed only in this case, since sysbench
    /// does not print such warnings.
    pub uses_additions: bool,
}

impl ReportOptions {
    /// Reads the options from settings that have been checked.
    pub fn read(settings: &Settings) -> Self {
        let number = |name| u64::try_from(settings.int(name)).unwrap_or(0);
        let some = |name| Some(number(name)).filter(|number| *number > 0);
        let mut checkpoints: Vec<u64> =
            list(settings, "report_checkpoints").iter().filter_map(|point| point.parse().ok()).collect();
        checkpoints.sort_unstable();
        let events = settings.text("jsonl").map(Events::named);
        let percentiles = list(settings, "percentiles").to_vec();
        Self {
            interval: some("report_interval"),
            checkpoints,
            percentile: u32::try_from(number("percentile")).unwrap_or(0),
            histogram: settings.is_on("histogram"),
            debug: settings.is_on("debug"),
            has_rate: settings.double("rate") > 0.0,
            grace: grace(settings, number("time")),
            init_timeout: some("thread_init_timeout"),
            uses_additions: events.is_some()
                || !percentiles.is_empty()
                || settings.int("jobs") > 0
                || ["shard", "slice", "start_at"].iter().any(|name| settings.text(name).is_some()),
            events,
            percentiles,
        }
    }
}

fn list<'a>(settings: &'a Settings, name: &str) -> &'a [String] {
    if let Some(OptionValue::List(items)) = settings.get(name) { items } else { &[] }
}

/// Returns the grace period of `--forced-shutdown` in seconds. The option's value is a number of seconds or a
/// percentage of `time`, the length of the run; without a value it is a twentieth of `time`. Returns `None` for `off`,
/// or if the run has no time limit.
fn grace(settings: &Settings, time: u64) -> Option<u64> {
    if time == 0 {
        return None;
    }
    let OptionValue::Text(text) = settings.get("forced_shutdown")? else { return None };
    let Some(text) = text else { return Some(time / 20) };
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.parse::<u64>().ok()? * time / 100),
        // The text `off` is not a number, which gives `None`.
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graced(value: Option<&str>, time: i64) -> Option<u64> {
        let mut settings = Settings::default();
        settings.set("time", OptionValue::Int(time));
        settings.set("forced-shutdown", OptionValue::Text(value.map(str::to_owned)));
        ReportOptions::read(&settings).grace
    }

    #[test]
    fn the_grace_is_seconds_or_a_share_of_the_time() {
        assert_eq!(graced(Some("7"), 60), Some(7));
        assert_eq!(graced(Some("0"), 60), Some(0));
        assert_eq!(graced(Some("15%"), 60), Some(9));
        assert_eq!(graced(None, 60), Some(3));
        assert_eq!(graced(Some("off"), 60), None);
        assert_eq!(graced(Some("7"), 0), None);
    }

    #[test]
    fn checkpoints_are_sorted() {
        let mut settings = Settings::default();
        let points = ["10", "3"].map(str::to_owned).to_vec();
        settings.set("report-checkpoints", OptionValue::List(points));
        assert_eq!(ReportOptions::read(&settings).checkpoints, [3, 10]);
    }
}
