//! The server's messages, cut out of the byte stream: a type byte, a length, a body. Bodies nobody wants are skipped
//! without being kept, so that a row of any size costs no memory.

use std::io;

use super::error::ConnectionError;
use super::stream::Stream;

/// What a reader of messages does with them.
pub trait Sink {
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

const HEADER: usize = 5;

/// The largest body that is believed; PostgreSQL's own limit is 1 GB.
const LARGEST: usize = 1 << 30;

impl Rest {
    /// Reads from `stream` through the shared `buffer` until the sink says stop or nothing more is there.
    #[inline]
    pub fn receive<S: Sink>(
        &mut self,
        stream: &mut Stream,
        buffer: &mut [u8],
        sink: &mut S,
    ) -> Result<Flow, ConnectionError> {
        if !self.kept.is_empty() {
            let kept = std::mem::take(&mut self.kept);
            if self.consume(&kept, sink)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        loop {
            let read = match stream.read(buffer) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Continue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ConnectionError::Closed),
                Err(error) => return Err(error.into()),
            };
            let flow = if self.kept.is_empty() {
                self.consume(&buffer[..read], sink)?
            } else {
                let mut joined = std::mem::take(&mut self.kept);
                joined.extend_from_slice(&buffer[..read]);
                self.consume(&joined, sink)?
            };
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    }

    /// Hands on the complete messages in `bytes` and keeps what is left.
    #[inline]
    fn consume<S: Sink>(&mut self, mut bytes: &[u8], sink: &mut S) -> Result<Flow, ConnectionError> {
        if self.skip > 0 {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
        }
        while bytes.len() >= HEADER {
            let kind = bytes[0];
            let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
            if !(4..LARGEST).contains(&length) {
                return Err(ConnectionError::Protocol(format!(
                    "invalid message of type 0x{kind:02x} and length {length} from the server"
                )));
            }
            let total = length + 1;
            let wanted = sink.wants(kind);
            if bytes.len() < total {
                if wanted {
                    break;
                }
                self.skip = total - bytes.len();
                return sink.frame(kind, &[]);
            }
            let flow = sink.frame(kind, if wanted { &bytes[HEADER..total] } else { &[] })?;
            bytes = &bytes[total..];
            if flow == Flow::Stop {
                self.kept.extend_from_slice(bytes);
                return Ok(Flow::Stop);
            }
        }
        self.kept.extend_from_slice(bytes);
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Vec<(u8, Vec<u8>)>);

    impl Sink for Recorder {
        fn wants(&self, kind: u8) -> bool {
            kind != b'D'
        }
        fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
            self.0.push((kind, body.to_vec()));
            Ok(if kind == b'Z' { Flow::Stop } else { Flow::Continue })
        }
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
        let mut whole = Recorder::default();
        Rest::default().consume(&bytes, &mut whole).unwrap();
        for size in 1..bytes.len() {
            let (mut rest, mut sink) = (Rest::default(), Recorder::default());
            for chunk in bytes.chunks(size) {
                let mut joined = std::mem::take(&mut rest.kept);
                joined.extend_from_slice(chunk);
                rest.consume(&joined, &mut sink).unwrap();
            }
            assert_eq!(sink.0, whole.0, "in chunks of {size}");
            assert!(rest.kept.is_empty());
        }
    }

    #[test]
    fn unwanted_bodies_are_not_kept() {
        let (mut rest, mut sink) = (Rest::default(), Recorder::default());
        rest.consume(&message(b'D', &[1; 1000])[..20], &mut sink).unwrap();
        assert_eq!((rest.kept.len(), rest.skip), (0, 985));
    }

    #[test]
    fn what_follows_a_stop_is_kept() {
        let bytes = [message(b'Z', b"I"), message(b'N', b"x\0")].concat();
        let (mut rest, mut sink) = (Rest::default(), Recorder::default());
        assert_eq!(rest.consume(&bytes, &mut sink).unwrap(), Flow::Stop);
        assert_eq!(rest.kept, message(b'N', b"x\0"));
    }

    #[test]
    fn an_impossible_length_is_an_error() {
        for length in [0u32, 3, u32::MAX] {
            let mut bytes = vec![b'Z'];
            bytes.extend_from_slice(&length.to_be_bytes());
            assert!(Rest::default().consume(&bytes, &mut Recorder::default()).is_err());
        }
    }
}
