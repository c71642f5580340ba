//! The check of `sslcertmode=require`: whether a server asks for the client's certificate, and whether it gets one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

/// The observation of what one server's handshake does with the client's certificate.
#[derive(Debug)]
pub struct CertificateRequest {
    certificate: Arc<dyn ResolvesClientCert>,
    is_requested: AtomicBool,
    is_sent: AtomicBool,
}

impl CertificateRequest {
    /// Returns the configuration for one connection whose handshake is observed, and its observer.
    pub fn observed(config: &ClientConfig) -> (Arc<ClientConfig>, Arc<Self>) {
        let observer = Arc::new(Self {
            certificate: Arc::clone(&config.client_auth_cert_resolver),
            is_requested: AtomicBool::new(false),
            is_sent: AtomicBool::new(false),
        });
        let mut config = config.clone();
        config.client_auth_cert_resolver = Arc::clone(&observer) as _;
        (Arc::new(config), observer)
    }

    /// Checks that the server, which has let the client in, has asked for a certificate and got one.
    ///
    /// # Errors
    /// Returns libpq's message if the server has not asked for a certificate, or has got none.
    pub fn check(observer: Option<&Self>) -> Result<(), &'static str> {
        match observer {
            Some(request) if request.is_sent.load(Ordering::Relaxed) => Ok(()),
            Some(request) if request.is_requested.load(Ordering::Relaxed) => {
                Err("server accepted connection without a valid SSL certificate")
            }
            _ => Err("server did not request an SSL certificate"),
        }
    }
}

impl ResolvesClientCert for CertificateRequest {
    fn resolve(&self, issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.is_requested.store(true, Ordering::Relaxed);
        let certified = self.certificate.resolve(issuers, schemes)?;
        let is_usable = certified.key.choose_scheme(schemes).is_some();
        self.is_sent.store(is_usable, Ordering::Relaxed);
        Some(certified)
    }

    fn has_certs(&self) -> bool {
        self.certificate.has_certs()
    }
}
