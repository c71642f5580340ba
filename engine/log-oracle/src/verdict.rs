//! Compares a capture, which is what the engine has read from a log, with what was written to the log. Each statement
//! must be in the capture as it was sent, or be counted as left out, and the capture must contain nothing else.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use capture::error::PrefixError;
use capture::format::{About, Capture, Error as FormatError, LeftOut, Protocol};
use capture::log::Prefix;
use capture::make::{CaptureOrder, make};
use thiserror::Error;

use crate::choices::Choices;
use crate::damage::DamagedLog;
use crate::form::LogForm;
use crate::load::{RecordedLoad, SentStatement};

/// A difference between a capture (what the engine has read from a log) and what was written to the log, together with
/// the log, for the messages of failed tests.
#[derive(Debug, Error)]
#[error("{difference}; prefix {prefix:?}, needed {needed:?}; the log:\n{log}")]
pub struct Mismatch {
    #[source]
    difference: Box<Difference>,
    prefix: Option<&'static str>,
    needed: Option<&'static str>,
    log: String,
}

/// A difference between a capture (what the engine has read from a log) and what was written to the log.
#[derive(Debug, Error)]
enum Difference {
    #[error("could not write the files for the comparison: {0}")]
    Files(#[from] io::Error),
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("accepted log that looks compressed")]
    CompressedLog,
    #[error("rejected without need, with the message: {0}")]
    Refused(String),
    #[error("missing statements {missing:?}, but the capture counts {counted} as left out")]
    Missing { missing: Vec<usize>, counted: u64 },
    #[error("undamaged log, but its capture has {sessions} sessions and has left out {left_out:?}")]
    WholeLog { sessions: usize, left_out: Vec<LeftOut> },
    #[error("unsent statement in the capture: {0:?}")]
    Unsent(Captured),
    #[error("repeated statement in the capture: {0:?}")]
    Twice(Captured),
    #[error("misplaced statement in the capture, in another session or at another position: {0:?}")]
    Misplaced(Captured),
    #[error("another {what} of a statement in the capture: {captured:?}")]
    Other { what: &'static str, captured: Captured },
}

/// Writes a log whose content is drawn from `bytes`, lets the engine make a capture (the recorded sessions and
/// statements) from it, and compares the capture with what was written.
pub fn judge(bytes: &[u8]) -> Result<(), Mismatch> {
    let mut choices = Choices::new(bytes);
    let form = LogForm::draw(&mut choices);
    let load = RecordedLoad::draw(&mut choices);
    let log = DamagedLog::draw(&mut choices, &load, form);
    compare(&load, &log, form).map_err(|difference| Mismatch {
        difference: Box::new(difference),
        prefix: form.prefix(),
        needed: form.needed_prefix(),
        log: String::from_utf8_lossy(&log.bytes).into_owned(),
    })
}

/// A statement as the engine has read it from a log.
#[derive(Debug, Clone)]
struct Captured {
    protocol: Protocol,
    text: String,
    parameters: Vec<Option<String>>,
    has_failed: bool,
    duration_us: Option<u64>,
}

fn compare(load: &RecordedLoad, log: &DamagedLog, form: LogForm) -> Result<(), Difference> {
    let directory = tempfile::tempdir()?;
    let (path, output) = (directory.path().join("log"), directory.path().join("capture"));
    fs::write(&path, &log.bytes)?;
    let prefix = form.needed_prefix().map(Prefix::parse).transpose()?;
    let logs = vec![path.to_string_lossy().into_owned()];
    let about = match make(&CaptureOrder { logs, prefix, ..CaptureOrder::default() }, &output, &mut |_| {}) {
        Ok(_) if log.is_compressed => return Err(Difference::CompressedLog),
        Ok(about) => about,
        Err(error) => return refused(&error.to_string(), load, log),
    };
    let sessions = sessions_of(&output)?;
    let mut is_captured = vec![false; load.statements.len()];
    for session in &sessions {
        check_session(session, load, log, &mut is_captured)?;
    }
    let missing: Vec<_> =
        (0..is_captured.len()).filter(|number| !is_captured[*number] && log.is_shown[*number]).collect();
    let counted = counted(&about);
    if missing.len() as u64 > counted {
        return Err(Difference::Missing { missing, counted });
    }
    if !log.is_damaged && (counted > 0 || sessions.len() != clients_with_statements(load)) {
        return Err(Difference::WholeLog { sessions: sessions.len(), left_out: about.left_out });
    }
    Ok(())
}

/// The reasons for which a capture, made from a log, reports a statement as doubtful although the capture contains the
/// statement.
const DOUBTS: [&str; 3] = ["values-cut", "batch-unknown", "types-unknown"];

/// Returns the number of log messages that the capture, made from the log, has left out.
fn counted(about: &About) -> u64 {
    let is_left_out = |left_out: &&LeftOut| !DOUBTS.contains(&left_out.reason.as_str());
    about.left_out.iter().filter(is_left_out).map(|left_out| left_out.count).sum()
}

fn clients_with_statements(load: &RecordedLoad) -> usize {
    let mut clients: Vec<_> = load.statements.iter().map(|statement| statement.client).collect();
    clients.dedup();
    clients.len()
}

/// Checks that the engine was right to reject a log. It may reject a log, with one sentence, if the log is damaged or
/// has no statement.
fn refused(sentence: &str, load: &RecordedLoad, log: &DamagedLog) -> Result<(), Difference> {
    let is_sentence = !sentence.is_empty() && !sentence.contains('\n');
    let may_be = log.is_damaged || log.is_compressed || load.statements.is_empty();
    if is_sentence && may_be { Ok(()) } else { Err(Difference::Refused(sentence.to_owned())) }
}

/// Checks that the statements of a session that was read from a log were sent by one client, in this order, and are
/// unchanged.
fn check_session(
    session: &[Captured],
    load: &RecordedLoad,
    log: &DamagedLog,
    is_captured: &mut [bool],
) -> Result<(), Difference> {
    let mut numbers = HashMap::new();
    for (number, statement) in load.statements.iter().enumerate() {
        numbers.insert(statement.text.as_str(), number);
    }
    let mut last = None;
    for captured in session {
        let number = *numbers.get(captured.text.as_str()).ok_or_else(|| Difference::Unsent(captured.clone()))?;
        let written = &load.statements[number];
        if is_captured[number] {
            return Err(Difference::Twice(captured.clone()));
        }
        if last.is_some_and(|last: usize| last > number || load.statements[last].client != written.client) {
            return Err(Difference::Misplaced(captured.clone()));
        }
        if let Some(what) = differs(captured, written, log.is_damaged) {
            return Err(Difference::Other { what, captured: captured.clone() });
        }
        is_captured[number] = true;
        last = Some(number);
    }
    Ok(())
}

/// Returns the name of the property in which a statement that was read from a log differs from the one that was sent.
fn differs(captured: &Captured, written: &SentStatement, is_damaged: bool) -> Option<&'static str> {
    // If the log shows a statement only together with its error, it does not show whether the statement had a name.
    let is_its_protocol = captured.protocol == written.protocol
        || written.has_failed && captured.protocol != Protocol::Prepared && written.parameters.is_empty()
        || written.has_failed && captured.protocol == Protocol::Extended;
    if !is_its_protocol {
        return Some("protocol");
    }
    if captured.parameters != written.parameters {
        return Some("list of parameters");
    }
    // In a damaged log the message that shows how the statement ended may be lost.
    if is_damaged {
        return None;
    }
    if captured.has_failed != written.has_failed {
        return Some("end");
    }
    (!written.has_failed && captured.duration_us != written.duration_us).then_some("duration")
}

fn sessions_of(directory: &Path) -> Result<Vec<Vec<Captured>>, FormatError> {
    let capture = Capture::open(directory)?;
    let mut sessions = Vec::new();
    for session in capture.sessions()? {
        let mut reader = capture.read(&session?);
        let mut statements = Vec::new();
        while reader.advance()? {
            let statement = reader.statement();
            let template = &capture.templates()[statement.template as usize];
            let mut text = Vec::new();
            template.write_text(reader.parameters(), &mut text);
            let value = |value: Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into_owned());
            let is_bound = !template.has_literals();
            statements.push(Captured {
                protocol: template.protocol,
                text: String::from_utf8_lossy(&text).into_owned(),
                parameters: if is_bound { reader.parameters().map(value).collect() } else { Vec::new() },
                has_failed: statement.failure.is_some(),
                duration_us: statement.duration,
            });
        }
        sessions.push(statements);
    }
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_capture_has_what_was_written_or_counts_it(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let verdict = judge(&bytes);
            prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
        }
    }
}
