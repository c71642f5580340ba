//! Files whose size and checksum are in `capture.json`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use libdeflater::Crc;

use super::about::Checked;
use super::error::Error;

/// A new file whose checksum is computed while it is written.
pub struct CheckedWriter {
    out: BufWriter<File>,
    path: PathBuf,
    sum: Crc,
    bytes: u64,
}

impl CheckedWriter {
    pub fn create(path: PathBuf) -> Result<Self, Error> {
        let file = File::create(&path).map_err(Error::io("write", &path))?;
        Ok(Self { out: BufWriter::new(file), path, sum: Crc::new(), bytes: 0 })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Error::io("write", &self.path))
    }

    pub fn finish(mut self) -> Result<Checked, Error> {
        self.out.flush().map_err(Error::io("write", &self.path))?;
        Ok(Checked { bytes: self.bytes, crc32: self.sum.sum() })
    }
}

/// Reads a file once to check its size and checksum, and then opens it for reading.
pub fn open(path: &Path, expected: Checked) -> Result<BufReader<File>, Error> {
    let open = || ground::trust::open_file(path).map_err(Error::io("open", path));
    let found = check(open()?).map_err(Error::io("read", path))?;
    check_size(path, found.bytes, expected.bytes)?;
    if found.crc32 != expected.crc32 {
        return Err(Error::damaged(path, "its checksum differs"));
    }
    Ok(BufReader::new(open()?))
}

/// Fails if a file's size `has` is not the size `expected` with which it was written.
pub fn check_size(path: &Path, has: u64, expected: u64) -> Result<(), Error> {
    match has {
        _ if has < expected => Err(Error::CutShort { path: path.to_owned(), has, expected }),
        _ if has > expected => Err(Error::damaged(path, format!("it has {has} bytes instead of {expected}"))),
        _ => Ok(()),
    }
}

fn check(mut file: File) -> io::Result<Checked> {
    let (mut sum, mut bytes, mut buffer) = (Crc::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Checked { bytes, crc32: sum.sum() }),
            Ok(length) => {
                sum.update(&buffer[..length]);
                bytes += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
