//! Whether a self-signed certificate is revoked: by a list that it has signed itself. The TLS library checks chains only. As
//! in OpenSSL, a certificate without a valid list of its issuer is refused once there are lists. Source: RFC 5280, section 5.

use rustls::pki_types::{CertificateRevocationListDer, UnixTime};
use rustls::{CertificateError, Error};
use x509_parser::prelude::{ASN1Time, CertificateRevocationList, FromDer};

use super::certificate::{Certificate, signature_algorithm};

/// Checks a self-signed certificate by the lists of the user; `has_signed` verifies a signature of the certificate's key:
/// what was signed, the algorithm and the signature.
///
/// # Errors
/// It is revoked, or no valid list is its own.
pub fn check(
    certificate: &Certificate<'_>,
    lists: &[CertificateRevocationListDer<'_>],
    now: UnixTime,
    has_signed: impl Fn(&[u8], &[u8], &[u8]) -> bool,
) -> Result<(), Error> {
    let now = i64::try_from(now.as_secs()).ok().and_then(|seconds| ASN1Time::from_timestamp(seconds).ok());
    let may_sign = certificate.x509.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.crl_sign()));
    let is_own = |der: &[u8], list: &CertificateRevocationList<'_>| {
        let signed = list.tbs_cert_list.as_ref();
        list.issuer().as_raw() == certificate.x509.subject().as_raw()
            && signature_algorithm(der, signed.len())
                .is_some_and(|algorithm| has_signed(signed, algorithm, &list.signature_value.data))
    };
    let is_valid = |list: &CertificateRevocationList<'_>| {
        now.is_some_and(|now| list.last_update() <= now && list.next_update().is_none_or(|next| now < next))
    };
    let mut is_checked = false;
    for der in lists {
        let Ok((_, list)) = CertificateRevocationList::from_der(der) else { continue };
        if !is_own(der, &list) {
            continue;
        }
        let mut revoked = list.iter_revoked_certificates();
        if revoked.any(|revoked| revoked.raw_serial() == certificate.x509.raw_serial()) {
            return Err(CertificateError::Revoked.into());
        }
        is_checked |= is_valid(&list);
    }
    if may_sign && is_checked { Ok(()) } else { Err(CertificateError::UnknownRevocationStatus.into()) }
}
