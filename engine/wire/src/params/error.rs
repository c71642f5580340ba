//! The errors in connection parameters.

use thiserror::Error;

/// The error for a parameter that is malformed, unknown or contradictory, in libpq's words. No message contains a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParamsError {
    #[error("could not look up the operating-system user's name; name a user with -U or PGUSER")]
    NoUser,
    #[error("invalid connection option \"{0}\"")]
    UnknownOption(String),
    #[error("missing \"=\" after \"{0}\" in connection info string")]
    NoEqualsSign(String),
    #[error("unterminated quoted string in connection info string")]
    OpenQuote,
    #[error("end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"{0}\"")]
    OpenBracket(String),
    #[error("IPv6 host address may not be empty in URI: \"{0}\"")]
    EmptyAddress(String),
    #[error("unexpected character \"{character}\" at position {position} in URI (expected \":\" or \"/\"): \"{uri}\"")]
    UnexpectedCharacter { character: char, position: usize, uri: String },
    #[error("missing key/value separator \"=\" in URI query parameter: \"{0}\"")]
    NoSeparator(String),
    #[error("extra key/value separator \"=\" in URI query parameter: \"{0}\"")]
    ExtraSeparator(String),
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownQueryParameter(String),
    #[error("invalid percent-encoded token: \"{0}\"")]
    InvalidToken(String),
    #[error("forbidden value %00 in percent-encoded value: \"{0}\"")]
    ZeroByte(String),
    #[error("unexpected spaces found in \"{0}\", use percent-encoded spaces (%20) instead")]
    UnexpectedSpaces(String),
    #[error("definition of service \"{0}\" not found")]
    UnknownService(String),
    #[error("service file \"{0}\" not found")]
    NoServiceFile(String),
    #[error("line {line} too long in service file \"{file}\"")]
    LongServiceLine { file: String, line: usize },
    #[error("nested service specifications not supported in service file \"{file}\", line {line}")]
    NestedService { file: String, line: usize },
    #[error("syntax error in service file \"{file}\", line {line}")]
    ServiceSyntax { file: String, line: usize },
    #[error("invalid {option} value: \"{value}\"")]
    UnknownValue { option: &'static str, value: String },
    #[error("invalid \"{option}\" value: \"{value}\"")]
    UnknownVersion { option: &'static str, value: String },
    #[error("invalid integer value \"{value}\" for connection option \"{option}\"")]
    NotAnInteger { option: &'static str, value: String },
    #[error("weak sslmode \"{mode}\" may not be used with {with}")]
    WeakMode { mode: String, with: &'static str },
    #[error("invalid SSL protocol version range")]
    VersionRange,
    #[error("\"min_protocol_version\" is greater than \"max_protocol_version\"")]
    ProtocolRange,
    #[error("{0} value \"***\" is not supported by this client")]
    UnsupportedSecret(&'static str),
    #[error("gssencmode value \"require\" invalid when GSSAPI support is not compiled in")]
    NoGssapi,
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    HostsAndAddresses { hosts: usize, addresses: usize },
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortsAndHosts { ports: usize, hosts: usize },
    #[error("invalid port number: \"{0}\"")]
    InvalidPort(String),
    #[error("Unix-domain socket path \"{path}\" is too long (maximum {most} bytes)")]
    LongSocketPath { path: String, most: usize },
    #[error("could not parse network address \"{0}\": Name or service not known")]
    NoAddress(String),
    #[error("could not translate host name \"{host}\" to address: {reason}")]
    UnknownHost { host: String, reason: String },
    #[error("negative require_auth method \"{0}\" cannot be mixed with non-negative methods")]
    NegativeMethod(String),
    #[error("require_auth method \"{0}\" cannot be mixed with negative methods")]
    PositiveMethod(String),
    #[error("invalid require_auth value: \"{0}\"")]
    UnknownMethod(String),
    #[error("require_auth method \"{0}\" is specified more than once")]
    RepeatedMethod(String),
}
