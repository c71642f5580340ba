//! The summary of a capture (a recording of sessions that is made from logs), as text for people and as JSON for
//! programs.

use std::fmt::Write;
use std::path::Path;

use capture::format::{About, Capture, Error, Template};
use capture::time::iso;

/// The number of templates (statement texts without their values) that the summary lists: those with the most
/// statements.
const LISTED: usize = 10;

/// The number of characters after which the text of a template (a statement without its values) is cut off in the list.
const LONGEST: usize = 100;

/// Returns the summary in the form of `capture.json`, on one line. Of the templates (statement texts without their
/// values) it lists only the `LISTED` with the most statements, as the text does.
pub fn json(about: &About) -> String {
    let mut short = about.clone();
    short.commonest.truncate(LISTED);
    let text = serde_json::to_string(&short).expect("texts and numbers are JSON");
    text + "\n"
}

/// Returns the templates of a capture (statement texts without their values) that have the most statements, each with
/// the number of its statements.
pub fn commonest(directory: &Path) -> Result<Vec<(u64, Template)>, Error> {
    let capture = Capture::open(directory)?;
    let listed = capture.about().commonest.iter().take(LISTED);
    Ok(listed.map(|usage| (usage.statements, capture.templates()[usage.template as usize].clone())).collect())
}

/// Returns the summary as a text.
pub fn text(about: &About, commonest: &[(u64, Template)], directory: &Path) -> String {
    let mut text = format!("capture in {}\n", directory.display());
    for source in &about.sources {
        let prefix = source.prefix.as_ref().map_or(String::new(), |prefix| format!(" with log_line_prefix '{prefix}'"));
        let packing = source.packing.as_ref().map_or(String::new(), |packing| format!(" ({packing})"));
        line(&mut text, "log", &format!("{}{packing}: {}{prefix}", source.name, source.format));
        if let Some(zones) = &source.zones {
            line(
                &mut text,
                "zone",
                &format!("{zones}; the times may be in any of these zones, give the right one with --timezone"),
            );
        }
    }
    if let Some(version) = &about.server_version {
        line(&mut text, "server", version);
    }
    line(&mut text, "begin", &format!("{}, {:.1} s long", iso(about.begin_us), about.span_us as f64 / 1e6));
    line(&mut text, "sessions", &about.sessions.to_string());
    let failed = if about.failed > 0 { format!(", {} of them failed", about.failed) } else { String::new() };
    line(&mut text, "statements", &format!("{}{failed}", about.statements));
    line(&mut text, "templates", &about.templates.to_string());
    if !commonest.is_empty() {
        text += "commonest:\n";
    }
    for (statements, template) in commonest {
        let percent = 100.0 * *statements as f64 / about.statements as f64;
        let _ = writeln!(text, "  {statements:>9} {percent:>5.1}%  {}", shortened(&template.text));
    }
    if !about.left_out.is_empty() {
        text += "statements that the capture left out, added, or is not sure about:\n";
    }
    for left_out in &about.left_out {
        let (place, count) = (&left_out.first, left_out.count);
        let _ = writeln!(text, "  {count:>9} {} (first: {}, line {})", left_out.why, place.source, place.line);
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    // Writing to a string cannot fail, so the result is ignored.
    let _ = writeln!(text, "{:<12}{value}", format!("{name}:"));
}

/// Returns a text on one line. If it is longer than `LONGEST`, its end is cut off.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
