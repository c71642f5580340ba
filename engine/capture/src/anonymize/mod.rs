//! Replaces the values of a capture by tokens. A token keeps the properties that matter for a load: equal values have
//! equal tokens, tokens have the length of their values, and tokens of one length have the order of their values.
//!
//! - `escapes`: decodes characters that a value contains as escape sequences
//! - `pieces`: splits a value into pieces, such as words and numbers
//! - `tokens`: chooses the token for each piece
//!
//! docs/replay.md states what tokens keep.

mod escapes;
mod pieces;
mod tokens;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::CaptureError;
use crate::format::{About, Capture, Error, Origin, Template, TemplateShape, Writer, fill_places};
use crate::sql::literals::Split;
use crate::sql::reading::backslashes_of;
use pieces::Form;
use tokens::Vocabulary;

/// Copies the capture in the directory `plain` to `directory`, with tokens in place of the values. All values of the
/// capture are in memory while this runs, because a token can be chosen only when all values are known.
pub fn rewrite(plain: &Path, directory: &Path, interrupt: &AtomicBool) -> Result<About, CaptureError> {
    let capture = Capture::open(plain)?;
    let mut vocabulary = Vocabulary::new();
    let mut is_used = vec![false; capture.templates().len()];
    for session in capture.sessions()? {
        let mut reader = capture.read(&session?);
        while reader.advance()? {
            CaptureError::once_set(interrupt)?;
            let number = reader.statement().template as usize;
            let template = &capture.templates()[number];
            if !std::mem::replace(&mut is_used[number], true) {
                literals_of(template).iter().for_each(|literal| vocabulary.learn(literal, Form::Literal));
            }
            for value in reader.parameters().flatten() {
                vocabulary.learn(&String::from_utf8_lossy(value), form_of(template));
            }
        }
    }
    vocabulary.seal();
    write(&capture, &vocabulary, directory, interrupt)
}

/// Returns the form in which the parameters of a template (the text of a statement without its values) are written: as
/// SQL literals with quotes, or as plain values.
fn form_of(template: &Template) -> Form {
    // If the whole text of a statement became one parameter, this parameter is not a literal: the quotes in it belong
    // to the statement.
    let is_whole = template.text == "$1";
    if template.has_literals() && !is_whole { Form::Literal } else { Form::Value }
}

/// Returns the literals that remain in the text of a template whose statements have bound parameters. If the literals
/// of the template's statements were made its parameters, the text contains no more literals.
fn literals_of(template: &Template) -> Vec<&str> {
    if template.has_literals() {
        Vec::new()
    } else {
        split(template).literals.into_iter().map(|place| &template.text[place]).collect()
    }
}

fn split(template: &Template) -> Split {
    let mut split = Split::default();
    split.fill(&template.text, backslashes_of(&template.text, None).unwrap_or_default());
    split
}

/// Returns the text of a template with its literals replaced by tokens, for a template whose statements have bound
/// parameters.
fn concealed_text(template: &Template, vocabulary: &Vocabulary) -> String {
    let split = split(template);
    let token = |place: &Range<usize>| vocabulary.token(&template.text[place.clone()], Form::Literal);
    let tokens: Vec<String> = split.literals.iter().map(token).collect();
    let mut text = Vec::new();
    fill_places(&split.template, &split.places, split.first, tokens.iter().map(String::as_bytes), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes the templates (texts of statements without their values) into the new capture, each when a statement first
/// uses it. A template that no statement uses is not copied: it belongs to a statement whose whole text was replaced,
/// and its own text may still contain values that must not remain.
struct WrittenTemplates<'a> {
    capture: &'a Capture,
    vocabulary: &'a Vocabulary,
    /// The number that each template has in the new capture; `None` until it is written.
    numbers: Vec<Option<u32>>,
}

impl WrittenTemplates<'_> {
    fn number(&mut self, template: u32, writer: &mut Writer) -> Result<u32, Error> {
        if let Some(number) = self.numbers[template as usize] {
            return Ok(number);
        }
        let template = &self.capture.templates()[template as usize];
        let shape = template.shape();
        let number = match template.has_literals() {
            true => writer.template(&shape)?,
            false => writer.template(&TemplateShape { text: &concealed_text(template, self.vocabulary), ..shape })?,
        };
        Ok(*self.numbers[template.id as usize].insert(number))
    }
}

fn write(
    capture: &Capture,
    vocabulary: &Vocabulary,
    directory: &Path,
    interrupt: &AtomicBool,
) -> Result<About, CaptureError> {
    let (about, mut writer) = (capture.about(), Writer::create(directory)?);
    let mut templates = WrittenTemplates { capture, vocabulary, numbers: vec![None; capture.templates().len()] };
    for session in capture.sessions()? {
        let session = session?;
        let id = writer.begin_session(about.begin_us + session.start)?;
        let mut reader = capture.read(&session);
        while reader.advance()? {
            CaptureError::once_set(interrupt)?;
            let mut statement = reader.statement();
            let form = form_of(&capture.templates()[statement.template as usize]);
            let token = |value: &[u8]| vocabulary.token(&String::from_utf8_lossy(value), form);
            let parameters: Vec<Option<String>> = reader.parameters().map(|value| value.map(token)).collect();
            statement.template = templates.number(statement.template, &mut writer)?;
            statement.start += about.begin_us;
            writer.statement(id, &statement, &parameters)?;
        }
        let written = writer.session_mut(id);
        written.end = about.begin_us + session.end;
        (written.user, written.database, written.application) = (session.user, session.database, session.application);
        writer.end_session(id)?;
    }
    Ok(writer.finish(Origin {
        made_at: about.made_at.clone(),
        made_by: about.made_by.clone(),
        sources: about.sources.clone(),
        server_version: about.server_version.clone(),
        anonymized: true,
        left_out: about.left_out.clone(),
    })?)
}
