//! A statement as the wire wants it: encoded once when the run is planned, values patched in on each use.

use crate::program::value::Value;

/// How statements travel, as pgbench's `--protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryMode {
    /// One Query message with the values written into the text.
    Simple,
    /// Parse, Bind, Execute each time, values as parameters.
    Extended,
    /// Parse once a connection, then Bind and Execute.
    Prepared,
}

impl QueryMode {
    /// The option's word.
    pub fn name(self) -> &'static str {
        match self {
            QueryMode::Simple => "simple",
            QueryMode::Extended => "extended",
            QueryMode::Prepared => "prepared",
        }
    }
}

/// Execute of the unnamed portal without a row limit, then Sync.
const EXECUTE_SYNC: [u8; 15] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];

/// One SQL statement with holes for values.
#[derive(Debug)]
pub struct Statement {
    /// Index among the run's statements; a connection remembers by it what it has prepared.
    pub id: usize,
    /// The text around the holes; one more than there are holes.
    pieces: Vec<String>,
    /// For each hole the index of its value.
    holes: Vec<usize>,
    parse: Vec<u8>,
    bind: Vec<u8>,
    parse_unnamed: Vec<u8>,
    bind_unnamed: Vec<u8>,
}

impl Statement {
    /// A statement from the text around its holes and the value index of each hole.
    ///
    /// # Panics
    /// If there is not exactly one more piece than holes.
    pub fn new(id: usize, name: &str, pieces: Vec<String>, holes: Vec<usize>) -> Self {
        assert_eq!(pieces.len(), holes.len() + 1, "one piece of text more than holes");
        let mut text = pieces[0].clone();
        for (number, piece) in pieces[1..].iter().enumerate() {
            text.push_str(&format!("${}{piece}", number + 1));
        }
        Self {
            id,
            parse: parse_message(name, &text),
            bind: bind_head(name, holes.len()),
            parse_unnamed: parse_message("", &text),
            bind_unnamed: bind_head("", holes.len()),
            pieces,
            holes,
        }
    }

    /// Appends the messages of one execution. `prepared` tells whether this connection has parsed the statement before.
    #[inline]
    pub fn encode(&self, mode: QueryMode, prepared: bool, values: &[Value], out: &mut Vec<u8>) {
        match mode {
            QueryMode::Simple => self.encode_simple(values, out),
            QueryMode::Extended => {
                out.extend_from_slice(&self.parse_unnamed);
                self.encode_bind(&self.bind_unnamed, values, out);
            }
            QueryMode::Prepared => {
                if !prepared {
                    out.extend_from_slice(&self.parse);
                }
                self.encode_bind(&self.bind, values, out);
            }
        }
    }

    fn encode_simple(&self, values: &[Value], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"Q\0\0\0\0");
        out.extend_from_slice(self.pieces[0].as_bytes());
        for (hole, piece) in self.holes.iter().zip(&self.pieces[1..]) {
            match &values[*hole] {
                Value::Unset => out.extend_from_slice(b"NULL"),
                value => value.write_text(out),
            }
            out.extend_from_slice(piece.as_bytes());
        }
        out.push(0);
        patch_length(out, start);
    }

    #[inline]
    fn encode_bind(&self, head: &[u8], values: &[Value], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(head);
        for hole in &self.holes {
            let at = out.len();
            match &values[*hole] {
                Value::Unset => out.extend_from_slice(&(-1i32).to_be_bytes()),
                value => {
                    out.extend_from_slice(&[0; 4]);
                    value.write_text(out);
                    let length = (out.len() - at - 4) as u32;
                    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
                }
            }
        }
        out.extend_from_slice(&[0, 0]); // all results in text format
        patch_length(out, start);
        out.extend_from_slice(&EXECUTE_SYNC);
    }
}

fn patch_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

fn parse_message(name: &str, text: &str) -> Vec<u8> {
    let mut message = b"P\0\0\0\0".to_vec();
    message.extend_from_slice(name.as_bytes());
    message.push(0);
    message.extend_from_slice(text.as_bytes());
    message.extend_from_slice(&[0, 0, 0]); // end of text, no parameter types given
    patch_length(&mut message, 0);
    message
}

/// A Bind message up to the parameters; its length is patched when they are known.
fn bind_head(name: &str, parameters: usize) -> Vec<u8> {
    let mut message = b"B\0\0\0\0\0".to_vec(); // the last zero: the unnamed portal
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&[0, 0, 0]); // end of name, all parameters in text format
    message.extend_from_slice(&(parameters as u16).to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use postgres_protocol::{IsNull, message::frontend};

    fn select() -> Statement {
        Statement::new(0, "P0_1", vec!["SELECT a FROM t WHERE i = ".into(), " AND j = ".into(), ";".into()], vec![1, 0])
    }

    /// The same messages by the library's own encoder.
    fn reference(parse: bool, name: &str, values: &[Option<&str>]) -> Vec<u8> {
        let mut out = BytesMut::new();
        if parse {
            frontend::parse(name, "SELECT a FROM t WHERE i = $1 AND j = $2;", [], &mut out).unwrap();
        }
        frontend::bind(
            "",
            name,
            [],
            values,
            |value, buffer| {
                Ok(match value {
                    Some(text) => {
                        buffer.extend_from_slice(text.as_bytes());
                        IsNull::No
                    }
                    None => IsNull::Yes,
                })
            },
            [],
            &mut out,
        )
        .unwrap_or_else(|_| panic!("the reference encoder refused the values"));
        frontend::execute("", 0, &mut out).unwrap();
        frontend::sync(&mut out);
        out.to_vec()
    }

    #[test]
    fn prepared_and_extended_agree_with_the_library_encoder() {
        let values = [Value::Int(7), Value::Int(-42)];
        for (mode, prepared, parse, name) in [
            (QueryMode::Prepared, false, true, "P0_1"),
            (QueryMode::Prepared, true, false, "P0_1"),
            (QueryMode::Extended, false, true, ""),
        ] {
            let mut out = Vec::new();
            select().encode(mode, prepared, &values, &mut out);
            assert_eq!(out, reference(parse, name, &[Some("-42"), Some("7")]));
        }
    }

    #[test]
    fn null_is_a_parameter_of_no_length() {
        let mut out = Vec::new();
        select().encode(QueryMode::Prepared, true, &[Value::Unset, Value::Unset], &mut out);
        assert_eq!(out, reference(false, "P0_1", &[None, None]));
    }

    #[test]
    fn simple_mode_writes_values_into_the_text() {
        let mut out = Vec::new();
        select().encode(QueryMode::Simple, false, &[Value::Int(7), Value::Int(3)], &mut out);
        let mut expected = BytesMut::new();
        frontend::query("SELECT a FROM t WHERE i = 3 AND j = 7;", &mut expected).unwrap();
        assert_eq!(out, expected.to_vec());
    }
}
