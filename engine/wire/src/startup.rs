//! The start of a session, from an open socket until the session is ready for statements: TLS, the start-up message,
//! authentication, and the parameters that the server reports.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::authentication::Authentication;
use crate::backend::{Backend, BackendKey};
use crate::error::{ConnectionError, INVALID_PASSWORD, ServerError};
use crate::frame::{self, Flow, SSL_REQUEST, Visitor};
use crate::network::{SocketAddress, Transport, check_peer};
use crate::params::{CertMode, SslMode, TargetSessionAttrs};
use crate::results::values;
use crate::session_kind::SessionKind;
use crate::stream::Stream;
use crate::target::{Attempt, Target};
use crate::tls::{self, CertificateRequest, TlsFailure};
use ground::text;

/// Protocol version 3.0, to which the minor version is added. The first message of a session has the version in place
/// of a message type.
const PROTOCOL_3_0: u32 = 3 << 16;

/// The facts that the server reports about itself when a session starts.
#[derive(Debug, Default, Clone)]
pub struct ServerInfo {
    /// The server's version as in `SHOW server_version`, such as `18.6` or `15.20 (Debian 15.20-0+deb12u1)`.
    pub version: String,
}

impl ServerInfo {
    /// Returns true if the server has partitioned tables, which came with PostgreSQL 10.
    pub fn has_partitions(&self) -> bool {
        let major = self.version.split(|c: char| !c.is_ascii_digit()).next();
        major.and_then(|major| major.parse::<u32>().ok()).is_none_or(|major| major >= 10)
    }
}

/// The state of a session's start, or of a connection that sends a cancel request.
pub struct Startup {
    target: Arc<Target>,
    attempt: Arc<Attempt>,
    /// True if the client asks the server for TLS.
    asks_tls: bool,
    /// The key of the session whose statement must be cancelled. `None` if this connection starts a session.
    cancels: Option<BackendKey>,
    /// The key with which statements of the new session can be cancelled. `None` until the server sends it.
    key: Option<BackendKey>,
    state: State,
    pub authentication: Authentication,
    /// The messages to the server that have not been sent yet.
    out: Vec<u8>,
    server: ServerInfo,
    kind: SessionKind,
    wanted: TargetSessionAttrs,
    /// True if the server refused TLS, and the session was continued without encryption over the same socket, which
    /// `sslmode` allows.
    pub went_on_without_tls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    AwaitTlsAnswer,
    TlsHandshake,
    AwaitReady,
    /// The cancel request was sent. The server closes the connection when it has read the request.
    AwaitClose,
    Ready,
}

impl Startup {
    /// Begins to start a session over a socket that is being connected to the endpoint of `attempt`. `wanted` is the
    /// kind of server that is accepted.
    pub fn new(target: Arc<Target>, attempt: Arc<Attempt>, wanted: TargetSessionAttrs) -> Self {
        Self {
            target,
            asks_tls: attempt.tls,
            attempt,
            cancels: None,
            key: None,
            state: State::Connecting,
            authentication: Authentication::default(),
            out: Vec::new(),
            server: ServerInfo::default(),
            kind: SessionKind::default(),
            wanted,
            went_on_without_tls: false,
        }
    }

    /// Makes the state of a connection that sends the cancel request for a session.
    pub fn cancelling(backend: &Backend) -> Self {
        let (target, attempt) = (Arc::clone(&backend.target), Arc::clone(&backend.attempt));
        let (asks_tls, cancels) = (backend.has_tls, Some(backend.key.clone()));
        Self { asks_tls, cancels, ..Self::new(target, attempt, TargetSessionAttrs::Any) }
    }

    /// Returns the server process of a session that is ready, which is needed to cancel the session's statements.
    /// Returns `None` if the server has not sent a key for that.
    pub fn take_backend(&mut self) -> Option<Arc<Backend>> {
        let key = self.key.take()?;
        let (target, attempt) = (Arc::clone(&self.target), Arc::clone(&self.attempt));
        Some(Arc::new(Backend { target, attempt, has_tls: self.asks_tls && !self.went_on_without_tls, key }))
    }

    /// Goes on as far as possible without waiting for the socket. Returns `Some` when the session is ready, or when the
    /// server has read the cancel request.
    pub fn advance<T: Transport>(
        &mut self,
        stream: &mut Stream<T>,
        buffer: &mut [u8],
    ) -> Result<Option<ServerInfo>, ConnectionError> {
        if self.state == State::Connecting {
            if !stream.socket.is_connected().map_err(ConnectionError::Connect)? {
                return Ok(None);
            }
            if let (Ok(SocketAddress::Unix(_)), Some(required)) =
                (&self.attempt.place, &self.target.params.required_peer)
            {
                check_peer(&stream.socket, required)?;
            }
            self.begin(stream)?;
        }
        // If the server closes the socket before it has read all messages, it may have sent an error that says why.
        let flushed = self.flush(stream);
        if self.state == State::AwaitTlsAnswer && !self.answer_tls(stream)? {
            return flushed.map(|()| None);
        }
        if self.state == State::TlsHandshake {
            if !stream.handshake().map_err(handshake_error)? {
                return Ok(None);
            }
            self.finish_tls(stream)?;
        }
        loop {
            let flushed = self.flush(stream);
            let flow = match stream.receive(buffer, self) {
                Err(ConnectionError::Closed) if self.state == State::AwaitClose => {
                    return Ok(Some(ServerInfo::default()));
                }
                flow => flow.map_err(|error| self.explain(error))?,
            };
            flushed?;
            if self.state == State::Ready {
                return Ok(Some(std::mem::take(&mut self.server)));
            }
            if flow == Flow::Continue {
                return Ok(None);
            }
        }
    }

    /// Returns true if, as in libpq, the same server may be tried again with the other choice of encryption after this
    /// error. Returns false if authentication is complete, or if TLS failed after its handshake.
    pub fn may_change_encryption(&self, error: &ConnectionError) -> bool {
        let is_past_handshake = !matches!(self.state, State::Connecting | State::AwaitTlsAnswer | State::TlsHandshake);
        !(self.authentication.is_done || is_past_handshake && matches!(error, ConnectionError::Tls(_)))
    }

    /// Returns true if the socket is still connecting.
    pub fn is_connecting(&self) -> bool {
        self.state == State::Connecting
    }

    /// Returns the password file from which the password was read, if the server's error says that the password is
    /// wrong.
    pub fn rejected_password_file(&self, error: &ConnectionError) -> Option<&Path> {
        match error {
            ConnectionError::Server(refusal)
                if refusal.sqlstate == INVALID_PASSWORD && self.authentication.has_used_password =>
            {
                self.target.password(&self.attempt).and_then(|password| password.file.as_deref())
            }
            _ => None,
        }
    }

    fn begin<T: Transport>(&mut self, stream: &mut Stream<T>) -> Result<(), ConnectionError> {
        if !self.asks_tls {
            self.send_startup();
            Ok(())
        } else if self.target.params.tls.direct {
            self.start_tls(stream)
        } else {
            frame::write_untyped(&mut self.out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
            self.state = State::AwaitTlsAnswer;
            Ok(())
        }
    }

    fn send_startup(&mut self) {
        if let Some(key) = &self.cancels {
            key.write_request(&mut self.out);
            self.state = State::AwaitClose;
            return;
        }
        let params = &self.target.params;
        let mut settings = vec![("user", params.user.as_str()), ("database", params.dbname.as_str())];
        let optional = [
            ("application_name", &params.application_name),
            ("options", &params.options),
            ("client_encoding", &params.client_encoding),
        ];
        settings.extend(optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
        settings.extend(params.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        frame::write_untyped(&mut self.out, |out| {
            out.extend_from_slice(&(PROTOCOL_3_0 + u32::from(*params.protocol.end())).to_be_bytes());
            for (name, value) in settings {
                frame::write_text(out, name.as_bytes());
                frame::write_text(out, &text::bytes(value));
            }
            out.push(0);
        });
        self.state = State::AwaitReady;
    }

    /// Reads the server's one-byte answer to the request for TLS. Returns false if it has not arrived. No further byte
    /// is read, because unencrypted bytes after it must not be taken for encrypted ones.
    fn answer_tls<T: Transport>(&mut self, stream: &mut Stream<T>) -> Result<bool, ConnectionError> {
        let mut answer = [0u8; 1];
        match stream.read(&mut answer) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(ConnectionError::receiving(error)),
        }
        match answer[0] {
            b'S' => self.start_tls(stream)?,
            b'N' if self.target.params.tls.mode == SslMode::Prefer && self.cancels.is_none() => {
                self.went_on_without_tls = true;
                self.send_startup();
            }
            b'N' => {
                return Err(tls_failure("server does not support SSL, but SSL was required"));
            }
            // The text of the error cannot be trusted, since it is not encrypted.
            b'E' => {
                return Err(ConnectionError::Protocol("server sent an error response during SSL exchange".to_owned()));
            }
            other => {
                return Err(ConnectionError::Protocol(format!(
                    "received invalid response to SSL negotiation: {}",
                    other.escape_ascii()
                )));
            }
        }
        Ok(true)
    }

    fn start_tls<T: Transport>(&mut self, stream: &mut Stream<T>) -> Result<(), ConnectionError> {
        let name = tls::server_name(self.target.endpoint(&self.attempt), self.target.params.tls.mode)
            .map_err(ConnectionError::Tls)?;
        let mut config = self.target.tls_config.clone().map_err(ConnectionError::Tls)?;
        if self.target.params.tls.cert_mode == CertMode::Require {
            let (observed, request) = CertificateRequest::observed(&config);
            config = observed;
            self.authentication.certificate_request = Some(request);
        }
        stream.start_tls(config, name).map_err(|error| ConnectionError::Tls(TlsFailure::of_handshake(&error)))?;
        self.state = State::TlsHandshake;
        Ok(())
    }

    fn finish_tls<T: Transport>(&mut self, stream: &Stream<T>) -> Result<(), ConnectionError> {
        if self.target.params.tls.direct && stream.alpn_protocol() != Some(tls::ALPN_PROTOCOL) {
            return Err(tls_failure(
                "direct SSL connection was established without ALPN protocol negotiation extension",
            ));
        }
        self.authentication.end_point = stream.peer_certificate().and_then(|der| tls::server_end_point(der));
        self.send_startup();
        Ok(())
    }

    /// Checks the server's NegotiateProtocolVersion message. It contains the newest version that the server supports,
    /// and the options that the server does not know.
    fn negotiate(&self, body: &[u8]) -> Result<(), ConnectionError> {
        let refused = |reason: &str| ConnectionError::Protocol(reason.to_owned());
        let number = body.split_first_chunk::<4>().map(|(version, _)| u32::from_be_bytes(*version));
        let version = number.ok_or_else(|| refused("received invalid protocol negotiation message"))?;
        let (lowest, highest) = (*self.target.params.protocol.start(), *self.target.params.protocol.end());
        if version > PROTOCOL_3_0 + u32::from(highest) {
            return Err(refused(
                "received invalid protocol negotiation message: server requested downgrade to a higher-numbered version",
            ));
        }
        if version < PROTOCOL_3_0 {
            return Err(refused(
                "received invalid protocol negotiation message: server requested downgrade to pre-3.0 protocol version",
            ));
        }
        if version < PROTOCOL_3_0 + u32::from(lowest) {
            return Err(refused(&format!(
                "server only supports protocol version 3.{}, but \"min_protocol_version\" was set to 3.{lowest}",
                version - PROTOCOL_3_0
            )));
        }
        Ok(())
    }

    fn flush<T: Transport>(&mut self, stream: &mut Stream<T>) -> Result<(), ConnectionError> {
        stream.queue(&std::mem::take(&mut self.out));
        stream.flush()?;
        Ok(())
    }

    /// Checks that the server is of the wanted kind. If the kind is right, the session is ready. If an old server has
    /// not reported its kind, a query for it is sent first.
    fn judge(&mut self) -> Result<(), ConnectionError> {
        match self.kind.question(self.wanted) {
            Some(sql) => frame::write(&mut self.out, b'Q', |out| frame::write_text(out, sql.as_bytes())),
            None => {
                self.kind.check(self.wanted).map_err(ConnectionError::WrongSession)?;
                self.state = State::Ready;
            }
        }
        Ok(())
    }

    /// Returns the error for bytes that are not a message of the protocol: they come from another program than
    /// PostgreSQL.
    fn explain(&self, error: ConnectionError) -> ConnectionError {
        match error {
            ConnectionError::LostSync { kind: b'R', .. } => {
                ConnectionError::Protocol("received invalid authentication request".to_owned())
            }
            ConnectionError::LostSync { kind, .. } if !self.authentication.is_done => unexpected(kind),
            other => other,
        }
    }
}

impl Visitor for Startup {
    /// The largest message in bytes that is accepted during the start of a session. It is much smaller than later,
    /// since the peer has not proved to be a PostgreSQL server yet.
    const LIMIT: usize = 1 << 20;

    fn wants(&self, _kind: u8) -> bool {
        true
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        match kind {
            b'R' => {
                let target = Arc::clone(&self.target);
                self.authentication.request(body, &target.params, target.password(&self.attempt), &mut self.out)?;
                return Ok(if self.out.is_empty() { Flow::Continue } else { Flow::Stop });
            }
            b'E' => return Err(ConnectionError::Server(Box::new(ServerError::parse(body)))),
            b'v' => self.negotiate(body)?,
            other if !self.authentication.is_done => return Err(unexpected(other)),
            b'N' => (self.target.user.tell)(&ServerError::notice(body, None)),
            b'S' => {
                let mut fields = body.split(|byte| *byte == 0);
                let name = fields.next().unwrap_or_default();
                let value = fields.next().unwrap_or_default();
                if name == b"server_version" {
                    self.server.version = String::from_utf8_lossy(value).into_owned();
                }
                self.kind.note_parameter(name, value);
            }
            b'D' => {
                let row = values(body, |value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
                self.kind.note_answer(row.first().and_then(Option::as_deref).unwrap_or_default());
            }
            b'K' => self.key = BackendKey::read(body),
            b'T' | b'C' => {}
            b'Z' => {
                self.judge()?;
                return Ok(Flow::Stop);
            }
            other => {
                return Err(ConnectionError::Protocol(format!(
                    "unexpected message 0x{other:02x} from the server while the session started"
                )));
            }
        }
        Ok(Flow::Continue)
    }
}

fn unexpected(kind: u8) -> ConnectionError {
    ConnectionError::Protocol(format!(
        "expected authentication request from server, but received {}",
        kind.escape_ascii()
    ))
}

fn tls_failure(message: &str) -> ConnectionError {
    ConnectionError::Tls(TlsFailure::AsLibpq(message.to_owned()))
}

/// Makes the error for a failed TLS handshake. libpq has other words for errors of the socket during the handshake than
/// for later ones.
fn handshake_error(error: io::Error) -> ConnectionError {
    match ConnectionError::receiving(error) {
        ConnectionError::Closed => tls_failure("SSL error: unexpected eof while reading"),
        ConnectionError::Receive(error) => {
            tls_failure(&format!("SSL SYSCALL error: {}", ground::output::plain_io_message(&error)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::ServerInfo;

    #[test]
    fn servers_before_10_have_no_partitions() {
        for (version, has) in [("9.6.24", false), ("10.23", true), ("15.20 (Debian 15.20-0)", true), ("19beta1", true)]
        {
            assert_eq!(ServerInfo { version: version.to_owned() }.has_partitions(), has, "{version}");
        }
    }
}
