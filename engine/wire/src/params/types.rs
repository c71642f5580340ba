//! The types of connection parameters.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::auth::RequireAuth;
use super::error::ParamsError;

/// The parameters that the command line gives. All other parameters are taken from their other sources.
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
    /// The password, for programs that have an option for it.
    pub password: Option<Password>,
    /// The value of `sslmode`, for programs that have an option for it.
    pub sslmode: Option<String>,
    /// True if `host`, `port`, `user`, `password` and `sslmode` override a connection string in `dbname`, as with
    /// libpq's PQsetdbLogin. False if the connection string overrides them.
    pub options_win: bool,
    /// The `application_name` of the session if neither a connection string nor `PGAPPNAME` gives one, such as
    /// `pgbench`.
    pub fallback_application_name: String,
}

/// Everything that is needed to open a session.
#[derive(Clone, Debug)]
pub struct Params {
    /// The servers to try, in the order in which they were given. There is at least one.
    pub endpoints: Vec<Endpoint>,
    /// The role to log in as.
    pub user: String,
    /// The database to open.
    pub dbname: String,
    /// The parameters of encryption: whether and how sessions are encrypted.
    pub tls: TlsParams,
    /// The `application_name` of the session.
    pub application_name: Option<String>,
    /// The command-line options for the server process (`options`, `PGOPTIONS`).
    pub options: Option<String>,
    /// The time limit for each attempt to connect; `None` to wait without a limit. An error in the value is reported
    /// when the first connection is made.
    pub connect_timeout: Result<Option<Duration>, ParamsError>,
    /// The value of `target_session_attrs`: the kind of server that is acceptable.
    pub target_session_attrs: TargetSessionAttrs,
    /// True if each connection tries the endpoints in a new random order.
    pub load_balance_random: bool,
    /// The `client_encoding` of the session. If it was given as `auto`, it is the encoding of the locale.
    pub client_encoding: Option<String>,
    /// The value of `channel_binding`: whether SCRAM must be bound to the TLS channel.
    pub channel_binding: ChannelBinding,
    /// The value of `require_auth`: the methods of authentication that are acceptable.
    pub require_auth: RequireAuth,
    /// The value of `requirepeer`: the operating-system account that servers on Unix sockets must run as.
    pub required_peer: Option<String>,
    /// The options of TCP sockets. An error in them is reported only if a connection uses TCP.
    pub tcp: Result<TcpOptions, ParamsError>,
    /// The range of acceptable minor versions of protocol 3.
    pub protocol: RangeInclusive<u16>,
    /// Further settings of the start-up message, in libpq's order: `replication`, then the settings from `PGDATESTYLE`,
    /// `PGTZ` and `PGGEQO`.
    pub settings: Vec<(String, String)>,
    /// Warnings that libpq would print on standard error, such as for an unsafe password file.
    pub warnings: Vec<String>,
}

/// A server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address to connect to, or the error in it.
    pub address: Result<Address, ParamsError>,
    /// The host as the user named it, which is used for SNI and for verifying the certificate. It is `hostaddr` if no
    /// host was named.
    pub host_name: String,
    /// True if the user named the host. False if the endpoint is the default, or if only its address (`hostaddr`) was
    /// given.
    pub is_named: bool,
    /// The TCP port, or the number in the name of the socket file.
    pub port: u16,
    /// The password for this endpoint, if one is known.
    pub password: Option<Password>,
}

/// The address on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket file. A path that starts with `@` names a socket in the abstract namespace of Linux.
    Unix(PathBuf),
    /// A host name or numeric address to resolve.
    Tcp(String),
}

/// A password. `Debug` and `Display` hide it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub(super) text: String,
    /// The password file that contained it. An error message names this file if the server rejects the password.
    pub file: Option<PathBuf>,
}

impl Password {
    /// Makes a password that does not come from a password file.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), file: None }
    }

    /// Returns the password itself as a text. It must never be shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the password itself as bytes, which are sent or hashed. It must never be shown.
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

/// The value of `sslmode`: how much encryption and verification the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Sessions are never encrypted.
    Disable,
    /// Sessions are encrypted only if the server refuses unencrypted sessions.
    Allow,
    /// Sessions are encrypted if the server supports it.
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
    /// The authorities are the certificates in this PEM file. The file may be missing if `sslmode` is below
    /// `verify-ca`.
    File(PathBuf),
    /// The authorities are those that the operating system trusts.
    System,
}

/// A version of TLS, as the parameters can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.0 and 1.1. They are accepted as limits for the version, but this client does not support them.
    V1_0,
    V1_1,
    V1_2,
    V1_3,
}

/// The value of `sslcertmode`: whether the client's certificate is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertMode {
    /// The certificate is never sent.
    Disable,
    /// The certificate is sent if the server asks for it and the client has one.
    Allow,
    /// The certificate must be sent. It is an error if the server does not ask for it, or if the client has none.
    Require,
}

/// All parameters of encryption. Paths that were not given have libpq's defaults in `~/.postgresql`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsParams {
    /// The value of `sslmode`.
    pub mode: SslMode,
    /// The value of `sslrootcert`. It is `None` only if no home directory is known.
    pub root_cert: Option<RootCert>,
    /// The value of `sslcert`: the file with the client's certificate chain. If the file does not exist, the client has
    /// no certificate.
    pub cert: Option<PathBuf>,
    /// The value of `sslkey`: the file with the key of the client's certificate.
    pub key: Option<PathBuf>,
    /// The value of `sslpassword`: the passphrase of the key, if the key is encrypted.
    pub key_passphrase: Option<Password>,
    /// The value of `sslcrl`: a file with revoked certificates. If the file does not exist, no certificate is revoked.
    pub crl: Option<PathBuf>,
    /// The value of `sslcrldir`: a directory of files with revoked certificates.
    pub crl_dir: Option<PathBuf>,
    /// The value of `sslkeylogfile`: a file to which the secrets of TLS sessions are appended, for debugging.
    pub key_log: Option<PathBuf>,
    /// The value of `sslcertmode`.
    pub cert_mode: CertMode,
    /// The value of `sslsni`: true if the client sends the host name to the server in the TLS handshake.
    pub sni: bool,
    /// True with `sslnegotiation=direct`: TLS starts at once, without a request in PostgreSQL's protocol. Servers
    /// support this from version 17 on.
    pub direct: bool,
    /// The value of `ssl_min_protocol_version`.
    pub min_version: TlsVersion,
    /// The value of `ssl_max_protocol_version`.
    pub max_version: TlsVersion,
}

/// The value of `target_session_attrs`: the kind of server that is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSessionAttrs {
    /// Any server is acceptable. The first server that answers is used.
    Any,
    /// Servers that accept writes are acceptable: their `transaction_read_only` is off.
    ReadWrite,
    /// Servers that do not accept writes are acceptable: their `transaction_read_only` is on.
    ReadOnly,
    /// Servers that are not in hot standby are acceptable.
    Primary,
    /// Servers that are in hot standby are acceptable.
    Standby,
    /// A standby is preferred. If no server is a standby, any server is acceptable.
    PreferStandby,
}

/// The value of `channel_binding`: whether SCRAM is bound to the TLS channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// SCRAM is never bound to the channel.
    Disable,
    /// SCRAM is bound to the channel if the server offers that.
    Prefer,
    /// SCRAM must be bound to the channel.
    Require,
}

/// The options of TCP sockets. `None` keeps the operating system's default. With `keepalives=0` none of the keepalive
/// options is set, as in libpq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// True if keepalives are sent at all.
    pub keepalives: bool,
    /// The time in seconds without data before the first keepalive is sent. The operating system may reject 0.
    pub idle: Option<u32>,
    /// The time in seconds between keepalives that are not answered.
    pub interval: Option<u32>,
    /// The number of unanswered keepalives after which the connection counts as broken.
    pub count: Option<u32>,
    /// The time in milliseconds for which sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<u32>,
}
