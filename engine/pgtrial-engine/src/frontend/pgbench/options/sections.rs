//! The section of the help that lists an option, and the mode of pgbench that the option is for.

/// The section of the help that lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpSection {
    Initialization,
    Scripts,
    Benchmarking,
    /// The original has no such option.
    Added(OptionMode),
    Common,
}

/// The mode of pgbench for which an option is that pgtrial adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionMode {
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

    /// Returns true if the section's options are for this mode, which is `Initialization` or `Benchmarking`.
    pub fn is_for(self, wanted: OptionMode) -> bool {
        let mode = match self {
            Self::Initialization => OptionMode::Initialization,
            Self::Scripts | Self::Benchmarking => OptionMode::Benchmarking,
            Self::Added(mode) => mode,
            Self::Common => OptionMode::Both,
        };
        mode == wanted || mode == OptionMode::Both
    }
}
