//! Selects the statements of the logs that a capture contains, by time, database and application.

use crate::left_out::Reason;
use crate::time::{Micros, Timestamp, clock};

/// The statements of the logs that the user wants to capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub database: Option<String>,
    /// The names of the applications whose statements are captured; empty for all applications.
    pub applications: Vec<String>,
    pub excluded_applications: Vec<String>,
    /// The time from which statements are captured.
    pub from: Option<GivenMoment>,
    /// The time from which statements are no longer captured.
    pub to: Option<GivenMoment>,
}

impl Selection {
    /// True if `from` or `to` has a time zone.
    pub fn has_zone(&self) -> bool {
        [self.from, self.to].iter().flatten().any(|moment| matches!(moment, GivenMoment::Utc(_)))
    }

    /// Returns the reason for which a statement is not captured; `None` if it is captured.
    pub(crate) fn excludes(&self, time: Timestamp, database: &str, application: &str) -> Option<Reason> {
        if !self.has_time(time) {
            return Some(Reason::OtherTime);
        }
        match &self.database {
            Some(_) if database.is_empty() => return Some(Reason::UnknownDatabase),
            Some(wanted) if wanted != database => return Some(Reason::OtherDatabase),
            _ => (),
        }
        let is_in = |names: &[String]| names.iter().any(|name| name == application);
        let is_wanted = self.applications.is_empty() || is_in(&self.applications);
        (!is_wanted || is_in(&self.excluded_applications)).then_some(Reason::OtherApplication)
    }

    /// Returns a sentence that says why the selection and the logs have no time in common; `None` if they have. The
    /// logs reach from the time `first` to the time `last`.
    pub(crate) fn outside(&self, (first, last): (Timestamp, Timestamp)) -> Option<String> {
        if self.from.is_some_and(|from| from.is_after(last)) {
            return Some(format!("the logs end at {}, before --from", clock(last.wall)));
        }
        let is_early = self.to.is_some_and(|to| !to.is_after(first));
        is_early.then(|| format!("the logs begin at {}, not before --to", clock(first.wall)))
    }

    pub(crate) fn has_time(&self, time: Timestamp) -> bool {
        let is_early = self.from.is_some_and(|from| from.is_after(time));
        let is_late = self.to.is_some_and(|to| !to.is_after(time));
        !is_early && !is_late
    }
}

/// A time that the user gave, with or without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenMoment {
    /// A time with a zone, converted to UTC.
    Utc(Micros),
    /// A time without a zone. It is compared with the times as the log shows them.
    Wall(Micros),
}

impl GivenMoment {
    fn is_after(self, time: Timestamp) -> bool {
        match self {
            Self::Utc(moment) => moment > time.utc,
            Self::Wall(moment) => moment > time.wall,
        }
    }
}
