//! From an open socket to a session ready for statements: TLS, start-up message, authentication, parameters.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ScramSha256};
use postgres_protocol::message::frontend;

use super::error::{ConnectionError, ServerError};
use super::frames::{Flow, Rest, Sink};
use super::params::ChannelBinding;
use super::stream::Stream;
use super::target::{Attempt, Target};
use super::{notice, tls};

/// What the server says of itself while a session starts.
#[derive(Debug, Default, Clone)]
pub struct ServerInfo {
    /// As in `SHOW server_version`, e.g. `18.6` or `15.20 (Debian 15.20-0+deb12u1)`.
    pub version: String,
}

/// The state of one session's start.
pub struct Startup {
    target: Arc<Target>,
    attempt: Attempt,
    state: State,
    scram: Option<ScramSha256>,
    authenticated: bool,
    /// Messages for the server that are not yet sent.
    out: BytesMut,
    server: ServerInfo,
    /// The server's certificate hash, if TLS is on and the certificate has one.
    end_point: Option<Vec<u8>>,
    encrypted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    AwaitTlsAnswer,
    AwaitReady,
    Ready,
}

impl Startup {
    /// The start of a session over a socket that is being connected as `attempt` says.
    pub fn new(target: Arc<Target>, attempt: Attempt) -> Self {
        Self {
            target,
            attempt,
            state: State::Connecting,
            scram: None,
            authenticated: false,
            out: BytesMut::new(),
            server: ServerInfo::default(),
            end_point: None,
            encrypted: false,
        }
    }

    /// Goes on as far as the socket allows; `Some` when the session is ready.
    pub fn advance(
        &mut self,
        stream: &mut Stream,
        rest: &mut Rest,
        buffer: &mut [u8],
    ) -> Result<Option<ServerInfo>, ConnectionError> {
        if self.state == State::Connecting {
            if !stream.is_connected()? {
                return Ok(None);
            }
            if self.attempt.tls {
                frontend::ssl_request(&mut self.out);
                self.state = State::AwaitTlsAnswer;
            } else {
                self.say_hello()?;
            }
        }
        self.flush(stream)?;
        if self.state == State::AwaitTlsAnswer && !self.answer_tls(stream)? {
            return Ok(None);
        }
        if !stream.handshake()? {
            return Ok(None);
        }
        self.note_certificate(stream);
        loop {
            self.flush(stream)?;
            let flow = rest.receive(stream, buffer, self)?;
            if self.state == State::Ready {
                return Ok(Some(std::mem::take(&mut self.server)));
            }
            if self.out.is_empty() && flow == Flow::Continue {
                return Ok(None);
            }
        }
    }

    /// Whether messages wait for the socket to take them.
    pub fn wants_write(&self) -> bool {
        self.state == State::Connecting || !self.out.is_empty()
    }

    fn say_hello(&mut self) -> Result<(), ConnectionError> {
        let params = &self.target.params;
        let mut settings = vec![("user", params.user.as_str()), ("database", params.dbname.as_str())];
        let optional = [
            ("application_name", &params.application_name),
            ("options", &params.options),
            ("client_encoding", &params.client_encoding),
        ];
        settings.extend(optional.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
        settings.extend(params.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        frontend::startup_message(settings, &mut self.out)?;
        self.state = State::AwaitReady;
        Ok(())
    }

    /// The server's one byte on our wish for TLS; false while it has not come. Only that byte is read, so that nothing
    /// can be slipped in before the encryption.
    fn answer_tls(&mut self, stream: &mut Stream) -> Result<bool, ConnectionError> {
        let mut answer = [0u8; 1];
        match stream.read(&mut answer) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        match answer[0] {
            b'S' => {
                let name = tls::server_name(self.target.endpoint(&self.attempt))
                    .map_err(|error| ConnectionError::Tls(error.to_string()))?;
                let config = self.target.tls_config.clone().ok_or_else(|| {
                    ConnectionError::Tls("TLS was asked for without a TLS configuration".to_owned())
                })?;
                stream.start_tls(config, name).map_err(|error| ConnectionError::Tls(error.to_string()))?;
                self.encrypted = true;
            }
            b'N' => {
                return Err(ConnectionError::Tls("server does not support SSL, but SSL was required".to_owned()));
            }
            other => {
                return Err(ConnectionError::Protocol(format!(
                    "received invalid response to SSL negotiation: {}",
                    char::from(other)
                )));
            }
        }
        self.say_hello()?;
        Ok(true)
    }

    fn note_certificate(&mut self, stream: &Stream) {
        if self.encrypted && self.end_point.is_none() {
            self.end_point = stream.peer_certificate().and_then(|certificate| tls::server_end_point(certificate));
        }
    }

    fn flush(&mut self, stream: &mut Stream) -> Result<(), ConnectionError> {
        while !self.out.is_empty() {
            match stream.write(&self.out) {
                Ok(written) => drop(self.out.split_to(written)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        stream.flush()?;
        Ok(())
    }

    fn authenticate(&mut self, body: &[u8]) -> Result<(), ConnectionError> {
        let (code, data) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| ConnectionError::Protocol("authentication request without a code".to_owned()))?;
        match u32::from_be_bytes(*code) {
            0 => {
                self.authenticated = true;
                let required = self.target.params.channel_binding == ChannelBinding::Require;
                if required && self.scram.is_none() {
                    return Err(refused("channel binding required, but server authenticated client without channel binding"));
                }
            }
            3 => frontend::password_message(self.password()?.as_bytes(), &mut self.out)?,
            5 => {
                let salt = data.try_into().map_err(|_| refused("MD5 authentication request without a salt"))?;
                let hash = md5_hash(self.target.params.user.as_bytes(), self.password()?.as_bytes(), salt);
                frontend::password_message(hash.as_bytes(), &mut self.out)?;
            }
            10 => self.start_scram(data)?,
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| refused("SASL answer without a question"))?;
                scram.update(data)?;
                frontend::sasl_response(scram.message(), &mut self.out)?;
            }
            12 => {
                let scram = self.scram.as_mut().ok_or_else(|| refused("SASL end without a start"))?;
                scram.finish(data)?;
            }
            code => return Err(refused(&format!("authentication method {code} not supported"))),
        }
        Ok(())
    }

    fn start_scram(&mut self, mechanisms: &[u8]) -> Result<(), ConnectionError> {
        let offers = |name: &str| mechanisms.split(|byte| *byte == 0).any(|offered| offered == name.as_bytes());
        let binding = self.target.params.channel_binding;
        let (mechanism, channel) = match &self.end_point {
            Some(hash) if offers(sasl::SCRAM_SHA_256_PLUS) && binding != ChannelBinding::Disable => {
                (sasl::SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(hash.clone()))
            }
            _ if binding == ChannelBinding::Require => {
                return Err(refused("channel binding required, but not supported by server's authentication request"));
            }
            Some(_) if binding != ChannelBinding::Disable => {
                (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unrequested())
            }
            _ => (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unsupported()),
        };
        if !offers(mechanism) {
            return Err(refused("none of the server's SASL authentication mechanisms are supported"));
        }
        let scram = ScramSha256::new(self.password()?.as_bytes(), channel);
        frontend::sasl_initial_response(mechanism, scram.message(), &mut self.out)?;
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self) -> Result<String, ConnectionError> {
        match &self.target.endpoint(&self.attempt).password {
            Some(password) => Ok(password.reveal().to_owned()),
            None => Err(refused("fe_sendauth: no password supplied")),
        }
    }
}

impl Sink for Startup {
    fn wants(&self, _kind: u8) -> bool {
        true
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        match kind {
            b'R' => {
                self.authenticate(body)?;
                return Ok(if self.out.is_empty() { Flow::Continue } else { Flow::Stop });
            }
            b'E' => return Err(ConnectionError::Server(Box::new(ServerError::parse(body)))),
            b'N' => notice(body),
            b'S' => {
                let mut fields = body.split(|byte| *byte == 0);
                if fields.next() == Some(b"server_version") {
                    self.server.version = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
                }
            }
            b'K' | b'v' => {}
            b'Z' if self.authenticated => {
                self.state = State::Ready;
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

fn refused(message: &str) -> ConnectionError {
    ConnectionError::Authentication(message.to_owned())
}
