//! A capture that is replayed. The clients share its sessions: each client that is free takes the next one.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::accounts::Accounts;
use super::choice::{Choice, ChosenSessions, Survey};
use super::requests;
use super::requests::TemplateRequest;
use crate::recorded::{Expected, Micros};
use capture::format::{About, Capture, Error, RecordedStatement, SessionReader, Template};
use wire::Rows;

/// A capture that is being replayed.
pub struct Replay {
    description: String,
    capture: Capture,
    requests: Vec<TemplateRequest>,
    accounts: Accounts,
    survey: Survey,
    sessions: Mutex<ChosenSessions>,
    /// The treatment of the rows of results: they are only counted, or also hashed.
    pub(super) rows: Rows,
}

impl Replay {
    /// Opens the capture in a directory, and summarizes all chosen sessions. The error is a sentence.
    pub fn open(directory: &Path, choice: Choice) -> Result<Self, Error> {
        let capture = Capture::open(directory)?;
        let choice = choice.of_at_least_one(capture.sessions()?)?;
        let survey = Survey::of(ChosenSessions::new(capture.sessions()?, choice))?;
        Ok(Self {
            description: format!("<replay: {}>", directory.display()),
            requests: requests::of(capture.templates()),
            accounts: Accounts::new(capture.about()),
            survey,
            sessions: Mutex::new(ChosenSessions::new(capture.sessions()?, choice)),
            capture,
            rows: Rows::Counted,
        })
    }

    /// Returns the same replay, which also hashes the contents of results, so that the results of two servers can be
    /// compared.
    pub fn hashing_results(self) -> Self {
        Self { rows: Rows::Hashed, ..self }
    }

    /// True if the contents of results are hashed, so that they can be compared; false if only their rows are counted.
    pub fn hashes_results(&self) -> bool {
        self.rows == Rows::Hashed
    }

    /// Returns the name of the replay in reports.
    pub(super) fn description(&self) -> &str {
        &self.description
    }

    /// Returns the way in which the statements of the template with this number are sent.
    pub(super) fn request(&self, template: u32) -> &TemplateRequest {
        &self.requests[template as usize]
    }

    /// Returns the description of the capture.
    pub fn about(&self) -> &About {
        self.capture.about()
    }

    /// Returns a summary of the chosen sessions, such as their number and the time that they span.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Returns the templates (texts of statements without their values) that are counted separately, in the order of
    /// their accounts, which are sets of counters. If there are more templates, one more account counts all others
    /// together.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.accounts.templates().iter().map(|id| &self.capture.templates()[*id as usize])
    }

    /// Returns the number of templates that have no account (set of counters) of their own, and that the last account
    /// counts together.
    pub fn other_templates(&self) -> usize {
        self.capture.templates().len() - self.accounts.templates().len()
    }

    /// Takes the next session. Returns its start and a reader of its statements, or `None` if all sessions were taken.
    pub(super) fn take(&self) -> Result<Option<(Micros, SessionReader)>, Error> {
        // If another thread has panicked while it held the lock, the list of sessions is still intact.
        let next = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).next().transpose()?;
        Ok(next.map(|session| (self.since_begin(session.start), self.capture.read(&session))))
    }

    /// Converts a time of the capture to the time since the beginning of the replay.
    pub(super) fn since_begin(&self, at: Micros) -> Micros {
        at.saturating_sub(self.survey.begin)
    }

    /// Returns how a statement ended when it was recorded.
    pub(super) fn expected(&self, statement: &RecordedStatement) -> Expected {
        let request = self.request(statement.template);
        Expected {
            account: self.accounts.of(statement.template),
            failure: statement.failure,
            cancelled_after: statement.duration.filter(|_| statement.was_cancelled()),
            rows: statement.rows,
            ends_block: request.ends_block,
            discards: request.discards,
        }
    }
}
