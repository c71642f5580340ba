//! The client's own certificate and its key.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};

use super::certificate::Certificate;
use super::{TlsError, TlsParams};

/// Reads certificate and key; `None` if the certificate's file does not exist, which libpq takes for having none.
pub(super) fn load(tls: &TlsParams, provider: &CryptoProvider) -> Result<Option<Arc<SingleCertAndKey>>, TlsError> {
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
    let chain = read_chain(cert)?;
    let key_file = tls.key.as_deref().unwrap_or(cert);
    check_key_file(key_file)?;
    let key = read_key(key_file, provider)?;
    if !belong_together(&chain[0], key.as_ref()) {
        return Err(TlsError::KeyMismatch(key_file.to_owned()));
    }
    let certified = CertifiedKey::new(chain, key);
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

/// The certificates of the file, at least one.
fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason: String| TlsError::CertUnreadable { file: file.to_owned(), reason };
    let chain = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable("no certificate found".to_owned()));
    }
    Ok(chain)
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
        (Some(certificate), Some(public)) => certificate.public_key_info == public.as_ref(),
        _ => true,
    }
}
