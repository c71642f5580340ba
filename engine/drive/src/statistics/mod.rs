//! Counts transactions, failures and latencies. Each thread has counters of its own. They are merged outside the hot
//! path, so that nothing is locked or shared while transactions run.

mod clients;
mod counts;
mod load;
pub mod log;
mod modes;
pub mod replay;
pub mod tasks;

pub use clients::{ClientTotals, PerClient};
pub use counts::{Account, Counts, Failures, ScriptAccount};
pub use load::{LoadStatistics, Queue, ScheduleStatistics, SliceTime};
pub use modes::{ModeCounts, ModeTotals};
