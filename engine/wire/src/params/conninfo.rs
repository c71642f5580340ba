//! Connection strings: `keyword=value ...`, and URIs such as
//! `postgresql://[user[:password]@][host[:port][,...]][/dbname][?keyword=value&...]`.

use percent_encoding::percent_decode;

use super::error::ParamsError;
use super::options::{Options, is_space};
use ground::text;

/// Reads the text that was given as a database name, and stores its values in the options in place of earlier values.
/// The text is a connection URI, a connection string or, if it is neither, the name.
pub fn parse(dbname: &str, options: &mut Options) -> Result<(), ParamsError> {
    if prefix_length(dbname) > 0 {
        parse_uri(dbname, options)
    } else if dbname.contains('=') {
        parse_pairs(dbname, options)
    } else if dbname.is_empty() {
        Ok(())
    } else {
        options.store("dbname", dbname)
    }
}

/// Reads a connection string, and stores its values in the options in place of earlier values.
///
/// Values may be quoted with `'`. A backslash makes the next character an ordinary one, inside and outside of quotes.
/// The `=` may have blanks around it. Source: PostgreSQL 18 documentation, 32.1.1.1.
fn parse_pairs(text: &str, options: &mut Options) -> Result<(), ParamsError> {
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after
            .trim_start_matches(is_space)
            .strip_prefix('=')
            .ok_or_else(|| ParamsError::NoEqualsSign(name.to_owned()))?
            .trim_start_matches(is_space);
        let (value, after) = match after.strip_prefix('\'') {
            None => value(after, is_space),
            Some(quoted) => match value(quoted, |c| c == '\'') {
                (_, None) => return Err(ParamsError::OpenQuote),
                (value, Some(end)) => (value, Some(&end[1..])),
            },
        };
        options.store(name, &value)?;
        rest = after.unwrap_or_default().trim_start_matches(is_space);
    }
    Ok(())
}

/// Reads a value up to its end. Returns the value, and the rest of the text from the end on, or `None` if the end is
/// missing. A backslash makes the next character an ordinary one.
fn value(text: &str, is_end: impl Fn(char) -> bool) -> (String, Option<&str>) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            end if is_end(end) => return (value, Some(&text[at..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, None)
}

/// Returns the length of the URI's scheme, or 0 if the text is not a connection URI.
fn prefix_length(text: &str) -> usize {
    ["postgresql://", "postgres://"].into_iter().find(|prefix| text.starts_with(prefix)).map_or(0, str::len)
}

/// Reads a connection URI, and stores its values in the options in place of earlier values. Empty parts of the URI set
/// nothing.
///
/// Source: PostgreSQL 18 documentation, 32.1.1.2. Errors never quote the password.
fn parse_uri(uri: &str, options: &mut Options) -> Result<(), ParamsError> {
    let mut rest = &uri[prefix_length(uri)..];
    if let Some((credentials, after)) = split_credentials(rest) {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        store(options, "user", user)?;
        store(options, "password", password)?;
        rest = after;
    }

    let mut hosts = String::new();
    let mut ports = String::new();
    loop {
        let (host, after) = split_host(rest, uri)?;
        hosts.push_str(host);
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            let (port, after) = split_at_any(after, "/?,");
            ports.push_str(port);
            rest = after;
        }
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => break,
        }
        hosts.push(',');
        ports.push(',');
    }
    store(options, "host", &hosts)?;
    store(options, "port", &ports)?;

    if let Some(after) = rest.strip_prefix('/') {
        let (dbname, after) = split_at_any(after, "?");
        store(options, "dbname", dbname)?;
        rest = after;
    }
    match rest.strip_prefix('?') {
        Some(query) => parse_query(query, options),
        None => Ok(()),
    }
}

/// Splits the text at the first `@`, if there is one before the first `/`.
fn split_credentials(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['@', '/'])?;
    text[at..].strip_prefix('@').map(|after| (&text[..at], after))
}

/// Returns the first host without the brackets of an IPv6 address, and the text after it.
fn split_host<'a>(text: &'a str, uri: &str) -> Result<(&'a str, &'a str), ParamsError> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return Ok(split_at_any(text, ":/?,"));
    };
    let (host, after) = bracketed.split_once(']').ok_or_else(|| ParamsError::OpenBracket(without_password(uri)))?;
    if host.is_empty() {
        return Err(ParamsError::EmptyAddress(without_password(uri)));
    }
    match after.chars().next() {
        Some(character) if !":/?,".contains(character) => {
            let position = uri.len() - after.len() + 1;
            Err(ParamsError::UnexpectedCharacter { character, position, uri: without_password(uri) })
        }
        _ => Ok((host, after)),
    }
}

/// Splits the text before the first of the characters in `ends`.
fn split_at_any<'a>(text: &'a str, ends: &str) -> (&'a str, &'a str) {
    text.split_at(text.find(|c| ends.contains(c)).unwrap_or(text.len()))
}

fn parse_query(query: &str, options: &mut Options) -> Result<(), ParamsError> {
    let mut rest = query;
    while !rest.is_empty() {
        let (parameter, after) = rest.split_once('&').unwrap_or((rest, ""));
        rest = after;
        let (keyword, value) =
            parameter.split_once('=').ok_or_else(|| ParamsError::NoSeparator(parameter.to_owned()))?;
        if value.contains('=') {
            return Err(ParamsError::ExtraSeparator(keyword.to_owned()));
        }
        let keyword = decode(keyword, keyword)?;
        let value = decode(value, &quotable(&keyword, value))?;
        // The JDBC driver's parameter for encryption.
        let (keyword, value) = match (keyword.as_str(), value.as_str()) {
            ("ssl", "true") => ("sslmode", "require"),
            other => other,
        };
        options.store(keyword, value).map_err(|_| ParamsError::UnknownQueryParameter(keyword.to_owned()))?;
    }
    Ok(())
}

fn store(options: &mut Options, keyword: &str, encoded: &str) -> Result<(), ParamsError> {
    if encoded.is_empty() {
        return Ok(());
    }
    options.store(keyword, &decode(encoded, &quotable(keyword, encoded))?)
}

/// Returns the value as an error message may show it: asterisks in place of a password or another secret.
fn quotable(keyword: &str, value: &str) -> String {
    match keyword {
        "password" | "sslpassword" | "oauth_client_secret" => "***".to_owned(),
        _ => value.to_owned(),
    }
}

/// Returns the URI in the form in which an error message may show it, without the password.
fn without_password(uri: &str) -> String {
    let start = prefix_length(uri);
    match split_credentials(&uri[start..]) {
        Some((credentials, after)) if credentials.contains(':') => {
            let (user, _) = credentials.split_once(':').unwrap_or((credentials, ""));
            format!("{}{user}:***@{after}", &uri[..start])
        }
        _ => uri.to_owned(),
    }
}

/// Replaces each `%xy` by the byte that it stands for, and drops blanks at both ends. Unlike the URL standard,
/// malformed `%` sequences are errors.
fn decode(encoded: &str, quotable: &str) -> Result<String, ParamsError> {
    let encoded = encoded.trim_matches(' ');
    let (word, more) = encoded.split_at(encoded.find(' ').unwrap_or(encoded.len()));
    for token in word.split('%').skip(1) {
        match token.get(..2) {
            Some("00") => return Err(ParamsError::ZeroByte(quotable.to_owned())),
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {}
            _ => return Err(ParamsError::InvalidToken(quotable.to_owned())),
        }
    }
    if !more.is_empty() {
        return Err(ParamsError::UnexpectedSpaces(quotable.to_owned()));
    }
    Ok(text::of(&percent_decode(&text::bytes(word)).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Options, ParamsError> {
        let mut options = Options::default();
        parse(text, &mut options).map(|()| options)
    }

    fn message(text: &str) -> String {
        parsed(text).err().unwrap().to_string()
    }

    fn value(uri: &str, keyword: &str) -> Option<String> {
        parsed(uri).unwrap().get(keyword).map(str::to_owned)
    }

    #[test]
    fn blanks_may_surround_everything() {
        let options = parsed("  host = a\tport=\n1  dbname='x y'user=u").unwrap();
        assert_eq!(options.get("host"), Some("a"));
        assert_eq!(options.get("port"), Some("1"));
        assert_eq!(options.get("dbname"), Some("x y"));
        assert_eq!(options.get("user"), Some("u"));
    }

    #[test]
    fn backslashes_escape_inside_and_outside_of_quotes() {
        let options = parsed(r"password='it\'s \\' user=a\ b\'c\").unwrap();
        assert_eq!(options.get("password"), Some(r"it's \"));
        assert_eq!(options.get("user"), Some("a b'c"));
    }

    #[test]
    fn a_value_may_be_empty() {
        assert_eq!(parsed("host='' port=1").unwrap().get("host"), Some(""));
        assert_eq!(parsed("host=").unwrap().get("host"), Some(""));
        let swallowed = parsed("host= port=1").unwrap();
        assert_eq!(swallowed.get("host"), Some("port=1"));
    }

    #[test]
    fn errors_have_libpq_wording() {
        assert_eq!(message("host port=1"), "missing \"=\" after \"host\" in connection info string");
        assert_eq!(message("host='a"), "unterminated quoted string in connection info string");
        assert_eq!(message("hots=a"), "invalid connection option \"hots\"");
        assert_eq!(message("=a"), "invalid connection option \"\"");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = parsed(&text);
        }

        #[test]
        fn a_quoted_value_comes_back_as_it_was(value in "[^\0]{0,40}") {
            let quoted = value.replace('\\', r"\\").replace('\'', r"\'");
            let options = parsed(&format!("user = '{quoted}' port=7")).unwrap();
            prop_assert_eq!(options.get("user"), Some(value.as_str()));
            prop_assert_eq!(options.get("port"), Some("7"));
        }
    }

    #[test]
    fn all_parts_are_read() {
        let options = parsed("postgresql://u%40x:p%3a%2F@h1:1,[::1]:2/d%20b?application_name=%C3%A9&ssl=true");
        let options = options.unwrap();
        assert_eq!(options.get("user"), Some("u@x"));
        assert_eq!(options.get("password"), Some("p:/"));
        assert_eq!(options.get("host"), Some("h1,::1"));
        assert_eq!(options.get("port"), Some("1,2"));
        assert_eq!(options.get("dbname"), Some("d b"));
        assert_eq!(options.get("application_name"), Some("é"));
        assert_eq!(options.get("sslmode"), Some("require"));
    }

    #[test]
    fn missing_parts_set_nothing() {
        for uri in ["postgres://", "postgresql:///", "postgresql://@", "postgresql://?"] {
            let options = parsed(uri).unwrap();
            for keyword in ["user", "password", "host", "port", "dbname"] {
                assert_eq!(options.get(keyword), None, "{keyword} in {uri}");
            }
        }
        assert_eq!(value("postgresql:///d", "dbname").as_deref(), Some("d"));
        assert_eq!(value("postgresql://h?port=3", "port").as_deref(), Some("3"));
        assert_eq!(value("postgresql://a,b:2", "port").as_deref(), Some(",2"));
        assert_eq!(value("postgresql://%2Ftmp/d", "host").as_deref(), Some("/tmp"));
    }

    #[test]
    fn blanks_at_the_ends_of_a_part_are_dropped() {
        assert_eq!(value("postgres://h: 5 / d ", "port").as_deref(), Some("5"));
        assert_eq!(value("postgres://h: 5 / d ", "dbname").as_deref(), Some("d"));
        assert_eq!(
            message("postgres:///a b"),
            "unexpected spaces found in \"a b\", use percent-encoded spaces (%20) instead"
        );
    }

    #[test]
    fn errors_in_uris_have_libpq_wording() {
        assert_eq!(
            message("postgres://[::1"),
            "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"postgres://[::1\""
        );
        assert_eq!(message("postgres://[]/"), "IPv6 host address may not be empty in URI: \"postgres://[]/\"");
        assert_eq!(
            message("postgres://[::1]z"),
            "unexpected character \"z\" at position 17 in URI (expected \":\" or \"/\"): \"postgres://[::1]z\""
        );
        assert_eq!(message("postgres://h?a"), "missing key/value separator \"=\" in URI query parameter: \"a\"");
        assert_eq!(
            message("postgres://h?host=b=c"),
            "extra key/value separator \"=\" in URI query parameter: \"host\""
        );
        assert_eq!(message("postgres://h?a=b"), "invalid URI query parameter: \"a\"");
        assert_eq!(message("postgres://%zz"), "invalid percent-encoded token: \"%zz\"");
        assert_eq!(message("postgres://h/%1"), "invalid percent-encoded token: \"%1\"");
        assert_eq!(message("postgres://h/a%00"), "forbidden value %00 in percent-encoded value: \"a%00\"");
    }

    #[test]
    fn errors_never_quote_the_password() {
        for uri in [
            "postgres://u:secret%zz@h",
            "postgres://u:secret@[::1",
            "postgres://u:secret@[]",
            "postgres://u:secret@[::1]x",
            "postgres://h?password=secret%zz",
        ] {
            assert!(!message(uri).contains("secret"), "{}", message(uri));
        }
    }

    proptest! {
        #[test]
        fn any_uri_is_read_or_refused(text in "[\\[\\]@:/?,&=% a0-9é]{0,60}") {
            let _ = parsed(&format!("postgres://{text}"));
        }

        #[test]
        fn an_encoded_name_comes_back_as_it_was(name in "[^\0]{1,20}") {
            use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
            let uri = format!("postgres://h/{}", utf8_percent_encode(&name, NON_ALPHANUMERIC));
            prop_assert_eq!(value(&uri, "dbname"), Some(name));
        }
    }
}
