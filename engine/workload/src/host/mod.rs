//! sysbench's tests of the machine: `cpu`, `memory`, `threads` and `mutex`. Their events only compute, in the thread of
//! the client, and use no server.
//!
//! An event takes as long as the machine needs. So that a run can end in the middle of a long event, a client does an
//! event in parts and returns to its event loop after each part.

mod client;
mod cpu;
mod load;
mod memory;
mod mutex;
mod threads;

pub use load::MachineLoad;

use crate::program::Fatal;
use crate::settings::{OptionSpec, Settings};

/// One of sysbench's tests of the machine.
#[derive(Debug, Clone, Copy)]
pub struct MachineTest {
    /// The name of the test in messages.
    pub name: &'static str,
    /// The description of the test in the help.
    pub description: &'static str,
    /// The function that returns the test's options, in the order in which the help of the test lists them.
    pub options: fn() -> Vec<OptionSpec>,
    /// The function that makes the load from the options' values. Its error is sysbench's message about a wrong value.
    pub load: fn(&Settings) -> Result<MachineLoad, Fatal>,
}

/// All tests of the machine, in the order of sysbench's help.
pub const TESTS: [MachineTest; 4] = [
    MachineTest { name: "cpu", description: "CPU performance test", options: cpu::options, load: cpu::load },
    MachineTest {
        name: "memory",
        description: "Memory functions speed test",
        options: memory::options,
        load: memory::load,
    },
    MachineTest {
        name: "threads",
        description: "Threads subsystem performance test",
        options: threads::options,
        load: threads::load,
    },
    MachineTest { name: "mutex", description: "Mutex performance test", options: mutex::options, load: mutex::load },
];

/// Returns the test of this name, or `None` if there is none.
pub fn find(name: &str) -> Option<MachineTest> {
    TESTS.into_iter().find(|test| test.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::OptionValue;

    /// Returns the load of the test `name` with two threads, where `option` has the given value and all others their
    /// defaults.
    fn loaded(name: &str, option: &str, value: OptionValue) -> Result<MachineLoad, String> {
        let test = find(name).unwrap();
        let mut settings = Settings::default();
        settings.set("threads", OptionValue::Int(2));
        (test.options)().into_iter().for_each(|spec| settings.set(&spec.name, spec.default));
        assert!(settings.get(option).is_some(), "{name} has no option {option}");
        settings.set(option, value);
        (test.load)(&settings).map_err(|fatal| fatal.lines.join("\n"))
    }

    fn refused(name: &str, option: &str, value: OptionValue) -> String {
        loaded(name, option, value).err().unwrap_or_else(|| panic!("{name} takes any {option}"))
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for number in [0, -3] {
            let message = refused("cpu", "cpu_max_prime", OptionValue::Int(number));
            assert_eq!(message, format!("Invalid value of cpu-max-prime: {number}."));
        }
        for (test, option, number) in [
            ("threads", "thread_locks", 0),
            ("threads", "thread_locks", -1),
            ("threads", "thread_yields", -1),
            ("mutex", "mutex_num", 0),
            ("mutex", "mutex_locks", 0),
            ("mutex", "mutex_locks", -1),
            ("mutex", "mutex_loops", -1),
        ] {
            let name = option.replace('_', "-");
            assert_eq!(
                refused(test, option, OptionValue::Int(number)),
                format!("Invalid value for --{name}: {number}.\n")
            );
        }
        assert!(loaded("threads", "thread_yields", OptionValue::Int(0)).is_ok());
        assert!(loaded("mutex", "mutex_loops", OptionValue::Int(0)).is_ok());
    }

    #[test]
    fn blocks_are_powers_of_two_from_a_machine_word_on() {
        for text in ["", "x", "0", "3", "4", "24", "3K", "-8"] {
            let message = refused("memory", "memory_block_size", OptionValue::Size(text.to_owned()));
            assert_eq!(message, format!("Invalid value for memory-block-size: {text}"));
        }
        for text in ["8", "1k", "64K", "1M"] {
            assert!(loaded("memory", "memory_block_size", OptionValue::Size(text.to_owned())).is_ok(), "{text}");
        }
        let message = refused("memory", "memory_total_size", OptionValue::Size("1Q".to_owned()));
        assert_eq!(message, "Invalid value for memory-total-size: 1Q");
    }

    #[test]
    fn words_that_memory_does_not_know_are_refused() {
        for option in ["memory_scope", "memory_oper", "memory_access_mode"] {
            let name = option.replace('_', "-");
            for text in [None, Some("x"), Some("Global")] {
                let message = refused("memory", option, OptionValue::Text(text.map(str::to_owned)));
                assert_eq!(message, format!("Invalid value for {name}: {}", text.unwrap_or("")));
            }
        }
        let message = refused("memory", "memory_hugetlb", OptionValue::Bool(true));
        assert!(message.starts_with("--memory-hugetlb=on is not available"), "{message}");
    }

    #[test]
    fn each_thread_has_its_part_of_the_total_size_or_one_event() {
        let sized = |text: &str| loaded("memory", "memory_total_size", OptionValue::Size(text.to_owned())).unwrap();
        // The total sizes are divided into blocks of 1 KiB for two threads.
        let limits = ["0", "1K", "7K", "1M"].map(|text| sized(text).events_each);
        assert_eq!(limits, [None, Some(0), Some(3), Some(512)]);
        assert!(!sized("1M").obeys_events);
        let mutex = loaded("mutex", "mutex_num", OptionValue::Int(8)).unwrap();
        assert_eq!((mutex.events_each, mutex.obeys_events), (Some(1), true));
        let cpu = loaded("cpu", "cpu_max_prime", OptionValue::Int(8)).unwrap();
        assert_eq!((cpu.events_each, cpu.obeys_events), (None, true));
    }
}
