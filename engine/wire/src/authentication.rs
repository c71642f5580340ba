//! Answers the server's authentication requests: clear-text passwords, MD5, and SCRAM-SHA-256 with and without channel
//! binding.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ScramSha256};

use std::borrow::Cow;
use std::sync::Arc;

use ground::text;

use crate::error::ConnectionError;
use crate::frame;
use crate::params::{AuthMethod, CertMode, ChannelBinding, Params, Password};
use crate::tls::CertificateRequest;

/// The codes in the server's authentication requests.
mod code {
    pub const OK: u32 = 0;
    pub const KERBEROS_5: u32 = 2;
    pub const CLEAR_TEXT: u32 = 3;
    pub const MD5: u32 = 5;
    pub const GSS: u32 = 7;
    pub const SSPI: u32 = 9;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

/// The state of a session's authentication.
#[derive(Default)]
pub struct Authentication {
    scram: Option<ScramSha256>,
    /// The hash of the server's certificate, to which SCRAM binds the session (channel binding). `None` if the session
    /// has no TLS, or if no hash is defined for the certificate.
    pub end_point: Option<Vec<u8>>,
    binds_channel: bool,
    /// Records whether the server has asked for the client's certificate and got one. `None` unless
    /// `sslcertmode=require` demands both.
    pub certificate_request: Option<Arc<CertificateRequest>>,
    /// True if the server has asked for the password in any form. If a password is known, it is then used.
    pub has_used_password: bool,
    /// True if the client has proved its identity and, with SCRAM, the server has proved that it knows the password,
    /// too.
    proved: bool,
    /// True if the server has accepted the client.
    pub is_done: bool,
}

impl Authentication {
    /// Answers one authentication request of the server. `body` is the message without its type and length.
    pub fn request(
        &mut self,
        body: &[u8],
        params: &Params,
        password: Option<&Password>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        let (number, data) =
            body.split_first_chunk::<4>().ok_or_else(|| refused("received invalid authentication request"))?;
        let number = u32::from_be_bytes(*number);
        if self.is_done {
            return Err(refused("received an authentication request after the end of authentication"));
        }
        self.check(number, params)?;
        match number {
            code::OK => self.is_done = true,
            code::CLEAR_TEXT => {
                write_password(&self.reveal(password)?, out);
                self.proved = true;
            }
            code::MD5 => {
                let salt = data.try_into().map_err(|_| refused("received invalid authentication request"))?;
                let hash = md5_hash(&text::bytes(&params.user), &self.reveal(password)?, salt);
                write_password(hash.as_bytes(), out);
                self.proved = true;
            }
            code::SASL => self.start_scram(data, params, password, out)?,
            code::SASL_CONTINUE => {
                let scram = self
                    .scram
                    .as_mut()
                    .ok_or_else(|| refused("received a SASL challenge before SASL authentication was requested"))?;
                scram.update(data).map_err(scram_error)?;
                frame::write(out, b'p', |out| out.extend_from_slice(scram.message()));
            }
            code::SASL_FINAL => {
                let scram = self
                    .scram
                    .as_mut()
                    .ok_or_else(|| refused("received the end of SASL authentication before it was requested"))?;
                scram.finish(data).map_err(scram_error)?;
                self.proved = true;
            }
            code::KERBEROS_5 => return Err(refused("Kerberos 5 authentication not supported")),
            code::GSS => return Err(refused("GSSAPI authentication not supported")),
            code::SSPI => return Err(refused("SSPI authentication not supported")),
            other => return Err(refused(&format!("authentication method {other} not supported"))),
        }
        Ok(())
    }

    /// Checks whether the connection parameters `sslcertmode=require`, `require_auth` and `channel_binding=require`
    /// allow the client to answer this request. With `channel_binding=require` only SCRAM is allowed, so that the
    /// password is never sent to a server that asks for it in another form.
    fn check(&self, number: u32, params: &Params) -> Result<(), ConnectionError> {
        if number == code::OK && params.tls.cert_mode == CertMode::Require {
            CertificateRequest::check(self.certificate_request.as_deref()).map_err(refused)?;
        }
        let method = match number {
            code::OK if self.proved => None,
            code::OK => Some(AuthMethod::None),
            code::CLEAR_TEXT => Some(AuthMethod::Password),
            code::MD5 => Some(AuthMethod::Md5),
            code::GSS => Some(AuthMethod::Gss),
            code::SSPI => Some(AuthMethod::Sspi),
            code::SASL | code::SASL_CONTINUE | code::SASL_FINAL => Some(AuthMethod::ScramSha256),
            _ => None,
        };
        if let Some(method) = method {
            let checked = params.require_auth.check(method);
            checked.map_err(|error| ConnectionError::Authentication(error.to_string()))?;
        }
        if number == code::OK && self.scram.is_some() && !self.proved {
            return Err(refused("server did not complete authentication"));
        }
        if params.channel_binding != ChannelBinding::Require {
            return Ok(());
        }
        match number {
            code::SASL | code::SASL_CONTINUE | code::SASL_FINAL => Ok(()),
            code::OK if self.proved && self.binds_channel => Ok(()),
            code::OK => {
                Err(refused("channel binding required, but server authenticated client without channel binding"))
            }
            _ => Err(refused("channel binding required but not supported by server's authentication request")),
        }
    }

    fn start_scram(
        &mut self,
        mechanisms: &[u8],
        params: &Params,
        password: Option<&Password>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        if self.scram.is_some() {
            return Err(refused("duplicate SASL authentication request"));
        }
        let binding = params.channel_binding;
        let offers = |name: &str| mechanisms.split(|byte| *byte == 0).any(|offered| offered == name.as_bytes());
        let (mechanism, channel) = match &self.end_point {
            Some(hash) if offers(sasl::SCRAM_SHA_256_PLUS) && binding != ChannelBinding::Disable => {
                self.binds_channel = true;
                (sasl::SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(hash.clone()))
            }
            None if binding == ChannelBinding::Require => {
                return Err(refused("channel binding required, but SSL not in use"));
            }
            _ if binding == ChannelBinding::Require => {
                return Err(refused(
                    "channel binding is required, but server did not offer an authentication method that supports channel binding",
                ));
            }
            Some(_) if binding != ChannelBinding::Disable => (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unrequested()),
            _ => (sasl::SCRAM_SHA_256, sasl::ChannelBinding::unsupported()),
        };
        if !offers(mechanism) {
            return Err(refused("none of the server's SASL authentication mechanisms are supported"));
        }
        let checked = params.require_auth.check_mechanism(mechanism);
        checked.map_err(|error| ConnectionError::Authentication(error.to_string()))?;
        let scram = ScramSha256::new(&self.reveal(password)?, channel);
        let message = scram.message();
        frame::write(out, b'p', |out| {
            frame::write_text(out, mechanism.as_bytes());
            out.extend_from_slice(&(message.len() as u32).to_be_bytes());
            out.extend_from_slice(message);
        });
        self.scram = Some(scram);
        Ok(())
    }

    fn reveal<'p>(&mut self, password: Option<&'p Password>) -> Result<Cow<'p, [u8]>, ConnectionError> {
        self.has_used_password = true;
        password.map(Password::bytes).ok_or(ConnectionError::NoPassword)
    }
}

fn write_password(password: &[u8], out: &mut Vec<u8>) {
    frame::write(out, b'p', |out| frame::write_text(out, password));
}

fn refused(message: &str) -> ConnectionError {
    ConnectionError::Authentication(message.to_owned())
}

/// Makes the error for a SCRAM exchange that failed, because the server did not prove that it knows the password or
/// because it sent a malformed SCRAM message.
fn scram_error(error: std::io::Error) -> ConnectionError {
    refused(&format!("SCRAM authentication failed: {error}"))
}
