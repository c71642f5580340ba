//! Chunks of `sessions.bin`. A chunk has statements of one session, behind a header that contains the offset of the
//! next chunk of that session.
//!
//! ```text
//! u64 offset of the session's next chunk, 0 for its last one; entered when the next chunk is written
//! u32 session   u32 number of the chunk within the session, from 0
//! u32 length of the statements in bytes   u32 CRC-32 of session, number, length and statements
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use libdeflater::Crc;

use super::error::Error;

/// The first bytes of the file. Because of them no chunk has the offset 0, so that 0 can stand for "no chunk".
pub const MAGIC: &[u8; 8] = b"pgtcapt1";

/// The length in bytes of a session's pending statements at which they are written as a chunk. A chunk of this length
/// and the other fields of a reader need less than 4 KiB of memory.
pub const USUAL_LENGTH: usize = 2048;

const HEADER: usize = 24;
const NEXT: usize = 8;

/// The session to which a chunk belongs, and the number of the chunk within that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub session: u32,
    pub number: u32,
}

/// The file `sessions.bin`, open for writing.
pub struct ChunkWriter {
    file: File,
    path: PathBuf,
    end: u64,
}

impl ChunkWriter {
    pub fn create(path: PathBuf) -> Result<Self, Error> {
        let file = File::create(&path).map_err(Error::io("write", &path))?;
        file.write_all_at(MAGIC, 0).map_err(Error::io("write", &path))?;
        Ok(Self { file, path, end: MAGIC.len() as u64 })
    }

    /// Writes a chunk and returns its offset in the file. `before` is the offset of the session's previous chunk, whose
    /// header gets the offset of the new chunk.
    pub fn append(&mut self, owner: Owner, before: Option<u64>, statements: &mut Vec<u8>) -> Result<u64, Error> {
        let place = self.end;
        let length = u32::try_from(statements.len()).map_err(|_| Error::TooMany("bytes of one statement"))?;
        let mut header = [0; HEADER];
        let fields = [owner.session, owner.number, length, checksum(owner, statements)];
        for (bytes, field) in header[NEXT..].chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        // Header and statements are joined so that a chunk needs one system call.
        drop(statements.splice(..0, header));
        self.write(statements, place)?;
        self.end += statements.len() as u64;
        statements.clear();
        if let Some(before) = before {
            self.write(&place.to_le_bytes(), before)?;
        }
        Ok(place)
    }

    fn write(&self, bytes: &[u8], place: u64) -> Result<(), Error> {
        self.file.write_all_at(bytes, place).map_err(Error::io("write", &self.path))
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.end
    }
}

/// The file `sessions.bin`, open for reading by any number of threads.
#[derive(Debug)]
pub struct ChunkReader {
    file: File,
    path: PathBuf,
    size: u64,
}

impl ChunkReader {
    /// Opens the file, whose size the caller has checked.
    pub fn open(path: &Path, size: u64) -> Result<Self, Error> {
        let file = ground::trust::open_file(path).map_err(Error::io("open", path))?;
        let reader = Self { file, path: path.to_owned(), size };
        let mut magic = [0; MAGIC.len()];
        reader.read(&mut magic, 0)?;
        if magic == *MAGIC { Ok(reader) } else { Err(reader.damaged("it does not begin as sessions.bin does")) }
    }

    /// Reads the statements of the chunk at offset `place` into a buffer. Returns the offset of the session's next
    /// chunk, or `None` if this chunk is the last. Fails if the chunk is damaged or belongs to another owner.
    pub fn load(&self, place: u64, owner: Owner, buffer: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        let wrong = || self.damaged(format!("at byte {place}, chunk {} of session {}", owner.number, owner.session));
        let start = place.checked_add(HEADER as u64).filter(|start| *start <= self.size).ok_or_else(wrong)?;
        let mut header = [0; HEADER];
        self.read(&mut header, place)?;
        let (next, fields) = header.split_at(NEXT);
        let mut fields = fields.chunks_exact(4).map(|field| u32::from_le_bytes(field.try_into().expect("4 bytes")));
        let mut field = || fields.next().expect("four fields");
        let found = Owner { session: field(), number: field() };
        let (length, sum) = (field(), field());
        if found != owner || u64::from(length) > self.size - start {
            return Err(wrong());
        }
        buffer.clear();
        buffer.shrink_to((length as usize).max(USUAL_LENGTH));
        buffer.resize(length as usize, 0);
        self.read(buffer, start)?;
        if checksum(owner, buffer) != sum {
            return Err(wrong());
        }
        Ok(Some(u64::from_le_bytes(next.try_into().expect("8 bytes"))).filter(|next| *next != 0))
    }

    /// Returns an error that says in which way the file is damaged.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    fn read(&self, buffer: &mut [u8], place: u64) -> Result<(), Error> {
        self.file.read_exact_at(buffer, place).map_err(Error::io("read", &self.path))
    }
}

fn checksum(owner: Owner, statements: &[u8]) -> u32 {
    let mut sum = Crc::new();
    for field in [owner.session, owner.number, statements.len() as u32] {
        sum.update(&field.to_le_bytes());
    }
    sum.update(statements);
    sum.sum()
}
