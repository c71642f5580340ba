//! TLS with libpq's behaviour: what each `sslmode` verifies, which files are read, and which host names are accepted.
//!
//! Source: PostgreSQL 18 documentation, 32.19 "SSL Support".

mod certificate;
mod client_certificate;
mod failure;
mod files;
mod key;
mod key_log;
mod revocation;
mod verifier;

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, SupportedProtocolVersion};

pub use certificate::server_end_point;
pub use client_certificate::CertificateRequest;
pub use failure::TlsFailure;

use crate::params::{Endpoint, SslMode, TlsParams, TlsVersion, old_notation};
use verifier::Verifier;

/// The name of PostgreSQL's protocol in the TLS handshake (ALPN). With `sslnegotiation=direct` the server must answer
/// with it.
pub const ALPN_PROTOCOL: &[u8] = b"postgresql";

/// Builds the TLS configuration for a set of connection parameters.
///
/// Files are read here, so that one configuration serves all connections of a run. As in libpq, TLS sessions are never
/// resumed.
///
/// # Errors
/// Returns an error with libpq's message if a file is missing, unsafe or unusable.
pub fn client_config(tls: &TlsParams) -> Result<Arc<ClientConfig>, TlsFailure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = protocol_versions(tls)?;
    let trust = files::load_trust(tls, &provider)?;
    let client_cert = files::load_client_cert(tls, &provider)?;
    let verifier = Verifier::new(trust, tls.mode, &provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| TlsFailure::Unsupported(format!("could not create SSL context: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match client_cert {
        Some(resolver) => builder.with_client_cert_resolver(resolver),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
    config.enable_sni = tls.sni;
    config.resumption = Resumption::disabled();
    if let Some(file) = &tls.key_log {
        config.key_log = key_log::KeyLog::open(file)?;
    }
    Ok(Arc::new(config))
}

/// Returns the host name that is sent in the TLS handshake and, under `verify-full`, compared with the certificate.
///
/// # Errors
/// Returns an error if the host is neither an address nor a possible DNS name, or if it must be verified but the user
/// has not named a host.
pub fn server_name(endpoint: &Endpoint, mode: SslMode) -> Result<ServerName<'static>, TlsFailure> {
    let name = &endpoint.host_name;
    if mode == SslMode::VerifyFull && !endpoint.is_named {
        let message = "host name must be specified for a verified SSL connection";
        return Err(TlsFailure::AsLibpq(message.to_owned()));
    }
    if let Some(address) = old_notation(name) {
        return Ok(ServerName::IpAddress(IpAddr::V4(address).into()));
    }
    let unusable = |_| TlsFailure::Unsupported(format!("host name \"{name}\" cannot be used with SSL"));
    ServerName::try_from(name.clone()).map_err(unusable)
}

fn protocol_versions(tls: &TlsParams) -> Result<Vec<&'static SupportedProtocolVersion>, TlsFailure> {
    let known = [(TlsVersion::V1_3, &rustls::version::TLS13), (TlsVersion::V1_2, &rustls::version::TLS12)];
    let versions: Vec<_> = known
        .into_iter()
        .filter(|(version, _)| (tls.min_version..=tls.max_version).contains(version))
        .map(|(_, supported)| supported)
        .collect();
    if versions.is_empty() {
        let message = "this client speaks TLSv1.2 and TLSv1.3 only; raise ssl_max_protocol_version";
        return Err(TlsFailure::Unsupported(message.to_owned()));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests;
