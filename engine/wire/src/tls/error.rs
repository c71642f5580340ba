//! What can be wrong with the files and settings of TLS.

use std::path::PathBuf;

use thiserror::Error;

/// A reason why no TLS configuration can be made; the wording is libpq's where libpq has the same error.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file of trusted certificates is needed and there is none.
    #[error(
        "root certificate file \"{}\" does not exist\nEither provide the file, use the system's trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification.",
        .0.display()
    )]
    RootMissing(PathBuf),
    /// A file of trusted certificates is needed and there is no place to look for it.
    #[error(
        "could not get home directory to locate root certificate file\nEither provide the file, use the system's trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification."
    )]
    RootUnknown,
    /// The file of trusted certificates holds none that can be used.
    #[error("could not read root certificate file \"{}\": {reason}", .file.display())]
    RootUnreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The operating system's trusted certificates cannot be found.
    #[error("could not load system root certificate paths: {0}")]
    SystemRoots(String),
    /// A list of revoked certificates cannot be used.
    #[error("could not read certificate revocation list \"{}\": {reason}", .file.display())]
    Revocations {
        /// The file or directory.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The client's certificate cannot be opened.
    #[error("could not open certificate file \"{}\": {reason}", .file.display())]
    CertUnopened {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
    /// The client's certificate is none.
    #[error("could not read certificate file \"{}\": {reason}", .file.display())]
    CertUnreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is a certificate and no key.
    #[error("certificate present, but not private key file \"{}\"", .0.display())]
    KeyMissing(PathBuf),
    /// The key cannot be looked at.
    #[error("could not stat private key file \"{}\": {reason}", .file.display())]
    KeyUnopened {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
    /// The key is a directory or a device.
    #[error("private key file \"{}\" is not a regular file", .0.display())]
    KeyNotRegular(PathBuf),
    /// Others can read the key.
    #[error(
        "private key file \"{}\" has group or world access; file must have permissions u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root",
        .0.display()
    )]
    KeyPermissions(PathBuf),
    /// The key cannot be used.
    #[error("could not load private key file \"{}\": {reason}", .file.display())]
    KeyUnreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key belongs to another certificate.
    #[error("certificate does not match private key file \"{}\"", .0.display())]
    KeyMismatch(PathBuf),
    /// Only versions before 1.2 are allowed.
    #[error("this client speaks TLSv1.2 and TLSv1.3 only; raise ssl_max_protocol_version")]
    ObsoleteVersions,
    /// The host cannot be named in a TLS handshake.
    #[error("host name \"{0}\" cannot be used with SSL")]
    HostName(String),
    /// The library refuses the configuration.
    #[error("could not create SSL context: {0}")]
    Configuration(rustls::Error),
}
