//! The test `memory`: an event reads or writes a block of memory, one machine word at a time.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::client::Work;
use super::load::{MachineLoad, allocate};
use crate::program::Fatal;
use crate::settings::{OptionSpec, OptionValue, Settings};
use crate::statistics::{Hooks, Introduction, Statistics};
use ground::c_numbers;
use ground::random::Random;

/// The size of a machine word in bytes.
const WORD: u64 = size_of::<AtomicU64>() as u64;

/// The number of words of a block that a client reads or writes before it returns to its event loop. A large block
/// takes several such parts.
const PART: usize = 1 << 20;

const MIB: f64 = 1024.0 * 1024.0;

/// The value that is written. Any other value would do as well.
const CONTENT: u64 = 0x5555_5555_5555_5555;

/// A block of memory that several threads may read and write at the same time. Relaxed atomic accesses are as fast as
/// ordinary ones, but the compiler does not merge them.
type Words = Arc<Vec<AtomicU64>>;

pub fn options() -> Vec<OptionSpec> {
    let text = |name, description, default: &str| {
        OptionSpec::new(name, description, OptionValue::Text(Some(default.to_owned())))
    };
    let size =
        |name, description, default: &str| OptionSpec::new(name, description, OptionValue::Size(default.to_owned()));
    vec![
        size("memory-block-size", "size of memory block for test", "1K"),
        size("memory-total-size", "total size of data to transfer", "100G"),
        text("memory-scope", "memory access scope {global,local}", "global"),
        OptionSpec::new("memory-hugetlb", "allocate memory from HugeTLB pool", OptionValue::Bool(false)),
        text("memory-oper", "type of memory operations {read, write, none}", "write"),
        text("memory-access-mode", "memory access mode {seq,rnd}", "seq"),
    ]
}

pub fn load(settings: &Settings) -> Result<MachineLoad, Fatal> {
    let block = size(settings, "memory-block-size", |bytes| bytes >= WORD && bytes.is_power_of_two())?;
    let total = size(settings, "memory-total-size", |_| true)?;
    let scope = choice(settings, "memory-scope", [("global", Scope::Global), ("local", Scope::Local)])?;
    if settings.is_on("memory_hugetlb") {
        return Err(Fatal::new(
            "--memory-hugetlb=on is not available: pgtrial does not allocate memory from the HugeTLB pool; leave the \
             option off, or use sysbench itself",
        ));
    }
    let operations = [("read", Operation::Read), ("write", Operation::Write), ("none", Operation::Nothing)];
    let operation = choice(settings, "memory-oper", operations)?;
    let is_random = choice(settings, "memory-access-mode", [("seq", false), ("rnd", true)])?;
    let words = block / WORD;
    let global: Words = match scope {
        Scope::Global => Arc::new(allocate(words, AtomicU64::default, "Failed to allocate buffer!")?),
        Scope::Local => Arc::default(),
    };
    let work = move |client, random| Transfer {
        access: Access { operation, is_random, random },
        words: Arc::clone(&global),
        own: (scope == Scope::Local).then_some(Own { words, client }),
        at: 0,
    };
    let threads = u64::try_from(settings.int("threads")).unwrap_or(1).max(1);
    let load = MachineLoad::new("memory", Memory { block, total, operation, scope }, work);
    // As in sysbench, a total size of 0 means that there is no limit.
    let events_each = (total > 0).then(|| total / block / threads);
    Ok(MachineLoad { events_each, obeys_events: false, ..load })
}

/// Reads the option `name` as a size in bytes. Fails if `is_valid` is false for the size.
fn size(settings: &Settings, name: &str, is_valid: impl Fn(u64) -> bool) -> Result<u64, Fatal> {
    let text = settings.text(&name.replace('-', "_")).unwrap_or("");
    let bytes = c_numbers::size(text).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.filter(|bytes| is_valid(*bytes)).ok_or_else(|| invalid(name, text))
}

/// Returns the value that `words` assigns to the word given in the option `name`. Fails for any other word.
fn choice<T, const N: usize>(settings: &Settings, name: &str, words: [(&str, T); N]) -> Result<T, Fatal> {
    let text = settings.text(&name.replace('-', "_")).unwrap_or("");
    let found = words.into_iter().find(|(word, _)| *word == text);
    found.map(|(_, meaning)| meaning).ok_or_else(|| invalid(name, text))
}

fn invalid(name: &str, text: &str) -> Fatal {
    Fatal::new(format_args!("Invalid value for {name}: {text}"))
}

/// The memory that a thread uses: one block for all threads, or a block of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All threads use the same block.
    Global,
    Local,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    /// Only the loop runs, without an access to memory.
    Nothing,
}

/// The settings of the test that its reports contain. Sizes are in bytes.
struct Memory {
    block: u64,
    total: u64,
    operation: Operation,
    scope: Scope,
}

impl Memory {
    fn transferred_mib(&self, statistics: &Statistics) -> f64 {
        statistics.events as f64 * self.block as f64 / MIB
    }
}

impl Hooks for Memory {
    fn introduction(&self) -> Introduction {
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Nothing => "none",
        };
        let scope = match self.scope {
            Scope::Global => "global",
            Scope::Local => "local",
        };
        let parameters = vec![
            "Running memory speed test with the following options:".to_owned(),
            format!("  block size: {}KiB", self.block >> 10),
            format!("  total size: {}MiB", self.total >> 20),
            format!("  operation: {operation}"),
            format!("  scope: {scope}\n"),
        ];
        Introduction { parameters, ..Introduction::default() }
    }

    fn interval_line(&self, statistics: &Statistics) -> Option<String> {
        Some(format!("{:4.2} MiB/sec", statistics.per_second(self.transferred_mib(statistics))))
    }

    fn results(&self, statistics: &Statistics) -> Vec<String> {
        let (events, mib) = (statistics.events, self.transferred_mib(statistics));
        let rate = statistics.per_second(events as f64);
        let mut lines = vec![format!("Total operations: {events} ({rate:8.2} per second)\n")];
        if self.operation != Operation::Nothing {
            lines.push(format!("{mib:4.2} MiB transferred ({:4.2} MiB/sec)\n", statistics.per_second(mib)));
        }
        lines
    }

    fn uses_sql(&self) -> bool {
        false
    }
}

/// The work of one thread, with the block that it uses.
struct Transfer {
    access: Access,
    words: Words,
    /// The size of a block for this thread alone, which is not allocated yet; otherwise `None`.
    own: Option<Own>,
    /// The index of the word in the block at which the next part of the event begins.
    at: usize,
}

/// The size in words of a block that will belong to thread `client` alone.
struct Own {
    words: u64,
    client: usize,
}

impl Work for Transfer {
    fn prepare(&mut self) -> Result<(), Fatal> {
        if let Some(Own { words, client }) = self.own.take() {
            let message = format!("Failed to allocate buffer for thread #{client}!");
            self.words = Arc::new(allocate(words, AtomicU64::default, &message)?);
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.at = 0;
    }

    fn go_on(&mut self) -> bool {
        let end = self.words.len().min(self.at + PART);
        self.access.part(&self.words, self.at..end);
        self.at = end;
        end == self.words.len()
    }
}

/// The way in which a thread accesses its block: in order or at random, reading or writing.
struct Access {
    operation: Operation,
    is_random: bool,
    random: Random,
}

impl Access {
    /// Reads or writes the words of `range` in their order, or as many words at random places of the whole block.
    fn part(&mut self, words: &[AtomicU64], range: std::ops::Range<usize>) {
        if self.is_random {
            let (random, size) = (&mut self.random, words.len() as f64);
            return operate(self.operation, range.map(|_| (random.unit() * size) as usize), |place| &words[place]);
        }
        match self.operation {
            Operation::Nothing => operate(Operation::Nothing, range, |place| &words[place]),
            operation => operate(operation, words[range].iter(), |word| word),
        }
    }
}

/// Reads or writes the words at all `places`.
#[inline(always)]
fn operate<'a, P>(operation: Operation, places: impl Iterator<Item = P>, word: impl Fn(P) -> &'a AtomicU64) {
    match operation {
        Operation::Read => {
            black_box(places.fold(0, |sum, place| sum ^ word(place).load(Ordering::Relaxed)));
        }
        Operation::Write => places.for_each(|place| word(place).store(CONTENT, Ordering::Relaxed)),
        Operation::Nothing => places.for_each(|place| {
            black_box(place);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::default()).collect()
    }

    fn written(words: &[AtomicU64]) -> usize {
        words.iter().filter(|word| word.load(Ordering::Relaxed) == CONTENT).count()
    }

    fn access(operation: Operation, is_random: bool) -> Access {
        Access { operation, is_random, random: Random::seeded(7) }
    }

    #[test]
    fn writing_in_order_reaches_each_word_of_the_range_and_no_other() {
        let words = words(16);
        access(Operation::Write, false).part(&words, 4..12);
        assert_eq!([written(&words[..4]), written(&words[4..12]), written(&words[12..])], [0, 8, 0]);
    }

    #[test]
    fn writing_at_random_reaches_words_anywhere_in_the_block() {
        let words = words(1000);
        access(Operation::Write, true).part(&words, 0..100);
        let reached = written(&words);
        // Some words are chosen twice.
        assert!((80..=100).contains(&reached) && written(&words[100..]) > 50, "{reached}");
    }

    #[test]
    fn reading_and_doing_nothing_leave_the_block_as_it_is() {
        let words = words(64);
        for (operation, is_random) in
            [(Operation::Read, false), (Operation::Read, true), (Operation::Nothing, false), (Operation::Nothing, true)]
        {
            access(operation, is_random).part(&words, 0..64);
        }
        assert_eq!(words.iter().map(|word| word.load(Ordering::Relaxed)).sum::<u64>(), 0);
    }

    #[test]
    fn a_large_block_is_done_in_parts() {
        let own = Some(Own { words: PART as u64 * 2 + 8, client: 3 });
        let access = access(Operation::Write, false);
        let mut transfer = Transfer { access, words: Words::default(), own, at: 0 };
        transfer.prepare().unwrap();
        for _ in 0..2 {
            transfer.begin();
            assert_eq!([transfer.go_on(), transfer.go_on(), transfer.go_on()], [false, false, true]);
        }
        assert_eq!(written(&transfer.words), transfer.words.len());
    }

    #[test]
    fn a_block_that_does_not_fit_is_an_error() {
        let own = Some(Own { words: u64::MAX >> 4, client: 3 });
        let access = access(Operation::Write, false);
        let refused = Transfer { access, words: Words::default(), own, at: 0 }.prepare();
        assert_eq!(refused, Err(Fatal::new("Failed to allocate buffer for thread #3!")));
    }

    #[test]
    fn the_report_begins_with_operations_and_what_was_transferred() {
        let statistics = Statistics { events: 3, time_interval: 2.0, ..Statistics::default() };
        let memory = |operation| Memory { block: 1 << 20, total: 1 << 30, operation, scope: Scope::Local };
        let operations = "Total operations: 3 (    1.50 per second)\n";
        let transferred = "3.00 MiB transferred (1.50 MiB/sec)\n";
        assert_eq!(memory(Operation::Read).results(&statistics), [operations, transferred]);
        assert_eq!(memory(Operation::Nothing).results(&statistics), [operations]);
        assert_eq!(memory(Operation::Read).interval_line(&statistics).as_deref(), Some("1.50 MiB/sec"));
    }
}
