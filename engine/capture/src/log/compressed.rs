//! Decompresses logs that are compressed by gzip, xz or Zstandard while they are read.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::rc::Rc;

use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The greatest amount of memory in MiB that decompression may use. It suffices for files of `xz -9` (65 MiB) and of
/// `zstd --long` (128 MiB).
const MEMORY_MIB: u32 = 130;

/// A line that is inserted where a compressed file is damaged. Its zero byte makes the reader of the log treat this
/// line, and the incomplete line before it, as unreadable.
const MARK: &[u8] = b"\0\n";

/// Counts that show how far a log has been read, and the damage that was found while it was decompressed.
#[derive(Debug, Default)]
pub struct ReadCounts {
    /// The number of bytes that were read from the file, which may be compressed.
    pub read: Cell<u64>,
    /// The number of bytes of all lines that were read.
    pub bytes: Cell<u64>,
    /// The number of lines that were read.
    pub lines: Cell<u64>,
    /// The compression of the file; `None` if it is not compressed.
    pub compression: Cell<Option<Compression>>,
    /// The number of compressed parts of the file that were begun.
    pub members: Cell<u64>,
    /// True if a compressed part is cut off or damaged. The rest of the file is then not read.
    pub is_damaged: Cell<bool>,
}

impl ReadCounts {
    /// Returns how the file is compressed, such as `gzip` or `zstd in 3 parts`; `None` if it is not compressed.
    pub fn packing(&self) -> Option<String> {
        let (compression, members) = (self.compression.get()?, self.members.get());
        let parts = if members > 1 { format!(" in {members} parts") } else { String::new() };
        Some(format!("{}{parts}", compression.name()))
    }
}

type Input = BufReader<Box<dyn Read>>;

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Xz,
    Zstandard,
}

impl Compression {
    /// Returns the compression format of a file that begins with `head`; `None` if it is not compressed in a supported
    /// format.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            // A Zstandard file begins with a frame, or with a skippable frame if pzstd has written it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }

    /// Returns the name of the format, and a command that decompresses it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Gzip => ("gzip", "zcat"),
            Self::Xz => ("xz", "xzcat"),
            Self::Zstandard => ("zstd", "zstdcat --long=31"),
        }
    }

    /// Returns the name of the compression format as `capture.json` stores it.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    fn member(self, input: Input) -> Member {
        match self {
            Self::Gzip => Member::Gzip(Box::new(GzDecoder::new(input))),
            Self::Xz => Member::Xz(Box::new(XzReader::new_mem_limit(input, false, MEMORY_MIB << 10))),
            Self::Zstandard => Member::Zstandard(Box::new(Frame::new(input))),
        }
    }

    /// Returns a message for the user about a file that cannot be decompressed. Errors of the operating system stay
    /// unchanged.
    fn explained(self, error: io::Error) -> io::Error {
        let (name, tool) = self.names();
        match error.kind() {
            _ if is_of_system(&error) => error,
            ErrorKind::OutOfMemory => io::Error::other(format!(
                "unpacking it takes more than {MEMORY_MIB} MiB of memory; unpack it: {tool} FILE | pgtrial capture - ..."
            )),
            _ => io::Error::other(format!("it is cut off or damaged, and nothing of it can be unpacked ({name})")),
        }
    }
}

/// The decompressed text of a log. Compressed parts that follow each other form one log, as for `zcat`. Where a part is
/// damaged, the counts record the damage, the line [`MARK`] is inserted into the text, and reading ends. Because of
/// this line, the reader of the log does not take the incomplete line before it for a whole one.
pub struct Unpacked {
    compression: Compression,
    /// The compressed part that is being read; `None` after the last one.
    member: Option<Member>,
    counts: Rc<ReadCounts>,
    /// True if any text has been decompressed.
    has_text: bool,
    /// The bytes of [`MARK`], the line that stands for a damaged part, that the caller has not read yet.
    mark: &'static [u8],
}

/// A compressed part of a log, with the decoder for its format.
enum Member {
    Gzip(Box<GzDecoder<Input>>),
    Xz(Box<XzReader<Input>>),
    Zstandard(Box<Frame>),
}

impl Unpacked {
    pub fn new(compression: Compression, input: Box<dyn Read>, counts: &Rc<ReadCounts>) -> Self {
        let member = Some(compression.member(BufReader::new(input)));
        counts.members.set(1);
        counts.compression.set(Some(compression));
        Self { compression, member, counts: Rc::clone(counts), has_text: false, mark: &[] }
    }

    /// Begins the next compressed part, if there is one. There may be zero bytes between two parts.
    fn go_on(&mut self) -> io::Result<()> {
        let mut input = match self.member.take() {
            Some(Member::Gzip(decoder)) => decoder.into_inner(),
            Some(Member::Xz(reader)) => reader.into_inner(),
            Some(Member::Zstandard(frame)) => frame.input,
            None => return Ok(()),
        };
        loop {
            let bytes = input.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let (is_end, is_padding) = (bytes.is_empty(), zeros == bytes.len());
            input.consume(zeros);
            if is_end {
                return Ok(());
            }
            if !is_padding {
                break;
            }
        }
        self.counts.members.set(self.counts.members.get() + 1);
        self.member = Some(self.compression.member(input));
        Ok(())
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.mark.is_empty() {
                return self.mark.read(into);
            }
            let read = match &mut self.member {
                Some(Member::Gzip(decoder)) => decoder.read(into),
                Some(Member::Xz(reader)) => reader.read(into),
                Some(Member::Zstandard(frame)) => frame.read(into),
                None => return Ok(0),
            };
            match read.and_then(|count| if count == 0 { self.go_on().map(|()| 0) } else { Ok(count) }) {
                Ok(0) => {}
                Ok(count) => {
                    self.has_text = true;
                    return Ok(count);
                }
                Err(error) if !self.has_text || error.kind() == ErrorKind::OutOfMemory || is_of_system(&error) => {
                    return Err(self.compression.explained(error));
                }
                Err(_) => {
                    self.counts.is_damaged.set(true);
                    (self.member, self.mark) = (None, MARK);
                }
            }
        }
    }
}

/// True if the operating system reported the error, for example for a disk. False if the compressed data are invalid.
fn is_of_system(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.raw_os_error().is_some()) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The decoder of the next frame with data of a Zstandard file, which consists of one frame or several.
struct Frame {
    input: Input,
    decoder: FrameDecoder,
    has_begun: bool,
}

impl Frame {
    fn new(input: Input) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(u64::from(MEMORY_MIB) << 20);
        Self { input, decoder, has_begun: false }
    }

    /// Reads the header of the next frame, and skips frames that have no data. Returns false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            match self.decoder.init(&mut self.input) {
                Ok(()) => {
                    self.has_begun = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    if self.input.fill_buf()?.is_empty() {
                        return Ok(false);
                    }
                }
                Err(error @ FrameDecoderError::WindowSizeTooBig { .. }) => {
                    return Err(io::Error::new(ErrorKind::OutOfMemory, error));
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl Read for Frame {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.has_begun && !self.begin()? {
            return Ok(0);
        }
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let block = self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
            block.map_err(io::Error::other)?;
        }
        let count = self.decoder.read(into)?;
        let written = self.decoder.get_checksum_from_data();
        if count == 0 && written.is_some() && written != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(ErrorKind::InvalidData, "the checksum does not match"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn unpacked(file: &[u8]) -> (io::Result<Vec<u8>>, Rc<ReadCounts>) {
        let counts = Rc::default();
        let compression = Compression::of(file).unwrap();
        let mut text = Vec::new();
        let mut unpacked = Unpacked::new(compression, Box::new(Cursor::new(file.to_vec())), &counts);
        (unpacked.read_to_end(&mut text).map(|_| text), counts)
    }

    #[test]
    fn parts_that_follow_each_other_are_one_text() {
        for pack in [gzip, zstandard] {
            let skipped = if pack(b"").starts_with(&[0x28]) { &b"\x50\x2a\x4d\x18\x02\0\0\0xx"[..] } else { &[] };
            let file = [skipped, &pack(b"a\nb"), &[0; 8], &pack(b""), &pack(b"c\n")].concat();
            let (text, counts) = unpacked(&file);
            assert_eq!(text.unwrap(), b"a\nbc\n");
            assert_eq!((counts.members.get(), counts.is_damaged.get()), (3, false));
        }
    }

    #[test]
    fn what_cannot_be_unpacked_is_marked_and_an_error_if_it_is_all() {
        for pack in [gzip, zstandard] {
            let (text, counts) = unpacked(&[&pack(b"a\nb")[..], b"garbage"].concat());
            assert_eq!((text.unwrap().as_slice(), counts.is_damaged.get()), (&b"a\nb\0\n"[..], true));
            let error = unpacked(&pack(b"a\nb")[..8]).0.unwrap_err().to_string();
            assert!(error.starts_with("it is cut off or damaged, and nothing of it can be unpacked"), "{error}");
        }
    }

    #[test]
    fn a_file_that_takes_too_much_memory_is_refused_with_the_way_out() {
        // A frame that declares a window of 1 GiB and has one last block.
        let window = b"\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00";
        // An xz file that declares a dictionary of 512 MiB.
        let dictionary = b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x22\x00\x00\x00\x82\x40\xac\xdc\xe0\x41\x47\x08\x35\x5d\x00\x19";
        let error = unpacked(window).0.unwrap_err().to_string();
        assert!(error.contains("more than 130 MiB of memory; unpack it: zstdcat"), "{error}");
        let error = unpacked(dictionary).0.unwrap_err().to_string();
        assert!(error.contains("more than 130 MiB of memory; unpack it: xzcat"), "{error}");
    }

    proptest! {
        #[test]
        fn a_file_that_is_cut_off_has_a_part_of_its_text(lines in "([a-z\\PC]{0,200}\n){1,40}", share in 0.0..1.0f64) {
            for pack in [gzip, zstandard] {
                let whole = [pack(lines.as_bytes()), pack(b"z\n")].concat();
                let text = [lines.as_bytes(), b"z\n"].concat();
                prop_assert_eq!(&unpacked(&whole).0.unwrap(), &text);
                let cut = ((whole.len() as f64) * share) as usize;
                let Some(_) = Compression::of(&whole[..cut]) else { continue };
                let (Ok(part), counts) = unpacked(&whole[..cut]) else { continue };
                let marked = part.strip_suffix(MARK);
                prop_assert_eq!(counts.is_damaged.get(), marked.is_some());
                prop_assert!(text.starts_with(marked.unwrap_or(&part)));
            }
        }

        #[test]
        fn any_bytes_behind_a_head_are_read_or_refused(form in 0..3usize, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let head: &[u8] = [&b"\x1f\x8b\x08\0"[..], b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46", b"\x28\xb5\x2f\xfd"][form];
            let _ = unpacked(&[head, &bytes].concat());
        }
    }
}
