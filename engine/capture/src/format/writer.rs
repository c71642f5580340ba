//! Writes a capture in one pass over the records of the logs.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::about::{About, Files, LeftOut, Source, Usage};
use super::checked::CheckedWriter;
use super::chunk::{ChunkWriter, Owner, USUAL_LENGTH};
use super::error::Error;
use super::index::{IndexWriter, RecordedSession};
use super::statement::RecordedStatement;
use super::template::{Parameterization, Template, TemplateShape};
use crate::time::Micros;

/// The greatest number of bytes of statements that are kept in memory, in chunks of open sessions that are not full
/// yet.
const MOST_BUFFERED: usize = 16 << 20;

/// The greatest number of templates that [`About::commonest`] lists.
const COMMONEST: usize = 1000;

/// The number by which the caller of a writer refers to a session that has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(u32);

/// The facts about a capture that only the caller of the writer knows, such as the logs from which it is made.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub made_at: String,
    pub made_by: String,
    pub sources: Vec<Source>,
    pub server_version: Option<String>,
    pub anonymized: bool,
    pub left_out: Vec<LeftOut>,
}

/// Writes a capture. In memory it keeps the pending statements of the sessions that are open at the same time, 24 bytes
/// for each session, and about 50 bytes for each template.
pub struct Writer {
    directory: PathBuf,
    chunks: ChunkWriter,
    templates: CheckedWriter,
    /// The number of each template, by a digest of its protocol, its parameters and its text. A digest is kept instead
    /// of the text because texts may be long.
    template_ids: HashMap<[u8; 16], u32>,
    /// The number of statements that use each template (the text of a statement without its values).
    uses: Vec<u64>,
    index: IndexWriter,
    open: HashMap<SessionId, OpenSession>,
    buffered: usize,
    sessions: u32,
    statements: u64,
    failed: u64,
    begin: Micros,
    end: Micros,
}

#[derive(Default)]
struct OpenSession {
    session: RecordedSession,
    /// The encoded statements of the chunk that is not written yet.
    buffer: Vec<u8>,
    /// The start of the last statement in the buffer, or 0 if the buffer is empty.
    before: Micros,
    /// The number of chunks that were written.
    chunks: u32,
    /// The offset of the last chunk.
    last_chunk: Option<u64>,
}

impl Writer {
    /// Begins a capture in a directory. The directory must be new or empty, or have a capture that was not finished.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        make_room(directory)?;
        let file = |name| directory.join(name);
        Ok(Self {
            chunks: ChunkWriter::create(file("sessions.bin"))?,
            templates: CheckedWriter::create(file("templates.jsonl"))?,
            template_ids: HashMap::new(),
            uses: Vec::new(),
            index: IndexWriter::create(file("sessions.idx"))?,
            open: HashMap::new(),
            buffered: 0,
            sessions: 0,
            statements: 0,
            failed: 0,
            begin: Micros::MAX,
            end: 0,
            directory: directory.to_owned(),
        })
    }

    /// Begins a session. `start` is in microseconds since 1970.
    pub fn begin_session(&mut self, start: Micros) -> Result<SessionId, Error> {
        let number = self.sessions;
        self.sessions = number.checked_add(1).ok_or(Error::TooMany("sessions"))?;
        let session = RecordedSession { number, start, end: start, ..RecordedSession::default() };
        self.open.insert(SessionId(number), OpenSession { session, ..OpenSession::default() });
        Ok(SessionId(number))
    }

    /// Returns an open session, so that the caller can set its names, start and end. At first, start and end are the
    /// time that was given to [`Self::begin_session`].
    ///
    /// # Panics
    /// Panics if the session has ended.
    pub fn session_mut(&mut self, id: SessionId) -> &mut RecordedSession {
        &mut self.open.get_mut(&id).expect("the session is open").session
    }

    /// Returns the number of a template (the text of a statement without its values). If the capture does not contain
    /// the template yet, writes it first.
    pub fn template(&mut self, shape: &TemplateShape<'_>) -> Result<u32, Error> {
        let digest = digest_of(shape);
        if let Some(id) = self.template_ids.get(&digest) {
            return Ok(*id);
        }
        let id = u32::try_from(self.uses.len()).map_err(|_| Error::TooMany("templates"))?;
        let mut line = serde_json::to_vec(&Template::new(id, shape)).expect("texts and numbers are JSON");
        line.push(b'\n');
        self.templates.write(&line)?;
        self.template_ids.insert(digest, id);
        self.uses.push(0);
        Ok(id)
    }

    /// Adds a statement to a session. The statement's start counts from 1970, and its template is a number that
    /// [`Self::template`] returned.
    ///
    /// # Panics
    /// Panics if the session has ended.
    pub fn statement<T: AsRef<[u8]>>(
        &mut self,
        id: SessionId,
        statement: &RecordedStatement,
        parameters: &[Option<T>],
    ) -> Result<(), Error> {
        let open = self.open.get_mut(&id).expect("the session is open");
        let before = open.buffer.len();
        statement.encode(open.before, parameters, &mut open.buffer);
        self.buffered += open.buffer.len() - before;
        open.before = statement.start;
        open.session.statements += 1;
        open.session.start = open.session.start.min(statement.start);
        open.session.end = open.session.end.max(statement.start.saturating_add(statement.duration.unwrap_or(0)));
        self.statements += 1;
        self.failed += u64::from(statement.failure.is_some());
        self.uses[statement.template as usize] += 1;
        if open.buffer.len() >= USUAL_LENGTH {
            self.buffered -= open.flush(&mut self.chunks)?;
        }
        if self.buffered > MOST_BUFFERED {
            self.flush_all()?;
        }
        Ok(())
    }

    /// True if no statement has been added to the capture.
    pub fn is_empty(&self) -> bool {
        self.statements == 0
    }

    /// Ends a session. Its statements that are still in memory are written.
    ///
    /// # Panics
    /// Panics if the session has ended.
    pub fn end_session(&mut self, id: SessionId) -> Result<(), Error> {
        let mut open = self.open.remove(&id).expect("the session is open");
        self.buffered -= open.flush(&mut self.chunks)?;
        self.begin = self.begin.min(open.session.start);
        self.end = self.end.max(open.session.end);
        self.index.push(&open.session)
    }

    /// Ends all sessions and finishes the capture.
    pub fn finish(mut self, origin: Origin) -> Result<About, Error> {
        let mut open: Vec<_> = self.open.keys().copied().collect();
        open.sort_unstable_by_key(|id| id.0);
        open.into_iter().try_for_each(|id| self.end_session(id))?;
        let begin = if self.sessions == 0 { 0 } else { self.begin };
        let about = About {
            format: About::WRITTEN,
            made_at: origin.made_at,
            made_by: origin.made_by,
            sources: origin.sources,
            server_version: origin.server_version,
            anonymized: origin.anonymized,
            begin_us: begin,
            span_us: self.end.saturating_sub(begin),
            sessions: self.sessions.into(),
            statements: self.statements,
            failed: self.failed,
            templates: self.uses.len() as u32,
            commonest: commonest(&self.uses),
            left_out: origin.left_out,
            files: Files {
                templates: self.templates.finish()?,
                index: self.index.finish()?,
                sessions_bytes: self.chunks.size(),
            },
        };
        about.write(&self.directory)?;
        Ok(about)
    }

    fn flush_all(&mut self) -> Result<(), Error> {
        for open in self.open.values_mut() {
            open.flush(&mut self.chunks)?;
            open.buffer = Vec::new();
        }
        self.buffered = 0;
        Ok(())
    }
}

impl OpenSession {
    /// Writes the buffered statements as a chunk, unless the buffer is empty. Returns the number of bytes of statements
    /// that were written.
    fn flush(&mut self, chunks: &mut ChunkWriter) -> Result<usize, Error> {
        let length = self.buffer.len();
        if length == 0 {
            return Ok(0);
        }
        let owner = Owner { session: self.session.number, number: self.chunks };
        let place = chunks.append(owner, self.last_chunk, &mut self.buffer)?;
        self.session.first_chunk.get_or_insert(place);
        self.last_chunk = Some(place);
        self.chunks += 1;
        self.before = 0;
        self.buffer.shrink_to(2 * USUAL_LENGTH);
        Ok(length)
    }
}

/// The files that a capture may consist of before it is finished. They may be overwritten.
const UNFINISHED: [&str; 5] =
    ["capture.json.new", "sessions.bin", "sessions.idx", "sessions.unsorted", "templates.jsonl"];

/// Makes the directory. If it exists, checks that it has only files of a capture that was not finished.
fn make_room(directory: &Path) -> Result<(), Error> {
    // The values in a capture may be as secret as the logs, so no other account may be able to replace the directory by
    // one of its own.
    ground::trust::check_exchangeable(directory).map_err(Error::io("make the directory", directory))?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(Error::io("make the directory", directory))?;
    for entry in fs::read_dir(directory).map_err(Error::io("read", directory))? {
        let name = entry.map_err(Error::io("read", directory))?.file_name();
        if !UNFINISHED.iter().any(|file| name == *file) {
            return Err(Error::Occupied(directory.to_owned()));
        }
    }
    Ok(())
}

/// Returns the first 16 bytes of the SHA-256 of a template: of its protocol, its parameters and its text.
fn digest_of(shape: &TemplateShape<'_>) -> [u8; 16] {
    let mut digest = Sha256::new();
    digest.update([shape.protocol as u8]);
    match shape.parameters {
        Parameterization::Bound(count) => digest.update(count.to_le_bytes()),
        Parameterization::Literals { places, first } => {
            digest.update((places.len() as u64).to_le_bytes());
            digest.update(first.to_le_bytes());
            places.iter().for_each(|place| digest.update(place.to_le_bytes()));
        }
    }
    digest.update(shape.text);
    digest.finalize()[..16].try_into().expect("a SHA-256 has 32 bytes")
}

fn commonest(uses: &[u64]) -> Vec<Usage> {
    let mut usages: Vec<_> = (0..).zip(uses).map(|(template, uses)| Usage { template, statements: *uses }).collect();
    usages.sort_by_key(|usage| std::cmp::Reverse(usage.statements));
    usages.truncate(COMMONEST);
    usages
}
