//! Where the help lists an option, and the mode of pgbench that the option is for.

/// Where the help lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpSection {
    Initialization,
    Scripts,
    Benchmarking,
    /// The original has no such option.
    Added(Mode),
    Common,
}

/// The mode of pgbench that an option of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Initialization,
    Benchmarking,
    Both,
}

impl HelpSection {
    pub fn title(self) -> &'static str {
        match self {
            Self::Initialization => "Initialization options:",
            Self::Scripts => "Options to select what to run:",
            Self::Benchmarking => "Benchmarking options:",
            Self::Added(_) => "Options that pgtrial adds:",
            Self::Common => "Common options:",
        }
    }

    /// Whether its options are for this mode, which is `Initialization` or `Benchmarking`.
    pub fn is_for(self, wanted: Mode) -> bool {
        let mode = match self {
            Self::Initialization => Mode::Initialization,
            Self::Scripts | Self::Benchmarking => Mode::Benchmarking,
            Self::Added(mode) => mode,
            Self::Common => Mode::Both,
        };
        mode == wanted || mode == Mode::Both
    }
}
