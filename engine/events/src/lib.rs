//! The events of a run as JSON Lines, with one JSON object in each line. The engine writes these types, and the merger
//! of several machines' events reads and writes them. `docs/engine-events.md` describes each key; a test compares that
//! page with the types. This crate does not know how a load is made, or how events of several machines are added.

mod done;
mod error;
mod line;
mod measured;
mod measurement;
mod replay;
mod start;
mod suite;

pub use done::{
    ClientUsage, Done, Drain, MachineShare, ResponseClasses, ResponseTime, ScriptRecord, TasksRecord, Warning,
};
pub use error::EventError;
pub use line::{ClientError, Event, EventLine, Lost, Other, TaskRecord};
pub use measured::{
    Count, CountsRecord, DistributionRecord, Extent, FailuresRecord, PoolTimeouts, QueriesRecord, QueueRecord,
    SliceRecord, Summary, TickRecord, Times, add_failures, moments_of,
};
pub use measurement::{FloatSums, Measurement};
pub use replay::{OtherTemplates, ReplayCounts, ReplayPlanRecord, ReplayRecord, ReplaySessions, ReplayTemplate};
pub use start::{
    Connected, Hello, PROTOCOL, PhaseStart, PlanRecord, Pools, ShardRecord, SlicesRecord, timestamp, to_map,
};
pub use suite::{PauseRecord, QueryRecord, SuitePlanRecord};
