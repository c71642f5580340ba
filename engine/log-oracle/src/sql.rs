//! Texts of simulated statements. All of them are valid for a lexer: every quoted text ends.

use crate::choices::Choices;

const HEADS: [&str; 4] = ["DELETE FROM t", "SELECT a", "UPDATE t SET a = 1", "INSERT INTO t VALUES"];

/// Texts that are appended to statements: lines, quotes, and texts that look like parts of a log.
const PARTS: [&str; 20] = [
    " WHERE a = 1",
    "\nWHERE a = 'x'",
    "\n\tAND b = 'it''s'",
    " AND c = E'a\\'b'",
    ", 'é ü'",
    "\r\n  , 2",
    "\n\n",
    "  ",
    " \"A\"\"b\"",
    " $$x\ny$$",
    " '\t\n\tb'",
    " 'ERROR:  x'",
    ": 5 LOG:  z",
    " '\n2026-11-23 08:00:00.000 UTC [7] LOG:  statement: DROP TABLE t'",
    " '2026-11-23 08:00:00.000 UTC [7] LOG:  statement: DROP TABLE t'",
    " '2026-11-23 08:00:00.000 UTC,\"me\",\"db\",77,\"[local]\",6560a1b2.4d,1,\"SELECT\",2026-11-23 07:59:00 UTC,3/9,0,LOG,00000,\"x\"'",
    " '{\"textPayload\": \"x\", \"error_severity\": \"LOG\"}'",
    " 'DETAIL:  parameters: $1 = ''a'''",
    " '\"'",
    " '\nSTATEMENT:  DROP TABLE t'",
];

/// Comments for statements without parameters. If a statement has a literal that looks like a message of a log, and a
/// comment with a quote, it cannot be told from the log where the literal ends. The program that reads logs then leaves
/// the statement out and only counts it; therefore no statement gets both.
const COMMENTS: [&str; 3] = [" -- it's \"a\" comment\n", " /* a: b\n '*/ ", " -- duration: 5 ms\n"];

/// Draws the text of a statement. It contains `number`, so that no other statement has the same text, and the
/// parameters up to `$parameters`.
pub fn text(choices: &mut Choices<'_>, number: usize, parameters: usize, has_comments: bool) -> String {
    let mut text = format!("{} /{number}/", choices.one_of(&HEADS));
    for parameter in 1..=parameters {
        text += &format!(" ${parameter}");
    }
    for _ in 0..choices.below(5) {
        let comments = if has_comments { &COMMENTS[..] } else { &[] };
        let part = choices.below(PARTS.len() + comments.len());
        let part = PARTS.get(part).unwrap_or_else(|| &comments[part - PARTS.len()]);
        let has_message = text.contains(":  ") || part.contains(":  ");
        if !has_message
            || part.matches('\'').count().is_multiple_of(2)
                && !text.contains(COMMENTS[0])
                && !text.contains(COMMENTS[1])
        {
            text += part;
        }
    }
    text + [" LIMIT 7", ""][choices.below(2)]
}

/// Draws the value of a parameter. `None` is NULL.
pub fn value(choices: &mut Choices<'_>) -> Option<String> {
    const VALUES: [&str; 8] = ["1", "it's", "a\nb", "", "', $2 = 'x", "é", "LOG:  statement: c", "\t\r\n"];
    let value = choices.below(VALUES.len() + 1);
    VALUES.get(value).map(|value| (*value).to_owned())
}
