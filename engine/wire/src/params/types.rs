//! Connection parameters as types.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::auth::RequireAuth;
use super::error::ParamsError;

/// What the command line said; everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `-h`: host name, address, socket directory, or a comma-separated list of them.
    pub host: Option<String>,
    /// `-p`: port, or a comma-separated list of them.
    pub port: Option<String>,
    /// `-U`: user name.
    pub user: Option<String>,
    /// `-d` or the positional argument: database name, connection string or URI.
    pub dbname: Option<String>,
    /// The password, where there is an option for it.
    pub password: Option<Password>,
    /// `sslmode`, where there is an option for it.
    pub sslmode: Option<String>,
    /// Whether `host`, `port`, `user`, `password` and `sslmode` override a connection string in `dbname`, as with libpq's
    /// PQsetdbLogin, and not the other way round.
    pub options_win: bool,
    /// The name of the session if neither a connection string nor `PGAPPNAME` gives one, such as `pgbench`.
    pub fallback_application_name: String,
}

/// Everything that opening a session needs to know.
#[derive(Clone, Debug)]
pub struct Params {
    /// The servers to try, in the order given; never empty.
    pub endpoints: Vec<Endpoint>,
    /// The role to log in as.
    pub user: String,
    /// The database to open.
    pub dbname: String,
    /// Whether and how to encrypt.
    pub tls: TlsParams,
    /// `application_name` of the session.
    pub application_name: Option<String>,
    /// Command-line options for the server process (`options`, `PGOPTIONS`).
    pub options: Option<String>,
    /// Time limit for each endpoint, where `None` waits for ever, or what is wrong with it: that ends the first connection.
    pub connect_timeout: Result<Option<Duration>, ParamsError>,
    /// Which kind of server is acceptable.
    pub target_session_attrs: TargetSessionAttrs,
    /// Whether each connection tries the endpoints in a fresh random order.
    pub load_balance_random: bool,
    /// `client_encoding` of the session, with `auto` already resolved from the locale.
    pub client_encoding: Option<String>,
    /// Whether SCRAM must be bound to the TLS channel.
    pub channel_binding: ChannelBinding,
    /// Which ways of authentication the user accepts.
    pub require_auth: RequireAuth,
    /// `requirepeer`: the account that servers on Unix sockets must run as.
    pub required_peer: Option<String>,
    /// The options of TCP sockets, or what is wrong with them: that matters only where a socket is one.
    pub tcp: Result<TcpOptions, ParamsError>,
    /// The minor versions of protocol 3 that are acceptable.
    pub protocol: RangeInclusive<u16>,
    /// Further start-up settings, in libpq's order: `replication`, then those from `PGDATESTYLE`, `PGTZ`, `PGGEQO`.
    pub settings: Vec<(String, String)>,
    /// Lines that libpq would print on standard error, such as on an unsafe password file.
    pub warnings: Vec<String>,
}

/// One server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where to connect to, or why that cannot be.
    pub address: Result<Address, ParamsError>,
    /// The host as the user named it, for SNI and verification (`hostaddr` where no host was named).
    pub host_name: String,
    /// Whether a host was named.
    pub is_named: bool,
    /// TCP port, or the number in the name of the socket file.
    pub port: u16,
    /// The password for this endpoint, if one is known.
    pub password: Option<Password>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket file; a path that starts with `@` names a socket in the abstract namespace.
    Unix(PathBuf),
    /// A host name or numeric address to resolve.
    Tcp(String),
}

/// A password; `Debug` and `Display` hide it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub(super) text: String,
    /// The password file it was read from, to be named when the server rejects it.
    pub file: Option<PathBuf>,
}

impl Password {
    /// A password that was given directly.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), file: None }
    }

    /// The password itself as a text, never to be shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The password itself, to be sent or hashed and never to be shown.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        ground::text::bytes(&self.text)
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(***)")
    }
}

impl std::fmt::Display for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// `sslmode`: how much encryption and verification is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Encrypt only if the server refuses plain sessions.
    Allow,
    /// Encrypt if the server can.
    Prefer,
    /// Encrypt or fail.
    Require,
    /// Encrypt, and the certificate must come from a trusted authority.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must name the host.
    VerifyFull,
}

/// `sslrootcert`: which authorities are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootCert {
    /// The certificates in this PEM file, which need not exist below `verify-ca`.
    File(PathBuf),
    /// The operating system's trusted authorities.
    System,
}

/// A version of TLS that this client can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.0 and 1.1: known as bounds, never spoken.
    V1_0,
    V1_1,
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// `sslcertmode`: whether the client's certificate is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertMode {
    /// Never.
    Disable,
    /// If the server asks for it and there is one.
    Allow,
    /// Or fail: the server must ask for it, and there must be one.
    Require,
}

/// Everything about encryption. Paths that were not given are libpq's defaults below `~/.postgresql`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsParams {
    /// `sslmode`.
    pub mode: SslMode,
    /// `sslrootcert`; `None` only where no home directory is known.
    pub root_cert: Option<RootCert>,
    /// `sslcert`: the client's certificate chain; a file that does not exist is no certificate.
    pub cert: Option<PathBuf>,
    /// `sslkey`: the key of the client's certificate.
    pub key: Option<PathBuf>,
    /// `sslpassword`: the passphrase of the key, if that is encrypted.
    pub key_passphrase: Option<Password>,
    /// `sslcrl`: revoked certificates; a file that does not exist revokes none.
    pub crl: Option<PathBuf>,
    /// `sslcrldir`: a directory of files with revoked certificates.
    pub crl_dir: Option<PathBuf>,
    /// `sslkeylogfile`: a file to which the sessions' secrets are appended, for debugging.
    pub key_log: Option<PathBuf>,
    /// `sslcertmode`.
    pub cert_mode: CertMode,
    /// `sslsni`: whether the server is told the host name.
    pub sni: bool,
    /// `sslnegotiation=direct`: TLS starts at once, without asking in PostgreSQL's protocol (servers from 17 on).
    pub direct: bool,
    /// `ssl_min_protocol_version`.
    pub min_version: TlsVersion,
    /// `ssl_max_protocol_version`.
    pub max_version: TlsVersion,
}

/// `target_session_attrs`: the kind of server that is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Whichever answers first.
    Any,
    /// `transaction_read_only` must be off.
    ReadWrite,
    /// `transaction_read_only` must be on.
    ReadOnly,
    /// Not in hot standby.
    Primary,
    /// In hot standby.
    Standby,
    /// A standby, or any server if none of them is one.
    PreferStandby,
}

/// `channel_binding`: whether SCRAM is bound to the TLS channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server offers it.
    Prefer,
    /// Or fail.
    Require,
}

/// Options of TCP sockets; `None` leaves the system's default. With `keepalives=0` libpq sets none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Whether keepalives are sent at all.
    pub keepalives: bool,
    /// Silence before the first keepalive, in seconds. Systems may reject 0, as for the next two.
    pub idle: Option<u32>,
    /// Time between keepalives that are not answered, in seconds.
    pub interval: Option<u32>,
    /// Keepalives that may stay unanswered.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`), in milliseconds.
    pub user_timeout: Option<u32>,
}
