//! Reads single connection parameters, and checks which values can be combined.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;
use super::error::ParamsError;
use super::options::{Options, is_space, non_empty};
use super::types::{
    CertMode, ChannelBinding, Password, RootCert, SslMode, TargetSessionAttrs, TcpOptions, TlsParams, TlsVersion,
};

/// Returns the meaning of a parameter's value, which must be one of the `known` values.
fn one_of<T: Copy>(options: &Options, option: &'static str, known: &[(&str, T)]) -> Result<T, ParamsError> {
    let value = options.get(option).unwrap_or("");
    known
        .iter()
        .find(|(name, _)| *name == value)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| ParamsError::UnknownValue { option, value: value.to_owned() })
}

pub fn target_session_attrs(options: &Options) -> Result<TargetSessionAttrs, ParamsError> {
    use TargetSessionAttrs::*;
    let known = [
        ("any", Any),
        ("read-write", ReadWrite),
        ("read-only", ReadOnly),
        ("primary", Primary),
        ("standby", Standby),
        ("prefer-standby", PreferStandby),
    ];
    one_of(options, "target_session_attrs", &known)
}

pub fn load_balance_random(options: &Options) -> Result<bool, ParamsError> {
    let known = [("disable", false), ("random", true)];
    one_of(options, "load_balance_hosts", &known)
}

pub fn channel_binding(options: &Options) -> Result<ChannelBinding, ParamsError> {
    use ChannelBinding::*;
    let known = [("disable", Disable), ("prefer", Prefer), ("require", Require)];
    one_of(options, "channel_binding", &known)
}

/// Returns the parameters of encryption. They are checked in the same order as in libpq.
pub fn tls(options: &Options, env: &dyn Environment) -> Result<TlsParams, ParamsError> {
    let mode = ssl_mode(options)?;
    let weak = |with| {
        let mode = options.get("sslmode").unwrap_or("").to_owned();
        ParamsError::WeakMode { mode, with }
    };
    let negotiation = [("postgres", false), ("direct", true)];
    let direct = one_of(options, "sslnegotiation", &negotiation)?;
    if direct && mode < SslMode::Require {
        return Err(weak("sslnegotiation=direct (use \"require\", \"verify-ca\", or \"verify-full\")"));
    }
    let root_cert = root_cert(options, env);
    if root_cert == Some(RootCert::System) && mode != SslMode::VerifyFull {
        return Err(weak("sslrootcert=system (use \"verify-full\")"));
    }
    let (min_version, max_version) = tls_versions(options)?;
    let cert_modes = [("disable", CertMode::Disable), ("allow", CertMode::Allow), ("require", CertMode::Require)];
    let cert_mode = one_of(options, "sslcertmode", &cert_modes)?;

    let given = |keyword| non_empty(options.get(keyword)).map(ground::text::path);
    let crl_dir = given("sslcrldir");
    let crl = given("sslcrl").or_else(|| personal_file(env, "root.crl").filter(|_| crl_dir.is_none()));
    Ok(TlsParams {
        mode,
        root_cert,
        cert: given("sslcert").or_else(|| personal_file(env, "postgresql.crt")),
        key: given("sslkey").or_else(|| personal_file(env, "postgresql.key")),
        key_passphrase: non_empty(options.get("sslpassword")).map(Password::new),
        crl,
        crl_dir,
        key_log: given("sslkeylogfile"),
        cert_mode,
        sni: options.get("sslsni").is_some_and(|value| value.starts_with('1')),
        direct,
        min_version,
        max_version,
    })
}

fn ssl_mode(options: &Options) -> Result<SslMode, ParamsError> {
    use SslMode::*;
    let known = [
        ("disable", Disable),
        ("allow", Allow),
        ("prefer", Prefer),
        ("require", Require),
        ("verify-ca", VerifyCa),
        ("verify-full", VerifyFull),
    ];
    one_of(options, "sslmode", &known)
}

fn root_cert(options: &Options, env: &dyn Environment) -> Option<RootCert> {
    match non_empty(options.get("sslrootcert")) {
        Some("system") => Some(RootCert::System),
        Some(file) => Some(RootCert::File(ground::text::path(file))),
        None => personal_file(env, "root.crt").map(RootCert::File),
    }
}

/// Returns the path at which libpq looks for a file in `~/.postgresql` if no path is given.
fn personal_file(env: &dyn Environment, name: &str) -> Option<PathBuf> {
    Some(env.home()?.join(".postgresql").join(name))
}

/// Returns the limits `ssl_min_protocol_version` and `ssl_max_protocol_version`. An empty value sets no limit.
fn tls_versions(options: &Options) -> Result<(TlsVersion, TlsVersion), ParamsError> {
    let version = |option: &'static str, none: TlsVersion| {
        let value = options.get(option).unwrap_or("");
        match value.to_ascii_lowercase().as_str() {
            "" => Ok(none),
            "tlsv1" => Ok(TlsVersion::V1_0),
            "tlsv1.1" => Ok(TlsVersion::V1_1),
            "tlsv1.2" => Ok(TlsVersion::V1_2),
            "tlsv1.3" => Ok(TlsVersion::V1_3),
            _ => Err(ParamsError::UnknownVersion { option, value: value.to_owned() }),
        }
    };
    let lowest = version("ssl_min_protocol_version", TlsVersion::V1_0)?;
    let highest = version("ssl_max_protocol_version", TlsVersion::V1_3)?;
    if lowest > highest {
        return Err(ParamsError::VersionRange);
    }
    Ok((lowest, highest))
}

/// Rejects parameters that this client does not implement and that would change the meaning or the safety of a session.
pub fn refuse_unsupported(options: &Options) -> Result<(), ParamsError> {
    for option in ["scram_client_key", "scram_server_key"] {
        if options.get(option).is_some() {
            // The value is a secret, and must not be shown in the message.
            return Err(ParamsError::UnsupportedSecret(option));
        }
    }
    let gssencmode = [("disable", true), ("prefer", true), ("require", false)];
    if !one_of(options, "gssencmode", &gssencmode)? {
        return Err(ParamsError::NoGssapi);
    }
    Ok(())
}

/// Returns the range of acceptable minor versions of protocol 3. As in libpq, version 3.2 is requested only if the user
/// asks for it, since some servers and poolers do not answer such a request.
pub fn protocol_versions(options: &Options) -> Result<RangeInclusive<u16>, ParamsError> {
    let known = [("3.0", 0), ("3.2", 2), ("latest", 2)];
    let bound = |option, none| match options.get(option) {
        None => Ok(none),
        Some(_) => one_of(options, option, &known),
    };
    let lowest = bound("min_protocol_version", 0)?;
    let highest = bound("max_protocol_version", lowest)?;
    if lowest > highest {
        return Err(ParamsError::ProtocolRange);
    }
    Ok(lowest..=highest)
}

pub fn application_name(options: &Options) -> Option<String> {
    let own = options.get("application_name");
    non_empty(own.or_else(|| options.get("fallback_application_name"))).map(str::to_owned)
}

/// Returns the value of `client_encoding`. The value `auto` means the encoding of the locale; this client recognizes
/// UTF-8 only.
pub fn client_encoding(options: &Options, env: &dyn Environment) -> Option<String> {
    let given = non_empty(options.get("client_encoding"))?;
    if given != "auto" {
        return Some(given.to_owned());
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env.var(name))
        .find(|value| !value.is_empty())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
    Some(if is_utf8 { "UTF8" } else { "SQL_ASCII" }.to_owned())
}

pub fn tcp(options: &Options) -> Result<TcpOptions, ParamsError> {
    if optional_integer(options, "keepalives")? == Some(0) {
        return Ok(TcpOptions::default());
    }
    // As in libpq, a value below 0 counts as 0.
    let from_zero = |value: Option<i32>| value.map(|value| u32::try_from(value).unwrap_or(0));
    let number = |option| optional_integer(options, option).map(from_zero);
    Ok(TcpOptions {
        keepalives: true,
        idle: number("keepalives_idle")?,
        interval: number("keepalives_interval")?,
        count: number("keepalives_count")?,
        user_timeout: number("tcp_user_timeout")?,
    })
}

/// Returns the value of `connect_timeout`. 0 and negative values mean that there is no limit.
pub fn connect_timeout(options: &Options) -> Result<Option<Duration>, ParamsError> {
    let seconds = optional_integer(options, "connect_timeout")?.and_then(|value| u64::try_from(value).ok());
    Ok(seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

fn optional_integer(options: &Options, option: &'static str) -> Result<Option<i32>, ParamsError> {
    options.get(option).map(|value| integer(value, option)).transpose()
}

/// Reads a whole number as `strtol` does. Blanks around it are allowed.
pub fn integer(value: &str, option: &'static str) -> Result<i32, ParamsError> {
    value.trim_matches(is_space).parse().map_err(|_| ParamsError::NotAnInteger { option, value: value.to_owned() })
}

/// Returns the settings of the start-up message that come from the parameter `replication` and from the environment
/// variables `PGDATESTYLE`, `PGTZ` and `PGGEQO`. A variable with the value `default` is left out, so that the server
/// keeps its own value.
pub fn startup(options: &Options, env: &dyn Environment) -> Vec<(String, String)> {
    let replication = non_empty(options.get("replication")).map(|value| ("replication".to_owned(), value.to_owned()));
    let variables = [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];
    let from_variables = variables.into_iter().filter_map(|(variable, setting)| {
        env.var(variable)
            .filter(|value| !value.eq_ignore_ascii_case("default"))
            .map(|value| (setting.to_owned(), value))
    });
    replication.into_iter().chain(from_variables).collect()
}
