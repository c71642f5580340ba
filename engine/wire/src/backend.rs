//! The server process of a session, which a cancel request has to name.

use std::sync::Arc;

use crate::frame::{self, CANCEL_REQUEST};
use crate::target::{Attempt, Target};

/// The key with which the statements of a session can be cancelled: the ID of its server process, and a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum BackendKey {
    /// A key with a secret of four bytes, as in protocol 3.0. It is stored without an allocation, since a program may
    /// have many sessions.
    Short([u8; BackendKey::SHORT]),
    Long(Box<[u8]>),
}

impl BackendKey {
    /// The length of the process ID and of a secret of protocol 3.0 together, in bytes.
    const SHORT: usize = 8;

    /// Reads the key from the body of a BackendKeyData message. Returns `None` if the body is too short.
    pub fn read(body: &[u8]) -> Option<Self> {
        match <[u8; Self::SHORT]>::try_from(body) {
            Ok(short) => Some(Self::Short(short)),
            Err(_) => (body.len() > Self::SHORT).then(|| Self::Long(body.into())),
        }
    }

    /// Returns the ID of the server process, as the server has reported it.
    fn process(&self) -> Option<u32> {
        self.bytes().first_chunk().map(|number| u32::from_be_bytes(*number))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(key) => key,
            Self::Long(key) => key,
        }
    }

    /// Appends the request to cancel the current statement of the process.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        frame::write_untyped(out, |out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(self.bytes());
        });
    }
}

/// The server process of a session, with the address and the key that a cancel request for the session needs.
pub struct Backend {
    pub(crate) target: Arc<Target>,
    /// The address and the choice of encryption by which the session was opened.
    pub(crate) attempt: Arc<Attempt>,
    /// True if the session is encrypted.
    pub(crate) has_tls: bool,
    pub(crate) key: BackendKey,
}

impl Backend {
    /// Returns the ID of the server process that was reported when the session began. Behind a pooler it is not the ID
    /// of the real server process.
    pub fn process(&self) -> Option<u32> {
        self.key.process()
    }
}
