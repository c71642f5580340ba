//! The events of a run as JSON Lines, one object a line: the engine writes these types, and the merger reads and writes
//! them. `docs/engine-events.md` describes each key; a test compares that page with the types. Nothing here knows how a
//! load is made or how events of several machines are added.

mod done;
mod error;
mod line;
mod measured;
mod measurement;
mod replay;
mod start;

pub use done::{ClientUsage, Done, Drain, MachineShare, ResponseClasses, ResponseTime, Script, Tasks, Warning};
pub use error::EventError;
pub use line::{ClientError, Event, Line, Lost, Other, Task};
pub use measured::{
    Count, Counts, Distribution, Extent, Failures, PoolTimeouts, Queries, Slice, Summary, Tick, Times, add_failures,
    moments_of,
};
pub use measurement::{FloatSums, Measurement};
pub use replay::{OtherTemplates, Replay, ReplayCounts, ReplayPlan, ReplaySessions, ReplayTemplate};
pub use start::{Connected, Hello, PROTOCOL, PhaseStart, Plan, Pools, Shard, Slices, timestamp, to_map};
