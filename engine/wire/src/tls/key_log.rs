//! `sslkeylogfile`: the secrets of sessions in a file, with which tools such as Wireshark decrypt what was recorded.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::failure::{TlsFailure, UnusableFile};

/// The file, opened to be appended to.
#[derive(Debug)]
pub struct KeyLog(File);

impl KeyLog {
    /// Opens the file, or makes it for its owner alone.
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

/// Lines of NSS's format: `LABEL RANDOM SECRET`, the latter two in hexadecimal digits.
impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        client_random.iter().for_each(|byte| _ = write!(line, "{byte:02x}"));
        line.push(' ');
        secret.iter().for_each(|byte| _ = write!(line, "{byte:02x}"));
        line.push('\n');
        // A secret that could not be written costs the session nothing, as in libpq.
        _ = (&self.0).write_all(line.as_bytes());
    }
}
