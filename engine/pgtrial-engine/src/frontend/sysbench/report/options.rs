//! The options of the reports.

use crate::event::Events;
use workload::settings::{OptionValue, Settings};

/// The options of the reports. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportOptions {
    /// The time between reports on intervals.
    pub interval: Option<u64>,
    /// The times of the checkpoints, in ascending order.
    pub checkpoints: Vec<u64>,
    /// The percentile that all reports have; 0 for none.
    pub percentile: u32,
    /// The percentiles that the report on the whole has in addition, as given.
    pub percentiles: Vec<String>,
    pub histogram: bool,
    pub debug: bool,
    /// True if the load has a rate: reports then have a line on the queue.
    pub paced: bool,
    /// The time, in seconds, for which clients may go on after the end of the run before they are stopped by force;
    /// `None` without such a limit.
    pub grace: Option<u64>,
    /// The time that clients may take to be ready.
    pub init_timeout: Option<u64>,
    pub events: Option<Events>,
    /// True if the command line has options that only pgtrial has.
    pub uses_additions: bool,
}

impl ReportOptions {
    /// Reads options that have been checked before.
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
            paced: settings.double("rate") > 0.0,
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

/// Returns the value of `--forced-shutdown`: seconds, a share of the run's `time` in percent, or a twentieth of it
/// where there is no value.
fn grace(settings: &Settings, time: u64) -> Option<u64> {
    if time == 0 {
        return None;
    }
    let OptionValue::Text(text) = settings.get("forced_shutdown")? else { return None };
    let Some(text) = text else { return Some(time / 20) };
    match text.strip_suffix('%') {
        Some(percent) => Some(percent.parse::<u64>().ok()? * time / 100),
        // `off` is not a number.
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
