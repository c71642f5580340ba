//! The errors for which TLS could not be established, and whether libpq would fail for the same reason.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use rustls::{AlertDescription, CertificateError};
use thiserror::Error;

/// The versions and algorithms that this program's TLS library supports, shown to the person who configures the server.
const ABILITIES: &str = "This program's TLS has versions 1.2 and 1.3, ECDHE with X25519, P-256 and P-384, AES-GCM and ChaCha20-Poly1305, and keys of RSA, P-256, P-384 and Ed25519.";

/// The advice at the end of an error message: what the user can do if the TLS library and the server have no algorithm
/// in common.
const WAYS_OUT: &str = "Allow these in the server's ssl_ciphers, ssl_ecdh_curve and certificate, or set sslmode=disable to run unencrypted on purpose.";

/// The error for which TLS could not be established.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsFailure {
    /// libpq would fail, too. If `sslmode` allows it, the session goes on without TLS.
    #[error("{0}")]
    AsLibpq(String),
    /// libpq might succeed. Therefore the session must not go on without TLS.
    #[error("{0}")]
    Unsupported(String),
}

impl TlsFailure {
    /// Makes the error for a failure that libpq would have, too.
    pub fn as_libpq(error: impl Display) -> Self {
        Self::AsLibpq(error.to_string())
    }

    /// Makes the error for a failure of this program's TLS library in a case in which libpq might succeed.
    pub fn unsupported(error: impl Display) -> Self {
        Self::Unsupported(error.to_string())
    }

    /// Makes the error for a TLS handshake that failed in the TLS library.
    pub fn of_handshake(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::General(message) => Self::AsLibpq(message.clone()),
            rustls::Error::InvalidCertificate(reason) if is_rejected_by_libpq(reason) => {
                Self::AsLibpq("SSL error: certificate verify failed".to_owned())
            }
            rustls::Error::AlertReceived(alert) if is_sent_to_libpq(*alert) => {
                Self::AsLibpq(format!("SSL error: {error}"))
            }
            // The server's answer is not TLS at all.
            rustls::Error::InvalidMessage(_) => Self::AsLibpq(format!("SSL error: {error}")),
            _ => Self::Unsupported(format!(
                "SSL error: the server offers TLS, but none that this program supports ({error})\n\t{ABILITIES}\n\t{WAYS_OUT}"
            )),
        }
    }
}

/// Returns true if OpenSSL would reject a certificate for the same reason. Other rejections may come from limits of
/// this program's TLS library.
fn is_rejected_by_libpq(reason: &CertificateError) -> bool {
    use CertificateError::*;
    if let UnsupportedSignatureAlgorithmForPublicKeyContext { signature_algorithm_id, public_key_algorithm_id } = reason
    {
        // If the signature and the key of the authority are of different families, the authority has the right name but
        // has not signed the certificate.
        return !family(signature_algorithm_id).eq(family(public_key_algorithm_id));
    }
    matches!(
        reason,
        Expired
            | ExpiredContext { .. }
            | NotValidYet
            | NotValidYetContext { .. }
            | Revoked
            | UnknownIssuer
            | UnknownRevocationStatus
            | ExpiredRevocationList
            | ExpiredRevocationListContext { .. }
            | BadSignature
            | NotValidForName
            | NotValidForNameContext { .. }
            | InvalidPurpose
            | InvalidPurposeContext { .. }
    )
}

/// Returns the first bytes of an algorithm's object identifier, without its tag and length. They distinguish RSA from
/// elliptic curves.
fn family(identifier: &[u8]) -> impl Iterator<Item = &u8> {
    identifier.iter().skip(2).take(5)
}

/// Returns true for alerts that the server would send to libpq, too, whatever the client's TLS library supports: the
/// server rejects the client's certificate, or it supports no version of TLS that libpq allows by default.
fn is_sent_to_libpq(alert: AlertDescription) -> bool {
    use AlertDescription::*;
    matches!(
        alert,
        BadCertificate
            | UnsupportedCertificate
            | CertificateRevoked
            | CertificateExpired
            | CertificateUnknown
            | CertificateRequired
            | UnknownCA
            | AccessDenied
            | ProtocolVersion
            | UnrecognisedName
            | NoApplicationProtocol
    )
}

/// The error for a file that cannot be read or used, in libpq's words.
#[derive(Debug, Error)]
#[error("could not {action} \"{}\": {reason}", .file.display())]
pub struct UnusableFile {
    action: &'static str,
    file: PathBuf,
    reason: String,
}

impl UnusableFile {
    pub fn new(action: &'static str, file: &Path, reason: impl Display) -> Self {
        Self { action, file: file.to_owned(), reason: reason.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{Error, InvalidMessage, PeerIncompatible};

    fn is_final(error: Error) -> bool {
        matches!(TlsFailure::of_handshake(&error), TlsFailure::Unsupported(_))
    }

    #[test]
    fn a_signature_of_another_kind_than_the_key_is_no_lack_of_this_program() {
        const RSA_SIGNATURE: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0xd, 1, 1, 0xb];
        const RSA_KEY: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0xd, 1, 1, 1];
        const EC_KEY: [u8; 9] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
        let failed = |key: &[u8]| {
            is_final(Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: RSA_SIGNATURE.to_vec(),
                public_key_algorithm_id: key.to_vec(),
            }))
        };
        assert!(failed(&RSA_KEY));
        assert!(!failed(&EC_KEY));
    }

    #[test]
    fn what_libpq_might_do_is_never_a_reason_to_go_on_without_tls() {
        for alert in [
            AlertDescription::HandshakeFailure,
            AlertDescription::InsufficientSecurity,
            AlertDescription::IllegalParameter,
            AlertDescription::InternalError,
            AlertDescription::Unknown(200),
        ] {
            assert!(is_final(Error::AlertReceived(alert)), "{alert:?}");
        }
        assert!(is_final(PeerIncompatible::NoCipherSuitesInCommon.into()));
        assert!(is_final(CertificateError::BadEncoding.into()));
        assert!(is_final(CertificateError::UnhandledCriticalExtension.into()));
    }

    #[test]
    fn what_libpq_rejects_too_is_not_final() {
        for alert in [AlertDescription::UnknownCA, AlertDescription::ProtocolVersion, AlertDescription::BadCertificate]
        {
            assert!(!is_final(Error::AlertReceived(alert)), "{alert:?}");
        }
        assert!(!is_final(CertificateError::Expired.into()));
        assert!(!is_final(CertificateError::UnknownIssuer.into()));
        assert!(!is_final(InvalidMessage::InvalidContentType.into()));
    }

    #[test]
    fn the_error_says_what_is_supported_and_what_to_do() {
        let said = TlsFailure::of_handshake(&Error::AlertReceived(AlertDescription::HandshakeFailure)).to_string();
        for word in ["the server offers TLS", "HandshakeFailure", "AES-GCM", "ssl_ciphers", "sslmode=disable"] {
            assert!(said.contains(word), "{said}");
        }
    }
}
