//! The check of the connection parameter `sslcertmode=require`: the server must have asked for the client's
//! certificate, and must have received one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

/// Observes whether one server asks for the client's certificate in the TLS handshake, and whether it receives one.
#[derive(Debug)]
pub struct CertificateRequest {
    certificate: Arc<dyn ResolvesClientCert>,
    is_requested: AtomicBool,
    is_sent: AtomicBool,
}

impl CertificateRequest {
    /// Returns the TLS configuration for one connection whose handshake is observed, and the observer.
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

    /// Checks that the server, which has accepted the client, has asked for a certificate and received one.
    ///
    /// # Errors
    /// Returns libpq's message if the server has not asked for a certificate, or has not received one.
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
