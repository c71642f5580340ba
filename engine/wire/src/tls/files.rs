//! Reads the files that libpq reads for TLS: trusted authorities, revocation lists, and the client's own certificate.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use thiserror::Error;

use super::certificate::Certificate;
use super::failure::{TlsFailure, UnusableFile};
use super::key;
use crate::params::{CertMode, RootCert, SslMode, TlsParams};

/// The advice for users without a file of trusted authorities.
const ROOT_HINT: &str = "Either provide the file, use the system's trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification.";

/// The advice for revocation lists that the TLS library cannot read.
const LIST_HINT: &str =
    "the list must be of version 2: set crlnumber in the configuration of \"openssl ca\" and make the list again";

/// The trusted authorities, and their revocation lists.
#[derive(Debug)]
pub struct Trust {
    /// Verifies chains of certificates up to a trusted authority.
    pub chains: Arc<WebPkiServerVerifier>,
    /// The certificates in the user's file of authorities, for checks that `chains` cannot make. Empty if the operating
    /// system's authorities are used.
    pub own: Vec<CertificateDer<'static>>,
    /// The revocation lists, for checks that `chains` cannot make, such as checks of certificates of version 1.
    pub lists: Vec<CertificateRevocationListDer<'static>>,
}

/// Reads the trusted authorities and their revocation lists. Returns `None` if there are none and `sslmode` does not
/// require any.
pub fn load_trust(tls: &TlsParams, provider: &Arc<CryptoProvider>) -> Result<Option<Trust>, TlsFailure> {
    let must_verify = tls.mode >= SslMode::VerifyCa;
    let (roots, own, file) = match &tls.root_cert {
        Some(RootCert::System) => (system_roots().map_err(TlsFailure::as_libpq)?, Vec::new(), None),
        Some(RootCert::File(file)) if file.exists() => {
            let (roots, own) = roots_of_file(file).map_err(TlsFailure::as_libpq)?;
            (roots, own, Some(file))
        }
        Some(RootCert::File(file)) if must_verify => {
            let file = ground::text::of_path(file);
            return Err(TlsFailure::AsLibpq(format!("root certificate file \"{file}\" does not exist\n{ROOT_HINT}")));
        }
        None if must_verify => {
            let reason = "could not get home directory to locate root certificate file";
            return Err(TlsFailure::AsLibpq(format!("{reason}\n{ROOT_HINT}")));
        }
        _ => return Ok(None),
    };
    let roots = Arc::new(roots);
    let verifier = |crls: Vec<_>| {
        let builder = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).with_crls(crls);
        builder.enforce_revocation_expiration().build()
    };
    let mut crls = Vec::new();
    // libpq silently ignores revocation lists that it cannot read. Here they are an error.
    for file in revocation_files(tls).map_err(TlsFailure::unsupported)? {
        let lists: Vec<CertificateRevocationListDer<'static>> =
            read_pem(REVOCATIONS, &file).map_err(TlsFailure::unsupported)?;
        // Each list is tried alone, so that the error names its file.
        let unread = |error| {
            TlsFailure::unsupported(UnusableFile::new(REVOCATIONS, &file, format_args!("{error}; {LIST_HINT}")))
        };
        verifier(lists.clone()).map_err(unread)?;
        crls.extend(lists);
    }
    if let Some(directory) = tls.crl_dir.as_deref().filter(|_| crls.is_empty()) {
        // If a directory is given, libpq demands a list of each issuer.
        let directory = ground::text::of_path(directory);
        let reason = format!("no certificate revocation list in directory \"{directory}\"");
        return Err(TlsFailure::AsLibpq(format!("SSL error: certificate verify failed: {reason}")));
    }
    let chains = verifier(crls.clone()).map_err(|error| {
        let file = file.map_or(Path::new(""), PathBuf::as_path);
        TlsFailure::unsupported(UnusableFile::new(ROOTS, file, error))
    })?;
    Ok(Some(Trust { chains, own, lists: crls }))
}

/// The error if the operating system has no usable certificate of an authority, in libpq's words.
#[derive(Debug, Error)]
#[error("could not load system root certificate paths: {}", .0.as_ref().map_or("no certificate found".to_owned(), ToString::to_string))]
struct NoSystemRoots(#[source] Option<rustls_native_certs::Error>);

fn system_roots() -> Result<RootCertStore, NoSystemRoots> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    Err(NoSystemRoots(found.errors.into_iter().next()))
}

/// Returns the certificates of a PEM file. At least one of them must be usable as an authority.
fn roots_of_file(file: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), UnusableFile> {
    let own: Vec<CertificateDer<'static>> = read_pem(ROOTS, file)?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(own.iter().cloned());
    if added == 0 {
        return Err(UnusableFile::new(ROOTS, file, "no certificate or crl found"));
    }
    Ok((roots, own))
}

/// Returns the files with revocation lists. As in libpq, files that do not exist revoke no certificate. `sslcrldir` may
/// name several directories, separated by `:`.
fn revocation_files(tls: &TlsParams) -> Result<Vec<PathBuf>, UnusableFile> {
    let mut files: Vec<PathBuf> = tls.crl.iter().filter(|file| file.exists()).cloned().collect();
    let directories = tls.crl_dir.iter().flat_map(std::env::split_paths).filter(|path| path.exists());
    for directory in directories {
        let failed = |error: std::io::Error| UnusableFile::new(REVOCATIONS, &directory, error);
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            files.extend(path.is_file().then_some(path));
        }
    }
    Ok(files)
}

/// Reads the client's certificate and key. Returns `None` if the certificate's file does not exist, or with
/// `sslcertmode=disable`: the client then has no certificate, as in libpq.
pub fn load_client_cert(
    tls: &TlsParams,
    provider: &CryptoProvider,
) -> Result<Option<Arc<SingleCertAndKey>>, TlsFailure> {
    let Some(cert) = tls.cert.as_deref().filter(|_| tls.cert_mode != CertMode::Disable) else {
        return Ok(None);
    };
    match std::fs::metadata(cert) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => {
            let reason = ground::output::plain_io_message(&error);
            return Err(TlsFailure::as_libpq(UnusableFile::new("open certificate file", cert, reason)));
        }
    }
    let chain: Vec<CertificateDer<'static>> = read_pem(CERTIFICATE, cert).map_err(TlsFailure::as_libpq)?;
    if chain.is_empty() {
        return Err(TlsFailure::as_libpq(UnusableFile::new(CERTIFICATE, cert, "no start line")));
    }
    let key_file = tls.key.as_deref().unwrap_or(cert);
    let key = key::read(key_file, tls.key_passphrase.as_ref(), provider)?;
    if !belong_together(&chain[0], key.as_ref()) {
        let mismatch = UnusableFile::new("load private key file", key_file, "key values mismatch");
        return Err(TlsFailure::as_libpq(mismatch));
    }
    let certified = CertifiedKey::new(chain, key);
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

/// Returns true if the certificate belongs to this key, as far as both can be read.
fn belong_together(cert: &[u8], key: &dyn SigningKey) -> bool {
    match (Certificate::parse(cert), key.public_key()) {
        (Some(certificate), Some(public)) => certificate.x509.public_key().raw == public.as_ref(),
        _ => true,
    }
}

const ROOTS: &str = "read root certificate file";
const REVOCATIONS: &str = "read certificate revocation list";
const CERTIFICATE: &str = "read certificate file";

/// Reads all objects of one type in a PEM file.
fn read_pem<T: PemObject>(action: &'static str, file: &Path) -> Result<Vec<T>, UnusableFile> {
    let objects = T::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    objects.map_err(|error| UnusableFile::new(action, file, error))
}
