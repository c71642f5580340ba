//! What is said before the load begins.

use std::io::Write;

use super::choice::Choice;
use crate::frontend::sysbench::log::{Level, Log};
use ground::shard::ClientShare;
use workload::settings::Settings;

/// Says how the test is run, and that its clients are about to be made.
pub fn describe<W: Write>(log: &mut Log<W>, settings: &Settings, part: &ClientShare, choice: &Choice) {
    let number = |name| settings.int(name);
    let mut notice = |text: String| log.text(Level::Notice, text);
    notice("Running the test with following options:".to_owned());
    notice(format!("Number of threads: {}", number("threads")));
    if part.shard.is_part() {
        let (own, first) = (part.clients(), part.number(0));
        notice(format!("Shard {} of the run: {own} threads, from #{first}", part.shard));
    }
    if number("warmup_time") > 0 {
        notice(format!("Warmup time: {}s", number("warmup_time")));
    }
    if choice.paced {
        notice(format!("Target transaction rate: {}/sec", number("rate")));
    }
    if let Some(interval) = choice.interval {
        notice(format!("Report intermediate results every {interval} second(s)"));
    }
    if !choice.checkpoints.is_empty() {
        let points: Vec<_> = choice.checkpoints.iter().map(u64::to_string).collect();
        notice(format!("Report checkpoint(s) at {} seconds", points.join(", ")));
    }
    if choice.debug {
        notice("Debug mode enabled.\n".to_owned());
    }
    if settings.is_on("validate") {
        notice("Validation checks: on.\n".to_owned());
    }
    match number("rand_seed") {
        0 => notice("Initializing random number generator from current time\n".to_owned()),
        seed => notice(format!("Initializing random number generator from seed ({seed}).\n")),
    }
    if let Some(grace) = choice.grace {
        let seconds = number("time").unsigned_abs() + grace;
        notice(format!("Forcing shutdown in {seconds} seconds"));
    }
    notice(String::new());
    if choice.paced {
        log.text(Level::Debug, "Event generating thread started");
    }
    log.text(Level::Notice, "Initializing worker threads...\n");
    if choice.interval.is_some() {
        log.text(Level::Debug, "Reporting thread started");
    }
    if !choice.checkpoints.is_empty() {
        log.text(Level::Debug, "Checkpoints report thread started");
    }
    let threads = (0..part.clients()).map(|index| part.number(index));
    threads.for_each(|thread| log.text(Level::Debug, format_args!("Worker thread (#{thread}) started")));
}
