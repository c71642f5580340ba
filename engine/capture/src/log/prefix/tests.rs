//! Checks prefixes with lines as servers write them.

use super::super::words::Severity;
use super::*;

fn record(prefix: &str, line: &str) -> Option<(Record, Part, String)> {
    let (matched, part, text) = Prefix::parse(prefix).unwrap().read(line)?;
    let mut record = Record::default();
    matched.fill(&mut record);
    Some((record, part, text.to_owned()))
}

const LOG: Part = Part::Message(Severity::Log);

#[test]
fn the_default_has_time_and_process() {
    let (found, part, text) = record("%m [%p] ", "2026-11-23 08:00:00.123 UTC [77] LOG:  statement: a").unwrap();
    assert_eq!((found.pid, found.time.utc % 1_000_000, part, text.as_str()), (77, 123_000, LOG, "statement: a"));
}

#[test]
fn names_may_have_what_separates_them() {
    let line = "2026-11-23 08:00:00.123 UTC [77] al@ice@sh op/my app/2 STATEMENT:  select 'LOG:  x'";
    let (found, part, text) = record("%m [%p] %q%u@%d/%a ", line).unwrap();
    assert_eq!(
        (found.user.as_str(), found.database.as_str(), found.application.as_str()),
        ("al@ice", "sh op", "my app/2")
    );
    assert_eq!((part, text.as_str()), (Part::Statement, "select 'LOG:  x'"));
}

#[test]
fn processes_that_are_no_sessions_end_at_q() {
    let (found, _, text) = record("%m [%p] %q%u@%d ", "2026-11-23 08:00:00.123 UTC [5] LOG:  checkpoint").unwrap();
    assert_eq!((found.user.as_str(), text.as_str()), ("", "checkpoint"));
}

#[test]
fn amazons_form_is_read() {
    let prefix = "%t:%r:%u@%d:[%p]:";
    let line = "2026-11-23 08:00:00 UTC:10.0.0.9(50412):app@shop:[4711]:LOG:  duration: 1 ms";
    let (found, _, text) = record(prefix, line).unwrap();
    assert_eq!((found.user.as_str(), found.database.as_str(), found.pid), ("app", "shop", 4711));
    assert_eq!(text, "duration: 1 ms");
    let (found, ..) = record(prefix, "2026-11-23 08:00:00 UTC::@:[9]:LOG:  checkpoint").unwrap();
    assert_eq!((found.user.as_str(), found.pid), ("", 9));
    let (found, ..) = record(prefix, "2026-11-23 08:00:00 UTC:[local]:[unknown]@[unknown]:[9]:LOG:  x").unwrap();
    assert_eq!(found.user, "");
}

#[test]
fn every_escape_is_read() {
    let prefix = "%a|%u|%d|%r|%h|%L|%b|%p|%P|%t|%m|%n|%i|%e|%c|%l|%s|%v|%x|%Q|%%|%10u|%-8p|%q";
    let line = "psql|me|db|[local]|[local]|[local]|client backend|7||2026-11-23 08:00:00 UTC|2026-11-23 08:00:00.250 UTC|\
                1795420800.251|SELECT|22012|6560a1b2.1f|12|2026-11-23 07:59:00 UTC|4/17|0|-81|%|        me|7       |ERROR:  x";
    let (found, part, _) = record(prefix, line).unwrap();
    assert_eq!(found.time.utc % 1_000_000, 251_000);
    assert_eq!((found.sqlstate, found.session_id.as_str()), (Some(*b"22012"), "6560a1b2.1f"));
    assert_eq!(found.session_start.unwrap().utc, 1_795_420_740_000_000);
    assert_eq!((found.backend_type.as_str(), part), ("client backend", Part::Message(Severity::Error)));
}

#[test]
fn a_session_has_its_process_in_its_identifier() {
    let (found, ..) = record("%t-%c-", "2026-11-23 08:00:00 UTC-6560a1b2.1f-LOG:  x").unwrap();
    assert_eq!(found.pid, 31);
}

#[test]
fn lines_with_another_prefix_do_not_match() {
    for line in
        ["", "\tand b", "LOG:  x", "2026-11-23 08:00:00.123 UTC [x] LOG:  a", "2026-11-23 08:00:00.123 UTC [1] log: a"]
    {
        assert!(record("%m [%p] ", line).is_none(), "{line}");
    }
}

#[test]
fn a_prefix_is_guessed_from_lines() {
    for (lines, prefix) in [
        ("2026-11-23 08:00:00.123 UTC [1] LOG:  a\n", "%m [%p] "),
        ("2026-11-23 08:00:00.123 UTC [1] LOG:  a\n2026-11-23 08:00:00.1 UTC [2] u@d LOG:  a\n", "%m [%p] %q%u@%d "),
        ("2026-11-23 08:00:00 UTC:1.1.1.1(1):u@d:[1]:LOG:  a\n", "%t:%r:%u@%d:[%p]:"),
        (
            "2026-11-23 08:00:00 UTC [1]: user=u,db=d,app=[unknown],client=1.1.1.1 LOG:  a\n",
            "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
        ),
        ("2026-11-23 08:00:00 UTC-6560a1b2.1f-LOG:  a\n", "%t-%c-"),
        ("2026-11-23 08:00:00.123 UTC [1]: [1-1] db=d,user=u LOG:  a\n", "%m [%p]: [%l-1] db=%d,user=%u "),
    ] {
        assert_eq!(Prefix::guess(lines).unwrap().text(), prefix);
    }
    assert_eq!(Prefix::guess("Nov 23 08:00:00 host postgres[1]: [1-1] LOG:  a\n"), None);
}

#[test]
fn a_user_may_have_an_at_sign() {
    let line = "2026-11-23 08:00:00.123 UTC [77] jane@example.com@shop LOG:  statement: SELECT 'a@b LOG:  x'";
    let (found, ..) = record("%m [%p] %q%u@%d ", line).unwrap();
    assert_eq!((found.user.as_str(), found.database.as_str()), ("jane@example.com", "shop"));
}

/// Each of these prefixes resembles a common prefix, which fits its lines too but reads an additional field as a part
/// of a name.
#[test]
fn a_guess_that_finds_a_further_field_in_a_name_is_refuted() {
    for (prefix, line) in [
        ("%t [%p-%l] %q%u@%d [%a] ", "2026-11-23 08:00:00 UTC [7-3] app@shop [web] LOG:  x"),
        ("%m [%p] %q%u@%d %h ", "2026-11-23 08:00:00.1 UTC [7] app@shop 10.1.2.3 LOG:  x"),
        ("%m [%p] %q%r %u@%d ", "2026-11-23 08:00:00.1 UTC [7] 10.1.2.3(5432) app@shop LOG:  x"),
        ("%m [%p] %l %q%u@%d ", "2026-11-23 08:00:00.1 UTC [7] 3 app@shop LOG:  x"),
        ("%m [%p] %b %q%u@%d ", "2026-11-23 08:00:00.1 UTC [7] client backend app@shop LOG:  x"),
        ("%m [%p] %u@%d [%c] ", "2026-11-23 08:00:00.1 UTC [7] app@shop [65f1a2b3.7] LOG:  x"),
        ("%m [%p] [%x] %q%u@%d ", "2026-11-23 08:00:00.1 UTC [7] [12] app@shop LOG:  x"),
        ("%m [%p] %q%u@%d/%a %h ", "2026-11-23 08:00:00.1 UTC [7] app@shop/web 10.1.2.3 LOG:  x"),
    ] {
        let guess = Prefix::guess(line).unwrap();
        let (matched, ..) = guess.read(line).unwrap();
        assert!(guess.refuted_by(line, Some(&matched)).unwrap().starts_with("has the name \""), "{prefix}");
        let given = Prefix::parse(prefix).unwrap();
        let (matched, ..) = given.read(line).unwrap();
        assert_eq!(given.refuted_by(line, Some(&matched)), None);
        assert_eq!((matched.fields.user, matched.fields.database), ("app", "shop"));
    }
}

#[test]
fn a_guess_is_refuted_by_a_message_behind_another_prefix_and_by_no_other_text() {
    let guess = Prefix::guess("2026-11-23 08:00:00.123 UTC [1] LOG:  starting\n").unwrap();
    let other = "2026-11-23 08:00:00.123 UTC [1] app=web LOG:  x";
    assert_eq!(guess.refuted_by(other, None).unwrap(), "does not begin with '%m [%p] ', as lines before it do");
    for line in ["", "hello", "    WHERE a:  b", "gzip: failed"] {
        assert_eq!(guess.refuted_by(line, None), None, "{line}");
    }
    assert_eq!(Prefix::parse("%m [%p] ").unwrap().refuted_by(other, None), None);
}

#[test]
fn matching_takes_no_longer_than_the_line_times_the_prefix() {
    let prefix = Prefix::parse("%m [%p] %u %d %a %h %x %r %i %e ").unwrap();
    let words: String = (0..200).map(|number| format!("w{number} ")).collect();
    let unknown = format!("2026-11-23 08:00:00.123 UTC [1] {words}DZIENNIK:  x");
    let known = format!("2026-11-23 08:00:00.123 UTC [1] {words}LOG:  x");
    for line in [&unknown, &known] {
        assert!(prefix.read(line).is_none());
    }
    let mut failed = HashSet::new();
    assert!(match_items(&prefix.items, &known, 0, Fields::default(), take_part, &mut failed).is_none());
    assert!(failed.len() <= prefix.items.len() * known.len());
}

#[test]
fn a_prefix_without_session_or_time_is_refused() {
    for (text, message) in [
        ("%m ", "the prefix \"%m \" does not say which session"),
        ("[%p] ", "the prefix \"[%p] \" does not say which session"),
        ("%m [%p] %z", "the prefix \"%m [%p] %z\" has %z, which"),
        ("%m [%p] %", "the prefix \"%m [%p] %\" ends within"),
    ] {
        assert!(Prefix::parse(text).unwrap_err().to_string().starts_with(message), "{text}");
    }
}

#[test]
fn a_field_has_no_other_one_in_it() {
    // The message before this one was cut off within its prefix.
    let whole = "2026-11-23 08:00:00.123 UTC";
    for (prefix, begin) in [
        ("%m %p %x/%v %d: ", "2026-11-23 08:00:00.123 UTC 77 0/3/17 db: "),
        ("%c %b %m ", "6560a1b2.4d client backend 2026-11-23 08:00:00.123 UTC "),
        ("%m [%p] [%Q] ", "2026-11-23 08:00:00.123 UTC [77] [-5] "),
    ] {
        let line = format!("{begin}LOG:  a");
        assert!(record(prefix, &line).is_some(), "{line}");
        for torn in 1..begin.len() {
            let read = record(prefix, &format!("{}{line}", &begin[..torn]));
            assert!(read.is_none(), "{prefix}, torn at {torn}: {read:?}");
        }
    }
    let worker = format!("6560a1b2.4d pglogical apply 16384:2 {whole} LOG:  a");
    assert_eq!(record("%c %b %m ", &worker).unwrap().0.backend_type, "pglogical apply 16384:2");
}

#[test]
fn a_message_in_an_unknown_language_is_one() {
    let line = "2026-11-23 08:00:00.123 UTC [77] DZIENNIK:  zapytanie: SELECT 1";
    let (_, part, text) = record("%m [%p] ", line).unwrap();
    assert_eq!((part, text.as_str()), (Part::Foreign("another language"), "zapytanie: SELECT 1"));
    for other in ["2026-11-23 08:00:00.123 UTC [77] Note:  x", "DZIENNIK:  x"] {
        assert!(record("%m [%p] ", other).is_none(), "{other}");
    }
}
