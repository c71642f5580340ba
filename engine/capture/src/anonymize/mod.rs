//! Replaces the values of a capture by tokens, which keep what a load depends on: equality, length and, within a
//! length, order.
//!
//! - `pieces`: the parts of a value that are replaced
//! - `tokens`: the tokens that replace them
//!
//! docs/replay.md states what is kept.

mod pieces;
mod tokens;

use std::path::Path;

use crate::format::{About, Capture, Error, Origin, Writer};
use tokens::Vocabulary;

/// Writes the capture in `plain` again, with tokens. All of its values are in memory meanwhile.
pub fn rewrite(plain: &Path, directory: &Path) -> Result<About, Error> {
    let capture = Capture::open(plain)?;
    let mut vocabulary = Vocabulary::new();
    for session in capture.sessions()? {
        let mut reader = capture.read(&session?);
        while reader.advance()? {
            let is_literal = capture.templates()[reader.statement().template as usize].has_literals();
            for value in reader.parameters().flatten() {
                vocabulary.learn(&String::from_utf8_lossy(value), is_literal);
            }
        }
    }
    vocabulary.seal();
    write(&capture, &vocabulary, directory)
}

fn write(capture: &Capture, vocabulary: &Vocabulary, directory: &Path) -> Result<About, Error> {
    let (about, mut writer) = (capture.about(), Writer::create(directory)?);
    for template in capture.templates() {
        writer.template(&template.shape())?;
    }
    for session in capture.sessions()? {
        let session = session?;
        let id = writer.begin_session(about.begin_us + session.start)?;
        let mut reader = capture.read(&session);
        while reader.advance()? {
            let mut statement = reader.statement();
            let is_literal = capture.templates()[statement.template as usize].has_literals();
            let token = |value: &[u8]| vocabulary.token(&String::from_utf8_lossy(value), is_literal);
            let parameters: Vec<Option<String>> = reader.parameters().map(|value| value.map(token)).collect();
            statement.start += about.begin_us;
            writer.statement(id, &statement, &parameters)?;
        }
        let written = writer.session_mut(id);
        written.end = about.begin_us + session.end;
        (written.user, written.database, written.application) = (session.user, session.database, session.application);
        writer.end_session(id)?;
    }
    writer.finish(Origin {
        made_at: about.made_at.clone(),
        made_by: about.made_by.clone(),
        sources: about.sources.clone(),
        server_version: about.server_version.clone(),
        anonymized: true,
        left_out: about.left_out.clone(),
    })
}
