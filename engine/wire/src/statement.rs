//! SQL statements. The messages of a statement are built once, when the run is planned, and the values are written into
//! them for each execution.

use crate::frame;
use crate::messages::{self, BINARY_RESULTS, DESCRIBE_PORTAL, EXECUTE, SYNC, TAIL, TEXT_RESULTS};
use crate::session_mark::SessionMark;
use crate::value::{SHORT_PARAMETER, Value, short_parameter, write_parameter};

/// The protocol mode in which statements are sent, as with pgbench's `--protocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    /// Each execution sends one Query message, with the values written into the text.
    #[default]
    Simple,
    /// Each execution sends Parse, Bind and Execute, with the values as parameters.
    Extended,
    /// Parse is sent once for each connection, and each execution sends Bind and Execute.
    Prepared,
}

impl QueryMode {
    /// Returns the name of the mode as it is given to the option.
    pub fn name(self) -> &'static str {
        match self {
            QueryMode::Simple => "simple",
            QueryMode::Extended => "extended",
            QueryMode::Prepared => "prepared",
        }
    }
}

/// The format in which the server sends the values of rows in the extended protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultFormat {
    #[default]
    Text,
    /// The server sends each type's binary format, for which sysbench asks.
    Binary,
}

impl ResultFormat {
    /// Returns the bytes at the end of a Bind message that ask for this format.
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Text => &TEXT_RESULTS,
            Self::Binary => &BINARY_RESULTS,
        }
    }
}

/// The end of the request for one execution: the result format at the end of Bind, then the messages Describe, Execute
/// and Sync as far as they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEnd {
    pub format: ResultFormat,
    /// True if Describe is sent before Execute, so that the server sends the names and types of the columns. libpq
    /// always sends it.
    pub describes: bool,
    /// True if Sync is sent after Execute. In a pipeline it is not, since more requests follow.
    pub syncs: bool,
}

impl RequestEnd {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.format.bytes());
        if self.describes {
            out.extend_from_slice(&DESCRIBE_PORTAL);
        }
        out.extend_from_slice(&EXECUTE);
        if self.syncs {
            out.extend_from_slice(&SYNC);
        }
    }
}

/// The bytes that come after the parameters of an execution up to Sync, prepared for the hot path.
#[derive(Debug)]
pub struct Tail {
    bytes: [u8; TAIL],
    length: usize,
    /// The number of bytes at the beginning of the tail that belong to the Bind message.
    bind: usize,
}

impl Tail {
    /// Makes the end of a request outside of a pipeline.
    pub fn new(describes: bool, format: ResultFormat) -> Self {
        let mut tail = Vec::new();
        RequestEnd { format, describes, syncs: true }.write(&mut tail);
        let mut bytes = [0; TAIL];
        bytes[..tail.len()].copy_from_slice(&tail);
        Self { bytes, length: tail.len(), bind: format.bytes().len() }
    }
}

/// The offset of a statement's name in the message Parse, after the message's type and length.
const NAME_IN_PARSE: usize = 5;
/// The offset of a statement's name in the message Bind, after the message's type and length and the empty name of the
/// portal.
const NAME_IN_BIND: usize = 6;
/// The offset of a statement's name in the message Describe, after the message's type and length and the kind of the
/// described object.
const NAME_IN_DESCRIBE: usize = 6;

/// The number of bytes for the messages of one execution with up to six short values.
pub const SHORT_ROOM: usize = BindHead::LONGEST + 6 * SHORT_PARAMETER + TAIL;

/// A position in a statement's text at which the value of a variable is inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The index of the variable's value in the client's list of values.
    pub slot: usize,
    /// The name of the variable. In simple mode, a variable without a value stays in the text as it was written.
    pub name: String,
}

/// An SQL statement with positions (holes) at which values are inserted.
#[derive(Debug)]
pub struct Statement {
    /// The statement's index among the statements of the run, by which a connection remembers whether it has prepared
    /// the statement.
    pub id: usize,
    /// The name under which the statement is prepared. If `is_marked` is true, it has a placeholder in place of the
    /// session's mark.
    name: String,
    /// True if the name under which each session prepares the statement contains the session's mark: random letters
    /// that are drawn for the session, so that sessions behind a pooler do not use the same name.
    is_marked: bool,
    /// The pieces of text around the holes, which are the positions of values. There is one more piece than there are
    /// holes, except for statements of [`Statement::with_parameters`], whose whole text is one piece.
    pieces: Vec<Vec<u8>>,
    holes: Vec<Hole>,
    parse: Vec<u8>,
    bind: BindHead,
    parse_unnamed: Vec<u8>,
    bind_unnamed: BindHead,
}

impl Statement {
    /// Makes a statement from the pieces of text around its holes. The server has to infer the types of its parameters.
    ///
    /// # Panics
    /// Panics unless there is exactly one more piece than there are holes.
    pub fn new(id: usize, name: &str, pieces: Vec<Vec<u8>>, holes: Vec<Hole>) -> Self {
        Self::typed(id, name, pieces, holes, &[])
    }

    /// Makes a statement whose parameters have the types with these OIDs.
    ///
    /// # Panics
    /// Panics unless there is exactly one more piece than there are holes.
    fn typed(id: usize, name: &str, pieces: Vec<Vec<u8>>, holes: Vec<Hole>, types: &[u32]) -> Self {
        assert_eq!(pieces.len(), holes.len() + 1, "one piece of text more than holes");
        let mut text = pieces[0].clone();
        for (number, piece) in pieces[1..].iter().enumerate() {
            text.extend_from_slice(format!("${}", number + 1).as_bytes());
            text.extend_from_slice(piece);
        }
        Self {
            id,
            name: name.to_owned(),
            is_marked: false,
            parse: messages::parse(name, &text, types),
            bind: BindHead::new(name, holes.len()),
            parse_unnamed: messages::parse("", &text, types),
            bind_unnamed: BindHead::new("", holes.len()),
            pieces,
            holes,
        }
    }

    /// Makes a statement whose parameters have the types with these OIDs, and which each session prepares under a name
    /// of its own.
    ///
    /// # Panics
    /// Panics unless there is exactly one more piece than there are holes.
    pub fn of_session(id: usize, pieces: Vec<Vec<u8>>, holes: Vec<Hole>, types: &[u32]) -> Self {
        Self { is_marked: true, ..Self::typed(id, &SessionMark::NONE.name(id), pieces, holes, types) }
    }

    /// Makes a statement whose text already has `$1` to `$parameters`; the value at index i belongs to `$(i + 1)`. Each
    /// session prepares it under a name of its own. It must not be used in simple mode, which would send the text
    /// without the values.
    pub fn with_parameters(id: usize, text: &[u8], parameters: usize) -> Self {
        let name = SessionMark::NONE.name(id);
        Self {
            id,
            is_marked: true,
            parse: messages::parse(&name, text, &[]),
            bind: BindHead::new(&name, parameters),
            name,
            parse_unnamed: messages::parse("", text, &[]),
            bind_unnamed: BindHead::new("", parameters),
            pieces: vec![text.to_owned()],
            holes: (0..parameters).map(|slot| Hole { slot, name: String::new() }).collect(),
        }
    }

    /// Returns the name under which the statement is prepared. If each session uses a name of its own, the name has a
    /// placeholder in place of the session's mark.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text that the server parses, with `$1` and so on at the positions of the values. Returns `None` if
    /// the text is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        let (_, body) = frame::messages(&self.parse_unnamed).next()?;
        std::str::from_utf8(body.split(|byte| *byte == 0).nth(1)?).ok()
    }

    /// Returns the names of the statement's variables, in the order of its parameters.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().map(|hole| hole.name.as_str())
    }

    /// Returns, for each parameter in order, the index of its value in the client's list of values.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        self.holes.iter().map(|hole| hole.slot)
    }

    /// Returns the name of the statement's first variable that has no value in `values`.
    pub fn unset(&self, values: &[Value]) -> Option<&str> {
        let hole = self.holes.iter().find(|hole| matches!(values.get(hole.slot), Some(Value::Unset)));
        hole.map(|hole| hole.name.as_str())
    }

    /// Returns the message that asks the server to prepare the statement. `mark` has the random letters that the
    /// session adds to the names of its prepared statements.
    pub fn parse_message(&self, mark: SessionMark) -> Vec<u8> {
        let mut message = self.parse.clone();
        if self.is_marked {
            mark.write(NAME_IN_PARSE, &mut message);
        }
        message
    }

    /// Returns the message that asks the server to describe the prepared statement. `mark` has the random letters that
    /// the session adds to the names of its prepared statements.
    pub(crate) fn describe_message(&self, mark: SessionMark) -> Vec<u8> {
        let mut message = messages::describe(&self.name);
        if self.is_marked {
            mark.write(NAME_IN_DESCRIBE, &mut message);
        }
        message
    }

    /// Appends the messages of one execution. `mark` has the random letters that the session adds to the names of its
    /// prepared statements. In prepared mode Parse is left out if the session has already parsed the statement
    /// (`parsed`).
    pub fn encode(
        &self,
        mark: SessionMark,
        (mode, parsed): (QueryMode, bool),
        values: &[Value],
        end: RequestEnd,
        out: &mut Vec<u8>,
    ) {
        let bind = match mode {
            QueryMode::Prepared if parsed => &self.bind,
            QueryMode::Prepared => {
                out.extend_from_slice(&self.parse_message(mark));
                &self.bind
            }
            QueryMode::Extended => {
                out.extend_from_slice(&self.parse_unnamed);
                &self.bind_unnamed
            }
            QueryMode::Simple => return self.encode_query(values, out),
        };
        let start = out.len();
        out.extend_from_slice(&bind.bytes);
        out.truncate(start + bind.length);
        if self.is_marked && mode == QueryMode::Prepared {
            mark.write(NAME_IN_BIND, &mut out[start..]);
        }
        for hole in &self.holes {
            write_parameter(&values[hole.slot], out);
        }
        let bind_end = out.len() + end.format.bytes().len();
        end.write(out);
        frame::set_length(out, start + 1, bind_end);
    }

    /// Writes one execution of the parsed statement, with Sync at the end, into `room`, if its values are few and short
    /// numbers, as they are in nearly all cases. The bytes are the same as from [`Statement::encode`], but copies of
    /// constant size make it a third cheaper.
    #[inline(always)]
    pub fn encode_short<'a>(
        &self,
        mark: SessionMark,
        values: &[Value],
        tail: &Tail,
        room: &'a mut [u8; SHORT_ROOM],
    ) -> Option<&'a [u8]> {
        room[..BindHead::LONGEST].copy_from_slice(&self.bind.bytes);
        if self.is_marked {
            mark.write(NAME_IN_BIND, room);
        }
        let mut at = self.bind.length;
        for hole in &self.holes {
            let (parameter, length) = short_parameter(&values[hole.slot])?;
            *room.get_mut(at..)?.first_chunk_mut()? = parameter;
            at += length;
        }
        *room.get_mut(at..)?.first_chunk_mut()? = tail.bytes;
        frame::set_length(room, 1, at + tail.bind);
        room.get(..at + tail.length)
    }

    /// Appends the text with the values inserted, as simple mode sends it.
    pub fn write_text(&self, values: &[Value], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.pieces[0]);
        for (hole, piece) in self.holes.iter().zip(&self.pieces[1..]) {
            match &values[hole.slot] {
                Value::Unset => {
                    out.push(b':');
                    out.extend_from_slice(&ground::text::bytes(&hole.name));
                }
                value => value.write_text(out),
            }
            out.extend_from_slice(piece);
        }
    }

    fn encode_query(&self, values: &[Value], out: &mut Vec<u8>) {
        frame::write(out, b'Q', |out| {
            self.write_text(values, out);
            out.push(0);
        });
    }
}

/// The beginning of a Bind message, up to its parameters. Its length field is filled in when the parameters are known.
/// It is stored in an array of constant size: copying the whole array and then cutting it costs less than copying a
/// variable number of bytes.
#[derive(Debug)]
struct BindHead {
    bytes: [u8; BindHead::LONGEST],
    length: usize,
}

impl BindHead {
    /// The maximum length in bytes: eleven bytes, and a statement's name of at most 21 bytes.
    const LONGEST: usize = 32;

    fn new(name: &str, parameters: usize) -> Self {
        let mut head = b"B\0\0\0\0\0".to_vec(); // the last zero: the unnamed portal
        frame::write_text(&mut head, name.as_bytes());
        head.extend_from_slice(&[0, 0]); // all parameters in text format
        head.extend_from_slice(&(parameters as u16).to_be_bytes());
        let mut bytes = [0; Self::LONGEST];
        bytes[..head.len()].copy_from_slice(&head);
        Self { bytes, length: head.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use postgres_protocol::{IsNull, message::frontend};

    const NONE: SessionMark = SessionMark::NONE;
    const SYNC_ONLY: RequestEnd = RequestEnd { format: ResultFormat::Text, describes: false, syncs: true };

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

    /// Returns the messages of one execution as the library `postgres_protocol` encodes them. The tests compare this
    /// program's encoding with them.
    fn reference(parse: bool, name: &str, values: &[Option<&str>]) -> Vec<u8> {
        reference_in(&[], parse, name, values)
    }

    /// Returns the same messages as `reference`, with these format codes for the results.
    fn reference_in(formats: &[i16], parse: bool, name: &str, values: &[Option<&str>]) -> Vec<u8> {
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
            formats.iter().copied(),
            &mut out,
        )
        .unwrap_or_else(|_| panic!("the reference encoder refused the values"));
        frontend::execute("", 0, &mut out).unwrap();
        frontend::sync(&mut out);
        out.to_vec()
    }

    #[test]
    fn the_text_has_parameters_where_values_go() {
        assert_eq!(select().text(), Some("SELECT a FROM t WHERE i = $1 AND j = $2;"));
        assert_eq!(Statement::new(0, "P0_1", vec![b"\xff".to_vec()], vec![]).text(), None);
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
            select().encode(NONE, (mode, prepared), &values, SYNC_ONLY, &mut out);
            assert_eq!(out, reference(parse, name, &[Some("-42"), Some("7")]));
        }
    }

    #[test]
    fn results_are_asked_for_in_binary_format() {
        let mut out = Vec::new();
        let end = RequestEnd { format: ResultFormat::Binary, ..SYNC_ONLY };
        select().encode(NONE, (QueryMode::Prepared, true), &[Value::Int(7), Value::Int(-42)], end, &mut out);
        assert_eq!(out, reference_in(&[1], false, "P0_1", &[Some("-42"), Some("7")]));
    }

    #[test]
    fn a_text_with_its_parameters_is_parsed_as_it_is() {
        let text = "SELECT $2, $1, $2";
        let statement = Statement::with_parameters(0, text.as_bytes(), 2);
        let values = [Value::Text((*b"x").into()), Value::Unset];
        for (mode, name) in [(QueryMode::Extended, ""), (QueryMode::Prepared, "s--------_0")] {
            let (mut found, mut expected) = (Vec::new(), BytesMut::new());
            statement.encode(NONE, (mode, false), &values, SYNC_ONLY, &mut found);
            frontend::parse(name, text, [], &mut expected).unwrap();
            let parsed = expected.len();
            assert_eq!(found[..parsed], expected[..]);
            assert_eq!(found[parsed..], reference(false, name, &[Some("x"), None]));
        }
    }

    #[test]
    fn few_short_values_are_written_as_any_others() {
        let mut room = [0; SHORT_ROOM];
        for numbers in [[0, -1], [99_999_999, -9_999_999], [100_000_000, 1], [1, -10_000_000], [i64::MAX, i64::MIN]] {
            let values = numbers.map(Value::Int);
            let is_short = numbers.iter().all(|number| (-9_999_999..=99_999_999).contains(number));
            for describes in [true, false] {
                for format in [ResultFormat::Text, ResultFormat::Binary] {
                    let (mut whole, tail) = (Vec::new(), Tail::new(describes, format));
                    let end = RequestEnd { format, describes, syncs: true };
                    select().encode(NONE, (QueryMode::Prepared, true), &values, end, &mut whole);
                    let written = select().encode_short(NONE, &values, &tail, &mut room).map(<[u8]>::to_vec);
                    assert_eq!(written, is_short.then_some(whole));
                }
            }
        }
        let tail = Tail::new(true, ResultFormat::Text);
        assert_eq!(select().encode_short(NONE, &[Value::Unset, Value::Int(1)], &tail, &mut room), None);
        let many = Statement::new(0, "P0_1", vec![Vec::new(); 10], vec![hole(0, "a"); 9]);
        assert_eq!(many.encode_short(NONE, &[Value::Int(12_345_678)], &tail, &mut room), None);
    }

    #[test]
    fn each_session_prepares_and_executes_a_statement_under_its_own_name() {
        let statement = Statement::of_session(12, vec![b"SELECT ".to_vec(), b"".to_vec()], vec![hole(0, "")], &[20]);
        let (mark, tail, values) = (SessionMark(*b"abcdefgh"), Tail::new(false, ResultFormat::Text), [Value::Int(7)]);
        let (mut parsed, mut bound) = (BytesMut::new(), Vec::new());
        frontend::parse("sabcdefgh_12", "SELECT $1", [20], &mut parsed).unwrap();
        assert_eq!(statement.parse_message(mark), parsed);
        let mut described = BytesMut::new();
        frontend::describe(b'S', "sabcdefgh_12", &mut described).unwrap();
        assert_eq!(statement.describe_message(mark), described);
        statement.encode(mark, (QueryMode::Prepared, false), &values, SYNC_ONLY, &mut bound);
        let expected = reference(false, "sabcdefgh_12", &[Some("7")]);
        assert_eq!(bound, [&parsed[..], &expected].concat());
        let mut room = [0; SHORT_ROOM];
        assert_eq!(statement.encode_short(mark, &values, &tail, &mut room), Some(&expected[..]));
        let mut unnamed = Vec::new();
        statement.encode(mark, (QueryMode::Extended, false), &values, SYNC_ONLY, &mut unnamed);
        assert!(unnamed.ends_with(&reference(false, "", &[Some("7")])));
    }

    #[test]
    fn null_is_a_parameter_of_no_length() {
        let mut out = Vec::new();
        select().encode(NONE, (QueryMode::Prepared, true), &[Value::Unset, Value::Unset], SYNC_ONLY, &mut out);
        assert_eq!(out, reference(false, "P0_1", &[None, None]));
    }

    #[test]
    fn simple_mode_writes_values_into_the_text() {
        let mut out = Vec::new();
        select().encode(NONE, (QueryMode::Simple, false), &[Value::Int(7), Value::Int(3)], SYNC_ONLY, &mut out);
        let mut expected = BytesMut::new();
        frontend::query("SELECT a FROM t WHERE i = 3 AND j = 7;", &mut expected).unwrap();
        assert_eq!(out, expected.to_vec());
    }

    #[test]
    fn the_end_describes_the_columns_or_leaves_the_pipeline_open() {
        let encoded = |(describes, syncs)| {
            let end = RequestEnd { format: ResultFormat::Text, describes, syncs };
            let mut out = Vec::new();
            select().encode(NONE, (QueryMode::Prepared, true), &[Value::Int(1), Value::Int(2)], end, &mut out);
            frame::messages(&out).map(|(kind, _)| kind as char).collect::<String>()
        };
        let ends = [(false, true), (true, true), (false, false), (true, false)];
        assert_eq!(ends.map(encoded), ["BES", "BDES", "BE", "BDE"]);
    }
}
