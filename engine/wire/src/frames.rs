//! The server's messages, cut out of the byte stream: a type byte, a length, a body. Bodies nobody wants are skipped
//! without being kept, so that a row of any size costs no memory.

use std::io;

use super::error::ConnectionError;
use super::stream::Stream;

/// What a reader of messages does with them.
pub trait Sink {
    /// The longest message that is believed; PostgreSQL's own limit is 1 GB.
    const LONGEST: usize = 1 << 30;

    /// Whether the body of messages of this type is wanted; others are skipped.
    fn wants(&self, kind: u8) -> bool;

    /// One message. The body is empty if it was not wanted. `Flow::Stop` leaves the rest for the next call.
    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError>;
}

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Stop,
}

/// The unfinished end of what was read from one connection.
#[derive(Debug, Default)]
pub struct Rest {
    /// Bytes of messages not yet handed on.
    kept: Vec<u8>,
    /// Bytes of an unwanted body still to come.
    skip: usize,
}

/// A message's type and its length.
pub const HEADER: usize = 5;

impl Rest {
    /// Whether nothing is unfinished.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.skip == 0
    }

    /// Reads from `stream` through the shared `buffer` until the sink says stop or nothing more is there.
    pub fn receive<S: Sink>(
        &mut self,
        stream: &mut Stream,
        buffer: &mut [u8],
        sink: &mut S,
    ) -> Result<Flow, ConnectionError> {
        if !self.kept.is_empty() {
            let kept = std::mem::take(&mut self.kept);
            if self.consume_kept(kept, sink)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        let read = stream.read(buffer);
        self.receive_more(read, stream, buffer, sink)
    }

    /// The same when something has been `read` into the buffer already.
    pub fn receive_more<S: Sink>(
        &mut self,
        mut read: io::Result<usize>,
        stream: &mut Stream,
        buffer: &mut [u8],
        sink: &mut S,
    ) -> Result<Flow, ConnectionError> {
        loop {
            match read {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(count) => {
                    if self.take(&buffer[..count], sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Continue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionError::receiving(error)),
            }
            read = stream.read(buffer);
        }
    }

    fn take<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<Flow, ConnectionError> {
        if self.kept.is_empty() {
            let (used, flow) = self.consume(bytes, sink)?;
            self.kept.extend_from_slice(&bytes[used..]);
            return Ok(flow);
        }
        let mut joined = std::mem::take(&mut self.kept);
        joined.extend_from_slice(bytes);
        self.consume_kept(joined, sink)
    }

    /// Hands on the complete messages in `bytes` and keeps what is left, where it is: a long message that comes in
    /// many pieces is not copied for each.
    fn consume_kept<S: Sink>(&mut self, mut bytes: Vec<u8>, sink: &mut S) -> Result<Flow, ConnectionError> {
        let (used, flow) = self.consume(&bytes, sink)?;
        bytes.drain(..used);
        self.kept = bytes;
        Ok(flow)
    }

    /// Hands on the complete messages in `bytes` and tells how many bytes that took.
    #[inline]
    pub(super) fn consume<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(usize, Flow), ConnectionError> {
        let mut rest = bytes;
        if self.skip > 0 {
            let skipped = self.skip.min(rest.len());
            self.skip -= skipped;
            rest = &rest[skipped..];
        }
        while rest.len() >= HEADER {
            let kind = rest[0];
            let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize;
            if !(4..S::LONGEST).contains(&length) {
                return Err(ConnectionError::LostSync { kind, length });
            }
            let total = length + 1;
            let wanted = sink.wants(kind);
            if rest.len() < total {
                if wanted {
                    break;
                }
                self.skip = total - rest.len();
                return Ok((bytes.len(), sink.frame(kind, &[])?));
            }
            let flow = sink.frame(kind, if wanted { &rest[HEADER..total] } else { &[] })?;
            rest = &rest[total..];
            if flow == Flow::Stop {
                return Ok((bytes.len() - rest.len(), Flow::Stop));
            }
        }
        Ok((bytes.len() - rest.len(), Flow::Continue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Messages = Vec<(u8, Vec<u8>)>;

    #[derive(Default)]
    struct Recorder(Messages);

    impl Sink for Recorder {
        fn wants(&self, kind: u8) -> bool {
            kind != b'D'
        }
        fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
            self.0.push((kind, body.to_vec()));
            Ok(if kind == b'Z' { Flow::Stop } else { Flow::Continue })
        }
    }

    /// What a sink is told when bytes come in pieces of one size, and how many bytes are kept after the last.
    fn told(bytes: &[u8], size: usize) -> Result<(Messages, usize), ConnectionError> {
        let (mut rest, mut sink) = (Rest::default(), Recorder::default());
        for chunk in bytes.chunks(size) {
            let mut joined = std::mem::take(&mut rest.kept);
            joined.extend_from_slice(chunk);
            while rest.consume_kept(std::mem::take(&mut joined), &mut sink)? == Flow::Stop {
                joined = std::mem::take(&mut rest.kept);
            }
        }
        Ok((sink.0, rest.kept.len()))
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&((body.len() + 4) as u32).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn reply() -> Vec<u8> {
        [message(b'2', b""), message(b'D', &[7; 300]), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
    }

    #[test]
    fn however_the_stream_is_cut_the_messages_are_the_same() {
        let bytes = reply();
        let whole = told(&bytes, bytes.len()).unwrap();
        assert_eq!((whole.0.len(), whole.1), (4, 0));
        for size in 1..bytes.len() {
            assert_eq!(told(&bytes, size).unwrap(), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn unwanted_bodies_are_not_kept() {
        let (mut rest, mut sink) = (Rest::default(), Recorder::default());
        let (used, _) = rest.consume(&message(b'D', &[1; 1000])[..20], &mut sink).unwrap();
        assert_eq!((used, rest.skip), (20, 985));
    }

    #[test]
    fn what_follows_a_stop_is_kept() {
        let bytes = [message(b'Z', b"I"), message(b'N', b"x\0")].concat();
        let (mut rest, mut sink) = (Rest::default(), Recorder::default());
        assert_eq!(rest.consume_kept(bytes, &mut sink).unwrap(), Flow::Stop);
        assert_eq!(rest.kept, message(b'N', b"x\0"));
    }

    #[test]
    fn an_impossible_length_is_an_error() {
        for length in [0u32, 3, 1 << 30, u32::MAX] {
            let mut bytes = vec![b'Z'];
            bytes.extend_from_slice(&length.to_be_bytes());
            assert!(Rest::default().consume(&bytes, &mut Recorder::default()).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1usize..50) {
            let _ = told(&bytes, size);
        }

        #[test]
        fn a_damaged_reply_is_messages_or_an_error(at in any::<prop::sample::Index>(), byte: u8, size in 1usize..50) {
            let mut bytes = reply();
            *at.get_mut(&mut bytes) = byte;
            let _ = told(&bytes, size);
        }
    }
}
