//! Describes a replay and its templates (the texts of its statements without their values), for messages, events and
//! the report.

use std::sync::Arc;
use std::time::Duration;

use super::options::ReplayOptions;
use crate::event::{ReplayDescription, TemplateName};
use drive::plan::ReplayTiming;
use workload::replay::Replay;

/// The number of characters after which the text of a template (a statement without its values) is cut off in
/// events.
const LONGEST_TEXT: usize = 200;

/// The number of characters after which the text of a template is cut off in messages.
const LONGEST_NAME: usize = 60;

/// Returns the phrases by which messages name statements. Each template (a statement text without its values) that is
/// counted separately has a phrase with its number and its text; all other templates share the last phrase.
pub fn names(replay: &Replay) -> Arc<[String]> {
    let named = replay.templates().map(|template| {
        format!("a statement of template {} ({})", template.id, shortened(&template.text, LONGEST_NAME))
    });
    named.chain([format!("a statement of one of {} other templates", replay.other_templates())]).collect()
}

/// Returns the facts about the replay that are known before it begins.
pub fn describe(options: &ReplayOptions, replay: &Replay) -> ReplayDescription {
    let survey = replay.survey();
    let speed = match options.timing() {
        ReplayTiming::Recorded { speed } => Some(speed),
        ReplayTiming::BackToBack => None,
    };
    ReplayDescription {
        plan: events::ReplayPlanRecord {
            capture: options.directory.display().to_string(),
            sessions: survey.sessions.into(),
            statements: survey.statements.into(),
            recorded_s: Duration::from_micros(survey.span()).as_secs_f64(),
            most_at_once: survey.most_at_once as u64,
            speed,
            sample_percent: options.sample,
            copies: options.copies,
        },
        doubts: replay.about().left_out.iter().map(|left_out| format!("{} {}", left_out.count, left_out.why)).collect(),
        templates: replay
            .templates()
            .map(|template| TemplateName { id: template.id, text: shortened(&template.text, LONGEST_TEXT) })
            .collect(),
        other_templates: replay.other_templates(),
        hashes_results: replay.hashes_results(),
    }
}

/// Returns a text on one line: each run of white space becomes one space, and the text is cut off after `most`
/// characters.
pub fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_in_one_line_and_cut() {
        assert_eq!(shortened("select  1\n\tfrom é", 60), "select 1 from é");
        assert_eq!(shortened("éééé", 3), "ééé...");
    }
}
