//! The connection parameter `sslkeylogfile`: a file to which the secrets of TLS sessions are written. Tools such as
//! Wireshark need them to decrypt recorded network traffic.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::failure::{TlsFailure, UnusableFile};

/// The key log file, opened for appending.
#[derive(Debug)]
pub struct KeyLog(File);

impl KeyLog {
    /// Opens the file, or creates it with access for its owner only.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written. libpq ignores such a file silently.
    pub fn open(file: &Path) -> Result<Arc<Self>, TlsFailure> {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        opened.map(|file| Arc::new(Self(file))).map_err(|error| {
            let reason = ground::output::plain_io_message(&error);
            TlsFailure::unsupported(UnusableFile::new("open SSL key logging file", file, reason))
        })
    }
}

/// Writes lines in the NSS key log format: `LABEL RANDOM SECRET`, with the last two in hexadecimal digits.
impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        client_random.iter().for_each(|byte| _ = write!(line, "{byte:02x}"));
        line.push(' ');
        secret.iter().for_each(|byte| _ = write!(line, "{byte:02x}"));
        line.push('\n');
        // As in libpq, a session goes on if its secret cannot be written.
        _ = (&self.0).write_all(line.as_bytes());
    }
}
