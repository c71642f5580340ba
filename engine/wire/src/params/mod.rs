//! Connection parameters, resolved as libpq 18 resolves them for pgbench.
//!
//! The command line, a connection string or URI, a service file, the `PG*` variables, the password file and the
//! built-in defaults become one [`Params`]. Everything that depends on the machine comes in through [`Environment`].
//!
//! Source: PostgreSQL 18 documentation, 32.1.2 "Parameter Key Words", 32.15 to 32.18.

mod auth;
mod conninfo;
mod environment;
mod error;
mod hosts;
mod options;
mod passfile;
mod service;
mod settings;
mod uri;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use auth::{AuthMethod, RequireAuth};
pub use environment::{Environment, ProcessEnvironment};
pub use error::ParamsError;

use options::Options;

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
    /// Time limit for each endpoint; `None` waits for ever.
    pub connect_timeout: Option<Duration>,
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
    /// TCP keepalives.
    pub keepalives: Keepalives,
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`); `None` leaves the system's default.
    pub tcp_user_timeout: Option<Duration>,
    /// Further start-up settings, in libpq's order: `replication`, then those from `PGDATESTYLE`, `PGTZ`, `PGGEQO`.
    pub settings: Vec<(String, String)>,
    /// Lines that libpq would print on standard error, such as on an unsafe password file.
    pub warnings: Vec<String>,
}

/// One server to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where to connect to.
    pub address: Address,
    /// The host as the user named it, for SNI and verification (`hostaddr` where no host was named).
    pub host_name: String,
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
    text: String,
    file: Option<PathBuf>,
}

impl Password {
    /// A password that was given directly.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), file: None }
    }

    /// The password itself, to be sent or hashed and never to be shown.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The password file it was read from, to be named when the server rejects it.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
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
    /// TLS 1.0 or 1.1: known as a bound, never spoken.
    Obsolete,
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
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
    /// `sslcrl`: revoked certificates; a file that does not exist revokes none.
    pub crl: Option<PathBuf>,
    /// `sslcrldir`: a directory of files with revoked certificates.
    pub crl_dir: Option<PathBuf>,
    /// `sslcertmode`: `false` for `disable`, which never sends the client's certificate.
    pub send_cert: bool,
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

/// TCP keepalive settings; `None` leaves the system's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    /// Whether keepalives are sent at all.
    pub enabled: bool,
    /// Silence before the first keepalive.
    pub idle: Option<Duration>,
    /// Time between keepalives that are not answered.
    pub interval: Option<Duration>,
    /// Keepalives that may stay unanswered.
    pub count: Option<u32>,
}

/// Resolves what the command line gave to a complete set of parameters.
///
/// Wrong port numbers, addresses and integers are reported here, also those of hosts that libpq would have tried last.
///
/// # Errors
/// [`ParamsError`], with libpq's wording, for anything malformed, unknown or contradictory.
pub fn resolve(given: &Given, env: &dyn Environment) -> Result<Params, ParamsError> {
    let mut options = from_command_line(given, env)?;
    service::fill(&mut options, env)?;
    options.fill_from_environment(env);

    let user =
        non_empty(options.get("user")).map(str::to_owned).or_else(|| env.user_name()).ok_or(ParamsError::NoUserName)?;
    let dbname = non_empty(options.get("dbname")).unwrap_or(&user).to_owned();
    let hosts = hosts::split(&options, env)?;
    let mut warnings = Vec::new();
    let passwords = passfile::Passwords::for_session(&options, &user, &dbname, env, &mut warnings);
    let require_auth = RequireAuth::parse(options.get("require_auth").unwrap_or(""))?;
    let channel_binding = settings::channel_binding(&options)?;
    let tls = settings::tls(&options, env)?;
    settings::refuse_unsupported(&options)?;
    let target_session_attrs = settings::target_session_attrs(&options)?;
    let load_balance_random = settings::load_balance_random(&options)?;
    let endpoints = hosts.into_iter().map(|host| host.into_endpoint(&passwords, env)).collect::<Result<_, _>>()?;

    Ok(Params {
        endpoints,
        user,
        dbname,
        tls,
        application_name: settings::application_name(&options),
        options: non_empty(options.get("options")).map(str::to_owned),
        connect_timeout: settings::seconds(&options, "connect_timeout")?,
        target_session_attrs,
        load_balance_random,
        client_encoding: settings::client_encoding(&options, env),
        channel_binding,
        require_auth,
        keepalives: settings::keepalives(&options)?,
        tcp_user_timeout: settings::milliseconds(&options, "tcp_user_timeout")?,
        settings: settings::startup(&options, env),
        warnings,
    })
}

/// The options that the command line gives, in the order in which pgbench hands them to libpq: a connection string
/// overrides what is given beside it.
fn from_command_line(given: &Given, env: &dyn Environment) -> Result<Options, ParamsError> {
    let mut options = Options::default();
    let password = given.password.as_ref().map(Password::reveal);
    for (keyword, value) in [
        ("host", given.host.as_deref()),
        ("port", given.port.as_deref()),
        ("user", given.user.as_deref()),
        ("password", password),
        ("sslmode", given.sslmode.as_deref()),
    ] {
        if let Some(value) = non_empty(value) {
            options.store(keyword, value)?;
        }
    }
    let dbname = match &given.dbname {
        Some(name) => name.clone(),
        None => default_database(env)?,
    };
    if uri::prefix_length(&dbname) > 0 {
        uri::parse(&dbname, &mut options)?;
    } else if dbname.contains('=') {
        conninfo::parse(&dbname, &mut options)?;
    } else if !dbname.is_empty() {
        options.store("dbname", &dbname)?;
    }
    if !given.fallback_application_name.is_empty() {
        options.store("fallback_application_name", &given.fallback_application_name)?;
    }
    Ok(options)
}

/// pgbench's own default, which does not look at `-U` (tried with pgbench 18).
fn default_database(env: &dyn Environment) -> Result<String, ParamsError> {
    ["PGDATABASE", "PGUSER"]
        .into_iter()
        .filter_map(|name| env.var(name))
        .find(|value| !value.is_empty())
        .or_else(|| env.user_name())
        .ok_or(ParamsError::NoUserName)
}

/// The value, unless it is absent or empty, which mean the same to most of libpq's parameters.
fn non_empty(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

#[cfg(all(test, unix))]
mod tests;
