//! The server's messages, as bytes.

use super::statements::{Table, Tag};

/// Type OIDs.
const CHAR: u32 = 18;
const INT8: u32 = 20;
const INT4: u32 = 23;
/// What a parameter is said to be when its type is not given.
pub const TEXT: u32 = 25;

/// Whether a transaction is open, as in ReadyForQuery.
pub const IDLE: u8 = b'I';
pub const IN_TRANSACTION: u8 = b'T';
pub const FAILED: u8 = b'E';

/// RowDescription and DataRow of each table, encoded once: in text and in binary format.
pub struct Answers {
    tables: [[Encoded; 2]; 4],
}

struct Encoded {
    description: Vec<u8>,
    row: Vec<u8>,
}

/// A column: name, type, size of its type in bytes, value.
type Column = (&'static str, u32, u16, Option<i64>);

impl Answers {
    /// Encodes all rows.
    pub fn new() -> Self {
        let tables: [&[Column]; 4] = [
            &[("abalance", INT4, 4, Some(0))],
            &[("count", INT8, 8, Some(1))],
            &[("partstrat", CHAR, 1, None), ("count", INT8, 8, Some(0))],
            &[("n", INT4, 4, Some(1)), ("partstrat", CHAR, 1, None), ("count", INT8, 8, Some(0))],
        ];
        Self { tables: tables.map(|columns| [encode(columns, false), encode(columns, true)]) }
    }

    fn of(&self, table: Table, binary: bool) -> &Encoded {
        &self.tables[table as usize][usize::from(binary)]
    }

    /// RowDescription.
    pub fn description(&self, table: Table, binary: bool) -> &[u8] {
        &self.of(table, binary).description
    }

    /// DataRow.
    pub fn row(&self, table: Table, binary: bool) -> &[u8] {
        &self.of(table, binary).row
    }
}

fn encode(columns: &[Column], binary: bool) -> Encoded {
    let count = (columns.len() as u16).to_be_bytes();
    let (mut description, mut row) = (Vec::new(), Vec::new());
    message(&mut description, b'T', |out| {
        out.extend_from_slice(&count);
        for (name, oid, size, _) in columns {
            text(out, name);
            out.extend_from_slice(&[0; 6]); // of no table
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes());
            out.extend_from_slice(&u16::from(binary).to_be_bytes());
        }
    });
    message(&mut row, b'D', |out| {
        out.extend_from_slice(&count);
        for (_, _, size, value) in columns {
            let bytes = match value {
                None => {
                    out.extend_from_slice(&(-1i32).to_be_bytes());
                    continue;
                }
                Some(value) if binary => value.to_be_bytes()[8 - usize::from(*size)..].to_vec(),
                Some(value) => value.to_string().into_bytes(),
            };
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(&bytes);
        }
    });
    Encoded { description, row }
}

/// One message, whose body is what `body` appends.
#[inline]
pub fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// A message without a body.
#[inline]
pub fn bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

/// CommandComplete.
#[inline]
pub fn complete(out: &mut Vec<u8>, tag: &Tag) {
    message(out, b'C', |out| {
        out.extend_from_slice(tag.bytes());
        out.push(0);
    });
}

/// CommandComplete of a COPY of so many rows.
pub fn copied(out: &mut Vec<u8>, rows: u64) {
    message(out, b'C', |out| text(out, &format!("COPY {rows}")));
}

/// CopyInResponse or CopyOutResponse: text, columns unknown.
pub fn copy_begins(out: &mut Vec<u8>, kind: u8) {
    message(out, kind, |out| out.extend_from_slice(&[0, 0, 0]));
}

/// ReadyForQuery.
#[inline]
pub fn ready(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// ParameterDescription.
pub fn parameters(out: &mut Vec<u8>, types: &[u32]) {
    message(out, b't', |out| {
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// ErrorResponse.
pub fn error(out: &mut Vec<u8>, severity: &str, sqlstate: &str, sentence: &str) {
    message(out, b'E', |out| {
        for (field, value) in [(b'S', severity), (b'V', severity), (b'C', sqlstate), (b'M', sentence)] {
            out.push(field);
            text(out, value);
        }
        out.push(0);
    });
}

/// NegotiateProtocolVersion: 3.0, and none of the options named.
pub fn negotiate(out: &mut Vec<u8>, options: &[&[u8]]) {
    message(out, b'v', |out| {
        out.extend_from_slice(&(3u32 << 16).to_be_bytes());
        out.extend_from_slice(&(options.len() as u32).to_be_bytes());
        for option in options {
            out.extend_from_slice(option);
            out.push(0);
        }
    });
}

/// What a session begins with: AuthenticationOk, the parameters, BackendKeyData, ReadyForQuery.
pub fn welcome(out: &mut Vec<u8>, user: &[u8], number: u32, key: u32) {
    message(out, b'R', |out| out.extend_from_slice(&[0; 4]));
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
        message(out, b'S', |out| {
            text(out, name);
            out.extend_from_slice(value);
            out.push(0);
        });
    }
    message(out, b'K', |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&key.to_be_bytes());
    });
    ready(out, IDLE);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}
