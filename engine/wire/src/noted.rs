//! What is noted of an answer whose statements are counted, or whose rows are handed on.

use super::frames::HEADER;
use super::reply::{BIND_COMPLETE, READY, READY_LENGTH};
use crate::{Answered, QueryKind};

/// What is noted of an answer whose statements are counted, or whose rows are handed on.
#[derive(Default)]
pub struct Noted {
    answered: Answered,
    /// Rows of the result that is being received; `None` if it has not shown any sign of being one of rows.
    rows: Option<u64>,
    /// Whether the next message begins another result.
    is_complete: bool,
    /// Whether rows are announced by a RowDescription, as after a Query message: what is not, has none.
    is_described: bool,
}

impl Noted {
    /// Forgets the former answer; rows of the next one are announced, or not.
    pub fn expect(&mut self, is_described: bool) {
        self.clear();
        self.is_described = is_described;
    }

    /// Forgets what has come.
    pub fn clear(&mut self) {
        self.answered.kind = QueryKind::Other;
        self.answered.rows = 0;
        self.answered.columns = None;
        self.answered.data.clear();
        self.rows = None;
        self.is_complete = false;
    }

    /// The answer, once it is complete.
    pub fn answered(&self) -> &Answered {
        &self.answered
    }

    pub fn is_fresh(&self) -> bool {
        self.rows.is_none() && !self.is_complete
    }

    /// The same as [`Noted::take_whole`] of a former answer that is forgotten, in one walk, where only the kind and the
    /// rows of one result are to be noted: nothing else is touched.
    #[inline(always)]
    pub fn take_counted(&mut self, bytes: &[u8]) -> Option<u8> {
        let (before, last) = bytes.split_last_chunk::<READY_LENGTH>()?;
        let [ready @ .., status] = last;
        let mut at = if before.first_chunk() == Some(&BIND_COMPLETE) { HEADER } else { 0 };
        let (mut rows, mut returns_rows) = (0, false);
        loop {
            let [kind, length @ ..] = before.get(at..)?.first_chunk::<HEADER>()?;
            let body = at + HEADER;
            // A length below four is none, and becomes one that is too long.
            at = body + u32::from_be_bytes(*length).wrapping_sub(4) as usize;
            match *kind {
                b'D' => rows += 1,
                b'T' if rows == 0 => {}
                // The only result is complete.
                b'C' if at == before.len() && *ready == READY => {
                    (self.answered.kind, self.answered.rows) =
                        if returns_rows { (QueryKind::Read, rows) } else { self.kind_by_tag(before.get(body..)?) };
                    return Some(*status);
                }
                _ => return None,
            }
            returns_rows = true;
        }
    }

    /// The status in which a usual answer ends, if `bytes` are the whole of one; nothing is noted otherwise.
    pub fn take_whole(&mut self, bytes: &[u8], hands: bool) -> Option<u8> {
        let mut rest = bytes.strip_prefix(&BIND_COMPLETE).unwrap_or(bytes);
        let mut status = None;
        let walk = rest;
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let body = (u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize).wrapping_sub(4);
            match header[0] {
                b'T' | b'D' | b'C' => rest = after.get(body..)?,
                b'Z' if body == 1 && after.len() == 1 => {
                    status = Some(after[0]);
                    break;
                }
                _ => return None,
            }
        }
        let status = status?;
        let mut rest = walk;
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>().filter(|(header, _)| header[0] != b'Z') {
            let length = (u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize).wrapping_sub(4);
            let (body, next) = after.split_at_checked(length)?;
            self.take(header[0], body, hands);
            rest = next;
        }
        Some(status)
    }

    /// Notes a RowDescription, DataRow or CommandComplete; the bodies of the first two are used only if rows are handed on.
    pub fn take(&mut self, kind: u8, body: &[u8], hands: bool) {
        if self.is_complete {
            self.clear();
        }
        match kind {
            b'T' => {
                self.rows = Some(0);
                self.answered.columns = hands.then(|| body.to_vec());
            }
            b'D' => {
                self.rows = Some(self.rows.unwrap_or(0) + 1);
                if hands {
                    let data = &mut self.answered.data;
                    data.push(b'D');
                    data.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
                    data.extend_from_slice(body);
                }
            }
            _ => self.complete(body),
        }
    }

    /// The end of a result: `tag` is a command's name, and often a number of rows.
    fn complete(&mut self, tag: &[u8]) {
        (self.answered.kind, self.answered.rows) = match self.rows {
            Some(rows) => (QueryKind::Read, rows),
            None => self.kind_by_tag(tag),
        };
        self.rows = None;
        self.is_complete = true;
    }

    /// What a result is of which nothing came but its end, and of how many rows: without a RowDescription, as in prepared
    /// mode, one without rows is known by its name only.
    fn kind_by_tag(&self, tag: &[u8]) -> (QueryKind, u64) {
        let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
        let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let count = tag[tag.len() - digits..]
            .iter()
            .fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        let names_rows =
            tag.starts_with(b"SELECT ") || tag.starts_with(b"FETCH ") || tag == b"SHOW" || tag == b"EXPLAIN";
        match (names_rows && !self.is_described, count) {
            (true, _) => (QueryKind::Read, count),
            (false, 0) => (QueryKind::Other, 0),
            (false, _) => (QueryKind::Write, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    proptest! {
        /// Two walks that note message by message are the plain way; one walk must come to the same.
        #[test]
        fn counted_in_one_walk_or_in_two_is_the_same(
            messages in prop::collection::vec((
                prop::sample::select(b"2TDDCCZEN".to_vec()),
                prop::sample::select(vec!["", "T", "SELECT 3\0", "UPDATE 12\0", "INSERT 0 1\0", "DELETE 0\0", "BEGIN\0"]),
            ), 0..6),
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes: Vec<u8> =
                messages.iter().flat_map(|(kind, body)| message(*kind, body.as_bytes())).collect();
            bytes.extend_from_slice(&message(b'Z', b"T"));
            if let Some((at, byte)) = damage {
                *at.get_mut(&mut bytes) = byte;
            }
            let (mut noted, mut plain) = (Noted::default(), Noted::default());
            if let Some(status) = noted.take_counted(&bytes) {
                prop_assert_eq!(plain.take_whole(&bytes, false), Some(status));
                prop_assert_eq!(noted.answered(), plain.answered());
            } else if let Some(status) = plain.take_whole(&bytes, false) {
                // What goes the longer way is several results, one that has no end, or rows before they are announced.
                let first = |wanted: u8| messages.iter().position(|(kind, _)| *kind == wanted);
                let is_late = messages.iter().rposition(|(kind, _)| *kind == b'T') > first(b'D').filter(|_| first(b'T').is_some());
                let ends = messages.iter().filter(|(kind, _)| *kind == b'C').count();
                prop_assert!(ends != 1 || is_late || damage.is_some() || messages.last().is_none_or(|last| last.0 != b'C'), "{status}");
            }
        }
    }
}
