//! The server process of a session, as a cancel request has to name it.

use std::sync::Arc;

use crate::frame;
use crate::target::{Attempt, Target};

/// The code of a cancel request, in place of a type in a connection's first message.
const CANCEL_REQUEST: u32 = 80_877_102;

/// The key with which the statements of a session can be cancelled: the number of its server process, and a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum BackendKey {
    /// A key with a secret of four bytes, as in protocol 3.0. It is stored in place, since a program may have many
    /// sessions.
    Short([u8; BackendKey::SHORT]),
    Long(Box<[u8]>),
}

impl BackendKey {
    /// The length of the number and of a secret of protocol 3.0, bytes.
    const SHORT: usize = 8;

    /// Reads the key from the body of a BackendKeyData message; `None` if the body is too short.
    pub fn read(body: &[u8]) -> Option<Self> {
        match <[u8; Self::SHORT]>::try_from(body) {
            Ok(short) => Some(Self::Short(short)),
            Err(_) => (body.len() > Self::SHORT).then(|| Self::Long(body.into())),
        }
    }

    /// Returns the number of the server process, as the server said.
    fn process(&self) -> Option<u32> {
        self.bytes().first_chunk().map(|number| u32::from_be_bytes(*number))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(key) => key,
            Self::Long(key) => key,
        }
    }

    /// Appends the request to cancel what the process is doing.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        frame::write_untyped(out, |out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(self.bytes());
        });
    }
}

/// The server process of a session, as a cancel request has to name it.
pub struct Backend {
    pub(crate) target: Arc<Target>,
    /// The attempt by which the session was reached.
    pub(crate) attempt: Arc<Attempt>,
    /// True if the session is encrypted.
    pub(crate) has_tls: bool,
    pub(crate) key: BackendKey,
}

impl Backend {
    /// Returns the number of the server process, as the server said when the session began; a pooler names another one.
    pub fn process(&self) -> Option<u32> {
        self.key.process()
    }
}
