//! The files that libpq reads for TLS: trusted authorities, lists of revoked certificates, and the client's own certificate
//! with its key.

use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};

use super::certificate::Certificate;
use crate::params::{RootCert, SslMode, TlsParams};

/// What to do without trusted authorities.
const ROOT_HINT: &str = "Either provide the file, use the system's trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification.";

/// The trusted authorities.
#[derive(Debug)]
pub struct Trust {
    /// Checks chains of certificates up to an authority.
    pub chains: Arc<WebPkiServerVerifier>,
    /// The certificates of the user's own file, for what `chains` does not understand; empty for the system's.
    pub own: Vec<CertificateDer<'static>>,
    /// The lists of revoked certificates.
    pub revocations: Vec<CertificateRevocationListDer<'static>>,
}

/// Loads the authorities and what they have revoked; `None` if there are none and the mode can do without.
pub fn load_trust(tls: &TlsParams, provider: &Arc<CryptoProvider>) -> Result<Option<Trust>, String> {
    let must_verify = tls.mode >= SslMode::VerifyCa;
    let (roots, own, file) = match &tls.root_cert {
        Some(RootCert::System) => (system_roots()?, Vec::new(), None),
        Some(RootCert::File(file)) if file.exists() => {
            let (roots, own) = roots_of_file(file)?;
            (roots, own, Some(file))
        }
        Some(RootCert::File(file)) if must_verify => {
            let file = file.display();
            return Err(format!("root certificate file \"{file}\" does not exist\n{ROOT_HINT}"));
        }
        None if must_verify => {
            let reason = "could not get home directory to locate root certificate file";
            return Err(format!("{reason}\n{ROOT_HINT}"));
        }
        _ => return Ok(None),
    };
    let roots = Arc::new(roots);
    let verifier = |crls: Vec<_>| {
        let builder = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).with_crls(crls);
        builder.enforce_revocation_expiration().build()
    };
    let mut crls = Vec::new();
    for file in revocation_files(tls)? {
        let lists: Vec<CertificateRevocationListDer<'static>> = read_pem(REVOCATIONS, &file)?;
        // Alone, so that the error names the file.
        verifier(lists.clone()).map_err(|error| unusable(REVOCATIONS, &file, error))?;
        crls.extend(lists);
    }
    let revocations = crls.clone();
    let chains =
        verifier(crls).map_err(|error| unusable(ROOTS, file.map_or(Path::new(""), PathBuf::as_path), error))?;
    Ok(Some(Trust { chains, own, revocations }))
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let reason = found.errors.first().map(ToString::to_string);
    let reason = reason.unwrap_or_else(|| "no certificate found".to_owned());
    Err(format!("could not load system root certificate paths: {reason}"))
}

/// The certificates of a PEM file, at least one of them usable as an authority.
fn roots_of_file(file: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    let own: Vec<CertificateDer<'static>> = read_pem(ROOTS, file)?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(own.iter().cloned());
    if added == 0 {
        return Err(unusable(ROOTS, file, "no certificate or crl found"));
    }
    Ok((roots, own))
}

/// The files with lists of revoked certificates; as with libpq, files that do not exist revoke nothing.
fn revocation_files(tls: &TlsParams) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = tls.crl.iter().filter(|file| file.exists()).cloned().collect();
    if let Some(directory) = tls.crl_dir.as_deref().filter(|path| path.exists()) {
        let failed = |error: std::io::Error| unusable(REVOCATIONS, directory, error);
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            files.extend(path.is_file().then_some(path));
        }
    }
    Ok(files)
}

/// Reads the client's certificate and key; `None` if the certificate's file does not exist, which libpq takes for having none.
pub fn load_client_cert(tls: &TlsParams, provider: &CryptoProvider) -> Result<Option<Arc<SingleCertAndKey>>, String> {
    let Some(cert) = tls.cert.as_deref().filter(|_| tls.send_cert) else {
        return Ok(None);
    };
    match std::fs::metadata(cert) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unusable("open certificate file", cert, error)),
    }
    let chain: Vec<CertificateDer<'static>> = read_pem(CERTIFICATE, cert)?;
    if chain.is_empty() {
        return Err(unusable(CERTIFICATE, cert, "no certificate found"));
    }
    let key_file = tls.key.as_deref().unwrap_or(cert);
    check_key_file(key_file)?;
    let key = read_key(key_file, provider)?;
    if !belong_together(&chain[0], key.as_ref()) {
        let file = key_file.display();
        return Err(format!("certificate does not match private key file \"{file}\""));
    }
    let certified = CertifiedKey::new(chain, key);
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

fn check_key_file(file: &Path) -> Result<(), String> {
    let path = file.display();
    let metadata = std::fs::metadata(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("certificate present, but not private key file \"{path}\""),
        _ => unusable("stat private key file", file, error),
    })?;
    if !metadata.is_file() {
        return Err(format!("private key file \"{path}\" is not a regular file"));
    }
    if open_to_others(&metadata) {
        return Err(format!(
            "private key file \"{path}\" has group or world access; file must have permissions u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root"
        ));
    }
    Ok(())
}

/// A key that root owns may be readable to its group, as Debian's `ssl-cert` arranges it.
fn open_to_others(metadata: &std::fs::Metadata) -> bool {
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    metadata.mode() & forbidden != 0
}

/// Reads the key, in PEM or, failing that, in DER.
fn read_key(file: &Path, provider: &CryptoProvider) -> Result<Arc<dyn SigningKey>, String> {
    let unreadable = |reason: &dyn Display| unusable("load private key file", file, reason);
    let content = std::fs::read(file).map_err(|error| unreadable(&error))?;
    let key = match PrivateKeyDer::from_pem_slice(&content) {
        Ok(key) => key,
        Err(pem::Error::NoItemsFound) => PrivateKeyDer::try_from(content)
            .map_err(|_| unreadable(&"no private key found (encrypted keys are not supported)"))?,
        Err(error) => return Err(unreadable(&error)),
    };
    provider.key_provider.load_private_key(key).map_err(|error| unreadable(&error))
}

/// Whether the certificate is for this key, as far as both can be read.
fn belong_together(cert: &[u8], key: &dyn SigningKey) -> bool {
    match (Certificate::parse(cert), key.public_key()) {
        (Some(certificate), Some(public)) => certificate.x509.public_key().raw == public.as_ref(),
        _ => true,
    }
}

const ROOTS: &str = "read root certificate file";
const REVOCATIONS: &str = "read certificate revocation list";
const CERTIFICATE: &str = "read certificate file";

/// The error of a file with which something could not be done.
fn unusable(action: &str, file: &Path, reason: impl Display) -> String {
    format!("could not {action} \"{}\": {reason}", file.display())
}

/// All objects of a type in a PEM file.
fn read_pem<T: PemObject>(action: &str, file: &Path) -> Result<Vec<T>, String> {
    let objects = T::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    objects.map_err(|error| unusable(action, file, error))
}
