//! What kind of answer a statement wants, told from its words: nothing is executed.

/// What a statement does to the session, and what its answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing but blanks and comments.
    Empty,
    Begin(&'static str),
    /// COMMIT or END.
    Commit,
    Rollback,
    /// ROLLBACK TO SAVEPOINT: the transaction goes on.
    RollbackTo,
    /// One row.
    Rows(Table, Tag),
    CopyIn,
    CopyOut,
    /// No rows.
    Done(Tag),
}

/// The rows that the server knows; each table has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `abalance`, 0: the answer to whatever has no other.
    Balance,
    /// The number of branches.
    Branches,
    /// The survey of partitions before a run: strategy and count.
    Partitions,
    /// The same with the place in the search path before them.
    PlacedPartitions,
}

/// The words of a CommandComplete message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    Known(&'static str),
    /// The statement's own first words in capitals: their number of bytes, and they.
    Words(u8, [u8; LONGEST_TAG]),
}

const LONGEST_TAG: usize = 30;

impl Tag {
    /// The words.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Tag::Known(text) => text.as_bytes(),
            Tag::Words(length, bytes) => &bytes[..usize::from(*length)],
        }
    }
}

/// Whether a client asks this before a run, as pgbench does: such a statement is never delayed.
pub fn is_survey(kind: &Kind) -> bool {
    matches!(kind, Kind::Rows(Table::Branches | Table::Partitions | Table::PlacedPartitions, _))
}

/// The kind of one statement.
pub fn classify(text: &[u8]) -> Kind {
    let text = skip_blanks(text);
    let (first, rest) = word(text);
    if first.is_empty() {
        return if text.is_empty() { Kind::Empty } else { Kind::Rows(Table::Balance, Tag::Known("SELECT 1")) };
    }
    let is = |name: &str| first.eq_ignore_ascii_case(name.as_bytes());
    if is("select") {
        return Kind::Rows(table(text), Tag::Known("SELECT 1"));
    }
    if is("begin") {
        return Kind::Begin("BEGIN");
    }
    if is("end") || (is("commit") && !second_is(rest, "prepared")) {
        return Kind::Commit;
    }
    let changes = [("update", "UPDATE 1"), ("insert", "INSERT 0 1"), ("delete", "DELETE 1"), ("merge", "MERGE 1")];
    if let Some((_, tag)) = changes.iter().find(|(name, _)| is(name)) {
        let tag = Tag::Known(tag);
        return if contains(rest, b"returning") { Kind::Rows(Table::Balance, tag) } else { Kind::Done(tag) };
    }
    if is("rollback") || is("abort") {
        return if second_is(rest, "to") || contains(rest, b" to ") { Kind::RollbackTo } else { Kind::Rollback };
    }
    if is("start") {
        return Kind::Begin("START TRANSACTION");
    }
    if ["with", "values", "table"].iter().any(|name| is(name)) {
        return Kind::Rows(Table::Balance, Tag::Known("SELECT 1"));
    }
    if is("show") || is("explain") {
        return Kind::Rows(Table::Balance, Tag::Known(if is("show") { "SHOW" } else { "EXPLAIN" }));
    }
    if is("copy") {
        return if contains(rest, b"stdin") { Kind::CopyIn } else { Kind::CopyOut };
    }
    if is("truncate") {
        return Kind::Done(Tag::Known("TRUNCATE TABLE"));
    }
    let two_words = ["create", "drop", "alter"].iter().any(|name| is(name));
    Kind::Done(own_words(first, if two_words { word(rest).0 } else { b"" }))
}

/// Cuts the first statement off, without its semicolon. What is quoted or in a comment ends no statement.
pub fn split(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < text.len() {
        at = match text[at] {
            b';' => return (&text[..at], &text[at + 1..]),
            b'\'' => {
                let escapes = at > 0 && matches!(text[at - 1], b'e' | b'E');
                quoted(text, at, escapes)
            }
            b'"' => quoted(text, at, false),
            b'-' | b'/' => comment(text, at).unwrap_or(at + 1),
            b'$' => dollar_quoted(text, at),
            _ => at + 1,
        };
    }
    (text, b"")
}

/// The highest number of a parameter `$1`, `$2`, ... in a statement.
pub fn parameters(text: &[u8]) -> u16 {
    let mut highest = 0;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'$') {
        at += found + 1;
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count().min(6);
        let number = text[at..at + digits].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        highest = highest.max(number.min(u32::from(u16::MAX)) as u16);
    }
    highest
}

fn table(text: &[u8]) -> Table {
    if contains(text, b"pgbench_branches") && contains(text, b"count(*)") {
        Table::Branches
    } else if !contains(text, b"pg_partitioned_table") {
        Table::Balance
    } else if contains(text, b"o.n") {
        Table::PlacedPartitions
    } else {
        Table::Partitions
    }
}

fn second_is(rest: &[u8], name: &str) -> bool {
    word(rest).0.eq_ignore_ascii_case(name.as_bytes())
}

fn own_words(first: &[u8], second: &[u8]) -> Tag {
    let mut bytes = [b' '; LONGEST_TAG];
    let room = |used: usize, word: &[u8]| word.len().min(LONGEST_TAG - used);
    let mut length = room(0, first);
    bytes[..length].copy_from_slice(&first[..length]);
    if !second.is_empty() && length + 1 < LONGEST_TAG {
        let begin = length + 1;
        length = begin + room(begin, second);
        bytes[begin..length].copy_from_slice(&second[..length - begin]);
    }
    bytes.make_ascii_uppercase();
    Tag::Words(length as u8, bytes)
}

/// The word that the text begins with, after blanks, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = skip_blanks(text);
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(text.len());
    text.split_at(end)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let mut at = 0;
    while at < text.len() {
        at = match text[at] {
            blank if blank.is_ascii_whitespace() => at + 1,
            b'-' | b'/' => match comment(text, at) {
                Some(end) => end,
                None => break,
            },
            _ => break,
        };
    }
    &text[at.min(text.len())..]
}

/// The end of the comment that begins at `at`, if one does.
fn comment(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..at + 2)? {
        b"--" => Some(text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end + 1)),
        b"/*" => {
            let mut depth = 0;
            let mut at = at;
            while at < text.len() {
                match text.get(at..at + 2) {
                    Some(b"/*") => depth += 1,
                    Some(b"*/") => depth -= 1,
                    _ => {
                        at += 1;
                        continue;
                    }
                }
                at += 2;
                if depth == 0 {
                    break;
                }
            }
            Some(at)
        }
        _ => None,
    }
}

/// The end of what is quoted from `at` on by the character there; doubled, that character stands for itself, but then
/// another quoted piece just begins.
fn quoted(text: &[u8], at: usize, escapes: bool) -> usize {
    let mut end = at + 1;
    while end < text.len() && text[end] != text[at] {
        end += if escapes && text[end] == b'\\' { 2 } else { 1 };
    }
    end + 1
}

/// The end of what is quoted in dollars from `at` on; of the dollar itself if it begins no such piece.
fn dollar_quoted(text: &[u8], at: usize) -> usize {
    let tag = text[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let begin = at + tag + 2;
    if text.get(begin - 1) != Some(&b'$') || text[at + 1].is_ascii_digit() {
        return at + 1;
    }
    let mark = &text[at..begin];
    text[begin..].windows(mark.len()).position(|bytes| bytes == mark).map_or(text.len(), |end| begin + end + mark.len())
}

/// Whether lower-case `wanted` is in the text, in whatever case.
fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|bytes| bytes.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(text: &str) -> String {
        match classify(text.as_bytes()) {
            Kind::Done(tag) | Kind::Rows(_, tag) => String::from_utf8(tag.bytes().to_vec()).unwrap(),
            other => format!("{other:?}"),
        }
    }

    fn statements(text: &str) -> Vec<String> {
        let mut rest = text.as_bytes();
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (statement, after) = split(rest);
            found.push(String::from_utf8(statement.to_vec()).unwrap());
            rest = after;
        }
        found
    }

    #[test]
    fn transactions_begin_and_end() {
        assert_eq!(classify(b" begin isolation level serializable"), Kind::Begin("BEGIN"));
        assert_eq!(classify(b"START TRANSACTION"), Kind::Begin("START TRANSACTION"));
        assert_eq!(classify(b"/* a /* b */ c */ end -- now"), Kind::Commit);
        assert_eq!(classify(b"-- no\nROLLBACK"), Kind::Rollback);
        assert_eq!(classify(b"rollback work to savepoint a"), Kind::RollbackTo);
        assert_eq!(classify(b"rollback to a"), Kind::RollbackTo);
        assert_eq!(classify(b" -- nothing"), Kind::Empty);
    }

    #[test]
    fn rows_are_the_balance_unless_a_run_is_surveyed() {
        let table = |text: &str| match classify(text.as_bytes()) {
            Kind::Rows(table, _) => table,
            other => panic!("{other:?}"),
        };
        assert_eq!(table("select abalance from pgbench_accounts where aid = 1"), Table::Balance);
        assert_eq!(table("(select 1)"), Table::Balance);
        assert_eq!(table("update t set a = 1 returning a"), Table::Balance);
        assert_eq!(table("select count(*) from pgbench_branches"), Table::Branches);
        assert_eq!(table("select o.n, p.partstrat from pg_catalog.pg_partitioned_table as p"), Table::PlacedPartitions);
        assert_eq!(table("select p.partstrat from pg_catalog.pg_partitioned_table as p"), Table::Partitions);
    }

    #[test]
    fn tags_are_the_servers() {
        for (text, expected) in [
            ("UPDATE a SET b = 1", "UPDATE 1"),
            ("insert into a values (1)", "INSERT 0 1"),
            ("create table a (b int)", "CREATE TABLE"),
            ("vacuum analyze a", "VACUUM"),
            ("truncate a", "TRUNCATE TABLE"),
            ("set a = 1", "SET"),
        ] {
            assert_eq!(tag(text), expected);
        }
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        assert_eq!(statements("a; b ;c"), ["a", " b ", "c"]);
        assert_eq!(
            statements("';''' ; \";\" ; e'\\';' /* ; /* */ ; */ -- ;\n ; $$;$$ $a$;$$;$a$"),
            ["';''' ", " \";\" ", " e'\\';' /* ; /* */ ; */ -- ;\n ", " $$;$$ $a$;$$;$a$"]
        );
        assert_eq!(statements("$1;2"), ["$1", "2"]);
    }

    #[test]
    fn parameters_are_counted_by_their_highest_number() {
        for (text, expected) in [("", 0), ("$1 $10 $2", 10), ("$", 0), ("$999999999", u16::MAX)] {
            assert_eq!(parameters(text.as_bytes()), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_into_its_bytes(text in "[a-e \\\\'\"$/*;0-9\n-]{0,60}") {
            let mut rest = text.as_bytes();
            let mut joined = Vec::new();
            while !rest.is_empty() {
                let (statement, after) = split(rest);
                classify(statement);
                joined.extend_from_slice(statement);
                if statement.len() < rest.len() {
                    joined.push(b';');
                }
                rest = after;
            }
            prop_assert_eq!(joined, text.into_bytes());
        }
    }
}
