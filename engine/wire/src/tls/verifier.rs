//! Verification of the server's certificate as `sslmode` asks for it.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use x509_parser::prelude::ASN1Time;

use super::certificate::Certificate;
use super::files::Trust;
use super::revocation;
use crate::params::SslMode;

/// Checks what the mode asks for and nothing else; the server must own the certificate's key in every mode.
#[derive(Debug)]
pub struct Verifier {
    /// `None` trusts any certificate.
    trust: Option<Trust>,
    check_host: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// A verifier that checks the chain if there is someone to trust, as libpq does in every mode, and the host's name
    /// under `verify-full`.
    pub fn new(trust: Option<Trust>, mode: SslMode, provider: &CryptoProvider) -> Self {
        Self { trust, check_host: mode == SslMode::VerifyFull, algorithms: provider.signature_verification_algorithms }
    }

    fn check_chain(
        &self,
        trust: &Trust,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let certificate = parse(end_entity)?;
        if trust.own.contains(end_entity) && certificate.is_self_issued() {
            // The user's file holds this very certificate: a self-signed server.
            check_time(&certificate, now)?;
            if trust.revocations.is_empty() {
                return Ok(());
            }
            let has_signed = |signed: &[u8], algorithm: &[u8], signature: &[u8]| {
                self.has_signed(&certificate, signed, algorithm, signature)
            };
            return revocation::check(&certificate, &trust.revocations, now, has_signed);
        }
        let chain = trust.chains.verify_server_cert(end_entity, intermediates, server_name, &[], now);
        match chain {
            Ok(_) => Ok(()),
            // The name is judged after the chain, and here by PostgreSQL's rules instead.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            Err(error) => {
                if certificate.is_version_1() && trust.revocations.is_empty() {
                    self.check_issuer(trust, &certificate, now)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Checks a certificate of version 1, which must come straight from an authority in the user's own file.
    fn check_issuer(&self, trust: &Trust, certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
        check_time(certificate, now)?;
        let issued_by = |authority: &Certificate<'_>| {
            authority.x509.subject().as_raw() == certificate.x509.issuer().as_raw()
                && authority.is_authority()
                && check_time(authority, now).is_ok()
                && self.has_signed(
                    authority,
                    certificate.x509.tbs_certificate.as_ref(),
                    certificate.signature_algorithm,
                    &certificate.x509.signature_value.data,
                )
        };
        let mut authorities = trust.own.iter().filter_map(|der| Certificate::parse(der));
        if authorities.any(|authority| issued_by(&authority)) {
            Ok(())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    /// Whether the signature on `signed` is one of the authority's key, by the algorithm with this identifier.
    fn has_signed(&self, authority: &Certificate<'_>, signed: &[u8], identifier: &[u8], signature: &[u8]) -> bool {
        let key = &authority.x509.public_key().subject_public_key.data;
        self.algorithms.all.iter().any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == identifier
                && algorithm.public_key_alg_id().as_ref() == authority.key_algorithm
                && algorithm.verify_signature(key, signed, signature).is_ok()
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            self.check_chain(trust, end_entity, intermediates, server_name, now)?;
        }
        if self.check_host {
            parse(end_entity)?.check_host(server_name).map_err(Error::General)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    /// As the library's own check, except that it takes certificates of version 1.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = parse(cert)?;
        let key = &certificate.x509.public_key().subject_public_key.data;
        let valid = self
            .algorithms
            .mapping
            .iter()
            .filter(|(scheme, _)| *scheme == dss.scheme)
            .flat_map(|(_, algorithms)| algorithms.iter())
            .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == certificate.key_algorithm)
            .any(|algorithm| algorithm.verify_signature(key, message, dss.signature()).is_ok());
        if valid { Ok(HandshakeSignatureValid::assertion()) } else { Err(CertificateError::BadSignature.into()) }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = parse(cert)?;
        let key = SubjectPublicKeyInfoDer::from(certificate.x509.public_key().raw);
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<Certificate<'a>, Error> {
    Certificate::parse(der).ok_or_else(|| CertificateError::BadEncoding.into())
}

fn check_time(certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let is_valid = ASN1Time::from_timestamp(seconds).is_ok_and(|now| certificate.x509.validity().is_valid_at(now));
    if is_valid { Ok(()) } else { Err(CertificateError::Expired.into()) }
}
