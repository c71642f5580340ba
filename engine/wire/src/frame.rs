//! The messages of protocol 3: a type byte, a length of four bytes that includes itself, and a body. This module builds
//! all messages of clients, of servers, and of the null server, which is a program that answers statements without
//! executing them. It also cuts received bytes into messages.

use memchr::memchr;

use crate::error::ConnectionError;

/// The number of bytes of a message's type and length together.
pub const HEADER: usize = 5;

/// The code of a cancel request. It stands in the first message of a connection, where a start-up message has the
/// protocol version.
pub const CANCEL_REQUEST: u32 = 80_877_102;

/// The code of a request for TLS, which stands in the first message of a connection as the code of a cancel request
/// does.
pub const SSL_REQUEST: u32 = 80_877_103;

/// The type and the length with which a message begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: u8,
    /// The length of the message without its type, in bytes, as the message gives it. A length below 4 is invalid.
    pub length: usize,
}

impl Header {
    /// Reads the header at the beginning of `bytes`. Returns `None` if `bytes` has fewer than five bytes.
    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, length @ ..] = bytes.first_chunk::<HEADER>()?;
        Some(Self { kind: *kind, length: u32::from_be_bytes(*length) as usize })
    }

    /// Returns true if the length is at least 4 and below `limit`.
    #[inline(always)]
    pub fn is_valid(self, limit: usize) -> bool {
        (4..limit).contains(&self.length)
    }

    /// Returns the length of the whole message, in bytes.
    #[inline(always)]
    pub fn size(self) -> usize {
        self.length + 1
    }

    /// Returns the body of the message at the beginning of `bytes`, and the bytes after the message. Returns `None` if
    /// the message is incomplete or its length is invalid.
    #[inline(always)]
    pub fn split_body(self, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        let (message, rest) = bytes.split_at_checked(self.size())?;
        Some((message.get(HEADER..)?, rest))
    }
}

/// Appends a message of type `kind`. The function `body` appends the message's body.
#[inline]
pub fn write(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    write_untyped(out, body);
}

/// Appends a message without a type, which only the first message of a session is. The function `body` appends its
/// body.
#[inline]
pub fn write_untyped(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let end = out.len();
    set_length(out, start, end);
}

/// Fills in the length field of a message, which counts the bytes from `start`, where the field begins, to `end`.
#[inline(always)]
pub(crate) fn set_length(out: &mut [u8], start: usize, end: usize) {
    if let Some(room) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<4>) {
        *room = ((end - start) as u32).to_be_bytes();
    }
}

/// Appends a text and the zero byte that ends it. A zero byte within the text ends it early, as in C.
pub fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&text[..memchr(0, text).unwrap_or(text.len())]);
    out.push(0);
}

/// Returns the complete messages at the beginning of `bytes`, each as its type and its body.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> + Clone {
    std::iter::from_fn(move || {
        let header = Header::read(bytes)?;
        let (body, rest) = header.split_body(bytes)?;
        bytes = rest;
        Some((header.kind, body))
    })
}

/// Receives the messages that a [`Reader`] cuts out of a stream of bytes.
pub trait Visitor {
    /// The length from which on messages are rejected. PostgreSQL's own limit is 1 GB.
    const LIMIT: usize = 1 << 30;

    /// Returns true if the visitor uses the bodies of messages of this type. Other bodies are not stored while they are
    /// incomplete, so that a row of any size needs no memory.
    fn wants(&self, kind: u8) -> bool;

    /// Receives one message. After [`Flow::Stop`] the reader keeps the bytes that follow.
    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError>;

    /// Receives a message whose body the visitor does not use. The body did not arrive in one piece, and was dropped.
    fn left_out(&mut self, kind: u8) -> Result<Flow, ConnectionError> {
        self.message(kind, &[])
    }

    /// Receives the messages at the beginning of `bytes` in one step, if they are exactly the reply that the visitor
    /// receives most often. This saves the loop over the messages, and must have the same effect as a loop that ends
    /// with [`Flow::Stop`]. Returns false and has no effect for all other bytes.
    #[inline(always)]
    fn take_usual(&mut self, _bytes: &[u8]) -> bool {
        false
    }
}

/// The maximum length of messages whose type libpq limits to short messages, in bytes.
pub const MAX_SHORT: usize = 30_000;

/// Returns true if libpq accepts messages of this type with any length. Messages of other types are malformed if they
/// are longer than [`MAX_SHORT`].
pub fn may_be_long(kind: u8) -> bool {
    matches!(kind, b'T' | b'D' | b'd' | b'V' | b'E' | b'N' | b'A')
}

/// The length up to which messages whose bodies the visitor does not use are stored until they are complete, so that
/// they can be checked against the protocol.
pub const KEPT: usize = 512;

/// A visitor's decision whether the reader goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// Cuts a stream of bytes into messages, in whatever pieces the bytes arrive.
#[derive(Debug, Default)]
pub struct Reader {
    /// The bytes of messages that the visitor has not received yet.
    kept: Vec<u8>,
    /// The number of bytes that have not arrived yet, of a body that is being dropped.
    skip: usize,
}

impl Reader {
    /// Returns true if the reader has stored messages or the beginning of a message.
    #[inline(always)]
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Passes all complete messages in the stored bytes and in `bytes` to `visitor`, and stores the bytes of an
    /// incomplete message.
    #[inline(always)]
    pub fn take<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        if self.is_between_messages() && visitor.take_usual(bytes) {
            return Ok(Flow::Stop);
        }
        self.take_messages(bytes, visitor)
    }

    /// Returns true if the next byte is the first one of a message.
    #[inline(always)]
    fn is_between_messages(&self) -> bool {
        self.kept.len() | self.skip == 0
    }

    #[inline(never)]
    fn take_messages<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        if self.has_kept() {
            return self.take_joined(bytes, visitor);
        }
        let (used, flow) = self.walk(bytes, visitor)?;
        if used < bytes.len() {
            self.kept.extend_from_slice(&bytes[used..]);
        }
        Ok(flow)
    }

    /// Passes the messages in the stored bytes, followed by `bytes`, to the visitor. Bytes that are left over stay in
    /// the same buffer, so that a long message that arrives in many pieces is not copied for each piece.
    #[cold]
    fn take_joined<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        let mut joined = std::mem::take(&mut self.kept);
        joined.extend_from_slice(bytes);
        let (used, flow) = self.walk(&joined, visitor)?;
        joined.drain(..used);
        self.kept = joined;
        Ok(flow)
    }

    /// Passes the complete messages to the visitor. Returns the number of their bytes.
    #[inline(always)]
    fn walk<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Result<(usize, Flow), ConnectionError> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let mut rest = &bytes[skipped..];
        while let Some(header) = Header::read(rest) {
            let Some((body, after)) = header.split_body(rest) else {
                let (used, flow) = self.begin_message(header, rest.len(), visitor)?;
                return Ok((bytes.len() - rest.len() + used, flow));
            };
            rest = after;
            if visitor.message(header.kind, body)? == Flow::Stop {
                return Ok((bytes.len() - rest.len(), Flow::Stop));
            }
        }
        Ok((bytes.len() - rest.len(), Flow::Continue))
    }

    /// Handles a message of which only the first `available` bytes have arrived. The visitor gets the message without
    /// its body, unless the body has to be stored until it is complete.
    #[cold]
    fn begin_message<V: Visitor>(
        &mut self,
        header: Header,
        available: usize,
        visitor: &mut V,
    ) -> Result<(usize, Flow), ConnectionError> {
        let limit = if may_be_long(header.kind) { V::LIMIT } else { V::LIMIT.min(MAX_SHORT + 1) };
        if !header.is_valid(limit) {
            return Err(ConnectionError::LostSync { kind: header.kind, length: header.length });
        }
        if visitor.wants(header.kind) || header.length <= KEPT {
            return Ok((0, Flow::Continue));
        }
        self.skip = header.size() - available;
        Ok((available, visitor.left_out(header.kind)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Messages = Vec<(u8, Vec<u8>)>;

    #[derive(Default)]
    struct Recorder(Messages);

    impl Visitor for Recorder {
        fn wants(&self, kind: u8) -> bool {
            kind != b'D'
        }
        fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
            self.0.push((kind, if self.wants(kind) { body.to_vec() } else { Vec::new() }));
            Ok(if kind == b'Z' { Flow::Stop } else { Flow::Continue })
        }
    }

    /// Returns the messages that a visitor receives when the bytes arrive in pieces of `size` bytes, and the number of
    /// bytes that are still stored after the last piece.
    fn visited(bytes: &[u8], size: usize) -> Result<(Messages, usize), ConnectionError> {
        let (mut reader, mut visitor) = (Reader::default(), Recorder::default());
        for mut piece in bytes.chunks(size) {
            while reader.take(std::mem::take(&mut piece), &mut visitor)? == Flow::Stop {}
        }
        Ok((visitor.0, reader.kept.len()))
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, kind, |out| out.extend_from_slice(body));
        bytes
    }

    fn reply() -> Vec<u8> {
        [message(b'2', b""), message(b'D', &[7; 300]), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
    }

    #[test]
    fn however_the_stream_is_cut_the_messages_are_the_same() {
        let bytes = reply();
        let whole = visited(&bytes, bytes.len()).unwrap();
        assert_eq!((whole.0.len(), whole.1), (4, 0));
        for size in 1..bytes.len() {
            assert_eq!(visited(&bytes, size).unwrap(), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn unwanted_bodies_are_not_kept() {
        let mut reader = Reader::default();
        reader.take(&message(b'D', &[1; 1000])[..20], &mut Recorder::default()).unwrap();
        assert_eq!((reader.kept.len(), reader.skip), (0, 985));
    }

    #[test]
    fn what_follows_a_stop_is_kept() {
        let bytes = [message(b'Z', b"I"), message(b'N', b"x\0")].concat();
        let mut reader = Reader::default();
        assert_eq!(reader.take(&bytes, &mut Recorder::default()).unwrap(), Flow::Stop);
        assert_eq!(reader.kept, message(b'N', b"x\0"));
    }

    #[test]
    fn an_impossible_length_is_an_error() {
        for length in [0u32, 3, 1 << 30, u32::MAX] {
            let mut bytes = vec![b'Z'];
            bytes.extend_from_slice(&length.to_be_bytes());
            assert!(Reader::default().take(&bytes, &mut Recorder::default()).is_err());
            assert_eq!(messages(&bytes).next(), None);
        }
    }

    #[test]
    fn written_messages_are_read_again() {
        let mut bytes = Vec::new();
        write(&mut bytes, b'Q', |out| write_text(out, b"select 1\0;"));
        assert_eq!(bytes, b"Q\0\0\0\x0dselect 1\0");
        assert_eq!(messages(&bytes).collect::<Vec<_>>(), [(b'Q', &b"select 1\0"[..])]);
        let mut untyped = Vec::new();
        write_untyped(&mut untyped, |_| {});
        assert_eq!(untyped, [0, 0, 0, 4]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..50) {
            let _ = visited(&bytes, size);
        }

        #[test]
        fn a_damaged_reply_is_messages_or_an_error(at in any::<prop::sample::Index>(), byte: u8, size in 1usize..50) {
            let mut bytes = reply();
            *at.get_mut(&mut bytes) = byte;
            let _ = visited(&bytes, size);
        }
    }
}
