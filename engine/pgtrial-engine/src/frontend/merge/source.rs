//! Where the lines come from: a file for each machine, or all of them through standard input while the run goes on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;

use memchr::memchr;
use serde::de::IgnoredAny;

use super::merger::Merger;
use ground::output::plain_io_message;

/// No event is longer, bytes: a second's histograms are below a megabyte.
const LONGEST_LINE: usize = 1 << 26;

/// What a read takes from standard input, bytes.
const BUFFER: usize = 1 << 18;

/// Reads lines one after the other.
struct Lines<R> {
    from: R,
    what: String,
    /// So much of what was read has been given out as a line.
    given: usize,
    /// A line that is longer than what was read at once.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn new(from: R, what: String) -> Self {
        Self { from, what, given: 0, line: Vec::new() }
    }

    /// The next line without its end. One that was not written to its end is none: its writer was cut off.
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.from.consume(std::mem::take(&mut self.given));
        self.line.clear();
        let end = loop {
            let read = match self.from.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&self.what, &error)),
            };
            if read.is_empty() {
                return Ok(Some(&*self.line).filter(|line| is_whole(line)));
            }
            let end = memchr(b'\n', read);
            if let Some(end) = end.filter(|_| self.line.is_empty()) {
                break end;
            }
            let used = end.unwrap_or(read.len());
            self.line.extend_from_slice(&read[..used]);
            self.from.consume(used + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(without_return(&self.line)));
            }
            if self.line.len() >= LONGEST_LINE {
                return Err(format!("{} has a line of more than {LONGEST_LINE} bytes, which is no event", self.what));
            }
        };
        self.given = end + 1;
        // What was read is still there: nothing is waited for.
        let read = self.from.fill_buf().map_err(|error| unreadable(&self.what, &error))?;
        Ok(Some(without_return(&read[..end])))
    }
}

fn unreadable(what: &str, error: &io::Error) -> String {
    format!("could not read {what}: {}", plain_io_message(error))
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
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
            told in prop::collection::vec(prop::collection::vec(b'a'..=b'd', 0..40), 0..20), at_once in 1..50usize,
        ) {
            let whole: Vec<u8> = told.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect();
            prop_assert_eq!(lines(&whole, at_once), told);
        }
    }
}
