//! The errors that can occur between a client and its server, and their messages.

use std::io;

use crate::cursor;
use crate::params::ParamsError;
use crate::tls::TlsFailure;
use ground::output::plain_io_message;

/// The SQLSTATE of a wrong password.
pub const INVALID_PASSWORD: &str = "28P01";

/// An error that the server has reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// The severity `ERROR`, `FATAL` or `PANIC`, in the server's language.
    pub severity: String,
    /// The SQLSTATE: the error's code of five characters, such as `40001`.
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The context in which the error occurred, such as the lines of the functions that were being executed.
    pub context: Option<String>,
    /// The position of the error in the statement, counted in characters from 1.
    pub position: Option<usize>,
    /// The text of the statement to which `position` refers, if the text was sent with the failed request.
    pub statement: Option<String>,
    /// The position of the error in a statement that the server runs internally, such as a statement in a function. It
    /// is counted in characters from 1.
    pub internal_position: Option<usize>,
    pub internal_statement: Option<String>,
    /// True if the server refused to prepare a statement because of this error.
    pub is_unprepared: bool,
}

impl ServerError {
    /// Reads the body of an ErrorResponse or NoticeResponse. Each field has a type byte and a zero-terminated text.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        let mut has_fields = false;
        for field in body.split(|byte| *byte == 0) {
            let Some((kind, text)) = field.split_first() else { continue };
            has_fields = true;
            let text = ground::text::of(text);
            match kind {
                b'S' => error.severity = text,
                b'C' => error.sqlstate = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                b'W' => error.context = Some(text),
                b'P' => error.position = text.parse().ok(),
                b'p' => error.internal_position = text.parse().ok(),
                b'q' => error.internal_statement = Some(text),
                _ => {}
            }
        }
        if !has_fields {
            error.message = "no error message available".to_owned();
        }
        error
    }

    /// Returns the notice in the body of a NoticeResponse, in the form in which libpq shows it.
    pub(crate) fn notice(body: &[u8], statement: Option<&str>) -> String {
        // libpq shows the context only of errors.
        Self { context: None, ..Self::parse(body).of(statement) }.to_string()
    }

    /// Adds the text of the statement to the error. The text is kept only if the error has a position in it, because
    /// then it is shown.
    pub fn of(mut self, statement: Option<&str>) -> Self {
        self.statement = statement.filter(|_| self.position.is_some()).map(str::to_owned);
        self
    }
}

/// Writes the error as libpq does at its default verbosity, without a line feed at the end.
impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.severity.is_empty() {
            write!(f, "{}:  ", self.severity)?;
        }
        f.write_str(&self.message)?;
        let (position, statement) = match self.position {
            Some(_) => (self.position, &self.statement),
            None => (self.internal_position, &self.internal_statement),
        };
        match (position, statement) {
            (Some(position), Some(statement)) => {
                if let Some(marked) = cursor::mark(statement, position) {
                    write!(f, "\n{marked}")?;
                }
            }
            (Some(position), None) => write!(f, " at character {position}")?,
            (None, _) => {}
        }
        let lines = [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("QUERY", &self.internal_statement),
            ("CONTEXT", &self.context),
        ];
        for (name, text) in lines {
            if let Some(text) = text {
                write!(f, "\n{name}:  {text}")?;
            }
        }
        Ok(())
    }
}

/// The error for which a connection failed or ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The server's host name could not be resolved.
    #[error("{0}")]
    Unresolved(ParamsError),
    /// The socket could not be connected.
    #[error("{}", plain_io_message(.0))]
    Connect(io::Error),
    /// An option of TCP sockets is malformed.
    #[error("{0}")]
    TcpOption(ParamsError),
    /// The operating system rejects an option of the socket.
    #[error("setsockopt({option}) failed: {}", plain_io_message(.error))]
    SocketOption { option: &'static str, error: io::Error },
    /// The parameter `connect_timeout` is malformed.
    #[error("{0}")]
    ConnectTimeout(ParamsError),
    #[error("could not receive data from server: {}", plain_io_message(.0))]
    Receive(io::Error),
    #[error("could not send data to server: {}", plain_io_message(.0))]
    Send(io::Error),
    /// The server refused the connection, reported a fatal error, or rejected a statement of a blocking session.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server reported an error and closed the connection.
    #[error("{0}\n{closed}", closed = Self::Closed)]
    Dismissed(Box<ServerError>),
    /// The server closed the connection without sending an error.
    #[error(
        "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore or while processing the request."
    )]
    Closed,
    /// The bytes from the server do not begin like a message of protocol 3.
    #[error("lost synchronization with server: got message type \"{}\", length {}", .kind.escape_ascii(), *.length as u32 as i32)]
    LostSync { kind: u8, length: usize },
    /// The server did something that protocol 3 does not allow, or that this client does not support.
    #[error("{0}")]
    Protocol(String),
    /// A reply that breaks the protocol or does not fit the request. The message has libpq's words.
    #[error("{message}")]
    Violation { message: String, query: u32 },
    /// A reply that ended without the result of a statement.
    #[error("no results")]
    NoResults,
    /// A statement of a script that copies data from or to the client, which clients of a load cannot do.
    #[error("COPY is not supported in pgbench, aborting")]
    Copy,
    /// TLS could not be established.
    #[error("{0}")]
    Tls(TlsFailure),
    /// Authentication failed in the client, or the client does not support the method.
    #[error("{0}")]
    Authentication(String),
    /// The server asks for a password, and the client has none.
    #[error("fe_sendauth: no password supplied")]
    NoPassword,
    /// The server is not of the kind that `target_session_attrs` asks for.
    #[error("{0}")]
    WrongSession(&'static str),
    /// The program was interrupted before the statement was sent, or the server did not end the statement after the
    /// interrupt.
    #[error("interrupted")]
    Interrupted,
    /// A time limit is over: that of an attempt to connect (`connect_timeout`), of a cancel request, or of a statement
    /// that the server does not end.
    #[error("timeout expired")]
    Timeout,
}

impl ConnectionError {
    /// Makes the error of a connection from an error in reading from the socket.
    pub fn receiving(error: io::Error) -> Self {
        Self::from_ended(error, Self::Receive)
    }

    /// Makes the error of a connection that broke. The operating system reports broken connections by several errors,
    /// which all become the same error here. Errors of TLS keep their own messages.
    fn from_ended(error: io::Error, otherwise: impl FnOnce(io::Error) -> Self) -> Self {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::Tls(TlsFailure::of_handshake(tls));
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => otherwise(error),
        }
    }

    /// Returns the SQLSTATE that the server has reported. Errors without one have a code of class 08 (connection
    /// exception) or 28 (invalid authorization); for a COPY it is 0A000, and for an interrupt 57014.
    pub fn sqlstate(&self) -> &str {
        use ConnectionError::*;
        match self {
            Server(error) | Dismissed(error) => &error.sqlstate,
            Unresolved(_)
            | Connect(_)
            | TcpOption(_)
            | SocketOption { .. }
            | ConnectTimeout(_)
            | Timeout
            | Tls(_)
            | WrongSession(_) => "08001",
            Receive(_) | Send(_) | Closed => "08006",
            LostSync { .. } | Protocol(_) | Violation { .. } | NoResults => "08P01",
            Copy => "0A000",
            Interrupted => "57014",
            Authentication(_) => "28000",
            NoPassword => "28P01",
        }
    }
}

/// Makes the error of a connection from an error in writing to the socket.
impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::from_ended(error, Self::Send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_of_an_error_response() {
        let error =
            ServerError::parse(b"SERROR\0VERROR\0C40001\0Mcould not serialize\0DReason.\0HRetry.\0WSQL function\0\0");
        assert_eq!(error.sqlstate, "40001");
        assert_eq!(
            error.to_string(),
            "ERROR:  could not serialize\nDETAIL:  Reason.\nHINT:  Retry.\nCONTEXT:  SQL function"
        );
    }

    #[test]
    fn a_position_is_shown_in_the_statement_if_that_is_known() {
        let error = ServerError::parse(b"SERROR\0C42P01\0Mno such relation\0P15\0\0");
        assert_eq!(error.to_string(), "ERROR:  no such relation at character 15");
        assert_eq!(
            error.of(Some("select 1 from t")).to_string(),
            "ERROR:  no such relation\nLINE 1: select 1 from t\n                      ^"
        );
        let inner = ServerError::parse(b"SERROR\0Mdivision\0p8\0qSELECT 1/0\0Wf()\0\0");
        assert_eq!(
            inner.of(Some("select f()")).to_string(),
            "ERROR:  division\nLINE 1: SELECT 1/0\n               ^\nQUERY:  SELECT 1/0\nCONTEXT:  f()"
        );
    }

    #[test]
    fn rubbish_is_no_panic() {
        assert_eq!(ServerError::parse(&[0, 0, 0xff, 0xfe]).message, "");
    }

    #[test]
    fn fields_that_are_missing_are_left_out_as_in_libpq() {
        for (body, shown) in [
            (&b""[..], "no error message available"),
            (b"\0", "no error message available"),
            (b"Mbad\0\0", "bad"),
            (b"C42601\0\0", ""),
            (b"SERROR\0\0", "ERROR:  "),
            (b"Mbad\0Dmore\0\0", "bad\nDETAIL:  more"),
            (b"zwhat\0\0", ""),
        ] {
            assert_eq!(ServerError::parse(body).to_string(), shown, "{}", body.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_body_is_shown(body in prop::collection::vec(any::<u8>(), 0..200), statement in ".{0,40}") {
            let _ = ServerError::parse(&body).of(Some(&statement)).to_string();
        }
    }
}
