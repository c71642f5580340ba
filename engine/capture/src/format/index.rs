//! The file `sessions.idx`, which has an entry for each session, ordered by the start of the sessions.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::about::{About, Checked};
use super::checked::CheckedWriter;
use super::error::Error;
use super::varint::{put, put_bytes, take, take_bytes, take_slice, take_u32};
use crate::time::Micros;

/// A session of a capture, as its entry in `sessions.idx` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedSession {
    /// The number of the session, counted from 0 in the order in which the sessions appear in the logs. The entries of
    /// the file are in another order: that of the sessions' starts.
    pub number: u32,
    /// The time at which the session connected, or the start of its first statement if the logs do not show the
    /// connection. A writer counts from 1970-01-01 00:00 UTC, a reader from the begin of the capture.
    pub start: Micros,
    /// The time at which the session disconnected, or the last known end of one of its statements if the logs do not
    /// show the disconnection. It counts from the same time as `start`.
    pub end: Micros,
    /// The name of the session's user, if the logs have it.
    pub user: Option<String>,
    pub database: Option<String>,
    pub application: Option<String>,
    /// The number of statements of the session.
    pub statements: u64,
    /// The offset of the session's first chunk in `sessions.bin`, if the session has statements.
    pub(super) first_chunk: Option<u64>,
}

impl RecordedSession {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.number.into());
        for number in [self.start, self.end, self.statements, self.first_chunk.unwrap_or(0)] {
            put(&mut out, number);
        }
        for name in [&self.user, &self.database, &self.application] {
            out.push(name.is_some().into());
            if let Some(name) = name {
                put_bytes(&mut out, name.as_bytes());
            }
        }
        out
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        Some(Self {
            number: take_u32(bytes)?,
            start: take(bytes)?,
            end: take(bytes)?,
            statements: take(bytes)?,
            first_chunk: Some(take(bytes)?).filter(|place| *place != 0),
            user: take_name(bytes)?,
            database: take_name(bytes)?,
            application: take_name(bytes)?,
        })
    }
}

fn take_name(bytes: &mut &[u8]) -> Option<Option<String>> {
    match take_slice(bytes, 1)? {
        [0] => Some(None),
        _ => Some(Some(String::from_utf8(take_bytes(bytes)?.to_vec()).ok()?)),
    }
}

/// Collects the entries in a file on disk, in the order in which the sessions end. In memory it keeps 24 bytes for each
/// session.
pub struct IndexWriter {
    path: PathBuf,
    unsorted_path: PathBuf,
    unsorted: BufWriter<File>,
    end: u64,
    /// For each session, its start, and the offset and the length of its entry in the unsorted file.
    entries: Vec<(Micros, u64, u32)>,
}

impl IndexWriter {
    pub fn create(path: PathBuf) -> Result<Self, Error> {
        let unsorted_path = path.with_extension("unsorted");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&unsorted_path);
        let unsorted = BufWriter::new(file.map_err(Error::io("write", &unsorted_path))?);
        Ok(Self { path, unsorted_path, unsorted, end: 0, entries: Vec::new() })
    }

    pub fn push(&mut self, session: &RecordedSession) -> Result<(), Error> {
        let entry = session.encode();
        self.unsorted.write_all(&entry).map_err(Error::io("write", &self.unsorted_path))?;
        self.entries.push((session.start, self.end, entry.len() as u32));
        self.end += entry.len() as u64;
        Ok(())
    }

    /// Writes all entries in the order of the sessions' starts, and returns the size and checksum of the file.
    pub fn finish(mut self) -> Result<Checked, Error> {
        let unsorted = self.unsorted.into_inner().map_err(std::io::IntoInnerError::into_error);
        let unsorted = unsorted.map_err(Error::io("write", &self.unsorted_path))?;
        self.entries.sort_unstable();
        let mut index = CheckedWriter::create(self.path)?;
        let (mut entry, mut length_bytes) = (Vec::new(), Vec::new());
        for (_, place, length) in self.entries {
            entry.resize(length as usize, 0);
            unsorted.read_exact_at(&mut entry, place).map_err(Error::io("read", &self.unsorted_path))?;
            length_bytes.clear();
            put(&mut length_bytes, length.into());
            index.write(&length_bytes)?;
            index.write(&entry)?;
        }
        fs::remove_file(&self.unsorted_path).map_err(Error::io("remove", &self.unsorted_path))?;
        index.finish()
    }
}

/// An iterator over the sessions of a capture in the order of their starts. It reads one entry after the other.
pub struct Sessions {
    file: BufReader<File>,
    path: PathBuf,
    begin: Micros,
    left: u64,
    /// The number of bytes of the file that have not been read.
    bytes_left: u64,
    /// The greatest number of statements that a session can have, since each statement takes at least a byte of
    /// `sessions.bin`. An entry with a greater number is damaged.
    most_statements: u64,
    entry: Vec<u8>,
}

impl Sessions {
    pub(super) fn new(file: BufReader<File>, path: &Path, about: &About) -> Self {
        Self {
            file,
            path: path.to_owned(),
            begin: about.begin_us,
            left: about.sessions,
            bytes_left: about.files.index.bytes,
            most_statements: about.files.sessions_bytes,
            entry: Vec::new(),
        }
    }

    fn read(&mut self) -> Result<RecordedSession, Error> {
        let wrong = || Error::damaged(&self.path, "an entry cannot be read");
        let mut length = 0_u64;
        for shift in (0..35).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte).map_err(Error::io("read", &self.path))?;
            self.bytes_left = self.bytes_left.saturating_sub(1);
            length |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                break;
            }
        }
        // The length is checked before the memory for the entry is allocated.
        self.bytes_left = self.bytes_left.checked_sub(length).ok_or_else(wrong)?;
        self.entry.resize(length as usize, 0);
        self.file.read_exact(&mut self.entry).map_err(Error::io("read", &self.path))?;
        let session = RecordedSession::decode(&self.entry).ok_or_else(wrong)?;
        if session.statements > self.most_statements {
            return Err(wrong());
        }
        let since = |time: Micros| time.saturating_sub(self.begin);
        Ok(RecordedSession { start: since(session.start), end: since(session.end), ..session })
    }
}

impl Iterator for Sessions {
    type Item = Result<RecordedSession, Error>;

    /// Returns the next session. After an error the iterator ends.
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let session = self.read();
        if session.is_err() {
            self.left = 0;
        }
        Some(session)
    }
}
