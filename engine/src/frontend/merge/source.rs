//! Where the lines come from: a file for each machine, or all of them through standard input while the run goes on.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use serde::de::IgnoredAny;

use super::merger::Merger;
use crate::connection::target::plain_io_message;

/// No event is longer, bytes: a second's histograms are below a megabyte.
const LONGEST_LINE: u64 = 1 << 26;

/// What a read takes from standard input, bytes.
const BUFFER: usize = 1 << 18;

/// Reads lines one after the other.
struct Lines<R> {
    from: R,
    what: String,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(from: R, what: String) -> Self {
        Self { from, what, line: Vec::new() }
    }

    /// The next line without its end. One that was not written to its end is none: its writer was cut off.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        let read = self.from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| format!("could not read {}: {}", self.what, plain_io_message(&error)))?;
        if let Some(line) = self.line.strip_suffix(b"\n") {
            return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
        }
        if length as u64 == LONGEST_LINE {
            return Err(format!("{} has a line of more than {LONGEST_LINE} bytes, which is no event", self.what));
        }
        Ok(Some(&*self.line).filter(|line| is_whole(line)))
    }
}

/// Whether a line without an end is an event all the same, with or without its machine's number.
fn is_whole(line: &[u8]) -> bool {
    let event = line.splitn(2, |byte| *byte == b'\t').last().unwrap_or_default();
    serde_json::from_slice::<IgnoredAny>(event).is_ok()
}

/// Reads a file of each machine, always that of the one which is the furthest behind, so that nothing piles up.
pub fn merge_files(
    merger: &mut Merger,
    paths: &[PathBuf],
    mut write: impl FnMut(&mut Merger) -> Result<(), String>,
) -> Result<(), String> {
    let mut files = Vec::new();
    for path in paths {
        let what = format!("\"{}\"", path.display());
        let file = File::open(path).map_err(|error| format!("could not open {what}: {}", plain_io_message(&error)))?;
        files.push(Lines::new(BufReader::new(file), what));
    }
    while let Some(machine) = merger.last() {
        match files[machine].next()? {
            Some(line) => merger.take(machine, line)?,
            None => merger.end(machine)?,
        }
        if !merger.is_running(machine) {
            // Nothing may follow; if it does, it is refused there.
            if let Some(line) = files[machine].next()? {
                merger.take(machine, line)?;
            }
        }
        write(merger)?;
    }
    Ok(())
}

/// Reads lines `MACHINE<TAB>EVENT` until all machines have come to their end, or the lines have.
pub fn merge_live(
    merger: &mut Merger,
    from: impl Read,
    mut write: impl FnMut(&mut Merger) -> Result<(), String>,
) -> Result<(), String> {
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, from), "standard input".to_owned());
    let mut number = 0u64;
    while let Some(line) = lines.next()? {
        number += 1;
        let (machine, event) = split(line, merger.machines()).ok_or_else(|| unnumbered(number, merger.machines()))?;
        if event.is_empty() {
            merger.end(machine)?;
        } else {
            merger.take(machine, event)?;
        }
        write(merger)?;
        if merger.status().is_some() {
            return Ok(());
        }
    }
    for machine in 0..merger.machines() {
        merger.end(machine)?;
    }
    write(merger)
}

fn split(line: &[u8], machines: usize) -> Option<(usize, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let machine = std::str::from_utf8(&line[..tab]).ok()?.parse().ok()?;
    (machine < machines).then_some((machine, &line[tab + 1..]))
}

fn unnumbered(line: u64, machines: usize) -> String {
    let most = machines - 1;
    format!("line {line} of standard input does not begin with a machine's number, from 0 to {most}, and a tab")
}
