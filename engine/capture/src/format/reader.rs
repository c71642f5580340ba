//! A capture, open for reading by many threads.

use std::fmt;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::about::About;
use super::checked;
use super::chunk::{ChunkReader, Owner};
use super::error::Error;
use super::index::{RecordedSession, Sessions};
use super::statement::{Parameters, RecordedStatement};
use super::template::Template;
use crate::time::Micros;

/// A finished capture that is open for reading. Its templates (texts of statements without their values) are in memory;
/// its sessions are read from disk.
#[derive(Debug)]
pub struct Capture {
    about: About,
    templates: Vec<Template>,
    index: PathBuf,
    chunks: Arc<ChunkReader>,
}

impl Capture {
    /// Opens the capture in a directory, and checks that its files are complete. Chunks of statements are checked
    /// later, when they are read.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let about = About::read(directory)?;
        let index = directory.join("sessions.idx");
        checked::open(&index, about.files.index)?;
        let templates = read_templates(&directory.join("templates.jsonl"), &about)?;
        let path = directory.join("sessions.bin");
        let size = path.metadata().map_err(Error::io("read", &path))?.len();
        checked::check_size(&path, size, about.files.sessions_bytes)?;
        Ok(Self { chunks: Arc::new(ChunkReader::open(&path, size)?), about, templates, index })
    }

    /// Returns the description of the capture.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the templates. [`RecordedStatement::template`] is an index into this slice.
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Returns an iterator that reads the sessions from disk in the order of their starts.
    pub fn sessions(&self) -> Result<Sessions, Error> {
        let file = checked::open(&self.index, self.about.files.index)?;
        Ok(Sessions::new(file, &self.index, &self.about))
    }

    /// Returns a reader for the statements of a session of this capture. The first call of [`SessionReader::advance`]
    /// reads the first statement.
    pub fn read(&self, session: &RecordedSession) -> SessionReader {
        SessionReader {
            chunks: Arc::clone(&self.chunks),
            begin: self.about.begin_us,
            templates: self.about.templates,
            owner: Owner { session: session.number, number: 0 },
            next_chunk: session.first_chunk,
            left: session.statements,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            start: 0,
        }
    }
}

fn read_templates(path: &Path, about: &About) -> Result<Vec<Template>, Error> {
    let mut templates: Vec<Template> = Vec::new();
    for line in checked::open(path, about.files.templates)?.lines() {
        let line = line.map_err(Error::io("read", path))?;
        let template: Template =
            serde_json::from_str(&line).map_err(|error| Error::damaged(path, error.to_string()))?;
        if template.id as usize != templates.len() || !template.is_sound() {
            return Err(Error::damaged(path, format!("line {}", templates.len() + 1)));
        }
        templates.push(template);
    }
    if templates.len() != about.templates as usize {
        return Err(Error::damaged(path, format!("it has {} of {} templates", templates.len(), about.templates)));
    }
    Ok(templates)
}

/// Reads the statements of one session in their order.
///
/// From the first statement to the last, the reader keeps one chunk in memory: usually 2 KiB, more if a statement is
/// longer. Several threads may use several readers at the same time.
pub struct SessionReader {
    chunks: Arc<ChunkReader>,
    begin: Micros,
    /// The number of templates of the capture. A statement with a higher template number is damaged.
    templates: u32,
    /// The session, and the number of the chunk that will be read next.
    owner: Owner,
    next_chunk: Option<u64>,
    /// The number of statements that follow the current one.
    left: u64,
    buffer: Vec<u8>,
    /// The byte of the buffer at which the current statement begins.
    at: usize,
    /// The byte of the buffer at which the current statement ends.
    end: usize,
    /// The start of the statement that precedes the current one in the chunk; 0 if there is none.
    start: Micros,
}

impl SessionReader {
    /// Advances to the next statement and returns true, or returns false at the end of the session.
    pub fn advance(&mut self) -> Result<bool, Error> {
        if self.left == 0 {
            if self.next_chunk.is_some() {
                let what = format!("session {} has bytes behind its last statement", self.owner.session);
                return Err(self.chunks.damaged(what));
            }
            self.buffer = Vec::new();
            (self.at, self.end) = (0, 0);
            return Ok(false);
        }
        if self.end == self.buffer.len() {
            self.load()?;
        } else {
            self.start = self.decode().0.start;
        }
        let mut rest = &self.buffer[self.end..];
        let decoded = RecordedStatement::decode(self.start, &mut rest);
        let sound = decoded.is_some_and(|(statement, _)| statement.template < self.templates);
        if !sound {
            return Err(self.chunks.damaged(format!("a statement of session {} cannot be read", self.owner.session)));
        }
        self.at = self.end;
        self.end = self.buffer.len() - rest.len();
        self.left -= 1;
        Ok(true)
    }

    /// Returns the current statement.
    ///
    /// # Panics
    /// Panics if the last call of [`Self::advance`] did not return true.
    pub fn statement(&self) -> RecordedStatement {
        let (statement, _) = self.decode();
        RecordedStatement { start: statement.start.saturating_sub(self.begin), ..statement }
    }

    /// Returns the parameters of the current statement.
    ///
    /// # Panics
    /// Panics in the same cases as [`Self::statement`].
    pub fn parameters(&self) -> Parameters<'_> {
        self.decode().1
    }

    /// Returns the number of statements that follow the current one.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns the number of bytes of memory in which the reader keeps statements.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    fn load(&mut self) -> Result<(), Error> {
        let Some(place) = self.next_chunk else {
            let (session, left) = (self.owner.session, self.left);
            return Err(self.chunks.damaged(format!("session {session} ends {left} statements early")));
        };
        (self.at, self.end, self.start) = (0, 0, 0);
        self.next_chunk = self.chunks.load(place, self.owner, &mut self.buffer)?;
        self.owner.number += 1;
        Ok(())
    }

    /// Decodes the current statement and its parameters. The statement's start counts from 1970-01-01 00:00 UTC.
    fn decode(&self) -> (RecordedStatement, Parameters<'_>) {
        let mut rest = &self.buffer[self.at..self.end];
        RecordedStatement::decode(self.start, &mut rest).expect("advance() has returned true")
    }
}

impl fmt::Debug for SessionReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionReader(session {}, {} statements left)", self.owner.session, self.left)
    }
}
