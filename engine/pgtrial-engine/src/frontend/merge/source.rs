//! Reads the events of the machines: from one file for each machine, or from standard input while the run is still
//! going on.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use serde::de::IgnoredAny;

use super::error::MergeError;
use super::merger::Merger;
use ground::output::could_not;

/// The greatest length of a line, in bytes. Real lines are much shorter: the histograms of a second take less than a
/// megabyte.
const LONGEST_LINE: usize = 1 << 26;

/// The capacity of the buffer for standard input, in bytes.
const BUFFER: usize = 1 << 18;

/// Reads a file or stream line by line.
struct Lines<R> {
    from: R,
    /// The name of the file or stream in error messages.
    name: String,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(from: R, name: String) -> Self {
        Self { from, name, line: Vec::new() }
    }

    /// Returns the next line without the line feed at its end, or `None` at the end of the input. If the last line has
    /// no line feed, it is returned only if it is valid JSON; otherwise the engine was stopped while it wrote the line.
    fn next(&mut self) -> Result<Option<&[u8]>, MergeError> {
        self.line.clear();
        let mut from = (&mut self.from).take(LONGEST_LINE as u64);
        from.read_until(b'\n', &mut self.line).map_err(could_not(format_args!("read {}", self.name)))?;
        if let Some(line) = self.line.strip_suffix(b"\n") {
            return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
        }
        if self.line.len() >= LONGEST_LINE {
            return Err(MergeError::LongLine { input: self.name.clone(), longest: LONGEST_LINE });
        }
        Ok(Some(&*self.line).filter(|line| is_whole(line)))
    }
}

/// Returns true if a line is valid JSON. The number of a machine and a tab may come before the JSON.
fn is_whole(line: &[u8]) -> bool {
    let event = line.splitn(2, |byte| *byte == b'\t').last().unwrap_or_default();
    serde_json::from_slice::<IgnoredAny>(event).is_ok()
}

/// Merges the events of all machines from one file for each machine. The next line is always read from the file of the
/// machine that is furthest behind, so that few seconds are kept in memory. `write` writes the events that are
/// complete.
pub fn merge_files(
    merger: &mut Merger,
    paths: &[PathBuf],
    mut write: impl FnMut(&mut Merger) -> Result<(), MergeError>,
) -> Result<(), MergeError> {
    let mut files = Vec::new();
    for path in paths {
        let name = format!("\"{}\"", path.display());
        let file = ground::trust::open_file(path).map_err(could_not(format_args!("open {name}")))?;
        files.push(Lines::new(BufReader::new(file), name));
    }
    while let Some(machine) = merger.last() {
        match files[machine].next()? {
            Some(line) => merger.add_line(machine, line)?,
            None => merger.end_stream(machine)?,
        }
        if !merger.is_running(machine) {
            // A line after the last event is an error. It is read here so that the merger can reject it.
            if let Some(line) = files[machine].next()? {
                merger.add_line(machine, line)?;
            }
        }
        write(merger)?;
    }
    Ok(())
}

/// Merges lines of the form `MACHINE<TAB>EVENT`, where MACHINE is a number, until all machines have ended or the input
/// ends. A line with nothing after the tab ends the events of its machine. `write` writes the events that are complete.
pub fn merge_live(
    merger: &mut Merger,
    from: impl Read,
    mut write: impl FnMut(&mut Merger) -> Result<(), MergeError>,
) -> Result<(), MergeError> {
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, from), "standard input".to_owned());
    let mut number = 0u64;
    while let Some(line) = lines.next()? {
        number += 1;
        let (machine, event) = split(line, merger.machines())
            .ok_or_else(|| MergeError::NoMachine { line: number, most: merger.machines() - 1 })?;
        if event.is_empty() {
            merger.end_stream(machine)?;
        } else {
            merger.add_line(machine, event)?;
        }
        write(merger)?;
        if merger.status().is_some() {
            return Ok(());
        }
    }
    for machine in 0..merger.machines() {
        merger.end_stream(machine)?;
    }
    write(merger)
}

fn split(line: &[u8], machines: usize) -> Option<(usize, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let machine = std::str::from_utf8(&line[..tab]).ok()?.parse().ok()?;
    (machine < machines).then_some((machine, &line[tab + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(of: &[u8], read_at_once: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(BufReader::with_capacity(read_at_once, of), "it".to_owned());
        std::iter::from_fn(|| lines.next().unwrap().map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn a_last_line_without_an_end_counts_if_it_is_an_event() {
        for at_once in 1..20 {
            assert_eq!(lines(b"a\r\n\n1\t{\"b\":2}", at_once), [&b"a"[..], b"", b"1\t{\"b\":2}"]);
            assert_eq!(lines(b"a\n1\t{\"b\":2", at_once), [b"a"]);
            assert_eq!(lines(b"", at_once), [b""; 0]);
        }
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_read(
            lines_written in prop::collection::vec(prop::collection::vec(b'a'..=b'd', 0..40), 0..20), at_once in 1..50usize,
        ) {
            let whole: Vec<u8> = lines_written.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect();
            prop_assert_eq!(lines(&whole, at_once), lines_written);
        }
    }
}
