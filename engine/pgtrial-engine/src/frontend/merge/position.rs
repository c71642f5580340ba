//! Positions in a run, by which machines are compared.

use ground::clock::Phase;

/// The beginning of a phase, or one of its seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub phase: Phase,
    /// 0 is the beginning, second `s` is `s + 1`.
    step: u64,
}

impl Position {
    pub const START: Self = Self::beginning(Phase::Warmup);

    /// The beginning of a phase.
    pub const fn beginning(phase: Phase) -> Self {
        Self { phase, step: 0 }
    }

    /// A second of a phase, from 0.
    pub fn of_second(phase: Phase, second: u32) -> Self {
        Self { phase, step: u64::from(second) + 1 }
    }

    /// The position that follows in the same phase.
    pub fn next(self) -> Self {
        Self { step: self.step + 1, ..self }
    }

    /// The number of the second; `None` for the beginning of a phase.
    pub fn second(self) -> Option<u64> {
        self.step.checked_sub(1)
    }
}

/// The phase's name in events.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}
