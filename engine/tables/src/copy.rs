//! Runs COPY FROM STDIN in text or binary format: packs generated rows into messages and reports how many rows of the
//! table have been packed.

use std::sync::atomic::{AtomicBool, Ordering};

use wire::session::{CopyError, Fill, Session};

use crate::progress::TableProgress;

/// The size in bytes from which a message is full: no further row is packed into it. It is large enough that the cost
/// of a message does not matter, and small enough that a message fits into a processor's cache.
const MESSAGE_SIZE: usize = 64 * 1024;

/// The bytes with which COPY's binary format starts: the signature, no flags, and no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The bytes with which COPY's binary format ends: a field count of -1.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// A stop flag that is never set, for calls of [`copy_rows`] that nothing has to stop.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// The format in which COPY receives data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Binary,
}

/// Runs the COPY statement `sql`. `next_row` appends the next row, or returns false when all rows were generated. The
/// COPY is abandoned when `stop` becomes true.
pub fn copy_rows(
    session: &mut Session,
    sql: &str,
    format: CopyFormat,
    mut next_row: impl FnMut(&mut Vec<u8>) -> bool,
    progress: &TableProgress,
    stop: &AtomicBool,
) -> Result<(), CopyError> {
    let mut is_first = true;
    session.copy_in(sql, |out| {
        if stop.load(Ordering::Relaxed) {
            return Fill::GiveUp;
        }
        let (rows, fill) = fill_message(out, format, is_first, &mut next_row);
        is_first = false;
        progress.advance(rows);
        fill
    })
}

/// Appends rows until a message is full or no row is left. Returns the number of rows of the message, and whether
/// further messages follow.
fn fill_message(
    out: &mut Vec<u8>,
    format: CopyFormat,
    is_first: bool,
    next_row: &mut impl FnMut(&mut Vec<u8>) -> bool,
) -> (u64, Fill) {
    if is_first && format == CopyFormat::Binary {
        out.extend_from_slice(HEADER);
    }
    let (end, mut rows) = (out.len() + MESSAGE_SIZE, 0);
    while out.len() < end {
        if !next_row(out) {
            if format == CopyFormat::Binary {
                out.extend_from_slice(&TRAILER);
            }
            return (rows, Fill::Done);
        }
        rows += 1;
    }
    (rows, Fill::More)
}

/// Encodes a row in the binary format: the number of fields, then the length and the bytes of each field.
pub fn encode_row(fields: &[&[u8]]) -> Vec<u8> {
    let mut row = (fields.len() as u16).to_be_bytes().to_vec();
    for field in fields {
        row.extend_from_slice(&(field.len() as u32).to_be_bytes());
        row.extend_from_slice(field);
    }
    row
}

/// Generates all rows and decodes them from COPY's binary format, for tests. Returns the number of rows, and the fields
/// of each row. The rows must not contain NULL.
#[cfg(test)]
pub fn read_back(mut next_row: impl FnMut(&mut Vec<u8>) -> bool) -> (u64, Vec<Vec<Vec<u8>>>) {
    let (mut data, mut sent) = (Vec::new(), 0);
    let mut is_first = true;
    loop {
        let (rows, fill) = fill_message(&mut data, CopyFormat::Binary, is_first, &mut next_row);
        (sent, is_first) = (sent + rows, false);
        if fill == Fill::Done {
            break;
        }
    }
    let mut rest = data.strip_prefix(HEADER).unwrap();
    let mut next = |count: usize| {
        let (bytes, after) = rest.split_at(count);
        rest = after;
        bytes
    };
    let mut rows = Vec::new();
    loop {
        let fields = i16::from_be_bytes(next(2).try_into().unwrap());
        if fields == -1 {
            break;
        }
        let field = |_| {
            let length = u32::from_be_bytes(next(4).try_into().unwrap());
            next(length as usize).to_vec()
        };
        rows.push((0..fields).map(field).collect());
    }
    assert!(rest.is_empty());
    (sent, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rows_are_a_header_and_a_trailer() {
        let mut out = Vec::new();
        assert_eq!(fill_message(&mut out, CopyFormat::Binary, true, &mut |_| false), (0, Fill::Done));
        assert_eq!(out, [HEADER, &TRAILER].concat());
    }
}
