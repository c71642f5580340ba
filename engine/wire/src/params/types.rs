//! Connection parameters as types.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::auth::RequireAuth;
use super::error::ParamsError;

/// The parameters that the command line has given; everything else is looked up.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The value of `-h`: host name, address, socket directory, or a comma-separated list of them.
    pub host: Option<String>,
    /// The value of `-p`: port, or a comma-separated list of them.
    pub port: Option<String>,
    /// The value of `-U`: the user name.
    pub user: Option<String>,
    /// The value of `-d` or the positional argument: database name, connection string or URI.
    pub dbname: Option<String>,
    /// The password, where there is an option for it.
    pub password: Option<Password>,
    /// The value of `sslmode`, where there is an option for it.
    pub sslmode: Option<String>,
    /// True if `host`, `port`, `user`, `password` and `sslmode` override a connection string in `dbname`, as with
    /// libpq's PQsetdbLogin; false if the string overrides them.
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
    /// The parameters of encryption: whether and how to encrypt.
    pub tls: TlsParams,
    /// The `application_name` of the session.
    pub application_name: Option<String>,
    /// The command-line options for the server process (`options`, `PGOPTIONS`).
    pub options: Option<String>,
    /// The time limit for each endpoint, where `None` waits for ever, or the error in it: that ends the first
    /// connection.
    pub connect_timeout: Result<Option<Duration>, ParamsError>,
    /// The kind of server that is acceptable.
    pub target_session_attrs: TargetSessionAttrs,
    /// True if each connection tries the endpoints in a fresh random order.
    pub load_balance_random: bool,
    /// The `client_encoding` of the session, with `auto` already resolved from the locale.
    pub client_encoding: Option<String>,
    /// The choice whether SCRAM must be bound to the TLS channel.
    pub channel_binding: ChannelBinding,
    /// The ways of authentication that the user accepts.
    pub require_auth: RequireAuth,
    /// The value of `requirepeer`: the account that servers on Unix sockets must run as.
    pub required_peer: Option<String>,
    /// The options of TCP sockets, or the error in them: that matters only where a socket is one.
    pub tcp: Result<TcpOptions, ParamsError>,
    /// The minor versions of protocol 3 that are acceptable.
    pub protocol: RangeInclusive<u16>,
    /// Further start-up settings, in libpq's order: `replication`, then those from `PGDATESTYLE`, `PGTZ`, `PGGEQO`.
    pub settings: Vec<(String, String)>,
    /// Lines that libpq would print on standard error, such as on an unsafe password file.
    pub warnings: Vec<String>,
}

/// A server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address to connect to, or why there is none.
    pub address: Result<Address, ParamsError>,
    /// The host as the user named it, for SNI and verification (`hostaddr` where no host was named).
    pub host_name: String,
    /// True if the user gave a host name, false if the endpoint is the default.
    pub is_named: bool,
    /// TCP port, or the number in the name of the socket file.
    pub port: u16,
    /// The password for this endpoint, if one is known.
    pub password: Option<Password>,
}

/// The address at which a server listens.
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
    /// Makes a password that was given directly.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), file: None }
    }

    /// Returns the password itself as a text, which must never be shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the password itself, which is sent or hashed and must never be shown.
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

/// The value of `sslmode`: how much encryption and verification is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Sessions are never encrypted.
    Disable,
    /// Sessions are encrypted only if the server refuses plain sessions.
    Allow,
    /// Sessions are encrypted if the server can.
    Prefer,
    /// Sessions must be encrypted.
    Require,
    /// Sessions must be encrypted, and the certificate must come from a trusted authority.
    VerifyCa,
    /// Sessions must be encrypted, and the certificate must come from a trusted authority and name the host.
    VerifyFull,
}

/// The value of `sslrootcert`: the authorities that are trusted.
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
    /// TLS 1.0 and 1.1, which are known as bounds and never spoken.
    V1_0,
    V1_1,
    /// TLS of version 1.2.
    V1_2,
    /// TLS of version 1.3.
    V1_3,
}

/// The value of `sslcertmode`: whether the client's certificate is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertMode {
    /// The certificate is never sent.
    Disable,
    /// The certificate is sent if the server asks for it and there is one.
    Allow,
    /// The certificate must be sent: the server must ask for it, and there must be one.
    Require,
}

/// Everything about encryption. Paths that were not given are libpq's defaults below `~/.postgresql`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsParams {
    /// The value of `sslmode`.
    pub mode: SslMode,
    /// The value of `sslrootcert`; `None` only where no home directory is known.
    pub root_cert: Option<RootCert>,
    /// The value of `sslcert`: the file of the client's certificate chain. A file that does not exist is no
    /// certificate.
    pub cert: Option<PathBuf>,
    /// The value of `sslkey`: the key of the client's certificate.
    pub key: Option<PathBuf>,
    /// The value of `sslpassword`: the passphrase of the key, if that is encrypted.
    pub key_passphrase: Option<Password>,
    /// The value of `sslcrl`: revoked certificates. A file that does not exist revokes none.
    pub crl: Option<PathBuf>,
    /// The value of `sslcrldir`: a directory of files with revoked certificates.
    pub crl_dir: Option<PathBuf>,
    /// The value of `sslkeylogfile`: a file to which the sessions' secrets are appended, for debugging.
    pub key_log: Option<PathBuf>,
    /// The value of `sslcertmode`.
    pub cert_mode: CertMode,
    /// The value of `sslsni`: true if the server is told the host name.
    pub sni: bool,
    /// True with `sslnegotiation=direct`: TLS starts at once, without asking in PostgreSQL's protocol (servers from 17
    /// on).
    pub direct: bool,
    /// The value of `ssl_min_protocol_version`.
    pub min_version: TlsVersion,
    /// The value of `ssl_max_protocol_version`.
    pub max_version: TlsVersion,
}

/// The value of `target_session_attrs`: the kind of server that is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Any server is acceptable; the first that answers is used.
    Any,
    /// Servers are acceptable whose `transaction_read_only` is off.
    ReadWrite,
    /// Servers are acceptable whose `transaction_read_only` is on.
    ReadOnly,
    /// Servers are acceptable that are not in hot standby.
    Primary,
    /// Servers are acceptable that are in hot standby.
    Standby,
    /// A standby is acceptable, or any server if none of them is a standby.
    PreferStandby,
}

/// The value of `channel_binding`: whether SCRAM is bound to the TLS channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// SCRAM is never bound.
    Disable,
    /// SCRAM is bound if the server offers it.
    Prefer,
    /// SCRAM must be bound.
    Require,
}

/// Options of TCP sockets; `None` leaves the system's default. With `keepalives=0` libpq sets none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// True if keepalives are sent at all.
    pub keepalives: bool,
    /// The silence before the first keepalive, in seconds. Systems may reject 0, as for the next two.
    pub idle: Option<u32>,
    /// The time between keepalives that are not answered, in seconds.
    pub interval: Option<u32>,
    /// The number of keepalives that may stay unanswered.
    pub count: Option<u32>,
    /// The time for which sent data may stay unacknowledged (`TCP_USER_TIMEOUT`), in milliseconds.
    pub user_timeout: Option<u32>,
}
