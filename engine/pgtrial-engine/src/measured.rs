//! What a fuzz target reaches. No interface for anybody else.

pub use crate::frontend::sysbench::measured::read_options;
