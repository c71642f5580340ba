//! The files that libpq reads for TLS: trusted authorities, lists of revoked certificates, and the client's own certificate
//! with its key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};

use super::certificate::Certificate;
use super::error::TlsError;
use crate::params::{RootCert, SslMode, TlsParams};

/// The trusted authorities.
#[derive(Debug)]
pub struct Trust {
    /// Checks chains of certificates up to an authority.
    pub chains: Arc<WebPkiServerVerifier>,
    /// The certificates of the user's own file, for what `chains` does not understand; empty for the system's.
    pub own: Vec<CertificateDer<'static>>,
    /// Whether there are lists of revoked certificates.
    pub revocations: bool,
}

/// Loads the authorities and what they have revoked; `None` if there are none and the mode can do without.
pub fn load_trust(tls: &TlsParams, provider: &Arc<CryptoProvider>) -> Result<Option<Trust>, TlsError> {
    let must_verify = tls.mode >= SslMode::VerifyCa;
    let (roots, own, file) = match &tls.root_cert {
        Some(RootCert::System) => (system_roots()?, Vec::new(), None),
        Some(RootCert::File(file)) if file.exists() => {
            let (roots, own) = roots_of_file(file)?;
            (roots, own, Some(file))
        }
        Some(RootCert::File(file)) if must_verify => {
            return Err(TlsError::RootMissing(file.clone()));
        }
        None if must_verify => return Err(TlsError::RootUnknown),
        _ => return Ok(None),
    };
    let crls = revocations(tls)?;
    let revocations = !crls.is_empty();
    let chains = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone())
        .with_crls(crls)
        .enforce_revocation_expiration()
        .build()
        .map_err(|error| TlsError::RootUnreadable {
            file: file.cloned().unwrap_or_default(),
            reason: error.to_string(),
        })?;
    Ok(Some(Trust { chains, own, revocations }))
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let reason = found.errors.first().map(ToString::to_string);
    Err(TlsError::SystemRoots(reason.unwrap_or_else(|| "no certificate found".to_owned())))
}

/// The certificates of a PEM file, at least one of them usable as an authority.
fn roots_of_file(file: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsError> {
    let unreadable = |reason: String| TlsError::RootUnreadable { file: file.to_owned(), reason };
    let own: Vec<CertificateDer<'static>> = read_pem(file).map_err(unreadable)?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(own.iter().cloned());
    if added == 0 {
        return Err(unreadable("no certificate or crl found".to_owned()));
    }
    Ok((roots, own))
}

/// All lists of revoked certificates; as with libpq, files that do not exist revoke nothing.
fn revocations(tls: &TlsParams) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut files: Vec<PathBuf> = tls.crl.iter().filter(|file| file.exists()).cloned().collect();
    if let Some(directory) = tls.crl_dir.as_deref().filter(|path| path.exists()) {
        let failed =
            |error: std::io::Error| TlsError::Revocations { file: directory.to_owned(), reason: error.to_string() };
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            files.extend(path.is_file().then_some(path));
        }
    }
    let mut lists = Vec::new();
    for file in files {
        lists.extend(read_pem(&file).map_err(|reason| TlsError::Revocations { file, reason })?);
    }
    Ok(lists)
}

/// Reads the client's certificate and key; `None` if the certificate's file does not exist, which libpq takes for having none.
pub fn load_client_cert(tls: &TlsParams, provider: &CryptoProvider) -> Result<Option<Arc<SingleCertAndKey>>, TlsError> {
    let Some(cert) = tls.cert.as_deref().filter(|_| tls.send_cert) else {
        return Ok(None);
    };
    match std::fs::metadata(cert) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(reason) => {
            let file = cert.to_owned();
            return Err(TlsError::CertUnopened { file, reason });
        }
    }
    let unreadable = |reason: String| TlsError::CertUnreadable { file: cert.to_owned(), reason };
    let chain: Vec<CertificateDer<'static>> = read_pem(cert).map_err(unreadable)?;
    if chain.is_empty() {
        return Err(unreadable("no certificate found".to_owned()));
    }
    let key_file = tls.key.as_deref().unwrap_or(cert);
    check_key_file(key_file)?;
    let key = read_key(key_file, provider)?;
    if !belong_together(&chain[0], key.as_ref()) {
        return Err(TlsError::KeyMismatch(key_file.to_owned()));
    }
    let certified = CertifiedKey::new(chain, key);
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

fn check_key_file(file: &Path) -> Result<(), TlsError> {
    let metadata = std::fs::metadata(file).map_err(|reason| match reason.kind() {
        ErrorKind::NotFound => TlsError::KeyMissing(file.to_owned()),
        _ => TlsError::KeyUnopened { file: file.to_owned(), reason },
    })?;
    if !metadata.is_file() {
        return Err(TlsError::KeyNotRegular(file.to_owned()));
    }
    if open_to_others(&metadata) {
        return Err(TlsError::KeyPermissions(file.to_owned()));
    }
    Ok(())
}

/// A key that root owns may be readable to its group, as Debian's `ssl-cert` arranges it.
#[cfg(unix)]
fn open_to_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    metadata.mode() & forbidden != 0
}

#[cfg(not(unix))]
fn open_to_others(_: &std::fs::Metadata) -> bool {
    false
}

/// Reads the key, in PEM or, failing that, in DER.
fn read_key(file: &Path, provider: &CryptoProvider) -> Result<Arc<dyn SigningKey>, TlsError> {
    let unreadable = |reason: String| TlsError::KeyUnreadable { file: file.to_owned(), reason };
    let content = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    let key = match PrivateKeyDer::from_pem_slice(&content) {
        Ok(key) => key,
        Err(pem::Error::NoItemsFound) => PrivateKeyDer::try_from(content)
            .map_err(|_| unreadable("no private key found (encrypted keys are not supported)".to_owned()))?,
        Err(error) => return Err(unreadable(error.to_string())),
    };
    provider.key_provider.load_private_key(key).map_err(|error| unreadable(error.to_string()))
}

/// Whether the certificate is for this key, as far as both can be read.
fn belong_together(cert: &[u8], key: &dyn SigningKey) -> bool {
    match (Certificate::parse(cert), key.public_key()) {
        (Some(certificate), Some(public)) => certificate.x509.public_key().raw == public.as_ref(),
        _ => true,
    }
}

/// All objects of a type in a PEM file.
fn read_pem<T: PemObject>(file: &Path) -> Result<Vec<T>, String> {
    let objects = T::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    objects.map_err(|error| error.to_string())
}
