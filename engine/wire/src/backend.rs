//! The server process of a session, as a cancel request has to name it.

use std::sync::Arc;

use crate::frame;
use crate::target::{Attempt, Target};

/// The code of a cancel request, in place of a type in a connection's first message.
const CANCEL_REQUEST: u32 = 80_877_102;

/// What a server process is known by: its number and the secret that only its session knows.
#[derive(Clone, PartialEq, Eq)]
pub struct BackendKey(Vec<u8>);

impl BackendKey {
    /// From the body of a BackendKeyData message; `None` if it is too short.
    pub fn read(body: &[u8]) -> Option<Self> {
        (body.len() >= 8).then(|| Self(body.to_vec()))
    }

    /// The number of the server process, as the server said.
    fn process(&self) -> Option<u32> {
        self.0.first_chunk().map(|number| u32::from_be_bytes(*number))
    }

    /// Appends the request to cancel what the process is doing.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        frame::write_untyped(out, |out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(&self.0);
        });
    }
}

/// The server process of a session, as a cancel request has to name it.
pub struct Backend {
    pub(crate) target: Arc<Target>,
    /// How the session was reached.
    pub(crate) attempt: Attempt,
    pub(crate) key: BackendKey,
}

impl Backend {
    /// The number of the server process, as the server said when the session began; a pooler names another one.
    pub fn process(&self) -> Option<u32> {
        self.key.process()
    }
}
