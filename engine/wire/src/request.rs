//! The last request: where an error points into the text of its statements.

use super::frames::HEADER;

/// The last request, kept as it was sent if it holds the text of statements: an error may point into them.
#[derive(Default)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub has_text: bool,
}

impl Request {
    /// The statement's text: of a Query message, or of a Parse message, where it follows the statement's name.
    pub fn statement(&self) -> Option<&str> {
        self.statement_of(self.messages().next()?)
    }

    /// The text of the statement that the server is at, of several Parse messages: so many are still `pending`.
    pub fn current_statement(&self, pending: usize) -> Option<&str> {
        let parses = self.messages().take_while(|(kind, _)| *kind == b'P');
        let count = parses.clone().count();
        match count {
            0 | 1 => self.statement(),
            _ => self.statement_of(parses.clone().nth(count.saturating_sub(pending.max(1)))?),
        }
    }

    fn statement_of<'a>(&self, (kind, body): (u8, &'a [u8])) -> Option<&'a str> {
        let mut texts = body.split(|byte| *byte == 0);
        let text = if kind == b'P' { texts.nth(1) } else { texts.next() };
        std::str::from_utf8(text?).ok().filter(|_| self.has_text)
    }

    /// The kinds and bodies of its messages.
    fn messages(&self) -> impl Iterator<Item = (u8, &[u8])> + Clone {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            let (header, after) = rest.split_first_chunk::<HEADER>()?;
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            let (body, next) = after.split_at_checked(length.checked_sub(4)?)?;
            rest = next;
            Some((header[0], body))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_statements_the_one_that_the_server_is_at_is_shown() {
        let mut bytes = Vec::new();
        for text in ["select 1", "select 2", "select 3"] {
            let body = [b"s\0", text.as_bytes(), &[0, 0, 0]].concat();
            bytes.push(b'P');
            bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            bytes.extend_from_slice(&body);
        }
        bytes.extend_from_slice(&[b'S', 0, 0, 0, 4]);
        let request = Request { bytes, has_text: true };
        let shown = [3, 2, 1, 0].map(|pending| request.current_statement(pending).unwrap());
        assert_eq!(shown, ["select 1", "select 2", "select 3", "select 3"]);
        let cut = Request { bytes: request.bytes[..30].to_vec(), has_text: true };
        assert_eq!(cut.current_statement(2), Some("select 1"));
        assert_eq!(Request::default().current_statement(1), None);
    }
}
