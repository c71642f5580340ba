use super::*;
use crate::error::ConnectionError;
use crate::frame::{Flow, Reader};
use crate::reply::{Exchange, Receiving};
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

/// Returns replies of each kind. Each has the form that the client requested, and its messages.
fn replies() -> Vec<(Form, Vec<&'static [u8]>)> {
    let described = Form::Described;
    vec![
        (described, vec![BOUND, DESCRIPTION, ROW, SELECT, READY]),
        (described, vec![BOUND, DESCRIPTION, ROW, OTHER_ROW, ROW, SELECT, READY]),
        (described, vec![BOUND, DESCRIPTION, SELECT, READY]),
        (described, vec![BOUND, NO_DATA, UPDATE, READY]),
        (described, vec![b"1\0\0\0\x04", BOUND, NO_DATA, UPDATE, READY]),
        (Form::Undescribed, vec![BOUND, ROW, SELECT, READY]),
        (Form::Undescribed, vec![BOUND, UPDATE, READY]),
        (Form::Text, vec![DESCRIPTION, ROW, SELECT, READY]),
        (Form::Text, vec![UPDATE, READY]),
        (Form::Text, vec![UPDATE, DESCRIPTION, ROW, SELECT, READY]),
    ]
}

/// Describes the state after a reply was read: the last [`Flow`], whether the reply is complete, the transaction status
/// and the first error, and whether bytes are left.
fn outcome(pieces: &[&[u8]], form: Form, usual: Option<&mut UsualReplies>) -> String {
    let (mut reader, mut exchange) = (Reader::default(), Exchange::default());
    exchange.expect_of(0, Rows::Skipped, form);
    let mut none = UsualReplies::default();
    let is_quick = usual.is_some();
    let mut receiving = Receiving { exchange: &mut exchange, usual: usual.unwrap_or(&mut none) };
    let mut flow = Ok(Flow::Continue);
    for piece in pieces {
        let taken = if is_quick { reader.take(piece, &mut receiving) } else { reader.take(piece, receiving.exchange) };
        flow = taken.map_err(|error| error.to_string());
        if flow.is_err() {
            break;
        }
    }
    // If a reply does not fit the request, the connection is closed.
    if flow.is_err() {
        return format!("{flow:?}");
    }
    let is_awaiting = exchange.is_awaiting();
    format!("{flow:?} {is_awaiting} {:?} {}", exchange.take_reply(), reader.has_kept())
}

/// Returns the usual replies of a thread that has received this reply.
fn known(form: Form, reply: &[u8]) -> UsualReplies {
    let mut usual = UsualReplies::default();
    assert_eq!(usual.status(0, form, reply), Some(b'I'));
    usual
}

/// Asserts that reading a reply has the same outcome whether it may be compared with these usual replies or not.
fn assert_alike(pieces: &[&[u8]], form: Form, usual: &mut UsualReplies) {
    if frame::messages(&pieces.concat()).any(|(kind, _)| kind == b'N') {
        // A notice has to be printed. Therefore the reply does not count as a usual reply.
        return assert_eq!(usual.status(0, form, &pieces.concat()), None);
    }
    let expected = outcome(pieces, form, None);
    for _ in 0..2 {
        assert_eq!(outcome(pieces, form, Some(&mut *usual)), expected, "{}", pieces.concat().escape_ascii());
    }
}

#[test]
fn the_usual_reply_is_known_by_its_bytes() {
    for (form, messages) in replies() {
        let mut usual = known(form, &messages.concat());
        let is_single = messages.iter().filter(|message| message[0] == b'C').count() == 1;
        let kept = usual.0[0].as_ref();
        assert_eq!(kept.is_some(), is_single);
        assert_eq!(kept.and_then(|kept| kept.status(form, &messages.concat())), is_single.then_some(b'I'));
        assert_alike(&[&messages.concat()], form, &mut usual);
    }
}

#[test]
fn rows_of_other_values_and_numbers_are_taken_by_the_same_usual_reply() {
    let form = Form::Described;
    let usual = known(form, &[BOUND, DESCRIPTION, ROW, SELECT, READY].concat());
    let status = |messages: &[&[u8]]| usual.0[0].as_ref().and_then(|kept| kept.status(form, &messages.concat()));
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
    assert!(known(Form::Text, &reply).0[0].is_none());
}

/// Checks that each reply is read correctly if the usual reply of its statement is of another kind.
#[test]
fn replies_of_another_kind_are_judged() {
    for (form, messages) in replies() {
        for (asked, others) in replies() {
            assert_alike(&[&others.concat()], asked, &mut known(form, &messages.concat()));
        }
    }
}

#[test]
fn each_byte_of_a_usual_reply_is_judged() {
    for (form, messages) in replies() {
        let reply = messages.concat();
        let mut usual = known(form, &reply);
        for at in 0..reply.len() {
            for byte in 0..=u8::MAX {
                let mut damaged = reply.clone();
                damaged[at] = byte;
                assert_alike(&[&damaged], form, &mut usual);
            }
        }
    }
}

#[test]
fn each_type_of_message_is_judged_at_each_place() {
    for (form, messages) in replies() {
        let mut usual = known(form, &messages.concat());
        for at in 0..=messages.len() {
            for kind in 0..=u8::MAX {
                for body in [&b""[..], b"\0", b"Mbad\0\0", &DESCRIPTION[frame::HEADER..], &ROW[frame::HEADER..]] {
                    let mut message = Vec::new();
                    frame::write(&mut message, kind, |out| out.extend_from_slice(body));
                    let mut surprised = messages.clone();
                    surprised.insert(at, &message);
                    assert_alike(&[&surprised.concat()], form, &mut usual);
                }
            }
            let mut shortened = messages.clone();
            shortened.truncate(at);
            assert_alike(&[&shortened.concat()], form, &mut usual);
        }
    }
}

#[test]
fn a_reply_in_two_pieces_is_judged() {
    for (form, messages) in replies() {
        let reply = messages.concat();
        let mut usual = known(form, &reply);
        for at in 0..reply.len() {
            assert_alike(&[&reply[..at], &reply[at..]], form, &mut usual);
            // The rest of a reply does not count as a reply.
            assert_alike(&[&reply[..at], &reply], form, &mut usual);
        }
    }
}

/// Checks that a ReadyForQuery message alone does not count as a result, in whatever pieces its bytes arrive.
#[test]
fn a_status_alone_is_judged() {
    for (form, messages) in replies() {
        let mut usual = known(form, &messages.concat());
        for at in 0..READY.len() {
            assert_alike(&[&READY[..at], &READY[at..]], form, &mut usual);
            let outcome = outcome(&[&READY[..at], &READY[at..]], form, Some(&mut usual));
            assert!(outcome.starts_with("Err"), "{outcome}");
        }
    }
}

#[test]
fn a_statement_with_a_usual_reply_that_copies_fails() {
    for (form, messages) in replies() {
        let mut usual = known(form, &messages.concat());
        for kind in *b"GHW" {
            let mut copying = Vec::new();
            frame::write(&mut copying, kind, |out| out.extend_from_slice(b"\0\0\0"));
            let (mut reader, mut exchange) = (Reader::default(), Exchange::default());
            exchange.expect_of(0, Rows::Skipped, form);
            let mut receiving = Receiving { exchange: &mut exchange, usual: &mut usual };
            assert_eq!(reader.take(&copying, &mut receiving).unwrap(), Flow::Continue);
            // The end of this reply is equal to a whole usual reply.
            let end = [b"C\0\0\0\x0bCOPY 0\0", READY].concat();
            let error = reader.take(&end, &mut receiving).unwrap_err();
            assert!(matches!(error, ConnectionError::Copy), "{error}");
        }
    }
}

#[test]
fn a_reply_that_nobody_waits_for_is_not_taken() {
    let (form, messages) = &replies()[0];
    let reply = messages.concat();
    let (mut usual, mut exchange) = (known(*form, &reply), Exchange::default());
    assert!(!exchange.take_usual(&reply, &mut usual));
    exchange.expect_of(0, Rows::Skipped, *form);
    assert!(exchange.take_usual(&reply, &mut usual));
    assert!(!exchange.take_usual(&reply, &mut usual));
    exchange.expect_of(0, Rows::Counted, *form);
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
        let (form, right) = &all[learned];
        let mut usual = known(*form, &right.concat());
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
