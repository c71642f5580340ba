//! Checks revocation lists for certificates that the TLS library does not support. Source: RFC 5280, section 5.

use rustls::CertificateError;
use rustls::pki_types::CertificateRevocationListDer;
use x509_parser::prelude::{ASN1Time, CertificateRevocationList, FromDer};

use super::certificate::{Certificate, Signed, algorithm_after};

/// Checks that a certificate is not in a revocation list of its issuer. As in OpenSSL, if there are any lists, a
/// certificate is also rejected if its issuer has no valid list. `is_signed` verifies the issuer's signature of a list.
///
/// # Errors
/// Returns an error if the certificate is revoked, or if its issuer has no valid list.
pub fn check(
    lists: &[CertificateRevocationListDer<'static>],
    issuer: &Certificate<'_>,
    certificate: &Certificate<'_>,
    now: ASN1Time,
    is_signed: impl Fn(&Signed<'_>) -> bool,
) -> Result<(), CertificateError> {
    let may_sign = issuer.x509.key_usage().is_ok_and(|usage| usage.is_none_or(|usage| usage.value.crl_sign()));
    let is_issuers = |der: &[u8], list: &CertificateRevocationList<'_>| {
        let content = list.tbs_cert_list.as_ref();
        let signature = &list.signature_value.data;
        list.issuer().as_raw() == issuer.x509.subject().as_raw()
            && algorithm_after(der, content.len())
                .is_some_and(|algorithm| is_signed(&Signed { content, algorithm, signature }))
    };
    let mut is_checked = false;
    for der in lists {
        let Ok((_, list)) = CertificateRevocationList::from_der(der) else { continue };
        if !is_issuers(der, &list) {
            continue;
        }
        if list.iter_revoked_certificates().any(|revoked| revoked.raw_serial() == certificate.x509.raw_serial()) {
            return Err(CertificateError::Revoked);
        }
        is_checked |= list.last_update() <= now && list.next_update().is_none_or(|next| now < next);
    }
    if may_sign && is_checked { Ok(()) } else { Err(CertificateError::UnknownRevocationStatus) }
}
