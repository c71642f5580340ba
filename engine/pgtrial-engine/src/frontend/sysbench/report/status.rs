//! Exit statuses of a run.

/// Exit status of a run that failed, or whose events could not be written.
pub const FAILED: u8 = 1;

/// Exit status of a run that took too long to begin or to end.
pub const OVERDUE: u8 = 2;
