//! Reads the fields of X.509 certificates that PostgreSQL's rules need: the host that a certificate names, the hash to
//! which SCRAM is bound, and the issuer of certificates of version 1.
//!
//! `openssl x509 -req` without extensions, as in PostgreSQL's own instructions, makes certificates of version 1 that
//! name their host only in the subject. The TLS library accepts neither. Source: RFC 5280, section 4.1.

use std::net::IpAddr;

use rustls::pki_types::ServerName;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use thiserror::Error;
use x509_parser::asn1_rs::Any;
use x509_parser::prelude::{AlgorithmIdentifier, FromDer, GeneralName, X509Certificate, X509Version};
use x509_parser::signature_algorithm::SignatureAlgorithm;

/// The signed part of a certificate or of a revocation list, with its signature.
pub struct Signed<'a> {
    pub content: &'a [u8],
    /// The content of the signature's AlgorithmIdentifier field.
    pub algorithm: &'a [u8],
    pub signature: &'a [u8],
}

/// The fields of a certificate.
pub struct Certificate<'a> {
    pub x509: X509Certificate<'a>,
    /// The content of the signature's AlgorithmIdentifier field, in the form in which the TLS library compares it.
    pub signature_algorithm: &'a [u8],
    /// The content of the key's AlgorithmIdentifier field.
    pub key_algorithm: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate. Returns `None` if it is malformed.
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        let (_, x509) = X509Certificate::from_der(der).ok()?;
        let signature_algorithm = algorithm_after(der, x509.tbs_certificate.as_ref().len())?;
        let key_algorithm = content(content(x509.tbs_certificate.subject_pki.raw)?)?;
        Some(Self { x509, signature_algorithm, key_algorithm })
    }

    /// Returns the part that the issuer has signed.
    pub fn signed(&self) -> Signed<'_> {
        Signed {
            content: self.x509.tbs_certificate.as_ref(),
            algorithm: self.signature_algorithm,
            signature: &self.x509.signature_value.data,
        }
    }

    /// Returns true if the certificate is of version 1, which has no extensions.
    pub fn is_version_1(&self) -> bool {
        self.x509.version() == X509Version::V1 && self.x509.extensions().is_empty()
    }

    /// Returns true if the certificate names itself as its issuer.
    pub fn is_self_issued(&self) -> bool {
        self.x509.subject().as_raw() == self.x509.issuer().as_raw()
    }

    /// Returns true if the certificate may issue other certificates: its basic constraints allow it, or it is of
    /// version 1 and self-issued.
    pub fn is_authority(&self) -> bool {
        self.x509.is_ca() || self.is_version_1() && self.is_self_issued()
    }

    /// Checks that the certificate names the host.
    ///
    /// The subject alternative names decide. The common name decides only if none of them is of the host's kind (DNS
    /// name or address). A name may start with `*.`, which stands for one label. Source: PostgreSQL 18 documentation,
    /// 32.19.1.
    pub fn check_host(&self, host: &ServerName<'_>) -> Result<(), OtherHost> {
        let address = match host {
            ServerName::IpAddress(address) => Some(IpAddr::from(*address)),
            _ => None,
        };
        let host = host.to_str();
        let mut shown = Vec::new();
        let mut use_common_name = true;
        let extension = self.x509.subject_alternative_name().map_err(|_| OtherHost::new(&[], &host))?;
        for name in extension.iter().flat_map(|extension| &extension.value.general_names) {
            match name {
                GeneralName::DNSName(text) => {
                    use_common_name &= address.is_some();
                    if matches(text, &host) {
                        return Ok(());
                    }
                    shown.push((*text).to_owned());
                }
                GeneralName::IPAddress(bytes) => {
                    use_common_name &= address.is_none();
                    let named = ip_address(bytes);
                    if named.is_some() && named == address {
                        return Ok(());
                    }
                    shown.extend(named.map(|named| named.to_string()));
                }
                GeneralName::Invalid(..) => use_common_name = false,
                _ => {}
            }
        }
        if use_common_name {
            let name = self.x509.subject().iter_common_name().next();
            let name = name.and_then(|name| std::str::from_utf8(name.as_slice()).ok()).unwrap_or_default();
            if matches(name, &host) {
                return Ok(());
            }
            shown.push(name.to_owned());
        }
        Err(OtherHost::new(&shown, &host))
    }
}

/// Returns the content of the signature's AlgorithmIdentifier field in a certificate or revocation list. `signed` is
/// the length of its signed part.
pub fn algorithm_after(der: &[u8], signed: usize) -> Option<&[u8]> {
    content(content(der)?.get(signed..)?)
}

/// Returns the content of the first value in DER-encoded bytes.
fn content(der: &[u8]) -> Option<&[u8]> {
    Some(Any::from_der(der).ok()?.1.data)
}

/// Returns the hash of the server's certificate to which SCRAM is bound (`tls-server-end-point`).
///
/// The hash function is that of the certificate's own signature, but SHA-256 in place of MD5 and SHA-1. Returns `None`
/// if the signature has no hash function (Ed25519) or an unknown one; SCRAM is then not bound. Source: RFC 5929,
/// section 4.1.
pub fn server_end_point(der: &[u8]) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(match hash_name(&certificate.signature_algorithm).as_str() {
        "1.2.840.113549.1.1.4" // MD5 with RSA
        | "1.3.14.3.2.26" // SHA-1, alone as in RSASSA-PSS
        | "1.2.840.113549.1.1.5" // with RSA
        | "1.2.840.10045.4.1" // with ECDSA
        | "2.16.840.1.101.3.4.2.1" // SHA-256
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.3.2" => Sha256::digest(der).to_vec(),
        "2.16.840.1.101.3.4.2.4" // SHA-224
        | "1.2.840.113549.1.1.14"
        | "1.2.840.10045.4.3.1" => Sha224::digest(der).to_vec(),
        "2.16.840.1.101.3.4.2.2" // SHA-384
        | "1.2.840.113549.1.1.12"
        | "1.2.840.10045.4.3.3" => Sha384::digest(der).to_vec(),
        "2.16.840.1.101.3.4.2.3" // SHA-512
        | "1.2.840.113549.1.1.13"
        | "1.2.840.10045.4.3.4" => Sha512::digest(der).to_vec(),
        _ => return None,
    })
}

/// Returns the object identifier of a signature algorithm. For RSASSA-PSS, returns the object identifier of the hash
/// function in its parameters, which is SHA-1 by default (RFC 4055, section 3.1).
fn hash_name(algorithm: &AlgorithmIdentifier<'_>) -> String {
    match SignatureAlgorithm::try_from(algorithm) {
        Ok(SignatureAlgorithm::RSASSA_PSS(parameters)) => parameters.hash_algorithm_oid().to_id_string(),
        _ => algorithm.oid().to_id_string(),
    }
}

/// The error for a certificate that does not name the host, in libpq's words.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("server certificate for \"{first}\"{others} does not match host name \"{host}\"")]
pub struct OtherHost {
    first: String,
    others: String,
    host: String,
}

impl OtherHost {
    fn new(names: &[String], host: &str) -> Self {
        let others = match names.len() {
            0 | 1 => String::new(),
            2 => " (and 1 other name)".to_owned(),
            count => format!(" (and {} other names)", count - 1),
        };
        Self { first: names.first().cloned().unwrap_or_default(), others, host: host.to_owned() }
    }
}

/// Returns true if the certificate's name matches the host. `*.` at its beginning stands for one label.
fn matches(name: &str, host: &str) -> bool {
    let is_below = |suffix: &str, (label, rest): (&str, &str)| {
        !suffix.is_empty() && !label.is_empty() && rest.eq_ignore_ascii_case(suffix)
    };
    let wildcard = name.strip_prefix("*.").zip(host.split_once('.'));
    name.eq_ignore_ascii_case(host) || wildcard.is_some_and(|(suffix, host)| is_below(suffix, host))
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SignatureAlgorithm};

    /// Makes a certificate with a common name and subject alternative names, which are DNS names or addresses.
    fn named(common_name: &str, names: &[&str]) -> Vec<u8> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn checked(common_name: &str, names: &[&str], host: &str) -> Result<(), OtherHost> {
        let der = named(common_name, names);
        Certificate::parse(&der).unwrap().check_host(&ServerName::try_from(host.to_owned()).unwrap())
    }

    #[test]
    fn alternative_names_decide_before_the_common_name() {
        assert_eq!(checked("cn.example", &["a.example", "B.example"], "b.EXAMPLE"), Ok(()));
        assert_eq!(checked("cn.example", &[], "cn.example"), Ok(()));
        assert_eq!(
            checked("cn.example", &["a.example"], "cn.example").unwrap_err().to_string(),
            "server certificate for \"a.example\" does not match host name \"cn.example\""
        );
        assert_eq!(
            checked("cn.example", &["a.example", "b.example", "::1"], "x").unwrap_err().to_string(),
            "server certificate for \"a.example\" (and 2 other names) does not match host name \"x\""
        );
    }

    #[test]
    fn addresses_are_names_of_their_own_kind() {
        assert_eq!(checked("cn", &["127.0.0.1"], "127.0.0.1"), Ok(()));
        assert_eq!(checked("cn", &["::1"], "::1"), Ok(()));
        assert_eq!(checked("127.0.0.1", &["a.example"], "127.0.0.1"), Ok(()));
        assert!(checked("127.0.0.1", &["127.0.0.2"], "127.0.0.1").is_err());
    }

    #[test]
    fn a_wildcard_stands_for_one_label() {
        assert!(matches("*.example.org", "a.example.org"));
        assert!(matches("*.Example.org", "A.example.ORG"));
        assert!(!matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(!matches("*.example.org", ".example.org"));
        assert!(!matches("*", "a"));
        assert!(!matches("*.", "a."));
        assert!(!matches("a*.example.org", "ab.example.org"));
    }

    fn signed_with(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(["h".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let der = signed_with(&rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(server_end_point(&der), Some(Sha256::digest(&der).to_vec()));
        let der = signed_with(&rcgen::PKCS_ECDSA_P384_SHA384);
        assert_eq!(server_end_point(&der), Some(Sha384::digest(&der).to_vec()));
    }

    #[test]
    fn a_signature_without_a_hash_gives_no_binding() {
        assert_eq!(server_end_point(&signed_with(&rcgen::PKCS_ED25519)), None);
        assert_eq!(server_end_point(b"no certificate"), None);
    }

    #[test]
    fn the_hash_of_pss_is_among_its_parameters() {
        let pss = |parameters: &[u8]| {
            let name = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a];
            let parameters = [&[0x30, parameters.len() as u8], parameters].concat();
            let der = [&[0x30, (name.len() + parameters.len()) as u8], &name[..], &parameters].concat();
            hash_name(&AlgorithmIdentifier::from_der(&der).unwrap().1)
        };
        let sha384 = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02];
        assert_eq!(pss(&[&[0xa0, 0x0d, 0x30, 0x0b, 0x06, 0x09], &sha384[..]].concat()), "2.16.840.1.101.3.4.2.2");
        assert_eq!(pss(&[]), "1.3.14.3.2.26");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Certificate::parse(&bytes);
        }

        #[test]
        fn a_damaged_certificate_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let key = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
            let mut der = key.cert.der().to_vec();
            *at.get_mut(&mut der) = byte;
            if let Some(certificate) = Certificate::parse(&der) {
                let _ = certificate.is_authority();
                let _ = certificate.check_host(&ServerName::try_from("a.example").unwrap());
                let _ = server_end_point(&der);
            }
        }
    }
}
