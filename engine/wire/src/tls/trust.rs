//! Whom to trust: the authorities, and what they have revoked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

use super::{TlsError, TlsParams};
use crate::params::{RootCert, SslMode};

/// The trusted authorities.
#[derive(Debug)]
pub(super) struct Trust {
    /// Checks chains of certificates up to an authority.
    pub(super) chains: Arc<WebPkiServerVerifier>,
    /// The certificates of the user's own file, for what `chains` does not understand; empty for the system's.
    pub(super) own: Vec<CertificateDer<'static>>,
    /// Whether there are lists of revoked certificates.
    pub(super) revocations: bool,
}

/// Loads the authorities; `None` if there are none and the mode can do without.
pub(super) fn load(tls: &TlsParams, provider: &Arc<CryptoProvider>) -> Result<Option<Trust>, TlsError> {
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
    let own = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(error.to_string()))?;
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
        let of_file = CertificateRevocationListDer::pem_file_iter(&file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| TlsError::Revocations { file, reason: error.to_string() })?;
        lists.extend(of_file);
    }
    Ok(lists)
}
