//! The usual replies to a thread's statements. The bytes around the rows of a reply are kept when they were judged; those of
//! the next reply to the same statement are compared with them, which takes a fraction of the instructions of judging them.

use crate::error::ConnectionError;
use crate::frame::{self, Flow, Header, Visitor};
use crate::order::Order;
use crate::reply::Exchange;

/// The longest reply that is kept, without its rows, bytes.
const LONGEST: usize = 4096;

/// The usual replies by the index of their statement.
#[derive(Default)]
pub struct UsualReplies(Vec<Option<UsualReply>>);

impl UsualReplies {
    /// The status at the end of the reply to `statement` that `bytes` are, if it is whole, has no effect but its status, and
    /// keeps this order.
    #[inline(always)]
    pub fn status(&mut self, statement: u32, order: Order, bytes: &[u8]) -> Option<u8> {
        if let Some(Some(usual)) = self.0.get(statement as usize) {
            if let Some(status) = usual.status(order, bytes) {
                return Some(status);
            }
        }
        self.judge(statement, order, bytes)
    }

    /// Judges a reply that is not the usual one; it becomes the usual one.
    #[inline(never)]
    fn judge(&mut self, statement: u32, order: Order, bytes: &[u8]) -> Option<u8> {
        let status = status_of(bytes, order)?;
        let at = statement as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = UsualReply::of(bytes, order);
        Some(status)
    }
}

/// What is the same in all replies to a statement but for its rows, and was judged.
struct UsualReply {
    /// The place at which it was judged: whether a reply is right depends on that and on its bytes only.
    order: Order,
    /// The messages before the rows.
    beginning: Box<[u8]>,
    /// The place behind them.
    in_rows: Order,
    /// The messages behind the rows, up to the status.
    end: Box<[u8]>,
}

impl UsualReply {
    /// From a reply that was judged at this place; `None` if it is long, or has more than one result.
    fn of(bytes: &[u8], order: Order) -> Option<Self> {
        let mut in_rows = order;
        let mut length = 0;
        for (kind, body) in frame::messages(bytes).take_while(|(kind, _)| !matches!(kind, b'D' | b'C')) {
            in_rows.take(kind, Some(body)).ok()?;
            length += frame::HEADER + body.len();
        }
        let (beginning, rows) = bytes.split_at_checked(length)?;
        let rest = skip_rows(rows, in_rows)?;
        let is_single = frame::messages(rest).map(|(kind, _)| kind).eq(*b"CZ");
        let (_, end) = rest.split_last()?;
        let is_short = beginning.len() + end.len() <= LONGEST;
        (is_single && is_short).then(|| Self { order, beginning: beginning.into(), in_rows, end: end.into() })
    }

    #[inline(always)]
    fn status(&self, order: Order, bytes: &[u8]) -> Option<u8> {
        if order != self.order {
            return None;
        }
        let rest = skip_rows(bytes.strip_prefix(&*self.beginning)?, self.in_rows)?;
        let (status, end) = rest.split_last()?;
        // Other numbers of rows have other ends.
        if *end == *self.end { Some(*status) } else { status_of(rest, self.in_rows) }
    }
}

/// What follows the rows at the beginning of `bytes`; `None` if one of them is wrong at this place.
#[inline(always)]
fn skip_rows(mut bytes: &[u8], order: Order) -> Option<&[u8]> {
    while let Some(header @ Header { kind: b'D', .. }) = Header::read(bytes) {
        let (body, after) = header.split_body(bytes)?;
        if !order.takes_row(body) {
            return None;
        }
        bytes = after;
    }
    Some(bytes)
}

/// The status at the end of a reply of ParseComplete, BindComplete, RowDescription, NoData, DataRow, CommandComplete and one
/// ReadyForQuery only, that keeps this order.
#[inline(never)]
fn status_of(mut bytes: &[u8], mut order: Order) -> Option<u8> {
    while let Some(header) = Header::read(bytes) {
        let (body, after) = header.split_body(bytes)?;
        match header.kind {
            b'1' | b'2' | b'T' | b'n' | b'D' | b'C' => order.take(header.kind, Some(body)).ok()?,
            b'Z' if after.is_empty() && !order.lacks_results() => {
                return <[u8; 1]>::try_from(body).ok().map(|[status]| status);
            }
            _ => return None,
        }
        bytes = after;
    }
    None
}

/// Receives the reply to a request with the usual replies at hand.
pub struct Receiving<'a> {
    pub exchange: &'a mut Exchange,
    pub usual: &'a mut UsualReplies,
}

impl Visitor for Receiving<'_> {
    fn wants(&self, kind: u8) -> bool {
        self.exchange.wants(kind)
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        self.exchange.message(kind, body)
    }

    fn left_out(&mut self, kind: u8) -> Result<Flow, ConnectionError> {
        self.exchange.left_out(kind)
    }

    #[inline(always)]
    fn take_usual(&mut self, bytes: &[u8]) -> bool {
        self.exchange.take_usual(bytes, self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Reader;
    use crate::results::Rows;
    use proptest::prelude::*;

    const DESCRIPTION: &[u8] = b"T\0\0\0\x2e\0\x02a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0b\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW: &[u8] = b"D\0\0\0\x0f\0\x02\0\0\0\x017\xff\xff\xff\xff";
    const OTHER_ROW: &[u8] = b"D\0\0\0\x12\0\x02\0\0\0\x00\0\0\0\x04text";
    const BOUND: &[u8] = b"2\0\0\0\x04";
    const SELECT: &[u8] = b"C\0\0\0\x0dSELECT 1\0";
    const UPDATE: &[u8] = b"C\0\0\0\x0dUPDATE 1\0";
    const NO_DATA: &[u8] = b"n\0\0\0\x04";
    const READY: &[u8] = b"Z\0\0\0\x05I";

    /// A statement of each kind: what was asked, and the messages of its reply.
    fn replies() -> Vec<(Order, Vec<&'static [u8]>)> {
        let described = Order::of_execution(true);
        vec![
            (described, vec![BOUND, DESCRIPTION, ROW, SELECT, READY]),
            (described, vec![BOUND, DESCRIPTION, ROW, OTHER_ROW, ROW, SELECT, READY]),
            (described, vec![BOUND, DESCRIPTION, SELECT, READY]),
            (described, vec![BOUND, NO_DATA, UPDATE, READY]),
            (described, vec![b"1\0\0\0\x04", BOUND, NO_DATA, UPDATE, READY]),
            (Order::of_execution(false), vec![BOUND, ROW, SELECT, READY]),
            (Order::of_execution(false), vec![BOUND, UPDATE, READY]),
            (Order::of_text(), vec![DESCRIPTION, ROW, SELECT, READY]),
            (Order::of_text(), vec![UPDATE, READY]),
            (Order::of_text(), vec![UPDATE, DESCRIPTION, ROW, SELECT, READY]),
        ]
    }

    /// What has come of a reply: the last flow, the status, whether it is complete, the first error, and what is left.
    fn outcome(pieces: &[&[u8]], order: Order, usual: Option<&mut UsualReplies>) -> String {
        let (mut reader, mut exchange) = (Reader::default(), Exchange::default());
        exchange.expect_of(0, Rows::Skipped, order);
        let mut none = UsualReplies::default();
        let is_quick = usual.is_some();
        let mut receiving = Receiving { exchange: &mut exchange, usual: usual.unwrap_or(&mut none) };
        let mut flow = Ok(Flow::Continue);
        for piece in pieces {
            let taken =
                if is_quick { reader.take(piece, &mut receiving) } else { reader.take(piece, receiving.exchange) };
            flow = taken.map_err(|error| error.to_string());
            if flow.is_err() {
                break;
            }
        }
        // The connection of a reply that is no reply is closed.
        if flow.is_err() {
            return format!("{flow:?}");
        }
        let is_awaiting = exchange.is_awaiting();
        format!("{flow:?} {is_awaiting} {:?} {}", exchange.take_reply(), reader.has_kept())
    }

    /// The usual replies of a thread that has received this one.
    fn known(order: Order, reply: &[u8]) -> UsualReplies {
        let mut usual = UsualReplies::default();
        assert_eq!(usual.status(0, order, reply), Some(b'I'));
        usual
    }

    /// Asserts that a reply has the same outcome with the usual replies at hand, whatever they are after it, as without them.
    fn assert_alike(pieces: &[&[u8]], order: Order, usual: &mut UsualReplies) {
        if frame::messages(&pieces.concat()).any(|(kind, _)| kind == b'N') {
            // It would be printed.
            return assert_eq!(usual.status(0, order, &pieces.concat()), None);
        }
        let expected = outcome(pieces, order, None);
        for _ in 0..2 {
            assert_eq!(outcome(pieces, order, Some(&mut *usual)), expected, "{}", pieces.concat().escape_ascii());
        }
    }

    #[test]
    fn the_usual_reply_is_known_by_its_bytes() {
        for (order, messages) in replies() {
            let mut usual = known(order, &messages.concat());
            let is_single = messages.iter().filter(|message| message[0] == b'C').count() == 1;
            let kept = usual.0[0].as_ref();
            assert_eq!(kept.is_some(), is_single);
            assert_eq!(kept.and_then(|kept| kept.status(order, &messages.concat())), is_single.then_some(b'I'));
            assert_alike(&[&messages.concat()], order, &mut usual);
        }
    }

    #[test]
    fn rows_of_other_values_and_numbers_are_taken_by_the_same_usual_reply() {
        let order = Order::of_execution(true);
        let usual = known(order, &[BOUND, DESCRIPTION, ROW, SELECT, READY].concat());
        let status = |messages: &[&[u8]]| usual.0[0].as_ref().and_then(|kept| kept.status(order, &messages.concat()));
        assert_eq!(status(&[BOUND, DESCRIPTION, OTHER_ROW, SELECT, b"Z\0\0\0\x05T"]), Some(b'T'));
        assert_eq!(status(&[BOUND, DESCRIPTION, OTHER_ROW, ROW, b"C\0\0\0\x0dSELECT 2\0", READY]), Some(b'I'));
        assert_eq!(status(&[BOUND, DESCRIPTION, b"C\0\0\0\x0dSELECT 0\0", READY]), Some(b'I'));
        assert_eq!(status(&[BOUND, NO_DATA, SELECT, READY]), None);
        assert_eq!(status(&[BOUND, DESCRIPTION, b"D\0\0\0\x0b\0\x01\0\0\0\x017", SELECT, READY]), None);
    }

    #[test]
    fn long_replies_are_judged_and_not_kept() {
        let tag = [&[b'x'; LONGEST][..], b"\0"].concat();
        let mut reply = Vec::new();
        frame::write(&mut reply, b'C', |out| out.extend_from_slice(&tag));
        reply.extend_from_slice(READY);
        assert!(known(Order::of_text(), &reply).0[0].is_none());
    }

    /// Each reply beside each usual reply, as another statement of the text may have.
    #[test]
    fn replies_of_another_kind_are_judged() {
        for (order, messages) in replies() {
            for (asked, others) in replies() {
                assert_alike(&[&others.concat()], asked, &mut known(order, &messages.concat()));
            }
        }
    }

    #[test]
    fn each_byte_of_a_usual_reply_is_judged() {
        for (order, messages) in replies() {
            let reply = messages.concat();
            let mut usual = known(order, &reply);
            for at in 0..reply.len() {
                for byte in 0..=u8::MAX {
                    let mut damaged = reply.clone();
                    damaged[at] = byte;
                    assert_alike(&[&damaged], order, &mut usual);
                }
            }
        }
    }

    #[test]
    fn each_type_of_message_is_judged_at_each_place() {
        for (order, messages) in replies() {
            let mut usual = known(order, &messages.concat());
            for at in 0..=messages.len() {
                for kind in 0..=u8::MAX {
                    for body in [&b""[..], b"\0", b"Mbad\0\0", &DESCRIPTION[frame::HEADER..], &ROW[frame::HEADER..]] {
                        let mut message = Vec::new();
                        frame::write(&mut message, kind, |out| out.extend_from_slice(body));
                        let mut surprised = messages.clone();
                        surprised.insert(at, &message);
                        assert_alike(&[&surprised.concat()], order, &mut usual);
                    }
                }
                let mut shortened = messages.clone();
                shortened.truncate(at);
                assert_alike(&[&shortened.concat()], order, &mut usual);
            }
        }
    }

    #[test]
    fn a_reply_in_two_pieces_is_judged() {
        for (order, messages) in replies() {
            let reply = messages.concat();
            let mut usual = known(order, &reply);
            for at in 0..reply.len() {
                assert_alike(&[&reply[..at], &reply[at..]], order, &mut usual);
                // The rest of a reply is no reply.
                assert_alike(&[&reply[..at], &reply], order, &mut usual);
            }
        }
    }

    /// A status is no result, however its bytes arrive.
    #[test]
    fn a_status_alone_is_judged() {
        for (order, messages) in replies() {
            let mut usual = known(order, &messages.concat());
            for at in 0..READY.len() {
                assert_alike(&[&READY[..at], &READY[at..]], order, &mut usual);
                let outcome = outcome(&[&READY[..at], &READY[at..]], order, Some(&mut usual));
                assert!(outcome.starts_with("Err"), "{outcome}");
            }
        }
    }

    #[test]
    fn a_statement_with_a_usual_reply_that_copies_fails() {
        for (order, messages) in replies() {
            let mut usual = known(order, &messages.concat());
            for kind in *b"GHW" {
                let mut copying = Vec::new();
                frame::write(&mut copying, kind, |out| out.extend_from_slice(b"\0\0\0"));
                let (mut reader, mut exchange) = (Reader::default(), Exchange::default());
                exchange.expect_of(0, Rows::Skipped, order);
                let mut receiving = Receiving { exchange: &mut exchange, usual: &mut usual };
                assert_eq!(reader.take(&copying, &mut receiving).unwrap(), Flow::Continue);
                // The end of the reply is all of a usual one.
                let end = [b"C\0\0\0\x0bCOPY 0\0", READY].concat();
                let error = reader.take(&end, &mut receiving).unwrap_err();
                assert!(matches!(error, ConnectionError::Copy), "{error}");
            }
        }
    }

    #[test]
    fn a_reply_that_nobody_waits_for_is_not_taken() {
        let (order, messages) = &replies()[0];
        let reply = messages.concat();
        let (mut usual, mut exchange) = (known(*order, &reply), Exchange::default());
        assert!(!exchange.take_usual(&reply, &mut usual));
        exchange.expect_of(0, Rows::Skipped, *order);
        assert!(exchange.take_usual(&reply, &mut usual));
        assert!(!exchange.take_usual(&reply, &mut usual));
        exchange.expect_of(0, Rows::Counted, *order);
        assert!(!exchange.take_usual(&reply, &mut usual));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_alike_beside_any_usual_reply(
            learned in 0..replies().len(),
            asked in 0..replies().len(),
            messages in prop::collection::vec(
                (prop::sample::select(b"12TnDCZNEI".to_vec()), prop::collection::vec(any::<u8>(), 0..9)), 0..6),
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let all = replies();
            let (order, right) = &all[learned];
            let mut usual = known(*order, &right.concat());
            let mut bytes = all[asked].1.concat();
            for (place, byte) in places {
                *place.get_mut(&mut bytes) = byte;
            }
            assert_alike(&[&bytes], all[asked].0, &mut usual);
            let mut any: Vec<u8> = Vec::new();
            for (kind, body) in &messages {
                frame::write(&mut any, *kind, |out| out.extend_from_slice(body));
            }
            any.extend_from_slice(READY);
            let at = cut.index(any.len());
            for pieces in [&[&any[..]][..], &[&any[..at], &any[at..]]] {
                assert_alike(pieces, all[asked].0, &mut usual);
            }
        }
    }
}
