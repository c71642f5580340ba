//! What can go wrong between a client and its server, and how it is said.

use std::io;

/// An error that the server reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, as the server says it.
    pub severity: String,
    /// Five characters, e.g. `40001`.
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl ServerError {
    /// From the body of an ErrorResponse or NoticeResponse: fields of a type byte and a zero-terminated text.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match kind {
                b'S' => error.severity = text,
                b'C' => error.sqlstate = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                _ => {}
            }
        }
        error
    }

    /// Whether pgbench retries or counts it instead of giving the client up: serialization failure and deadlock.
    pub fn is_retryable(&self) -> bool {
        matches!(self.sqlstate.as_str(), "40001" | "40P01")
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:  {}", self.severity, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL:  {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nHINT:  {hint}")?;
        }
        Ok(())
    }
}

/// Why a connection failed or ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// Name resolution, connecting, or the socket afterwards.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server refused or reported a fatal error.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server closed the connection without a word.
    #[error("server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore or while processing the request.")]
    Closed,
    /// Something that protocol 3 does not allow, or that we do not speak.
    #[error("{0}")]
    Protocol(String),
    /// TLS could not be agreed on.
    #[error("{0}")]
    Tls(String),
    /// Authentication cannot be done.
    #[error("{0}")]
    Authentication(String),
    /// `connect_timeout` passed.
    #[error("timeout expired")]
    Timeout,
}

impl ConnectionError {
    /// SQLSTATE, if the server gave one; else class 08, connection exceptions.
    pub fn sqlstate(&self) -> &str {
        match self {
            ConnectionError::Server(error) => &error.sqlstate,
            ConnectionError::Io(_) | ConnectionError::Timeout | ConnectionError::Tls(_) => "08001",
            ConnectionError::Closed => "08006",
            ConnectionError::Protocol(_) => "08P01",
            ConnectionError::Authentication(_) => "28000",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_an_error_response() {
        let error = ServerError::parse(b"SERROR\0VERROR\0C40001\0Mcould not serialize\0DReason.\0HRetry.\0\0");
        assert_eq!(error.sqlstate, "40001");
        assert!(error.is_retryable());
        assert_eq!(error.to_string(), "ERROR:  could not serialize\nDETAIL:  Reason.\nHINT:  Retry.");
    }

    #[test]
    fn rubbish_is_no_panic() {
        assert_eq!(ServerError::parse(b""), ServerError::default());
        assert_eq!(ServerError::parse(&[0, 0, 0xff, 0xfe]).message, "");
    }
}
