//! Damages logs in the ways in which real logs are damaged: rows that are cut off or lost, lines of other programs,
//! other line ends, and compression.

use crate::choices::Choices;
use crate::form::LogForm;
use crate::load::RecordedLoad;

/// A log that may be damaged, and which of its statements may be missing when the log is read, because of the damage.
pub struct DamagedLog {
    pub bytes: Vec<u8>,
    /// For each statement, true if the log still contains at least a part of a message that shows the statement.
    pub is_shown: Vec<bool>,
    pub is_damaged: bool,
    /// True if the program that reads the log must reject it, because its first bytes are those of a compressed file
    /// but the rest is not compressed.
    pub is_compressed: bool,
    /// True if all lines end with a carriage return and a line feed, as on Windows. The carriage return at the end of a
    /// line is then not part of the statement.
    pub has_returns: bool,
}

/// A message of the server's log, or a line that another program has written into the log.
struct Piece {
    /// The index of the message. `None` for a text that the server has not written.
    message: Option<usize>,
    form: Option<LogForm>,
    is_torn: bool,
    /// True if a line of another program is between the lines of the message. Such a message is not cut off: if it
    /// ended within that line, the log would not show which program has written the line.
    is_mixed: bool,
    bytes: Vec<u8>,
}

/// Lines of other programs. None of them begins with a tab, which would continue the message before it.
const FOREIGN: [&str; 10] = [
    "gzip: stdin: unexpected end of file",
    "",
    "2026-11-23T08:00:00Z INFO started in 0.3 s",
    "Nov 23 08:00:00 db1 sshd[77]: Accepted publickey",
    "2026/11/23 09:00:00 [error] 7#7: upstream timed out",
    "{\"level\":\"info\",\"msg\":\"ready\"}",
    "2026-11-23 08:00:00.000 UTC [9] LOG C-0x5: shop/app@10.0.0.1:5 login attempt",
    "he said \"x",
    "WHERE a = 1",
    "a,b,\"c\"",
];

/// The number of zero bytes that a file system leaves in place of lost data.
const HOLE: usize = 5;

/// The maximum length of the prefix of a message, in bytes.
const LONGEST_PREFIX: usize = 200;

const MAGICS: [&[u8]; 5] = [&[0x1f, 0x8b, 8, 0], &[0x28, 0xb5, 0x2f, 0xfd], b"\xfd7zXZ\0", b"BZh9", b"PK\x03\x04"];

impl DamagedLog {
    /// Writes the messages of `load` in this form, and damages the log or leaves it as it is.
    pub fn draw(choices: &mut Choices<'_>, load: &RecordedLoad, form: LogForm) -> Self {
        let render = |message| Piece {
            message: Some(message),
            form: Some(form),
            is_torn: false,
            is_mixed: false,
            bytes: form.render(load, message),
        };
        let mut pieces: Vec<Piece> = (0..load.messages.len()).map(render).collect();
        let mut log = Self {
            bytes: Vec::new(),
            is_shown: Vec::new(),
            is_damaged: false,
            is_compressed: false,
            has_returns: false,
        };
        for _ in 0..choices.below(4) {
            if pieces.is_empty() {
                break;
            }
            log.is_damaged = true;
            let at = choices.below(pieces.len());
            match choices.below(8) {
                0 | 1 => tear(choices, &mut pieces[at]),
                2 => {
                    tear(choices, &mut pieces[at]);
                    pieces.truncate(at + 1);
                }
                3 | 4 => insert_line(choices, &mut pieces, at),
                5 => drop(pieces.remove(at)),
                6 => punch(choices, &mut pieces[at]),
                _ => mix(choices, load, form, &mut pieces[at..]),
            }
        }
        separate(&mut pieces);
        log.is_shown = vec![false; load.statements.len()];
        let shown = pieces.iter().filter(|piece| !piece.bytes.is_empty()).filter_map(|piece| piece.message);
        for statement in shown.filter_map(|message| load.messages[message].shows) {
            log.is_shown[statement] = true;
        }
        log.bytes = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
        if choices.happens(12) && !log.bytes.contains(&b'\r') {
            log.has_returns = true;
            log.bytes = log.bytes.split_inclusive(|c| *c == b'\n').flat_map(with_return).collect();
        }
        if choices.happens(32) {
            log.is_compressed = true;
            log.bytes = [choices.one_of(&MAGICS), &log.bytes].concat();
        }
        log
    }
}

fn with_return(line: &[u8]) -> Vec<u8> {
    match line.strip_suffix(b"\n") {
        Some(line) => [line, b"\r\n"].concat(),
        None => line.to_vec(),
    }
}

/// Cuts a message off. Messages in plain lines (`stderr`) are cut within a line and not between two lines, since the
/// log does not show how many lines a message had.
fn tear(choices: &mut Choices<'_>, piece: &mut Piece) {
    let Some(form) = piece.form.filter(|_| !piece.bytes.is_empty() && !piece.is_mixed) else { return };
    let cut = choices.below(piece.bytes.len());
    let is_whole_line = cut > 0 && piece.bytes[cut - 1] == b'\n' || piece.bytes.get(cut) == Some(&b'\n');
    if form.has_plain_lines() && is_whole_line {
        return;
    }
    piece.bytes.truncate(cut);
    piece.is_torn = true;
    if !form.has_plain_lines() && cut > 0 && choices.happens(2) {
        piece.bytes.push(b'\n');
    }
}

/// Removes the remains of cut messages that no reader of the log could recognize as cut messages. These are plain lines
/// directly before a message of another form, and a message that was cut off before its keyword, if it comes directly
/// after another cut message or before a message whose beginning is lost.
fn separate(pieces: &mut Vec<Piece>) {
    pieces.retain(|piece| !piece.bytes.is_empty());
    for at in 1..pieces.len() {
        let (before, next) = (&pieces[at - 1], &pieces[at]);
        if !before.is_torn || before.bytes.is_empty() {
            continue;
        }
        let is_plain = before.form.is_some_and(LogForm::has_plain_lines) && !before.bytes.ends_with(b"\n");
        let has_hole = next.bytes.iter().take(LONGEST_PREFIX).any(|c| *c == 0);
        if next.is_torn && !has_word(next) {
            pieces[at].bytes.clear();
            pieces.swap(at - 1, at);
        } else if is_plain && before.form != next.form || has_hole && !has_word(before) {
            pieces[at - 1].bytes.clear();
        }
    }
}

/// Returns true if the rest of a cut message still has the keyword of its severity, such as `LOG`.
fn has_word(piece: &Piece) -> bool {
    ["LOG", "ERROR", "WARNING"].iter().any(|word| memchr::memmem::find(&piece.bytes, word.as_bytes()).is_some())
}

/// Inserts a line of another program before a message, or between the lines of a message in plain lines.
fn insert_line(choices: &mut Choices<'_>, pieces: &mut Vec<Piece>, at: usize) {
    let line = format!("{}\n", choices.one_of(&FOREIGN)).into_bytes();
    let is_plain = pieces[at].form.is_some_and(LogForm::has_plain_lines);
    let bytes = &mut pieces[at].bytes;
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    if !is_plain || ends.is_empty() || choices.happens(2) {
        pieces.insert(at, Piece { message: None, form: None, is_torn: false, is_mixed: false, bytes: line });
        return;
    }
    let end = choices.one_of(&ends);
    bytes.splice(end..end, line);
    pieces[at].is_mixed = true;
}

/// Overwrites some bytes of a message by zeros.
fn punch(choices: &mut Choices<'_>, piece: &mut Piece) {
    if piece.bytes.len() > HOLE {
        let at = choices.below(piece.bytes.len() - HOLE);
        piece.bytes[at..at + HOLE].fill(0);
    }
}

/// Writes the messages of `pieces`, which is the end of the log, in another form, as if the server's log settings had
/// been changed.
fn mix(choices: &mut Choices<'_>, load: &RecordedLoad, form: LogForm, pieces: &mut [Piece]) {
    let other = LogForm::draw(choices);
    if other == form || other.has_plain_lines() && form.has_plain_lines() {
        return;
    }
    for piece in pieces {
        if let Some(message) = piece.message {
            piece.bytes = other.render(load, message);
            piece.form = Some(other);
        }
    }
}
