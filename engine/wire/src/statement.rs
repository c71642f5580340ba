//! A statement as the wire wants it: encoded once when the run is planned, values patched in on each use.

use super::int_field::{LONGEST_SHORT, push_int, short_field};
use super::message::{Message, Short};
use crate::value::Value;

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
pub const EXECUTE_SYNC: [u8; 15] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];

/// How many bytes of a Bind message follow its parameters.
const RESULT_FORMATS: usize = 2;

/// The end of a Bind message, that wants all results in text format, and what follows it.
const TEXT_RESULTS_EXECUTE_SYNC: [u8; RESULT_FORMATS + EXECUTE_SYNC.len()] =
    [0, 0, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];

/// With so many values that are short numbers, a Bind message and what follows it are a short request.
const MOST_SHORT_VALUES: usize = (Short::LONGEST - BindHead::LONGEST - TEXT_RESULTS_EXECUTE_SYNC.len()) / LONGEST_SHORT;

/// Sync.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Describe of the unnamed portal: the names of the columns are wanted.
pub const DESCRIBE_PORTAL: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];

/// A place in a statement where a variable's value goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The index of its value.
    pub slot: usize,
    /// The variable's name: in simple mode a variable without a value stays in the text as it was written.
    pub name: String,
}

/// One SQL statement with holes for values.
#[derive(Debug)]
pub struct Statement {
    /// Index among the run's statements; a connection remembers by it what it has prepared.
    pub id: usize,
    /// The text around the holes; one more than there are holes.
    pieces: Vec<Vec<u8>>,
    holes: Vec<Hole>,
    parse: Vec<u8>,
    bind: BindHead,
    parse_unnamed: Vec<u8>,
    bind_unnamed: BindHead,
}

impl Statement {
    /// A statement from the text around its holes, whose parameters' types the server is to find out.
    ///
    /// # Panics
    /// If there is not exactly one more piece than holes.
    pub fn new(id: usize, name: &str, pieces: Vec<Vec<u8>>, holes: Vec<Hole>) -> Self {
        Self::typed(id, name, pieces, holes, &[])
    }

    /// The same with the types of the parameters, by their OIDs.
    ///
    /// # Panics
    /// If there is not exactly one more piece than holes.
    pub fn typed(id: usize, name: &str, pieces: Vec<Vec<u8>>, holes: Vec<Hole>, types: &[u32]) -> Self {
        assert_eq!(pieces.len(), holes.len() + 1, "one piece of text more than holes");
        let mut text = pieces[0].clone();
        for (number, piece) in pieces[1..].iter().enumerate() {
            text.extend_from_slice(format!("${}", number + 1).as_bytes());
            text.extend_from_slice(piece);
        }
        Self {
            id,
            parse: parse_message(name, &text, types),
            bind: BindHead::new(name, holes.len()),
            parse_unnamed: parse_message("", &text, types),
            bind_unnamed: BindHead::new("", holes.len()),
            pieces,
            holes,
        }
    }

    /// The name under which it is prepared.
    pub fn name(&self) -> &str {
        let name = self.parse[5..].split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// The message that has the server prepare the statement.
    pub fn parse_message(&self) -> &[u8] {
        &self.parse
    }

    /// The message that has the server describe the prepared statement.
    pub fn describe_message(&self) -> Vec<u8> {
        let mut message = b"D\0\0\0\0S".to_vec();
        message.extend_from_slice(self.name().as_bytes());
        message.push(0);
        let length = (message.len() - 1) as u32;
        message[1..5].copy_from_slice(&length.to_be_bytes());
        message
    }

    /// Appends the messages of one execution. `prepared` tells whether this connection has parsed the statement before.
    #[inline(always)]
    pub fn encode(&self, mode: QueryMode, prepared: bool, values: &[Value], out: &mut Message) {
        if !prepared || mode != QueryMode::Prepared {
            return self.encode_text(mode, values, out);
        }
        self.encode_bind(&self.bind, values, out);
    }

    /// The messages of one execution of the prepared statement, put together in few instructions; `None` if not all
    /// values are short whole numbers.
    #[inline(always)]
    pub fn encode_short<'a>(&self, values: &[Value], room: &'a mut Short) -> Option<&'a [u8]> {
        if self.holes.len() > MOST_SHORT_VALUES {
            return None;
        }
        room.put(0, &self.bind.bytes);
        let mut at = self.bind.length as u8;
        for hole in &self.holes {
            let Some(Value::Int(number)) = values.get(hole.slot) else { return None };
            let (field, length) = short_field(*number)?;
            room.put(at, &field);
            at = at.wrapping_add(length);
        }
        room.put(1, &(u32::from(at) + RESULT_FORMATS as u32 - 1).to_be_bytes());
        room.put(at, &TEXT_RESULTS_EXECUTE_SYNC);
        room.0.get(..usize::from(at) + TEXT_RESULTS_EXECUTE_SYNC.len())
    }

    /// The same with the statement's text.
    fn encode_text(&self, mode: QueryMode, values: &[Value], out: &mut Message) {
        match mode {
            QueryMode::Simple => self.encode_simple(values, out),
            QueryMode::Extended => {
                out.extend(&self.parse_unnamed);
                self.encode_bind(&self.bind_unnamed, values, out);
            }
            QueryMode::Prepared => {
                out.extend(&self.parse);
                self.encode_bind(&self.bind, values, out);
            }
        }
    }

    fn encode_simple(&self, values: &[Value], out: &mut Message) {
        let start = out.len();
        out.extend(b"Q\0\0\0\0");
        out.extend(&self.pieces[0]);
        for (hole, piece) in self.holes.iter().zip(&self.pieces[1..]) {
            match &values[hole.slot] {
                Value::Unset => {
                    out.extend(b":");
                    out.extend(hole.name.as_bytes());
                }
                value => {
                    out.extend_text(value);
                }
            }
            out.extend(piece);
        }
        out.extend(&[0]);
        out.set_number(start + 1, (out.len() - start - 1) as u32);
    }

    #[inline(always)]
    fn encode_bind(&self, head: &BindHead, values: &[Value], out: &mut Message) {
        let start = out.len();
        out.push(&head.bytes, head.length);
        for hole in &self.holes {
            match &values[hole.slot] {
                Value::Int(number) => push_int(*number, out),
                value => encode_other(value, out),
            }
        }
        out.set_number(start + 1, (out.len() - start + RESULT_FORMATS - 1) as u32);
        out.push(&TEXT_RESULTS_EXECUTE_SYNC, TEXT_RESULTS_EXECUTE_SYNC.len());
    }
}

/// A parameter that is no whole number.
fn encode_other(value: &Value, out: &mut Message) {
    let at = out.len();
    out.extend(&(-1i32).to_be_bytes());
    if *value != Value::Unset {
        let length = out.extend_text(value);
        out.set_number(at, length as u32);
    }
}

fn parse_message(name: &str, text: &[u8], types: &[u32]) -> Vec<u8> {
    let mut message = b"P\0\0\0\0".to_vec();
    message.extend_from_slice(name.as_bytes());
    message.push(0);
    message.extend_from_slice(text);
    message.push(0);
    message.extend_from_slice(&(types.len() as u16).to_be_bytes());
    for oid in types {
        message.extend_from_slice(&oid.to_be_bytes());
    }
    let length = (message.len() - 1) as u32;
    message[1..5].copy_from_slice(&length.to_be_bytes());
    message
}

/// A Bind message up to the parameters; its length is patched when they are known.
#[derive(Debug)]
struct BindHead {
    bytes: [u8; BindHead::LONGEST],
    length: usize,
}

impl BindHead {
    /// Eleven bytes around a statement's name, which is a letter and a number.
    const LONGEST: usize = 32;

    fn new(name: &str, parameters: usize) -> Self {
        let mut message = b"B\0\0\0\0\0".to_vec(); // the last zero: the unnamed portal
        message.extend_from_slice(name.as_bytes());
        message.extend_from_slice(&[0, 0, 0]); // end of name, all parameters in text format
        message.extend_from_slice(&(parameters as u16).to_be_bytes());
        let mut bytes = [0; Self::LONGEST];
        bytes[..message.len()].copy_from_slice(&message);
        Self { bytes, length: message.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use postgres_protocol::{IsNull, message::frontend};
    use proptest::prelude::*;

    fn hole(slot: usize, name: &str) -> Hole {
        Hole { slot, name: name.to_owned() }
    }

    fn select() -> Statement {
        Statement::new(
            0,
            "P0_1",
            vec![b"SELECT a FROM t WHERE i = ".to_vec(), b" AND j = ".to_vec(), b";".to_vec()],
            vec![hole(1, "b"), hole(0, "a")],
        )
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
            let mut out = Message::default();
            select().encode(mode, prepared, &values, &mut out);
            assert_eq!(out.as_bytes(), reference(parse, name, &[Some("-42"), Some("7")]));
        }
    }

    #[test]
    fn null_is_a_parameter_of_no_length() {
        let mut out = Message::default();
        select().encode(QueryMode::Prepared, true, &[Value::Unset, Value::Unset], &mut out);
        assert_eq!(out.as_bytes(), reference(false, "P0_1", &[None, None]));
    }

    #[test]
    fn simple_mode_writes_values_into_the_text() {
        let mut out = Message::default();
        select().encode(QueryMode::Simple, false, &[Value::Int(7), Value::Int(3)], &mut out);
        let mut expected = BytesMut::new();
        frontend::query("SELECT a FROM t WHERE i = 3 AND j = 7;", &mut expected).unwrap();
        assert_eq!(out.as_bytes(), expected.to_vec());
    }

    proptest! {
        /// Piece by piece is the plain way.
        #[test]
        fn short_numbers_are_encoded_alike_on_both_ways(
            numbers in prop::collection::vec((any::<i64>(), 37u32..64), 0..25),
            other in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let holes: Vec<_> = (0..numbers.len()).map(|slot| hole(slot, "a")).collect();
            let statement = Statement::new(0, "P_12345", vec![b"x".to_vec(); holes.len() + 1], holes);
            let mut values: Vec<_> = numbers.iter().map(|(number, shift)| Value::Int(number >> shift)).collect();
            if let Some(value) = other.filter(|_| !values.is_empty()).map(|at| at.get_mut(&mut values)) {
                *value = Value::Double(0.5);
            }
            let (mut plain, mut quick) = (Message::default(), Message::default());
            statement.encode(QueryMode::Prepared, true, &values, &mut plain);
            match statement.encode_short(&values, quick.short()) {
                Some(bytes) => prop_assert_eq!(bytes, plain.as_bytes()),
                None => {
                    let is_long = |value: &Value| !matches!(value, Value::Int(n) if short_field(*n).is_some());
                    let has_reason = values.len() > MOST_SHORT_VALUES || values.iter().any(is_long);
                    prop_assert!(has_reason);
                }
            }
        }
    }
}
