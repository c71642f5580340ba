//! Verifies the server's certificate as `sslmode` demands.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use x509_parser::prelude::ASN1Time;

use super::certificate::{Certificate, Signed};
use super::files::Trust;
use super::revocation;
use crate::params::SslMode;

/// Checks what `sslmode` demands, and nothing else. In every mode the server must have the key of its certificate.
#[derive(Debug)]
pub struct Verifier {
    /// The trusted authorities. `None` means that any certificate is accepted.
    trust: Option<Trust>,
    check_host: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Makes a verifier. As in libpq, it checks the chain of certificates in every mode if there are trusted
    /// authorities. Under `verify-full` it checks the host's name, too.
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
            // The user's file of authorities contains this very certificate, which is self-signed.
            check_time(&certificate, now)?;
            return self.check_revocation(trust, &certificate, &certificate, now);
        }
        let chain = trust.chains.verify_server_cert(end_entity, intermediates, server_name, &[], now);
        match chain {
            Ok(_) => Ok(()),
            // The library checks the name last, so that the chain is valid. The name is checked elsewhere by
            // PostgreSQL's rules.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            Err(_) if certificate.is_version_1() => self.check_issuer(trust, &certificate, now),
            // The library rejects the certificate for another reason than OpenSSL: because it is the certificate of an
            // authority.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if certificate.is_self_issued() => {
                Err(CertificateError::UnknownIssuer.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Checks a certificate of version 1, which must have been issued by an authority in the user's own file.
    fn check_issuer(&self, trust: &Trust, certificate: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
        check_time(certificate, now)?;
        let issued_by = |authority: &Certificate<'_>| {
            authority.x509.subject().as_raw() == certificate.x509.issuer().as_raw()
                && authority.is_authority()
                && check_time(authority, now).is_ok()
                && self.has_signed(authority, &certificate.signed())
        };
        let mut authorities = trust.own.iter().filter_map(|der| Certificate::parse(der));
        match authorities.find(issued_by) {
            Some(authority) => self.check_revocation(trust, &authority, certificate, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    /// Checks that the issuer has not revoked the certificate, if there are revocation lists.
    fn check_revocation(
        &self,
        trust: &Trust,
        issuer: &Certificate<'_>,
        certificate: &Certificate<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if trust.lists.is_empty() {
            return Ok(());
        }
        let is_signed = |signed: &Signed<'_>| self.has_signed(issuer, signed);
        Ok(revocation::check(&trust.lists, issuer, certificate, asn1_time(now)?, is_signed)?)
    }

    fn has_signed(&self, authority: &Certificate<'_>, signed: &Signed<'_>) -> bool {
        let key = &authority.x509.public_key().subject_public_key.data;
        self.algorithms.all.iter().any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == signed.algorithm
                && algorithm.public_key_alg_id().as_ref() == authority.key_algorithm
                && algorithm.verify_signature(key, signed.content, signed.signature).is_ok()
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
            parse(end_entity)?.check_host(server_name).map_err(|error| Error::General(error.to_string()))?;
        }
        Ok(ServerCertVerified::assertion())
    }

    /// Does the same checks as the method of the library rustls, but also accepts certificates of version 1.
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
    let is_valid = certificate.x509.validity().is_valid_at(asn1_time(now)?);
    if is_valid { Ok(()) } else { Err(CertificateError::Expired.into()) }
}

fn asn1_time(now: UnixTime) -> Result<ASN1Time, Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    ASN1Time::from_timestamp(seconds).map_err(|_| CertificateError::Expired.into())
}
