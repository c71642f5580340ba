//! The `tls-server-end-point` channel binding, for SCRAM-SHA-256-PLUS.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::certificate::{Certificate, Reader, tag};

const MD5_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04];
const SHA1_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05];
const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a];
const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const SHA384_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c];
const SHA512_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d];
const SHA224_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0e];
const ECDSA_WITH_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
const ECDSA_WITH_SHA224: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x01];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ECDSA_WITH_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
const ECDSA_WITH_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04];
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const SHA384: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02];
const SHA512: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03];
const SHA224: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x04];

/// The hash of the server's certificate that binds SCRAM to the channel.
///
/// The hash is that of the certificate's own signature, with SHA-256 in place of MD5 and SHA-1. `None` if the signature
/// has no hash of its own (Ed25519) or an unknown one; there is no binding then. Source: RFC 5929, section 4.1.
pub fn server_end_point(cert_der: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::parse(cert_der)?;
    let mut algorithm = Reader::new(certificate.signature_algorithm);
    let mut name = algorithm.expect(tag::OID)?;
    if name == RSA_PSS {
        name = pss_hash(algorithm.expect(tag::SEQUENCE)?)?;
    }
    match name {
        MD5_WITH_RSA | SHA1_WITH_RSA | ECDSA_WITH_SHA1 | SHA1 | SHA256_WITH_RSA | ECDSA_WITH_SHA256 | SHA256 => {
            Some(Sha256::digest(cert_der).to_vec())
        }
        SHA224_WITH_RSA | ECDSA_WITH_SHA224 | SHA224 => Some(Sha224::digest(cert_der).to_vec()),
        SHA384_WITH_RSA | ECDSA_WITH_SHA384 | SHA384 => Some(Sha384::digest(cert_der).to_vec()),
        SHA512_WITH_RSA | ECDSA_WITH_SHA512 | SHA512 => Some(Sha512::digest(cert_der).to_vec()),
        _ => None,
    }
}

/// The hash among the parameters of RSASSA-PSS, SHA-1 unless given (RFC 4055, section 3.1).
fn pss_hash(parameters: &[u8]) -> Option<&[u8]> {
    match Reader::new(parameters).optional(tag::CONTEXT_0) {
        Some(explicit) => Reader::new(Reader::new(explicit).expect(tag::SEQUENCE)?).expect(tag::OID),
        None => Some(SHA1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

    fn certificate(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(["h".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let der = certificate(&rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(server_end_point(&der), Some(Sha256::digest(&der).to_vec()));
        let der = certificate(&rcgen::PKCS_ECDSA_P384_SHA384);
        assert_eq!(server_end_point(&der), Some(Sha384::digest(&der).to_vec()));
    }

    #[test]
    fn a_signature_without_a_hash_gives_no_binding() {
        assert_eq!(server_end_point(&certificate(&rcgen::PKCS_ED25519)), None);
        assert_eq!(server_end_point(b"no certificate"), None);
    }

    #[test]
    fn the_hash_of_pss_is_among_its_parameters() {
        let sha384 = [&[0xa0, 0x0d, 0x30, 0x0b, 0x06, 0x09], SHA384].concat();
        assert_eq!(pss_hash(&sha384), Some(SHA384));
        assert_eq!(pss_hash(&[]), Some(SHA1));
    }
}
