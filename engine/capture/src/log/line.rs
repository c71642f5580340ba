//! Reads lines with a bounded amount of memory, even if a damaged file lacks line ends.

use std::io::{self, BufRead, ErrorKind};

/// The length in bytes from which a line cannot come from a server. Such a line is skipped, and is counted like a line
/// of which data were lost.
pub const LONGEST_LINE: usize = 256 << 20;

/// Appends the next line with its line end to `line`, and returns the number of bytes that it has in the input; 0 at
/// the end of the input.
///
/// Of several zero bytes in a row only the first is appended: a file system fills lost data with zeros, and one of them
/// is enough to recognize this. A line of more than `longest` bytes is replaced by a zero byte.
pub fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, longest: usize) -> io::Result<u64> {
    let (begin, mut length, mut is_too_long) = (line.len(), 0, false);
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let end = memchr::memchr(b'\n', bytes);
        let count = end.map_or(bytes.len(), |end| end + 1);
        let part = &bytes[..end.unwrap_or(count)];
        is_too_long |= line.len() - begin + part.len() > longest;
        if is_too_long {
            line.truncate(begin);
            line.push(0);
        } else {
            push(line, part);
        }
        line.extend(end.map(|_| b'\n'));
        input.consume(count);
        length += count as u64;
        if end.is_some() || count == 0 {
            return Ok(length);
        }
    }
}

/// Appends a part of a line, without zero bytes that follow a zero byte.
fn push(line: &mut Vec<u8>, mut part: &[u8]) {
    while let Some(zero) = memchr::memchr(0, part) {
        line.extend_from_slice(&part[..zero]);
        if line.last() != Some(&0) {
            line.push(0);
        }
        let zeros = part[zero..].iter().take_while(|byte| **byte == 0).count();
        part = &part[zero + zeros..];
    }
    line.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    #[test]
    fn lines_are_read_with_their_ends_and_their_lengths() {
        let mut input = BufReader::with_capacity(3, &b"a\n\nlonger\0\0\0\0\0\0\0b\0\ntoo long for this\nz"[..]);
        let mut found = Vec::new();
        loop {
            let mut line = Vec::new();
            let length = read_line(&mut input, &mut line, 10).unwrap();
            if length == 0 {
                break;
            }
            found.push((length, String::from_utf8(line).unwrap()));
        }
        let expected = [(2, "a\n"), (1, "\n"), (16, "longer\0b\0\n"), (18, "\0\n"), (1, "z")];
        assert_eq!(found, expected.map(|(length, line)| (length, line.to_owned())));
    }

    #[test]
    fn a_line_without_an_end_takes_little_memory() {
        for byte in [0, b'a'] {
            let mut line = Vec::new();
            let mut input = BufReader::with_capacity(1 << 16, io::repeat(byte).take(16 << 20));
            assert_eq!(read_line(&mut input, &mut line, 1 << 20).unwrap(), 16 << 20);
            assert_eq!(line, b"\0");
            assert!(line.capacity() <= 2 << 20);
        }
    }
}
