//! The statements of a session: which statements the server has parsed, which it is parsing, and the text that was sent
//! last.

use std::collections::VecDeque;

use crate::frame::{self, HEADER};

/// The statements that a session has asked the server to parse and to execute.
#[derive(Default)]
pub struct Request {
    /// The messages of the last request, if they contain the text of statements. The position in an error refers to
    /// this text.
    messages: Vec<u8>,
    /// One bit for each statement of the run. It is set if this session has parsed the statement.
    parsed: Vec<u64>,
    /// The statements that were sent to be parsed, and for which no ParseComplete has arrived.
    pending: VecDeque<usize>,
    /// The statements for which no ParseComplete had arrived when an error came. The server has rejected the first of
    /// them and ignored the others.
    rejected: VecDeque<usize>,
}

impl Request {
    /// Returns true if the session has parsed the statement.
    #[inline(always)]
    pub fn has_parsed(&self, statement: usize) -> bool {
        self.parsed.get(statement / 64).is_some_and(|word| word >> (statement % 64) & 1 == 1)
    }

    /// Records that a statement was sent to be parsed.
    pub fn expect_parse(&mut self, statement: usize) {
        self.pending.push_back(statement);
    }

    /// Records that a ParseComplete has arrived.
    pub fn parse_complete(&mut self) {
        if let Some(statement) = self.pending.pop_front() {
            self.count_as_parsed(statement);
        }
    }

    fn count_as_parsed(&mut self, statement: usize) {
        if self.parsed.len() <= statement / 64 {
            self.parsed.resize(statement / 64 + 1, 0);
        }
        self.parsed[statement / 64] |= 1 << (statement % 64);
    }

    /// Records the end of the reply. Statements that the server has not parsed by now were ignored because of an error.
    #[inline(always)]
    pub fn forget_pending(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
        }
    }

    /// Records that the server has rejected the first statement for which no ParseComplete has arrived.
    pub fn note_rejection(&mut self) {
        self.rejected.clone_from(&self.pending);
    }

    /// Treats the rejected statement as if it had been parsed. Returns the messages that came after its Parse message
    /// in the request, which must be sent again. The result is empty if only Sync came after it.
    pub fn pass_rejected(&mut self) -> Vec<u8> {
        let passed = frame::messages(&self.messages).take_while(|(kind, _)| *kind == b'P').count();
        let passed = (passed + 1).saturating_sub(self.rejected.len());
        let rest: usize = frame::messages(&self.messages).take(passed).map(|(_, body)| HEADER + body.len()).sum();
        let Some(statement) = self.rejected.pop_front() else { return Vec::new() };
        self.count_as_parsed(statement);
        self.pending = std::mem::take(&mut self.rejected);
        let rest = self.messages.split_off(rest);
        self.messages.clear();
        if frame::messages(&rest).all(|(kind, _)| kind == b'S') { Vec::new() } else { rest }
    }

    /// Records that the server has dropped all prepared statements.
    pub fn forget_parsed(&mut self) {
        self.parsed.clear();
    }

    /// Stores the messages of a request, which contain the text of statements.
    pub fn keep_text(&mut self, messages: &[u8]) {
        self.messages.clear();
        self.messages.extend_from_slice(messages);
    }

    /// Stores the message of a simple query, and returns it.
    pub fn keep_query(&mut self, sql: &[u8]) -> &[u8] {
        self.messages.clear();
        frame::write(&mut self.messages, b'Q', |out| frame::write_text(out, sql));
        &self.messages
    }

    /// Records a request that does not contain the text of statements.
    #[inline(always)]
    pub fn forget_text(&mut self) {
        self.messages.clear();
    }

    /// Returns true if the last request is a simple query, which the client does not end with a Sync message.
    pub fn is_simple_query(&self) -> bool {
        self.messages.first() == Some(&b'Q')
    }

    /// Frees the memory that holds the messages of the last request and the list of statements to prepare.
    pub fn trim(&mut self) {
        self.messages = Vec::new();
        self.pending.shrink_to_fit();
    }

    /// Returns the text of the first statement of the last request.
    pub fn text(&self) -> Option<&str> {
        text_of(frame::messages(&self.messages).next()?)
    }

    /// Returns the text of the statement on which the server is working. If the request has several Parse messages, it
    /// is the text of the first one for which no ParseComplete has arrived.
    pub fn current_text(&self) -> Option<&str> {
        self.current_parse().map_or_else(|| self.text(), text_of)
    }

    /// Returns true if the server is parsing a statement whose text is in the last request.
    pub fn is_parsing(&self) -> bool {
        !self.pending.is_empty() && self.current_parse().is_some()
    }

    /// Returns the Parse message on which the server is working: among the Parse messages at the beginning of the last
    /// request, the first one for which no ParseComplete has arrived, or the last one if all were completed.
    fn current_parse(&self) -> Option<(u8, &[u8])> {
        let parses = frame::messages(&self.messages).take_while(|(kind, _)| *kind == b'P');
        let count = parses.clone().count();
        parses.clone().nth(count.saturating_sub(self.pending.len().max(1)))
    }
}

/// Returns the statement's text in a Query message or in a Parse message, where the text comes after the statement's
/// name.
fn text_of((kind, body): (u8, &[u8])) -> Option<&str> {
    let mut texts = body.split(|byte| *byte == 0);
    let text = if kind == b'P' { texts.nth(1) } else { texts.next() };
    std::str::from_utf8(text?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_has_parsed_is_prepared() {
        let mut request = Request::default();
        [3, 70, 71].into_iter().for_each(|statement| request.expect_parse(statement));
        request.parse_complete();
        request.parse_complete();
        request.forget_pending();
        request.parse_complete();
        let known: Vec<_> = (0..200).filter(|statement| request.has_parsed(*statement)).collect();
        assert_eq!(known, [3, 70]);
        request.forget_parsed();
        assert!(!request.has_parsed(3));
    }

    #[test]
    fn of_several_statements_the_one_that_the_server_is_at_is_shown() {
        let mut messages = Vec::new();
        for text in ["select 1", "select 2", "select 3"] {
            frame::write(&mut messages, b'P', |out| {
                out.extend_from_slice(&[b"s\0", text.as_bytes(), &[0; 3]].concat())
            });
        }
        messages.extend_from_slice(&[b'S', 0, 0, 0, 4]);
        let shown = |messages: &[u8], pending| {
            let mut request = Request { pending: (0..pending).collect(), ..Request::default() };
            request.keep_text(messages);
            request.current_text().map(str::to_owned)
        };
        let all = [3, 2, 1, 0].map(|pending| shown(&messages, pending).unwrap());
        assert_eq!(all, ["select 1", "select 2", "select 3", "select 3"]);
        assert_eq!(shown(&messages[..30], 2).as_deref(), Some("select 1"));
        assert_eq!(shown(&[], 1), None);
    }

    fn parse_messages() -> Vec<u8> {
        let mut messages = Vec::new();
        for name in ["P_0", "P_1"] {
            frame::write(&mut messages, b'P', |out| {
                out.extend_from_slice(&[name.as_bytes(), b"\0select 1\0\0\0"].concat())
            });
        }
        messages
    }

    #[test]
    fn a_statement_is_being_parsed_until_the_server_has_parsed_it() {
        let is_parsing = |messages: &[u8], pending| {
            let mut request = Request { pending: (0..pending).collect(), ..Request::default() };
            request.keep_text(messages);
            request.is_parsing()
        };
        assert_eq!([2, 1, 0].map(|pending| is_parsing(&parse_messages(), pending)), [true, true, false]);
        assert!(!is_parsing(&[], 1));
    }

    #[test]
    fn what_follows_a_rejected_statement_is_sent_anew() {
        let parses = parse_messages();
        let rest = |messages: &[u8], parsed: usize| {
            let mut request = Request { pending: (parsed..2).collect(), ..Request::default() };
            request.keep_text(messages);
            request.note_rejection();
            request.forget_pending();
            let rest = request.pass_rejected();
            let counted: Vec<_> = (0..2).filter(|statement| request.has_parsed(*statement)).collect();
            (rest, counted, request.pending.into_iter().collect::<Vec<_>>())
        };
        let sync = [b'S', 0, 0, 0, 4];
        let (first, second) = parses.split_at(parses.len() / 2);
        assert_eq!(rest(&[&parses[..], &sync].concat(), 0), ([second, &sync].concat(), vec![0], vec![1]));
        assert_eq!(rest(&[&parses[..], &sync].concat(), 1), (vec![], vec![1], vec![]));
        let execution = [b"B\0\0\0\x04".as_slice(), &sync].concat();
        assert_eq!(rest(&[first, &execution].concat(), 1), (execution, vec![1], vec![]));
    }
}
