//! What can be wrong with connection parameters.

use thiserror::Error;

/// A connection parameter that cannot be used; the wording is libpq's where libpq has the same error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParamsError {
    /// No user was named and the operating system knows no name for this process's user.
    #[error("could not look up the operating-system user's name; name a user with -U or PGUSER")]
    NoUserName,
    /// A keyword that libpq does not know.
    #[error("invalid connection option \"{0}\"")]
    UnknownOption(String),
    /// A word without a value in a connection string.
    #[error("missing \"=\" after \"{0}\" in connection info string")]
    MissingEquals(String),
    /// A quote that is never closed in a connection string.
    #[error("unterminated quoted string in connection info string")]
    UnterminatedQuote,
    /// `[` without `]`.
    #[error("end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"{0}\"")]
    UnclosedBracket(String),
    /// `[]`.
    #[error("IPv6 host address may not be empty in URI: \"{0}\"")]
    EmptyBrackets(String),
    /// Something other than a port, path, query or further host after `]`.
    #[error("unexpected character \"{character}\" at position {position} in URI (expected \":\" or \"/\"): \"{uri}\"")]
    UnexpectedCharacter {
        /// The character found.
        character: char,
        /// Its place, in bytes, counted from 1.
        position: usize,
        /// The whole URI, without its password.
        uri: String,
    },
    /// A second `=` in one query parameter.
    #[error("extra key/value separator \"=\" in URI query parameter: \"{0}\"")]
    ExtraSeparator(String),
    /// A query parameter without `=`.
    #[error("missing key/value separator \"=\" in URI query parameter: \"{0}\"")]
    MissingSeparator(String),
    /// A query parameter that libpq does not know.
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownQueryParameter(String),
    /// `%` without two hexadecimal digits, or a value that is no text.
    #[error("invalid percent-encoded token: \"{0}\"")]
    PercentToken(String),
    /// `%00`.
    #[error("forbidden value %00 in percent-encoded value: \"{0}\"")]
    PercentZero(String),
    /// A space inside a part of a URI.
    #[error("unexpected spaces found in \"{0}\", use percent-encoded spaces (%20) instead")]
    UnencodedSpaces(String),
    /// The service file that was named does not exist or cannot be read.
    #[error("service file \"{0}\" not found")]
    ServiceFileNotFound(String),
    /// No service file defines the service.
    #[error("definition of service \"{0}\" not found")]
    ServiceNotFound(String),
    /// A line that is no assignment of a known parameter.
    #[error("syntax error in service file \"{file}\", line {line}")]
    ServiceSyntax {
        /// The service file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// A service that names a service.
    #[error("nested service specifications not supported in service file \"{file}\", line {line}")]
    NestedService {
        /// The service file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// A line of 1023 bytes or more.
    #[error("line {line} too long in service file \"{file}\"")]
    ServiceLineTooLong {
        /// The service file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// Lists of hosts and addresses of different lengths.
    #[error("could not match {hosts} host names to {addresses} hostaddr values")]
    HostCount {
        /// How many host names.
        hosts: usize,
        /// How many addresses.
        addresses: usize,
    },
    /// Lists of ports and hosts of different lengths.
    #[error("could not match {ports} port numbers to {hosts} hosts")]
    PortCount {
        /// How many ports.
        ports: usize,
        /// How many hosts.
        hosts: usize,
    },
    /// A port outside 1 to 65535.
    #[error("invalid port number: \"{0}\"")]
    Port(String),
    /// `hostaddr` that is not a numeric address.
    #[error("could not parse network address \"{0}\": Name or service not known")]
    NetworkAddress(String),
    /// A socket path that the operating system cannot take.
    #[error("Unix-domain socket path \"{path}\" is too long (maximum {maximum} bytes)")]
    SocketPathTooLong {
        /// The socket file.
        path: String,
        /// The longest path allowed, in bytes.
        maximum: usize,
    },
    /// A value that is no whole number.
    #[error("invalid integer value \"{value}\" for connection option \"{option}\"")]
    Integer {
        /// The value found.
        value: String,
        /// The parameter's keyword.
        option: &'static str,
    },
    /// A value outside the list of known ones.
    #[error("invalid {option} value: \"{value}\"")]
    Value {
        /// The parameter's keyword.
        option: &'static str,
        /// The value found.
        value: String,
    },
    /// A version of TLS that is none; libpq 18 quotes the keyword here, unlike elsewhere.
    #[error("invalid \"{option}\" value: \"{value}\"")]
    TlsVersion {
        /// The parameter's keyword.
        option: &'static str,
        /// The value found.
        value: String,
    },
    /// The lowest version of TLS is above the highest.
    #[error("invalid SSL protocol version range")]
    TlsVersionRange,
    /// The lowest version of the wire protocol is above the highest.
    #[error("\"min_protocol_version\" is greater than \"max_protocol_version\"")]
    ProtocolVersionRange,
    /// `sslrootcert=system` with a mode that would not verify the host.
    #[error("weak sslmode \"{0}\" may not be used with sslrootcert=system (use \"verify-full\")")]
    WeakModeForSystemRoots(String),
    /// `sslnegotiation=direct` with a mode that would allow a plain session.
    #[error(
        "weak sslmode \"{0}\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \"verify-full\")"
    )]
    WeakModeForDirect(String),
    /// `gssencmode=require`.
    #[error("gssencmode value \"{0}\" invalid when GSSAPI support is not compiled in")]
    GssUnavailable(String),
    /// A parameter that changes what a session may do and that this client does not implement.
    #[error("{option} value \"{value}\" is not supported by this client")]
    Unsupported {
        /// The parameter's keyword.
        option: &'static str,
        /// The value found.
        value: String,
    },
    /// `!x` after `y` in `require_auth`.
    #[error("negative require_auth method \"{0}\" cannot be mixed with non-negative methods")]
    NegativeAuthMethod(String),
    /// `y` after `!x` in `require_auth`.
    #[error("require_auth method \"{0}\" cannot be mixed with negative methods")]
    PositiveAuthMethod(String),
    /// The same method twice in `require_auth`.
    #[error("require_auth method \"{0}\" is specified more than once")]
    RepeatedAuthMethod(String),
}
