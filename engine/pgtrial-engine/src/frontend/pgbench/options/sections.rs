//! The sections of pgbench's help. pgbench has two modes, making tables and running a benchmark; a section also says in
//! which modes its options are valid.

/// The section of the help that lists an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpSection {
    Initialization,
    Scripts,
    Benchmarking,
    /// Options that pgtrial adds, which PostgreSQL's pgbench does not have. They are valid in this mode.
    Added(OptionMode),
    Common,
}

/// The mode of pgbench in which an option is valid: making tables (`-i`), running a benchmark, or both.
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

    /// Returns true if the options of this section are valid in the mode `wanted`, which is `Initialization` or
    /// `Benchmarking`.
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
