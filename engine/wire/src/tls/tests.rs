//! Tests TLS handshakes in memory with a real TLS server, for every `sslmode` and every kind of certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData, RevokedCertParams, SerialNumber, SigningKey, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::*;
use crate::params::{Address, CertMode, RootCert, SslMode};

const SERIAL: u64 = 77;

/// A directory with the certificates of one authority.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { folder: tempfile::tempdir().unwrap(), issuer };
        authority.write("root.crt", &authority.issuer.pem());
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that only its owner can read.
    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Makes a certificate of this authority for a host.
    fn server(&self, host: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(SERIAL));
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Identity::new(cert.der().clone(), &key)
    }

    /// Makes a certificate of version 1 for a host, as `openssl x509 -req` does without extensions.
    fn version_1_server(&self, host: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let authority = certificate::Certificate::parse(self.issuer.der()).unwrap();
        let common_name = encoded(0x0c, &[host.as_bytes()]);
        let pair = encoded(0x30, &[&[0x06, 0x03, 0x55, 0x04, 0x03], &common_name]);
        let algorithm = encoded(0x30, &[authority.signature_algorithm]);
        let signed = encoded(
            0x30,
            &[
                &[0x02, 0x01, 0x05],
                &algorithm,
                authority.x509.subject().as_raw(),
                &encoded(0x30, &[&encoded(0x17, &[b"200101000000Z"]), &encoded(0x18, &[b"29991231235959Z"])]),
                &encoded(0x30, &[&encoded(0x31, &[&pair])]),
                &key.subject_public_key_info(),
            ],
        );
        let signature = self.issuer.key().sign(&signed).unwrap();
        let der = encoded(0x30, &[&signed, &algorithm, &encoded(0x03, &[&[0], &signature])]);
        Identity::new(der.into(), &key)
    }

    fn tls(&self, mode: SslMode) -> TlsParams {
        TlsParams {
            mode,
            root_cert: Some(RootCert::File(self.path("root.crt"))),
            cert: Some(self.path("postgresql.crt")),
            key: Some(self.path("postgresql.key")),
            key_passphrase: None,
            crl: Some(self.path("root.crl")),
            crl_dir: None,
            key_log: None,
            cert_mode: CertMode::Allow,
            sni: true,
            direct: false,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
        }
    }
}

/// Returns a DER-encoded value.
fn encoded(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], length.as_slice(), &content].concat()
}

/// The certificates and the key with which a server identifies itself.
struct Identity {
    cert: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new(cert: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Self { cert, key: key.into() }
    }

    fn self_signed(host: &str) -> (Self, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, host);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cert = params.self_signed(&key).unwrap();
        (Self::new(cert.der().clone(), &key), cert.pem())
    }

    /// Returns the configuration of a server. If `clients_of` is given, the server asks for client certificates of this
    /// authority.
    fn serve(&self, clients_of: Option<&Authority>) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let builder = match clients_of {
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
            None => builder.with_no_client_auth(),
        };
        let key = provider_key(&self.key);
        let certified = rustls::sign::CertifiedKey::new(vec![self.cert.clone()], key);
        let resolver = rustls::sign::SingleCertAndKey::from(certified);
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config
    }
}

fn provider_key(key: &PrivateKeyDer<'static>) -> Arc<dyn rustls::sign::SigningKey> {
    rustls::crypto::ring::sign::any_supported_type(key).unwrap()
}

fn endpoint(host: &str) -> Endpoint {
    Endpoint {
        address: Ok(Address::Tcp(host.to_owned())),
        host_name: host.to_owned(),
        is_named: true,
        port: 5432,
        password: None,
    }
}

/// Runs the handshake between client and server. Returns both ends, or the error with which the client rejected the
/// server.
fn handshake(
    tls: &TlsParams,
    host: &str,
    server: ServerConfig,
) -> Result<(ClientConnection, ServerConnection), String> {
    let config = client_config(tls).map_err(|error| error.to_string())?;
    let name = server_name(&endpoint(host), SslMode::VerifyFull).map_err(|error| error.to_string())?;
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().map_err(|error| format!("server: {error}"))?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets().map_err(|error| TlsFailure::of_handshake(&error).to_string())?;
    }
    Ok((client, server))
}

fn outcome(tls: &TlsParams, host: &str, identity: &Identity) -> Result<(), String> {
    handshake(tls, host, identity.serve(None)).map(drop)
}

/// Returns true if the client rejects the server's certificate.
fn refused(tls: &TlsParams, host: &str, identity: &Identity) -> bool {
    outcome(tls, host, identity) == Err("SSL error: certificate verify failed".to_owned())
}

#[test]
fn each_mode_checks_what_it_says() {
    let authority = Authority::new();
    let stranger = Authority::new().server("db.example");
    let server = authority.server("db.example");
    for mode in [SslMode::Prefer, SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let tls = authority.tls(mode);
        assert_eq!(outcome(&tls, "db.example", &server), Ok(()));
        // If the file of authorities exists, it is used in every mode.
        assert!(refused(&tls, "db.example", &stranger));
    }
    assert_eq!(outcome(&authority.tls(SslMode::VerifyCa), "other.example", &server), Ok(()));
    assert_eq!(
        outcome(&authority.tls(SslMode::VerifyFull), "other.example", &server).unwrap_err(),
        "server certificate for \"db.example\" does not match host name \"other.example\""
    );
}

#[test]
fn without_a_root_file_only_the_modes_that_verify_fail() {
    let authority = Authority::new();
    let stranger = Authority::new().server("db.example");
    fs::remove_file(authority.path("root.crt")).unwrap();
    assert_eq!(outcome(&authority.tls(SslMode::Require), "x", &stranger), Ok(()));
    let message = outcome(&authority.tls(SslMode::VerifyCa), "x", &stranger).unwrap_err();
    let expected = format!("root certificate file \"{}\" does not exist\n", authority.path("root.crt").display());
    assert!(message.starts_with(&expected), "{message}");
    authority.write("root.crt", "nothing");
    let message = outcome(&authority.tls(SslMode::Require), "x", &stranger).unwrap_err();
    assert!(message.contains("no certificate or crl found"), "{message}");
}

#[test]
fn a_self_signed_certificate_is_its_own_authority() {
    let authority = Authority::new();
    let (server, pem) = Identity::self_signed("db.example");
    authority.write("root.crt", &pem);
    assert_eq!(outcome(&authority.tls(SslMode::VerifyFull), "db.example", &server), Ok(()));
    assert!(outcome(&authority.tls(SslMode::VerifyFull), "x.example", &server).is_err());
    let (other, _) = Identity::self_signed("db.example");
    assert!(refused(&authority.tls(SslMode::VerifyCa), "db.example", &other));
}

#[test]
fn certificates_of_version_1_work_in_both_versions_of_tls() {
    let authority = Authority::new();
    let server = authority.version_1_server("db.example");
    let stranger = Authority::new().version_1_server("db.example");
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let tls = TlsParams { min_version: version, max_version: version, ..authority.tls(SslMode::VerifyFull) };
        assert_eq!(outcome(&tls, "db.example", &server), Ok(()));
        assert!(outcome(&tls, "x.example", &server).is_err());
        assert!(refused(&tls, "db.example", &stranger));
        let plain = TlsParams { mode: SslMode::Require, root_cert: None, ..tls };
        assert_eq!(outcome(&plain, "db.example", &stranger), Ok(()));
    }
}

#[test]
fn a_server_without_the_key_of_its_certificate_is_refused_in_every_mode() {
    let authority = Authority::new();
    let mut impostor = authority.server("db.example");
    impostor.key = authority.server("db.example").key;
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let tls = TlsParams {
            root_cert: None,
            min_version: version,
            max_version: version,
            ..authority.tls(SslMode::Require)
        };
        assert!(refused(&tls, "db.example", &impostor));
    }
}

/// Makes a revocation list of an issuer.
fn revocation_list<K: SigningKey>(issuer: &Issuer<'_, K>, revoked_serial: Option<u64>, end: i32) -> String {
    let revoked = |serial: u64| RevokedCertParams {
        serial_number: SerialNumber::from(serial),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(end, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: revoked_serial.map(revoked).into_iter().collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(issuer).unwrap().pem().unwrap()
}

#[test]
fn a_revoked_self_signed_certificate_is_refused() {
    let authority = Authority::new();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["db.example".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "db.example");
    params.serial_number = Some(SerialNumber::from(SERIAL));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    let cert = params.self_signed(&key).unwrap();
    let server = Identity::new(cert.der().clone(), &key);
    authority.write("root.crt", &cert.pem());
    let issuer = Issuer::new(params, key);
    let tls = authority.tls(SslMode::VerifyCa);
    for (list, taken) in [
        (revocation_list(&issuer, None, 2999), true),
        (revocation_list(&issuer, Some(SERIAL + 1), 2999), true),
        (revocation_list(&issuer, Some(SERIAL), 2999), false),
        (revocation_list(&issuer, None, 2021), false),
        // Without a list of its issuer, it is not known whether a certificate is revoked.
        (revocation_list(&authority.issuer, None, 2999), false),
    ] {
        authority.write("root.crl", &list);
        assert_eq!(outcome(&tls, "db.example", &server).is_ok(), taken);
    }
}

#[test]
fn revoked_certificates_of_version_1_are_refused() {
    let authority = Authority::new();
    let server = authority.version_1_server("db.example");
    for (revoked, taken) in [(None, true), (Some(5), false), (Some(6), true)] {
        authority.write("root.crl", &revocation_list(&authority.issuer, revoked, 2999));
        assert_eq!(outcome(&authority.tls(SslMode::VerifyCa), "db.example", &server).is_ok(), taken);
    }
}

#[test]
fn revoked_certificates_are_refused() {
    let authority = Authority::new();
    let server = authority.server("db.example");
    let list = |revoked| revocation_list(&authority.issuer, revoked, 2999);
    authority.write("root.crl", &list(None));
    assert_eq!(outcome(&authority.tls(SslMode::VerifyCa), "db.example", &server), Ok(()));
    authority.write("root.crl", &list(Some(SERIAL)));
    assert!(refused(&authority.tls(SslMode::VerifyCa), "db.example", &server));
    let damaged = "-----BEGIN X509 CRL-----\nMAMCAQA=\n-----END X509 CRL-----\n";
    authority.write("root.crl", damaged);
    let message = client_config(&authority.tls(SslMode::VerifyCa)).unwrap_err().to_string();
    let place = format!("could not read certificate revocation list \"{}\": ", authority.path("root.crl").display());
    assert!(message.starts_with(&place), "{message}");
    let tls =
        TlsParams { crl: None, crl_dir: Some(authority.folder.path().to_owned()), ..authority.tls(SslMode::VerifyCa) };
    authority.write("root.crl", &list(None));
    assert_eq!(outcome(&tls, "db.example", &server), Ok(()));
    authority.write("root.crl", &list(Some(SERIAL)));
    assert!(refused(&tls, "db.example", &server));
    fs::remove_file(authority.path("root.crl")).unwrap();
    let message = client_config(&tls).unwrap_err().to_string();
    let place = authority.folder.path().display();
    let expected =
        format!("SSL error: certificate verify failed: no certificate revocation list in directory \"{place}\"");
    assert_eq!(message, expected);
}

#[test]
fn the_clients_certificate_is_sent_if_it_is_there() {
    let authority = Authority::new();
    let server = authority.server("db.example");
    let client_key = KeyPair::generate().unwrap();
    let client = CertificateParams::default().signed_by(&client_key, &authority.issuer).unwrap();
    let tls = authority.tls(SslMode::VerifyFull);

    let without = handshake(&tls, "db.example", server.serve(Some(&authority)));
    assert!(without.is_err());
    authority.write("postgresql.crt", &client.pem());
    let key_file = authority.path("postgresql.key").display().to_string();
    let message = |tls: &TlsParams| client_config(tls).unwrap_err().to_string();
    assert_eq!(message(&tls), format!("certificate present, but not private key file \"{key_file}\""));
    authority.write("postgresql.key", &KeyPair::generate().unwrap().serialize_pem());
    assert_eq!(message(&tls), format!("could not load private key file \"{key_file}\": key values mismatch"));
    authority.write("postgresql.key", "nothing");
    assert!(message(&tls).starts_with("could not load private key file"));
    authority.write("postgresql.key", &client_key.serialize_pem());
    let (_, server_side) = handshake(&tls, "db.example", server.serve(Some(&authority))).unwrap();
    assert_eq!(server_side.peer_certificates().unwrap()[0], *client.der());

    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o604)).unwrap();
    assert!(message(&tls).contains("has group or world access"));
    let silent = TlsParams { cert_mode: CertMode::Disable, ..tls };
    assert!(client_config(&silent).is_ok());
}

#[test]
fn the_server_learns_the_host_name_and_the_protocol_unless_told_not_to() {
    let authority = Authority::new();
    let server = authority.server("db.example");
    let mut tls = authority.tls(SslMode::VerifyFull);
    let (client, server_side) = handshake(&tls, "db.example", server.serve(None)).unwrap();
    assert_eq!(server_side.server_name(), Some("db.example"));
    assert_eq!(client.alpn_protocol(), Some(ALPN_PROTOCOL));
    tls.sni = false;
    let (_, server_side) = handshake(&tls, "db.example", server.serve(None)).unwrap();
    assert_eq!(server_side.server_name(), None);
}

#[test]
fn versions_of_tls_stay_within_their_bounds() {
    let authority = Authority::new();
    let server = authority.server("127.0.0.1");
    let mut tls = authority.tls(SslMode::VerifyFull);
    tls.max_version = TlsVersion::V1_2;
    let (client, _) = handshake(&tls, "127.0.0.1", server.serve(None)).unwrap();
    assert_eq!(client.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
    tls.min_version = TlsVersion::V1_0;
    tls.max_version = TlsVersion::V1_1;
    assert_eq!(
        client_config(&tls).unwrap_err().to_string(),
        "this client speaks TLSv1.2 and TLSv1.3 only; raise ssl_max_protocol_version"
    );
}

#[test]
fn hosts_that_tls_cannot_name_are_refused() {
    assert!(server_name(&endpoint("::1"), SslMode::VerifyFull).is_ok());
    assert!(server_name(&endpoint("under_score.example"), SslMode::VerifyFull).is_ok());
    let refused = |endpoint: &Endpoint| server_name(endpoint, SslMode::VerifyFull).unwrap_err().to_string();
    assert_eq!(refused(&endpoint("a b")), "host name \"a b\" cannot be used with SSL");
    let unnamed = Endpoint { is_named: false, ..endpoint("127.0.0.1") };
    assert_eq!(refused(&unnamed), "host name must be specified for a verified SSL connection");
    assert!(server_name(&unnamed, SslMode::VerifyCa).is_ok());
    let address = server_name(&endpoint("127.1"), SslMode::VerifyFull).unwrap();
    assert_eq!(address.to_str(), "127.0.0.1");
}
