//! Checks captures of logs: the session of each statement, and its time.

mod cancelled;
mod transactions;

use std::fs;

use proptest::prelude::*;

use crate::error::CaptureError;
use crate::format::{About, Capture, Error, RecordedSession};
use crate::make::{CaptureOrder, make};
use crate::time::Micros;

/// A statement as a text: its start in milliseconds, its text, its duration in microseconds, and how it failed.
type Line = String;

struct Made {
    about: About,
    sessions: Vec<Vec<Line>>,
    /// The number of statements that were cancelled.
    cancelled: usize,
}

fn made(log: &[u8], anonymize: bool) -> Result<Made, CaptureError> {
    let directory = tempfile::tempdir().unwrap();
    let (log_file, output) = (directory.path().join("server.log"), directory.path().join("capture"));
    fs::write(&log_file, log).unwrap();
    let order =
        CaptureOrder { logs: vec![log_file.to_str().unwrap().to_owned()], anonymize, ..CaptureOrder::default() };
    let about = make(&order, &output, &mut |_| {})?;
    let capture = Capture::open(&output).unwrap();
    let mut cancelled = 0;
    let lines = |session: Result<RecordedSession, Error>| {
        let (mut reader, mut lines) = (capture.read(&session.unwrap()), Vec::new());
        while reader.advance().unwrap() {
            let (statement, mut text) = (reader.statement(), Vec::new());
            let template = &capture.templates()[statement.template as usize];
            template.write_text(reader.parameters(), &mut text);
            cancelled += usize::from(statement.was_cancelled());
            let failure = statement.failure.map_or(String::new(), |failure| {
                format!(" {}", failure.code().map_or("failed".into(), |code| String::from_utf8_lossy(code)))
            });
            let duration = statement.duration.map_or("-".to_owned(), |duration: Micros| duration.to_string());
            let text = String::from_utf8(text).unwrap();
            lines.push(format!("{} {text} {duration}{failure}", statement.start / 1000));
        }
        lines
    };
    let sessions = capture.sessions().unwrap().map(lines).collect();
    Ok(Made { about, sessions, cancelled })
}

/// Makes a log. Each line is given as its milliseconds, its process number and its text.
fn log(lines: &[(u32, u32, &str)]) -> Vec<u8> {
    let line = |(time, pid, text): &(u32, u32, &str)| {
        format!("2026-11-23 08:00:{:02}.{:03} UTC [{pid}] {text}\n", time / 1000, time % 1000)
    };
    lines.iter().map(line).collect::<String>().into_bytes()
}

fn sessions(lines: &[(u32, u32, &str)]) -> Vec<Vec<Line>> {
    made(&log(lines), false).unwrap().sessions
}

#[test]
fn a_duration_belongs_to_the_statement_before_it_in_its_session() {
    let found = sessions(&[
        (0, 1, "LOG:  statement: select 1"),
        (1, 2, "LOG:  statement: select 2"),
        (5, 1, "LOG:  duration: 5.000 ms"),
        (6, 1, "LOG:  duration: 9.000 ms"),
        (7, 2, "LOG:  statement: select 3"),
    ]);
    assert_eq!(found, [vec!["0 select 1 5000"], vec!["1 select 2 -", "7 select 3 -"]]);
}

#[test]
fn a_statement_that_is_logged_at_its_end_begins_that_much_earlier() {
    let found = sessions(&[
        (500, 1, "LOG:  duration: 400.000 ms  statement: select 1"),
        (500, 1, "LOG:  duration: 0.200 ms  statement: select 2"),
        (900, 1, "LOG:  duration: 0.200 ms  statement: select 3"),
    ]);
    // The second statement cannot have begun before the first one had ended.
    assert_eq!(found, [["0 select 1 400000", "400 select 2 200", "799 select 3 200"]]);
}

#[test]
fn an_error_ends_its_statement() {
    let found = sessions(&[
        (0, 1, "LOG:  00000: statement: select 1/0"),
        (3, 1, "ERROR:  22012: division by zero"),
        (3, 1, "STATEMENT:  select 1/0"),
        (4, 1, "ERROR:  syntax error"),
        (4, 1, "STATEMENT:  selec"),
        (5, 1, "LOG:  00000: statement: select 2"),
        (6, 1, "FATAL:  terminating connection due to idle-in-transaction timeout"),
    ]);
    assert_eq!(found, [["0 select 1/0 3000 22012", "4 selec - failed", "5 select 2 -"]]);
}

#[test]
fn a_process_may_serve_one_session_after_the_other() {
    let found = sessions(&[
        (0, 1, "LOG:  connection received: host=[local]"),
        (1, 1, "LOG:  statement: select 1"),
        (2, 1, "LOG:  connection received: host=[local]"),
        (3, 1, "LOG:  statement: select 2"),
        (4, 1, "LOG:  disconnection: session time: 0:00:00.002 user=a database=b host=[local]"),
        (5, 1, "LOG:  statement: select 3"),
    ]);
    assert_eq!(found, [vec!["1 select 1 -"], vec!["3 select 2 -"], vec!["5 select 3 -"]]);
}

#[test]
fn a_session_begins_with_its_connection() {
    let lines = [(0, 1, "LOG:  connection received: host=[local]"), (70, 1, "LOG:  statement: select 1")];
    let found = made(&log(&lines), false).unwrap();
    assert_eq!((found.sessions, found.about.span_us), (vec![vec!["70 select 1 -".to_owned()]], 70_000));
}

#[test]
fn values_of_an_anonymized_capture_are_tokens() {
    let log = log(&[(0, 1, "LOG:  statement: select 'alice', 4711"), (1, 1, "LOG:  statement: select 'bobby', 4711")]);
    let found = made(&log, true).unwrap();
    let lines = &found.sessions[0];
    assert!(found.about.anonymized && !lines.iter().any(|line| line.contains("alice") || line.contains("bobby")));
    let values =
        |line: &str| line.split_once("select ").unwrap().1.split_once(", ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    let ((first, number), (second, same)) = (values(&lines[0]).unwrap(), values(&lines[1]).unwrap());
    assert!(first < second && number == same && first.len() == 7);
}

#[test]
fn in_the_simple_protocol_nothing_is_bound() {
    let lines = [(0, 1, "LOG:  statement: select 1"), (0, 1, "DETAIL:  parameters: $1 = 'a'")];
    assert_eq!(sessions(&lines), [["0 select 1 -"]]);
}

/// A short log in each format.
const LOGS: [&str; 4] = [
    "2026-11-23 08:00:00.000 UTC [7] LOG:  execute a: select $1\n\
     2026-11-23 08:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'it''s'\n\
     2026-11-23 08:00:01.000 UTC [8] ERROR:  a\n2026-11-23 08:00:01.000 UTC [8] STATEMENT:  select 1,\n\t2\n",
    "2026-11-23 08:00:00.000 UTC,\"me\",\"db\",7,,6560a1b2.7,1,,2026-11-23 07:59:00 UTC,,0,LOG,00000,\"statement: a\n\"\"b\"\"\",,,,,,,,,\"x\"\n\
     2026-11-23 08:00:00.000 UTC,\"me\",\"db\",7,,6560a1b2.7,1,,2026-11-23 07:59:00 UTC,,0,LOG,00000,\"statement: c\",,,,,,,,,\"x\"\n",
    "{\"timestamp\":\"2026-11-23 08:00:00.000 UTC\",\"pid\":7,\"error_severity\":\"LOG\",\"message\":\"statement: \\u00e9\"}\n\
     {\"timestamp\":\"2026-11-23 08:00:00.000 UTC\",\"pid\":7,\"error_severity\":\"LOG\",\"message\":\"duration: 1 ms\"}\n",
    "[{\"textPayload\":\"2026-11-23 08:00:00.000 UTC [7]: [1-1] db=d,user=u LOG:  statement: a\\nb\"},\n\
     {\"textPayload\":\"2026-11-23 08:00:00.000 UTC [7]: [2-1] db=d,user=u LOG:  statement: c\"}]\n",
];

#[test]
fn the_short_logs_are_whole() {
    assert_eq!(LOGS.map(|log| made(log.as_bytes(), false).unwrap().about.statements), [2, 2, 1, 2]);
}

proptest! {
    #[test]
    fn a_damaged_log_gives_a_capture_or_a_sentence(
        log in 0_usize..4,
        damage in prop::collection::vec((0.0..1.0, 0_usize..60, prop::collection::vec(any::<u8>(), 0..3)), 1..6),
        anonymize: bool,
    ) {
        let mut log = LOGS[log].as_bytes().to_vec();
        for (place, length, bytes) in damage {
            let from = (place * log.len() as f64) as usize;
            let to = log.len().min(from + length);
            log.splice(from..to, bytes);
        }
        if let Err(sentence) = made(&log, anonymize) {
            let sentence = sentence.to_string();
            prop_assert!(!sentence.is_empty() && !sentence.contains('\n'), "{}", sentence);
        }
    }

    #[test]
    fn any_log_gives_a_capture_or_a_sentence(
        lines in prop::collection::vec((0_u32..3, prop_oneof![
            Just("LOG:  statement: "), Just("LOG:  execute a: "), Just("LOG:  duration: 1.5 ms  execute <unnamed>: "),
            Just("LOG:  duration: 2 ms"), Just("DETAIL:  parameters: "), Just("ERROR:  "), Just("STATEMENT:  "),
            Just("CONTEXT:  "), Just("LOG:  connection received: "), Just("LOG:  disconnection: "), Just("FEHLER:  "), Just("\n\t"), Just(""),
        ], "[a-z1$= ',\"\t\n/*-]{0,20}|\\$1 = '[a-z']{0,5}'|select \\$1|copy a from stdin"), 0..30),
        anonymize: bool,
    ) {
        let mut log = String::new();
        for (index, (pid, head, text)) in lines.iter().enumerate() {
            log += &format!("2026-11-23 08:00:{:02}.000 UTC [{pid}] {head}{text}\n", index);
        }
        match made(log.as_bytes(), anonymize) {
            Ok(found) => {
                let statements: usize = found.sessions.iter().map(Vec::len).sum();
                prop_assert!(statements > 0);
                prop_assert_eq!(found.about.statements, statements as u64);
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

/// Captures a log, and returns the reasons for which items are left out, with their counts.
fn left_out(lines: &[(u32, u32, &str)]) -> Vec<(String, u64)> {
    let about = made(&log(lines), false).unwrap().about;
    about.left_out.into_iter().map(|left| (left.reason, left.count)).collect()
}

#[test]
fn what_a_log_proves_without_a_text_is_counted() {
    let found = left_out(&[
        (0, 1, "LOG:  duration: 0.120 ms"),
        (1, 1, "LOG:  duration: 0.130 ms"),
        (2, 1, "LOG:  duration: 0.140 ms  bind S_1: INSERT INTO t VALUES ($1)"),
        (3, 1, "ERROR:  duplicate key value violates unique constraint"),
        (4, 1, "LOG:  duration: 3.000 ms  statement: SELECT 1"),
        (5, 2, "LOG:  duration: 0.140 ms  bind S_1: SELECT 1"),
    ]);
    let expected = [("duration-alone", 2), ("not-executed", 2), ("error-alone", 1)];
    assert_eq!(found, expected.map(|(reason, count)| (reason.to_owned(), count)));
}

#[test]
fn steps_of_the_extended_protocol_are_no_statements() {
    let found = left_out(&[
        (0, 1, "LOG:  duration: 0.120 ms"),
        (1, 1, "LOG:  duration: 0.130 ms"),
        (2, 1, "LOG:  execute <unnamed>: SELECT 1"),
        (3, 1, "LOG:  duration: 0.130 ms"),
        (4, 1, "LOG:  duration: 0.140 ms  bind S_1: SELECT 2"),
        (5, 1, "LOG:  duration: 0.140 ms  execute S_1: SELECT 2"),
        (6, 1, "LOG:  statement: COPY t FROM STDIN"),
        (7, 1, "LOG:  duration: 0.140 ms"),
    ]);
    assert_eq!(found, [("copy-data".to_owned(), 1)]);
}

#[test]
fn an_error_that_a_parallel_worker_and_its_leader_say_is_one() {
    let of_worker = [(1, 22, "ERROR:  division by zero"), (1, 22, "STATEMENT:  SELECT 1/a FROM big")];
    let of_leader = [
        (2, 10, "ERROR:  division by zero"),
        (2, 10, "CONTEXT:  parallel worker"),
        (2, 10, "STATEMENT:  SELECT 1/a FROM big"),
    ];
    let begin = [(0, 10, "LOG:  statement: SELECT 1/a FROM big")];
    let all = [&begin[..], &of_worker, &of_leader].concat();
    assert_eq!(sessions(&all), [["0 SELECT 1/a FROM big 2000 failed"]]);
    let without_leader = [&begin[..], &of_worker].concat();
    assert_eq!(sessions(&without_leader).len(), 2);
}

/// Makes an anonymized capture. Returns its statements in one text, and the number of statements that were replaced as
/// a whole.
fn concealed(lines: &[(u32, u32, &str)]) -> (String, u64) {
    let made = made(&log(lines), true).unwrap();
    let replaced = made.about.left_out.iter().find(|left_out| left_out.reason == "replaced-whole");
    (made.sessions.concat().join("\n"), replaced.map_or(0, |left_out| left_out.count))
}

#[test]
fn values_are_replaced_where_quotes_do_not_pair() {
    let secrets = ["Brien", "Hiddenstreet", "Secret", "4111222233334444", "Arcy", "Anna"];
    for (lines, whole) in [
        (
            &[
                (0, 7, "LOG:  duration: 0.1 ms  statement: SET standard_conforming_strings TO off"),
                (1, 7, "LOG:  duration: 0.1 ms  statement: INSERT INTO p VALUES ('O\\'Brien Secret', 5)"),
                (2, 7, "LOG:  duration: 0.1 ms  statement: INSERT INTO p VALUES ('Hiddenstreet\\\\', 'Secret')"),
            ][..],
            0,
        ),
        (&[(0, 7, "LOG:  duration: 0.1 ms  statement: SELECT 'O\\'Brien', 'Hiddenstreet'")], 0),
        (
            &[
                (0, 7, "ERROR:  syntax error at or near \"Brien\" at character 28"),
                (0, 7, "STATEMENT:  INSERT INTO p VALUES ('O'Brien', 'Hiddenstreet 5', 'D'Arcy')"),
            ],
            1,
        ),
        (
            &[
                (0, 7, "LOG:  statement: SELECT 'O'Brien', 'Secret'"),
                (1, 7, "ERROR:  syntax error at or near \"Brien\" at character 9"),
                (1, 7, "STATEMENT:  SELECT 'O'Brien', 'Secret'"),
            ],
            1,
        ),
        (
            &[
                (0, 7, "ERROR:  column \"Anna Brien\" does not exist at character 9"),
                (0, 7, "STATEMENT:  SELECT * FROM p WHERE name = \"Anna Brien\""),
            ],
            1,
        ),
        (
            &[
                (0, 7, "ERROR:  missing FROM-clause entry for table \"anna\" at character 32"),
                (0, 7, "STATEMENT:  SELECT * FROM p WHERE mail = Anna.Brien"),
            ],
            1,
        ),
        (&[(0, 7, "LOG:  duration: 0.1 ms  statement: SELECT 1 AS \"Secret")], 1),
        (
            &[
                (0, 7, "LOG:  execute get_anna: SELECT * FROM p WHERE name = 'Anna' AND city = $1"),
                (0, 7, "DETAIL:  parameters: $1 = 'Hiddenstreet'"),
            ],
            0,
        ),
        (&[(0, 7, "LOG:  execute get_anna: SELECT * FROM p WHERE name = 'Anna'")], 0),
        (&[(0, 7, "LOG:  statement: SELECT interval 'Secret Brien', E'\\x41\\x6e\\x6e\\x61'")], 0),
    ] {
        let (text, replaced) = concealed(lines);
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
        assert_eq!(replaced, whole, "{text}");
    }
}

#[test]
fn a_failed_statement_whose_text_is_certain_keeps_its_names() {
    let (text, replaced) = concealed(&[
        (0, 7, "ERROR:  duplicate key value violates unique constraint \"people_pkey\""),
        (0, 7, "STATEMENT:  INSERT INTO people (name) VALUES ('it''s Anna')"),
    ]);
    assert!(text.starts_with("0 INSERT INTO people (name) VALUES ('") && !text.contains("Anna"), "{text}");
    assert_eq!(replaced, 0);
}

proptest! {
    /// Checks that a word of a value does not occur anywhere in an anonymized capture, however the value is written and
    /// whatever else the statement contains.
    #[test]
    fn no_word_of_a_value_stays(
        word in "[A-Z][a-z]{5,9}",
        before in "[a-z '\\\\]{0,6}",
        after in "[a-z '\\\\]{0,6}",
        form in 0..6_usize,
        fails in any::<bool>(),
    ) {
        // In a statement that succeeded, every quote has its partner.
        let [before, after] = [before, after].map(|text| if fails { text } else { text.replace('\'', "''") });
        let codes = |begin: &str| word.chars().map(|c| format!("{begin}{:04x}", c as u32)).collect::<String>();
        let written = match form {
            0 => format!("'{before}{word}{after}'"),
            1 => format!("E'{}'", codes("\\u")),
            2 => format!("'{{\"name\": \"{}\"}}'", codes("\\u")),
            3 => format!("U&'{}'", codes("\\")),
            4 => format!("$${before}{word}{after}$$"),
            _ => format!("E'{}'", word.bytes().map(|c| format!("\\x{c:02x}")).collect::<String>()),
        };
        let statement = format!("INSERT INTO p VALUES ({written}, 'x')");
        let lines = match fails {
            true => ["ERROR:  syntax error at or near \"x\"".to_owned(), format!("STATEMENT:  {statement}")],
            false => [format!("LOG:  duration: 0.1 ms  statement: {statement}"), "LOG:  statement: SELECT 1".to_owned()],
        };
        let lines: Vec<_> = lines.iter().map(|line| (0, 7, line.as_str())).collect();
        let (text, _) = concealed(&lines);
        prop_assert!(!text.contains(&word) && !text.contains(&codes("\\u")) && !text.contains(&codes("\\")), "{}", text);
    }
}

#[test]
fn logs_with_the_same_records_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let refusal = |first: Vec<u8>, second: Vec<u8>| {
        fs::write(path("first.log"), first).unwrap();
        fs::write(path("second.log"), second).unwrap();
        let order = CaptureOrder { logs: vec![path("first.log"), path("second.log")], ..CaptureOrder::default() };
        let output = tempfile::tempdir().unwrap();
        make(&order, output.path(), &mut |_| {}).err().map(|error| error.to_string())
    };
    let line = |at: u32| (at, 7, "LOG:  duration: 0.100 ms  statement: select 1");
    let short = log(&[line(1), line(5)]);
    let overlapping = refusal(short.clone(), short.clone()).unwrap();
    assert!(overlapping.contains("overlap, so that statements would be captured twice"), "{overlapping}");
    let long: Vec<_> = (1..60).map(|second| line(1000 * second)).collect();
    for second in [&long[..], &long[1..], &long[40..]] {
        assert!(refusal(log(&long), log(second)).unwrap().contains("overlap"));
    }
    let csv = "2026-11-23 08:00:00.001 UTC,,,7,,6560a1b2.7,1,,2026-11-23 08:00:00 UTC,,0,LOG,00000,\
               \"duration: 0.100 ms  statement: select 1\",,,,,,,,,\"\",\"client backend\",,0\n";
    let of_formats = refusal(log(&[line(1)]), csv.as_bytes().to_vec()).unwrap();
    assert!(of_formats.contains("first.log\" and \"") && of_formats.contains("second.log\" overlap"), "{of_formats}");
    // The logs begin at different records, and have whole seconds or not.
    let texts: Vec<_> = (0..4).map(|number| format!("LOG:  statement: select {number}")).collect();
    let lines: Vec<_> = texts.iter().zip([100, 200, 900, 1100]).map(|(text, at)| (at, 7, text.as_str())).collect();
    let seconds = |log: Vec<u8>| {
        let log = String::from_utf8(log).unwrap();
        let cut = |line: &str| format!("{}{}\n", &line[..19], &line[23..]);
        log.lines().map(cut).collect::<String>().into_bytes()
    };
    for (first, second) in [
        (log(&lines), log(&lines[2..])),
        (log(&lines[..3]), log(&lines[2..])),
        (log(&lines), seconds(log(&lines))),
        (seconds(log(&lines)), log(&lines)),
        (seconds(log(&lines)), seconds(log(&lines))),
        (log(&lines), [log(&[(100, 1, "LOG:  checkpoint starting: time")]), log(&lines)].concat()),
    ] {
        assert!(refusal(first, second).unwrap().contains("overlap"));
    }
    // A log in which a message is repeated, and continues in the next log.
    let repeated: Vec<_> = (0..9).map(|_| (100, 7, "LOG:  statement: select 1")).collect();
    assert_eq!(refusal(seconds(log(&repeated[..5])), seconds(log(&repeated[5..]))), None);
    assert_eq!(refusal(log(&repeated[..5]), log(&repeated[5..])), None);
    // A server continues in the next log, whose first messages may be a little older than the last messages of the log
    // before.
    assert_eq!(refusal(log(&long[..40]), log(&long[40..])), None);
    assert_eq!(refusal(log(&[line(1), line(900)]), log(&[(899, 8, "LOG:  statement: select 2"), line(901)])), None);
}

#[test]
fn a_log_that_is_read_twice_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.log").to_str().unwrap().to_owned();
    let line = |second: u32| (1000 * second, 7, "LOG:  statement: select 1");
    let whole = log(&[line(1), line(1), line(9)]);
    let short = log(&[(100, 7, "LOG:  statement: select 1"), (200, 7, "LOG:  statement: select 2")]);
    for (text, logs) in [(whole.clone(), 2), ([&whole[..], &whole].concat(), 1), ([&short[..], &short].concat(), 1)] {
        fs::write(&path, text).unwrap();
        let order = CaptureOrder { logs: vec![path.clone(); logs], ..CaptureOrder::default() };
        let output = tempfile::tempdir().unwrap();
        let refused = make(&order, output.path(), &mut |_| {}).unwrap_err().to_string();
        assert!(
            refused.contains("server.log\" is read twice, so that statements would be captured twice"),
            "{refused}"
        );
    }
}

#[test]
fn an_interrupted_capture_leaves_no_values_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (log_file, output) = (directory.path().join("server.log"), directory.path().join("capture"));
    fs::write(&log_file, log(&[(0, 1, "LOG:  statement: select 'Secret'")])).unwrap();
    let order = CaptureOrder {
        logs: vec![log_file.to_str().unwrap().to_owned()],
        anonymize: true,
        interrupt: std::sync::Arc::new(true.into()),
        ..CaptureOrder::default()
    };
    let error = make(&order, &output, &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "interrupted, so no capture was written; run the command again");
    assert!(!directory.path().join("capture.plain").exists());
}
