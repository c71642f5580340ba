//! The exit statuses of the command `run`, except 0 and the status after an interrupt.

/// The exit status of a run that failed, or whose events could not be written.
pub const FAILED: u8 = 1;

/// The exit status of a run that took too long to begin (`--thread-init-timeout`) or to end (`--forced-shutdown`).
pub const OVERDUE: u8 = 2;
