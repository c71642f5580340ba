//! Counts the lines of COPY FROM STDIN data.

/// The state of a COPY FROM STDIN in text format. Its rows are counted, but not stored.
#[derive(Debug, Default)]
pub struct CopyIn {
    /// True if the COPY was begun by an Execute message, false if it was begun by a simple query.
    pub is_extended: bool,
    rows: u64,
    /// The beginning of the current line, at most [`CopyIn::KEPT`] bytes.
    line: Vec<u8>,
}

impl CopyIn {
    /// The line with which clients of old protocol versions end the data.
    const END_MARKER: &[u8] = b"\\.";

    /// The number of bytes of a line that are needed to recognise the end marker.
    const KEPT: usize = 3;

    pub fn new(is_extended: bool) -> Self {
        Self { is_extended, ..Self::default() }
    }

    /// Counts the lines in the data of one message. A line may continue in the next message.
    pub fn add(&mut self, data: &[u8]) {
        for (number, piece) in data.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 {
                self.end_line();
            }
            let room = Self::KEPT - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// Returns the number of rows. Called after the last message. The last line need not end with a line feed.
    pub fn finish(&mut self) -> u64 {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.rows
    }

    fn end_line(&mut self) {
        self.rows += u64::from(self.line != Self::END_MARKER);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let data = b"1\tone\n2\ttwo\n\n\\.x\n3\n\\.\n";
        for size in 1..=data.len() {
            let mut copying = CopyIn::default();
            data.chunks(size).for_each(|chunk| copying.add(chunk));
            assert_eq!(copying.finish(), 5, "in pieces of {size}");
        }
    }

    #[test]
    fn a_last_line_needs_no_line_feed() {
        let mut copying = CopyIn::default();
        copying.add(b"1\n2");
        assert_eq!(copying.finish(), 2);
    }
}
