//! Reads the client's private key: unencrypted or encrypted with a passphrase, in PKCS#8 or in OpenSSL's traditional
//! PEM format.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use md5::{Digest, Md5};
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use thiserror::Error;

use super::failure::{TlsFailure, UnusableFile};
use crate::params::Password;

/// The error that OpenSSL reports for a wrong passphrase.
const BAD_DECRYPT: &str = "bad decrypt";

/// Reads the key in PEM format or, if that fails, in DER.
pub fn read(
    file: &Path,
    passphrase: Option<&Password>,
    provider: &CryptoProvider,
) -> Result<Arc<dyn SigningKey>, TlsFailure> {
    check_file(file).map_err(TlsFailure::as_libpq)?;
    let unusable = |reason: &dyn Display| UnusableFile::new("load private key file", file, reason);
    let as_libpq = |reason: &dyn Display| TlsFailure::as_libpq(unusable(reason));
    let unsupported = |reason: &dyn Display| TlsFailure::unsupported(unusable(reason));
    let content = std::fs::read(file).map_err(|error| as_libpq(&ground::output::plain_io_message(&error)))?;
    let key = match Encrypted::find(&content) {
        Some(encrypted) => {
            let Some(passphrase) = passphrase else {
                return Err(unsupported(&"the key is encrypted; give its passphrase as sslpassword"));
            };
            encrypted.decrypt(&passphrase.bytes()).map_err(|failure| match failure {
                Undecrypted::WrongPassphrase => as_libpq(&BAD_DECRYPT),
                Undecrypted::Unsupported(reason) => {
                    unsupported(&format!("{reason}; encrypt the key by \"openssl pkcs8 -topk8 -v2 aes256\""))
                }
            })?
        }
        None => match PrivateKeyDer::from_pem_slice(&content) {
            Ok(key) => key,
            Err(pem::Error::NoItemsFound) => {
                PrivateKeyDer::try_from(content).map_err(|_| as_libpq(&"no start line"))?
            }
            Err(error) => return Err(as_libpq(&error)),
        },
    };
    provider.key_provider.load_private_key(key).map_err(|error| unsupported(&error))
}

/// The error for a file from which libpq would not read a private key, in libpq's words.
#[derive(Debug, Error)]
enum KeyFileError {
    #[error("certificate present, but not private key file \"{file}\"")]
    Absent { file: String, source: io::Error },
    #[error("could not stat private key file \"{file}\": {}", ground::output::plain_io_message(source))]
    Unreadable { file: String, source: io::Error },
    #[error("private key file \"{0}\" is not a regular file")]
    NoFile(String),
    #[error(
        "private key file \"{0}\" has group or world access; file must have permissions u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root"
    )]
    OpenToOthers(String),
}

fn check_file(path: &Path) -> Result<(), KeyFileError> {
    let file = ground::text::of_path(path);
    match std::fs::metadata(path) {
        Err(source) if source.kind() == ErrorKind::NotFound => Err(KeyFileError::Absent { file, source }),
        Err(source) => Err(KeyFileError::Unreadable { file, source }),
        Ok(metadata) if !metadata.is_file() => Err(KeyFileError::NoFile(file)),
        Ok(metadata) if open_to_others(&metadata) => Err(KeyFileError::OpenToOthers(file)),
        Ok(_) => Ok(()),
    }
}

/// Returns true if other accounts have any access to the key file. If root owns the file, its group may read it, as in
/// Debian's set-up with the group `ssl-cert`.
fn open_to_others(metadata: &std::fs::Metadata) -> bool {
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    metadata.mode() & forbidden != 0
}

/// The error for which a key could not be decrypted.
#[derive(Debug, PartialEq, Eq)]
enum Undecrypted {
    WrongPassphrase,
    Unsupported(String),
}

/// An encrypted key in a PEM file.
#[derive(Debug)]
enum Encrypted {
    /// `ENCRYPTED PRIVATE KEY`: the DER of EncryptedPrivateKeyInfo.
    Pkcs8(Vec<u8>),
    /// `RSA PRIVATE KEY` or `EC PRIVATE KEY` with the lines `Proc-Type: 4,ENCRYPTED` and `DEK-Info: CIPHER,IV` (RFC
    /// 1421).
    Traditional { is_rsa: bool, cipher: String, iv: Vec<u8>, data: Vec<u8> },
}

impl Encrypted {
    /// Returns the first key of the file if it is encrypted.
    fn find(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let mut lines = text.lines().map(str::trim_end);
        let label = lines.find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("PRIVATE KEY-----"))?;
        let block: Vec<_> = lines.take_while(|line| !line.starts_with("-----END ")).collect();
        let header = |name: &str| block.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let base64: String = block.iter().filter(|line| !line.contains(':')).copied().collect();
        let data = base64_simd::forgiving_decode_to_vec(base64.as_bytes()).ok()?;
        if label == "ENCRYPTED " {
            return Some(Self::Pkcs8(data));
        }
        header("Proc-Type").filter(|value| value.contains("ENCRYPTED"))?;
        let (cipher, iv) = header("DEK-Info")?.trim().split_once(',')?;
        let iv =
            (0..iv.len() / 2).map(|at| u8::from_str_radix(iv.get(at * 2..at * 2 + 2)?, 16).ok()).collect::<Option<_>>();
        Some(Self::Traditional { is_rsa: label == "RSA ", cipher: cipher.to_owned(), iv: iv?, data })
    }

    fn decrypt(self, passphrase: &[u8]) -> Result<PrivateKeyDer<'static>, Undecrypted> {
        match self {
            Self::Pkcs8(der) => {
                let unsupported = |error: &dyn Display| Undecrypted::Unsupported(error.to_string());
                let info = EncryptedPrivateKeyInfoRef::try_from(der.as_slice()).map_err(|error| unsupported(&error))?;
                let key = info.decrypt(passphrase).map_err(|error| match error {
                    pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::DecryptFailed) | pkcs8::Error::Asn1(_) => {
                        Undecrypted::WrongPassphrase
                    }
                    other => unsupported(&other),
                })?;
                PrivateKeyDer::try_from(key.as_bytes().to_vec()).map_err(|_| Undecrypted::WrongPassphrase)
            }
            Self::Traditional { is_rsa, cipher, iv, data } => {
                let key = decrypt_cbc(&cipher, passphrase, &iv, &data)?;
                Ok(if is_rsa { PrivatePkcs1KeyDer::from(key).into() } else { PrivateSec1KeyDer::from(key).into() })
            }
        }
    }
}

/// Decrypts data with a cipher that OpenSSL's traditional format names.
fn decrypt_cbc(cipher: &str, passphrase: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Undecrypted> {
    let lengths = match cipher {
        "AES-128-CBC" => (16, 16),
        "AES-192-CBC" => (24, 16),
        "AES-256-CBC" => (32, 16),
        "DES-EDE3-CBC" => (24, 8),
        _ => return Err(Undecrypted::Unsupported(format!("its cipher {cipher} is not supported"))),
    };
    if iv.len() != lengths.1 {
        return Err(Undecrypted::Unsupported("its initialization vector has a wrong length".to_owned()));
    }
    let key = derived_key(passphrase, &iv[..8], lengths.0);
    let opened = match cipher {
        "AES-128-CBC" => open::<Decryptor<aes::Aes128>>(&key, iv, data),
        "AES-192-CBC" => open::<Decryptor<aes::Aes192>>(&key, iv, data),
        "AES-256-CBC" => open::<Decryptor<aes::Aes256>>(&key, iv, data),
        _ => open::<Decryptor<des::TdesEde3>>(&key, iv, data),
    };
    opened.ok_or(Undecrypted::WrongPassphrase)
}

fn open<D: BlockModeDecrypt + KeyIvInit>(key: &[u8], iv: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    D::new_from_slices(key, iv).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok()
}

/// Implements OpenSSL's `EVP_BytesToKey` with MD5 and one round.
fn derived_key(passphrase: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    while key.len() < length {
        let last = key.len().saturating_sub(Md5::output_size());
        let block = Md5::new().chain_update(&key[last..]).chain_update(passphrase).chain_update(salt).finalize();
        key.extend_from_slice(&block);
    }
    key.truncate(length);
    key
}
