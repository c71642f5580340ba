//! The messages that the null server sends.

use wire::frame::{write, write_text};

use crate::statements::KnownRow;

/// The OID of the type "char".
const CHAR_OID: u32 = 18;
/// The OID of the type bigint.
const INT8_OID: u32 = 20;
/// The OID of the type integer.
const INT4_OID: u32 = 23;
/// The OID of the type text, which parameters have if the client names no type.
pub const TEXT_OID: u32 = 25;

/// The transaction status that ReadyForQuery reports outside of a transaction.
pub const IDLE: u8 = b'I';
/// The transaction status that ReadyForQuery reports in a transaction.
pub const IN_TRANSACTION: u8 = b'T';
/// The transaction status that ReadyForQuery reports in a failed transaction.
pub const FAILED: u8 = b'E';

/// The messages RowDescription and DataRow of each fixed row with which the server answers queries. They are encoded
/// once, in text format and in binary format.
pub struct EncodedRows([[EncodedRow; 2]; 4]);

struct EncodedRow {
    description: Vec<u8>,
    row: Vec<u8>,
}

/// A column: its name, its type's OID, the size of its type in bytes, and its value.
type Column = (&'static str, u32, u16, Option<i64>);

impl EncodedRows {
    pub fn new() -> Self {
        let abalance: Column = ("abalance", INT4_OID, 4, Some(0));
        let (branches, partitions) = (("count", INT8_OID, 8, Some(1)), ("count", INT8_OID, 8, Some(0)));
        let (place, strategy) = (("n", INT4_OID, 4, Some(1)), ("partstrat", CHAR_OID, 1, None));
        // The rows are in the order of `KnownRow`.
        let rows: [&[Column]; 4] = [&[abalance], &[branches], &[strategy, partitions], &[place, strategy, partitions]];
        Self(rows.map(|columns| [encode(columns, false), encode(columns, true)]))
    }

    /// Returns the RowDescription message of one of the fixed rows with which the server answers queries.
    pub fn description(&self, row: KnownRow, is_binary: bool) -> &[u8] {
        &self.0[row as usize][usize::from(is_binary)].description
    }

    /// Returns the DataRow message of one of the fixed rows with which the server answers queries.
    pub fn row(&self, row: KnownRow, is_binary: bool) -> &[u8] {
        &self.0[row as usize][usize::from(is_binary)].row
    }
}

fn encode(columns: &[Column], is_binary: bool) -> EncodedRow {
    let count = (columns.len() as u16).to_be_bytes();
    let (mut description, mut row) = (Vec::new(), Vec::new());
    write(&mut description, b'T', |out| {
        out.extend_from_slice(&count);
        for (name, oid, size, _) in columns {
            write_text(out, name.as_bytes());
            out.extend_from_slice(&[0; 6]); // of no table
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes()); // no type modifier
            out.extend_from_slice(&u16::from(is_binary).to_be_bytes());
        }
    });
    write(&mut row, b'D', |out| {
        out.extend_from_slice(&count);
        for (_, _, size, value) in columns {
            let Some(value) = value else {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            };
            let text = value.to_string();
            let binary = &value.to_be_bytes()[8 - usize::from(*size)..];
            let bytes = if is_binary { binary } else { text.as_bytes() };
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    });
    EncodedRow { description, row }
}

/// Writes a message without a body.
#[inline]
pub fn bare(out: &mut Vec<u8>, kind: u8) {
    write(out, kind, |_| {});
}

/// Writes a CommandComplete message.
#[inline]
pub fn complete(out: &mut Vec<u8>, tag: &[u8]) {
    write(out, b'C', |out| {
        out.extend_from_slice(tag);
        out.push(0);
    });
}

/// Writes a CopyInResponse or CopyOutResponse message, with text format and no known number of columns.
pub fn copy_response(out: &mut Vec<u8>, kind: u8) {
    write(out, kind, |out| out.extend_from_slice(&[0, 0, 0]));
}

/// Writes a ReadyForQuery message.
#[inline]
pub fn ready(out: &mut Vec<u8>, status: u8) {
    write(out, b'Z', |out| out.push(status));
}

/// Writes a ParameterDescription message.
pub fn parameter_types(out: &mut Vec<u8>, types: &[u32]) {
    write(out, b't', |out| {
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// Writes an ErrorResponse message.
pub fn error(out: &mut Vec<u8>, severity: &str, sqlstate: &str, message: &str) {
    write(out, b'E', |out| {
        for (field, value) in [(b'S', severity), (b'V', severity), (b'C', sqlstate), (b'M', message)] {
            out.push(field);
            write_text(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// Writes a NegotiateProtocolVersion message: the server supports version 3.0, and none of `options`.
pub fn negotiate(out: &mut Vec<u8>, options: &[&[u8]]) {
    write(out, b'v', |out| {
        out.extend_from_slice(&(3u32 << 16).to_be_bytes());
        out.extend_from_slice(&(options.len() as u32).to_be_bytes());
        options.iter().for_each(|option| write_text(out, option));
    });
}

/// Writes the messages that begin a session: AuthenticationOk, ParameterStatus, BackendKeyData and ReadyForQuery.
pub fn welcome(out: &mut Vec<u8>, user: &[u8], number: u32, key: u32) {
    write(out, b'R', |out| out.extend_from_slice(&[0; 4]));
    let parameters: [(&str, &[u8]); 13] = [
        ("server_version", b"18.0"),
        ("server_encoding", b"UTF8"),
        ("client_encoding", b"UTF8"),
        ("standard_conforming_strings", b"on"),
        ("integer_datetimes", b"on"),
        ("DateStyle", b"ISO, MDY"),
        ("IntervalStyle", b"postgres"),
        ("TimeZone", b"UTC"),
        ("in_hot_standby", b"off"),
        ("default_transaction_read_only", b"off"),
        ("is_superuser", b"on"),
        ("scram_iterations", b"4096"),
        ("session_authorization", user),
    ];
    for (name, value) in parameters {
        write(out, b'S', |out| {
            write_text(out, name.as_bytes());
            write_text(out, value);
        });
    }
    write(out, b'K', |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&key.to_be_bytes());
    });
    ready(out, IDLE);
}
