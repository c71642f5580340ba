//! COPY FROM STDIN: the rows are counted and forgotten.

/// Rows of a COPY in text format that is going on.
#[derive(Debug, Default)]
pub struct Copying {
    /// Whether it was begun by Execute, not by a simple query.
    pub extended: bool,
    rows: u64,
    /// The beginning of the current line and its length so far.
    head: [u8; 2],
    length: usize,
}

/// The line that ends the data in old clients.
const END_MARK: &[u8] = b"\\.";

impl Copying {
    /// A COPY that begins.
    pub fn new(extended: bool) -> Self {
        Self { extended, ..Self::default() }
    }

    /// Counts the lines of one message; lines may go on from one message to the next.
    pub fn add(&mut self, data: &[u8]) {
        let mut pieces = data.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            for (place, byte) in self.head.iter_mut().skip(self.length).zip(piece) {
                *place = *byte;
            }
            self.length += piece.len();
            if pieces.peek().is_some() {
                self.end_line();
            }
        }
    }

    /// The number of rows, when all data has come; a last line without a line feed counts too.
    pub fn finish(mut self) -> u64 {
        if self.length > 0 {
            self.end_line();
        }
        self.rows
    }

    fn end_line(&mut self) {
        if self.length != END_MARK.len() || self.head != END_MARK {
            self.rows += 1;
        }
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let data = b"1\tone\n2\ttwo\n\n\\.x\n3\n\\.\n";
        for size in 1..=data.len() {
            let mut copying = Copying::new(false);
            data.chunks(size).for_each(|chunk| copying.add(chunk));
            assert_eq!(copying.finish(), 5, "in pieces of {size}");
        }
    }

    #[test]
    fn a_last_line_needs_no_line_feed() {
        let mut copying = Copying::new(false);
        copying.add(b"1\n2");
        assert_eq!(copying.finish(), 2);
    }
}
