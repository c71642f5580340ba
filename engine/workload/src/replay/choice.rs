//! Chooses the sessions of a capture that are replayed, repeats each of them as often as there are copies, and
//! summarizes them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::recorded::Micros;
use capture::format::{Error, RecordedSession, Sessions};
use ground::random::splitmix64_at;

/// The choice of the sessions that are replayed: the share of a capture's sessions, the seed with which they are drawn,
/// and the number of copies of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The share of the sessions that is replayed: more than 0 and at most 1. Whole sessions are drawn at random.
    pub share: f64,
    /// The seed with which the sessions are drawn.
    pub seed: u64,
    /// The number of copies of each drawn session that are replayed at the same time.
    pub copies: u32,
}

impl Choice {
    /// Returns a choice that draws at least one of these sessions, if one of them has statements. For this the share is
    /// raised if necessary. Without this, a share of 0.1 would draw none of six sessions with every second seed.
    pub fn of_at_least_one(
        self,
        sessions: impl Iterator<Item = Result<RecordedSession, Error>>,
    ) -> Result<Self, Error> {
        let mut least = f64::INFINITY;
        for session in sessions {
            least = least.min(self.draw(&session?));
        }
        let share = if least.is_finite() { self.share.max(least) } else { self.share };
        Ok(Self { share, ..self })
    }

    /// True if the session is drawn.
    fn has(&self, session: &RecordedSession) -> bool {
        self.draw(session) <= self.share
    }

    /// Returns the smallest share at which this session is drawn. It depends only on the session's number and the seed.
    /// A session without statements is never drawn.
    fn draw(&self, session: &RecordedSession) -> f64 {
        if session.statements == 0 {
            return f64::INFINITY;
        }
        (splitmix64_at(self.seed, session.number.into()) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// An iterator over the chosen sessions in the order of their starts. It returns each session as often as there are
/// copies.
pub struct ChosenSessions {
    sessions: Sessions,
    choice: Choice,
    /// The session that was returned last, and the number of its copies that are still to be returned.
    repeated: Option<(RecordedSession, u32)>,
}

impl ChosenSessions {
    /// Makes an iterator over the sessions that `choice` draws from `sessions`.
    pub fn new(sessions: Sessions, choice: Choice) -> Self {
        Self { sessions, choice, repeated: None }
    }
}

impl Iterator for ChosenSessions {
    type Item = Result<RecordedSession, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((session, left @ 1..)) = &mut self.repeated {
            *left -= 1;
            return Some(Ok(session.clone()));
        }
        loop {
            match self.sessions.next()? {
                Ok(session) if !self.choice.has(&session) => {}
                Ok(session) => {
                    self.repeated = Some((session.clone(), self.choice.copies.saturating_sub(1)));
                    return Some(Ok(session));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// A summary of the chosen sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    pub sessions: u64,
    pub statements: u64,
    /// The greatest number of chosen sessions that were open at the same time in the capture.
    pub most_at_once: usize,
    /// The first start of a session, in the time of the capture.
    pub begin: Micros,
    /// The last end of a session, in the time of the capture.
    pub end: Micros,
    /// The databases that the sessions used, as far as the capture has their names.
    pub databases: BTreeSet<String>,
}

impl Survey {
    /// Summarizes sessions, which must be in the order of their starts. It keeps in memory the ends of the sessions
    /// that are open at the same time.
    pub fn of(sessions: impl Iterator<Item = Result<RecordedSession, Error>>) -> Result<Self, Error> {
        let mut survey = Self { begin: Micros::MAX, ..Self::default() };
        let mut open = BinaryHeap::new();
        for session in sessions {
            let session = session?;
            survey.sessions += 1;
            survey.statements += session.statements;
            survey.begin = survey.begin.min(session.start);
            survey.end = survey.end.max(session.end);
            while open.peek().is_some_and(|Reverse(end)| *end < session.start) {
                open.pop();
            }
            open.push(Reverse(session.end));
            survey.most_at_once = survey.most_at_once.max(open.len());
            survey.databases.extend(session.database);
        }
        survey.begin = survey.begin.min(survey.end);
        Ok(survey)
    }

    /// Returns the time from the first start of a session to the last end of one.
    pub fn span(&self) -> Micros {
        self.end - self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u32, start: Micros, end: Micros) -> RecordedSession {
        let mut session = RecordedSession::default();
        (session.number, session.start, session.end, session.statements) = (number, start, end, 2);
        session.database = Some("shop".to_owned());
        session
    }

    #[test]
    fn a_survey_counts_the_sessions_that_are_open_at_the_same_time() {
        let sessions = [session(0, 10, 50), session(1, 20, 30), session(2, 30, 60), session(3, 70, 90)];
        let survey = Survey::of(sessions.into_iter().map(Ok)).unwrap();
        assert_eq!((survey.sessions, survey.statements, survey.most_at_once), (4, 8, 3));
        assert_eq!((survey.begin, survey.end, survey.span()), (10, 90, 80));
        assert_eq!(survey.databases.iter().collect::<Vec<_>>(), ["shop"]);
    }

    #[test]
    fn a_survey_of_no_session_is_empty() {
        assert_eq!(Survey::of(std::iter::empty()).unwrap(), Survey::default());
    }

    #[test]
    fn about_the_share_of_the_sessions_is_drawn_and_always_the_same_ones() {
        let drawn = |share, seed| {
            let choice = Choice { share, seed, copies: 1 };
            (0..10_000).filter(|number| choice.has(&session(*number, 0, 0))).collect::<Vec<_>>()
        };
        let quarter = drawn(0.25, 1);
        assert!((2_300..2_700).contains(&quarter.len()), "{}", quarter.len());
        assert_eq!(quarter, drawn(0.25, 1));
        assert_ne!(quarter, drawn(0.25, 2));
        assert!(quarter.iter().all(|number| drawn(0.5, 1).contains(number)));
        assert_eq!(drawn(1.0, 3).len(), 10_000);
        assert!(!Choice { share: 1.0, seed: 0, copies: 1 }.has(&RecordedSession::default()));
    }

    #[test]
    fn the_least_share_draws_one_session() {
        let sessions = || (0..6).map(|number| Ok(session(number, 0, 0)));
        for seed in 0..100 {
            let drawn = |share| {
                let choice = Choice { share, seed, copies: 1 }.of_at_least_one(sessions()).unwrap();
                sessions().filter(|session| choice.has(session.as_ref().unwrap())).count()
            };
            assert_eq!(drawn(1e-9), 1);
            assert!((1..6).contains(&drawn(0.1)));
            assert_eq!(drawn(1.0), 6);
        }
        let choice = Choice { share: 0.1, seed: 0, copies: 1 };
        assert_eq!(choice.of_at_least_one(std::iter::once(Ok(RecordedSession::default()))).unwrap(), choice);
    }
}
