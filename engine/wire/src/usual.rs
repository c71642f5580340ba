//! The usual replies to the statements of a thread. When a reply was checked and found correct, its bytes before and
//! after the rows are stored. The next reply to the same statement is compared with these bytes, which takes only a
//! fraction of the instructions of another check.

use crate::frame::{self, Header};
use crate::order::{Form, Order};

/// The maximum length of a stored reply without its rows, in bytes.
const LONGEST: usize = 4096;

/// The usual reply of each statement, by the statement's index.
#[derive(Default)]
pub struct UsualReplies(Vec<Option<UsualReply>>);

impl UsualReplies {
    /// Returns the transaction status at the end of `bytes`, if `bytes` are a whole and correct reply to `statement` in
    /// this form which only changes the transaction status. Returns `None` otherwise.
    #[inline(always)]
    pub fn status(&mut self, statement: usize, form: Form, bytes: &[u8]) -> Option<u8> {
        if let Some(Some(usual)) = self.0.get(statement) {
            if let Some(status) = usual.status(form, bytes) {
                return Some(status);
            }
        }
        self.judge(statement, form, bytes)
    }

    /// Checks a reply that differs from the usual reply, which is stored from an earlier execution of the statement, or
    /// for which none is stored. If the reply is correct, it becomes the usual reply.
    #[inline(never)]
    fn judge(&mut self, statement: usize, form: Form, bytes: &[u8]) -> Option<u8> {
        let status = status_of(bytes, Order::of(form))?;
        if self.0.len() <= statement {
            self.0.resize_with(statement + 1, || None);
        }
        self.0[statement] = UsualReply::of(bytes, form);
        Some(status)
    }
}

/// The messages that all replies to a statement have in common, which are all messages except the rows. They were
/// checked when they were stored.
struct UsualReply {
    /// The form of the reply: whether it answers a simple query, or an execution with or without a RowDescription. The
    /// reply was found correct for this form. The result of the check depends only on the form and the bytes.
    form: Form,
    /// The messages before the rows and those after the rows, up to the transaction status.
    around: Box<[u8]>,
    /// The offset in `around` at which a reply has its rows.
    at: usize,
    /// The state of the check of a reply after the messages that come before the rows. The rows of new replies are
    /// checked from this state on.
    in_rows: Order,
}

impl UsualReply {
    /// Stores a reply that was found correct for this form. Returns `None` if the reply is too long or has more than
    /// one result.
    fn of(bytes: &[u8], form: Form) -> Option<Self> {
        let mut in_rows = Order::of(form);
        let mut at = 0;
        for (kind, body) in frame::messages(bytes).take_while(|(kind, _)| !matches!(kind, b'D' | b'C')) {
            in_rows.take(kind, Some(body)).ok()?;
            at += frame::HEADER + body.len();
        }
        let (beginning, rows) = bytes.split_at_checked(at)?;
        let rest = skip_rows(rows, in_rows)?;
        let is_single = frame::messages(rest).map(|(kind, _)| kind).eq(*b"CZ");
        let (_, end) = rest.split_last()?;
        let around = [beginning, end].concat().into_boxed_slice();
        (is_single && around.len() <= LONGEST).then_some(Self { form, around, at, in_rows })
    }

    #[inline(always)]
    fn status(&self, form: Form, bytes: &[u8]) -> Option<u8> {
        if form != self.form {
            return None;
        }
        let (status, before) = bytes.split_last()?;
        if is_equal(before, &self.around) {
            return Some(*status);
        }
        let (beginning, end) = self.around.split_at_checked(self.at)?;
        let (begun, rows) = bytes.split_at_checked(self.at)?;
        if !is_equal(begun, beginning) {
            return None;
        }
        let rest = skip_rows(rows, self.in_rows)?;
        let (status, ended) = rest.split_last()?;
        // A reply with another number of rows has another CommandComplete at its end.
        if is_equal(ended, end) { Some(*status) } else { status_of(rest, self.in_rows) }
    }
}

/// Returns true if the bytes are equal. They are so few that a call of the library's comparison would take more
/// instructions.
#[inline(always)]
fn is_equal(mut some: &[u8], mut others: &[u8]) -> bool {
    const WIDE: usize = 16;
    if some.len() != others.len() {
        return false;
    }
    let (Some(last), Some(other)) = (some.last_chunk::<WIDE>(), others.last_chunk()) else { return some == others };
    while let (Some((first, after)), Some((other, others_after))) =
        (some.split_first_chunk::<WIDE>(), others.split_first_chunk())
    {
        if first != other {
            return false;
        }
        (some, others) = (after, others_after);
    }
    last == other
}

/// Returns the bytes after the rows at the beginning of `bytes`. Returns `None` if `order` does not allow one of the
/// rows.
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

/// Returns the transaction status at the end of a whole reply, if `order` allows its messages and they all have these
/// types: ParseComplete, BindComplete, RowDescription, NoData, DataRow, CommandComplete, and one ReadyForQuery.
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

#[cfg(test)]
mod tests;
