//! The buffer in which requests are put together.

use crate::value::Value;

/// Bytes of a request. Its memory only grows, and short pieces of a constant size are copied without a call: cutting
/// them afterwards costs less than copying just what is needed.
#[derive(Debug, Default)]
pub struct Message {
    /// The request, and room beyond it.
    bytes: Vec<u8>,
    used: usize,
    /// Where values that are not copied digit by digit are written first.
    text: Vec<u8>,
    /// Where requests that are known to be short are put together.
    short: Box<Short>,
}

/// Room for a short request: as many bytes as a byte can count, and some beyond, so that no copy of a piece of constant
/// size needs to look whether it fits.
#[derive(Debug)]
pub struct Short(pub [u8; Short::LONGEST + Short::BEYOND]);

impl Short {
    /// The longest request.
    pub const LONGEST: usize = u8::MAX as usize;
    /// The longest piece.
    pub const BEYOND: usize = 32;

    /// Writes a piece of which perhaps only the beginning is wanted.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, at: u8, piece: &[u8; N]) {
        const { assert!(N <= Self::BEYOND) }
        let at = usize::from(at);
        self.0[at..at + N].copy_from_slice(piece);
    }
}

impl Default for Short {
    fn default() -> Self {
        Self([0; Self::LONGEST + Self::BEYOND])
    }
}

impl Message {
    /// The room for a short request.
    #[inline(always)]
    pub fn short(&mut self) -> &mut Short {
        &mut self.short
    }

    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// How many bytes there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Appends the first `length` bytes of a piece.
    #[inline(always)]
    pub fn push<const N: usize>(&mut self, piece: &[u8; N], length: usize) {
        if let Some(room) = self.bytes.get_mut(self.used..).and_then(<[u8]>::first_chunk_mut::<N>) {
            *room = *piece;
            self.used += length;
        } else {
            self.extend(&piece[..length]);
        }
    }

    /// Appends bytes of any length.
    pub fn extend(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if end > self.bytes.len() {
            self.bytes.resize(end.next_power_of_two(), 0);
        }
        self.bytes[self.used..end].copy_from_slice(bytes);
        self.used = end;
    }

    /// Appends a value's text, and returns its length.
    pub fn extend_text(&mut self, value: &Value) -> usize {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        value.write_text(&mut text);
        self.extend(&text);
        self.text = text;
        self.text.len()
    }

    /// Takes the last `count` bytes away.
    pub fn cut(&mut self, count: usize) {
        self.used = self.used.saturating_sub(count);
    }

    /// Writes a number where there is room for it already.
    #[inline]
    pub fn set_number(&mut self, at: usize, number: u32) {
        if let Some(room) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *room = number.to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_of_either_kind_come_one_after_another(lengths in prop::collection::vec((0usize..=8, any::<bool>()), 0..40)) {
            let piece = *b"abcdefgh";
            let (mut message, mut plain) = (Message::default(), Vec::new());
            for (length, is_short) in lengths {
                if is_short { message.push(&piece, length) } else { message.extend(&piece[..length]) }
                plain.extend_from_slice(&piece[..length]);
            }
            prop_assert_eq!(message.as_bytes(), &plain[..]);
            message.cut(3);
            prop_assert_eq!(message.len(), plain.len().saturating_sub(3));
        }
    }
}
