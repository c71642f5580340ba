//! The files from which connection parameters are read: service files and password files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::ParamsError;
use super::options::{Options, is_known, is_space, non_empty};
use super::types::Password;
use ground::text;

/// The size in bytes of the buffer into which libpq reads lines of these files.
const LINE_BUFFER: usize = 1024;

/// Adds the parameters of the service that `service` or `PGSERVICE` names, except for parameters that are already set.
///
/// The service is looked up in the file `PGSERVICEFILE` or, if that is not set, in `~/.pg_service.conf`, and then in
/// the machine-wide file. Source: PostgreSQL 18 documentation, 32.17.
pub fn fill_from_service(options: &mut Options, env: &dyn Environment) -> Result<(), ParamsError> {
    let named = options.get("service").map(str::to_owned);
    let Some(service) = named.or_else(|| env.var("PGSERVICE")) else {
        return Ok(());
    };
    let personal = match env.var("PGSERVICEFILE") {
        Some(file) => Some(text::path(&file)),
        None => env.home().map(|home| home.join(".pg_service.conf")).filter(|file| file.exists()),
    };
    let system = match env.var("PGSYSCONFDIR") {
        Some(directory) => vec![text::path(&directory)],
        None => env.system_directories(),
    };
    let system = system.into_iter().map(|directory| directory.join("pg_service.conf")).filter(|file| file.exists());
    for file in personal.into_iter().chain(system) {
        if fill_from_file(&file, &service, options)? {
            return Ok(());
        }
    }
    Err(ParamsError::UnknownService(service))
}

/// Adds the parameters of the service from one file. Returns true if the file has the service.
fn fill_from_file(file: &Path, service: &str, options: &mut Options) -> Result<bool, ParamsError> {
    let name = text::of_path(file);
    let content = std::fs::read(file).map_err(|_| ParamsError::NoServiceFile(name.clone()))?;
    fill_from_text(&text::of(&content), &name, service, options)
}

fn fill_from_text(text: &str, file: &str, service: &str, options: &mut Options) -> Result<bool, ParamsError> {
    let mut found = false;
    for (line, content) in (1..).zip(text.lines()) {
        if content.len() >= LINE_BUFFER - 1 {
            return Err(ParamsError::LongServiceLine { file: file.to_owned(), line });
        }
        let content = content.trim_matches(is_space);
        if let Some(header) = content.strip_prefix('[') {
            if found {
                break;
            }
            found = header.strip_prefix(service).is_some_and(|after| after.starts_with(']'));
        } else if found && !content.is_empty() && !content.starts_with('#') {
            let file = || file.to_owned();
            match content.split_once('=') {
                Some(("service", _)) => return Err(ParamsError::NestedService { file: file(), line }),
                Some((keyword, _)) if options.get(keyword).is_some() => {}
                Some((keyword, value)) if is_known(keyword) => options.store(keyword, value)?,
                _ => return Err(ParamsError::ServiceSyntax { file: file(), line }),
            }
        }
    }
    Ok(found)
}

/// The passwords of one user for one database, from all sources.
pub struct Passwords {
    /// The password for all hosts, from the connection string, the service or `PGPASSWORD`.
    given: Option<String>,
    /// The password file and its content. Used only if there is no password for all hosts.
    file: Option<(PathBuf, String)>,
    dbname: String,
    user: String,
}

impl Passwords {
    /// Finds the password for all hosts or, if none is given, reads the password file (`passfile`, `PGPASSFILE`,
    /// `~/.pgpass`).
    ///
    /// A file that is missing or unreadable has no password. A file that other accounts may read is ignored, with a
    /// warning.
    pub fn for_session(
        options: &Options,
        user: &str,
        dbname: &str,
        env: &dyn Environment,
        warnings: &mut Vec<String>,
    ) -> Self {
        let given = non_empty(options.get("password")).map(str::to_owned);
        let named = non_empty(options.get("passfile")).map(text::path);
        let path = named.or_else(|| Some(env.home()?.join(".pgpass"))).filter(|_| given.is_none());
        let file = path.and_then(|path| {
            let text = read(&path, warnings)?;
            Some((path, text))
        });
        Self { given, file, dbname: dbname.to_owned(), user: user.to_owned() }
    }

    /// Returns the password for a host. The host is named as in the password file: `localhost` for the default socket
    /// directory.
    pub fn find(&self, host: &str, port: &str) -> Option<Password> {
        let password = match (&self.given, &self.file) {
            (Some(password), _) => Password::new(password),
            (None, Some((path, text))) => {
                let text = lookup(text, [host, port, &self.dbname, &self.user])?;
                Password { text, file: Some(path.clone()) }
            }
            (None, None) => return None,
        };
        // An empty password counts as no password: libpq then reports that no password was supplied.
        Some(password).filter(|password| !password.reveal().is_empty())
    }
}

fn read(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() {
        let path = text::of_path(path);
        warnings.push(format!("WARNING: password file \"{path}\" is not a plain file"));
        return None;
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        warnings.push(format!(
            "WARNING: password file \"{}\" has group or world access; permissions should be u=rw (0600) or less",
            text::of_path(path)
        ));
        return None;
    }
    let content = std::fs::read(path).ok()?;
    Some(text::of(&content))
}

/// Returns the password in the first line of a password file whose four fields match.
fn lookup(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .find_map(|line| wanted.into_iter().try_fold(line, after_matching_field).map(unescaped_field))
}

/// Returns the rest of a line after its first field, if that field is `*` or, without its backslashes, equal to
/// `wanted`. As in libpq, a colon in the wanted text needs no backslash in the file.
fn after_matching_field<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    let matching = |rest: &'a str, character| rest.strip_prefix('\\').unwrap_or(rest).strip_prefix(character);
    line.strip_prefix("*:").or_else(|| wanted.chars().try_fold(line, matching)?.strip_prefix(':'))
}

/// Returns the first field of a line without its backslashes. A backslash at the end of the text is kept.
fn unescaped_field(text: &str) -> String {
    let mut field = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' => break,
            '\\' => field.push(characters.next().unwrap_or('\\')),
            other => field.push(other),
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(text: &str) -> Result<(bool, Options), ParamsError> {
        let mut options = Options::default();
        options.store("user", "given").unwrap();
        fill_from_text(text, "f", "s", &mut options).map(|found| (found, options))
    }

    fn message(text: &str) -> String {
        filled(text).err().unwrap().to_string()
    }

    #[test]
    fn a_service_sets_what_nobody_set_and_ends_at_the_next() {
        let text = "[x]\nhost=no\n # c\n  [s] \nhost=yes\nuser=no\ndbname= d=e \nhost=no\n[s]\nport=9\n";
        let (found, options) = filled(text).unwrap();
        assert!(found);
        assert_eq!(options.get("host"), Some("yes"));
        assert_eq!(options.get("user"), Some("given"));
        assert_eq!(options.get("dbname"), Some(" d=e"));
        assert_eq!(options.get("port"), None);
    }

    #[test]
    fn an_unknown_service_is_not_found() {
        assert!(!filled("[sx]\nhost=a\n[S]\nhost=b\n").unwrap().0);
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        assert_eq!(message("[s]\n\nhost"), "syntax error in service file \"f\", line 3");
        assert_eq!(message("[s]\nhots=a"), "syntax error in service file \"f\", line 2");
        assert_eq!(
            message("[s]\nservice=a"),
            "nested service specifications not supported in service file \"f\", line 2"
        );
        let long = format!("#\n#{}", "x".repeat(1023));
        assert_eq!(message(&long), "line 2 too long in service file \"f\"");
    }

    proptest! {
        #[test]
        fn any_service_file_is_read_or_refused(text in "(\\[s\\]|[a-z=#\\[\\] \n\r])*") {
            let _ = filled(&text);
        }
    }

    fn found(text: &str) -> Option<String> {
        lookup(text, ["h", "5432", "d", "u"])
    }

    #[test]
    fn the_first_line_that_matches_wins() {
        let text = "x:5432:d:u:1\nh:*:d:u:2\r\nh:5432:d:u:3\n";
        assert_eq!(found(text).as_deref(), Some("2"));
        assert_eq!(found("*:*:*:*:w").as_deref(), Some("w"));
        assert_eq!(found("#*:*:*:*:w"), None);
        assert_eq!(found("h:5432:d:u"), None);
        assert_eq!(found("h:5432:d:ux:p"), None);
        assert_eq!(found("h*:5432:d:u:p"), None);
    }

    #[test]
    fn backslashes_protect_colons_and_backslashes() {
        let text = r"::1:5432:d:u:no
\:\:1:5432:d\\:u:a\:b\\c:ignored";
        let password = lookup(text, ["::1", "5432", r"d\", "u"]);
        assert_eq!(password.as_deref(), Some(r"a:b\c"));
        assert_eq!(unescaped_field(r"a\"), r"a\");
    }

    /// Compares fields that are not escaped as the documentation demands with `pwdfMatchesString` of libpq 18.
    #[test]
    fn a_colon_of_the_text_needs_no_backslash() {
        let host = |line: &str, host: &str| lookup(line, [host, "5432", "d", "u"]);
        assert_eq!(host("::1:5432:d:u:p", "::1").as_deref(), Some("p"));
        assert_eq!(host(r":\:1:5432:d:u:p", "::1").as_deref(), Some("p"));
        assert_eq!(host(r"\h:5432:d:u:p", "h").as_deref(), Some("p"));
        assert_eq!(host("*:5432:d:u:p", "::1").as_deref(), Some("p"));
        for line in
            ["::1:1:5432:d:u:p", r"::1\:5432:d:u:p", ":1:5432:d:u:p", "**:5432:d:u:p", r"\*:5432:d:u:p", r"::1\"]
        {
            assert_eq!(host(line, "::1"), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_searched(text in "[*:\\\\#a\n]{0,60}", host in "[a:*\\\\]{0,4}") {
            let _ = lookup(&text, [&host, "a", "a", "a"]);
        }

        #[test]
        fn escaped_fields_match_and_come_back(host in "[^\0\r\n*#]{1,10}", password in "[^\0\r\n]{0,10}") {
            let escape = |text: &str| text.replace('\\', r"\\").replace(':', r"\:");
            let line = format!("{}:1:d:u:{}", escape(&host), escape(&password));
            prop_assert_eq!(lookup(&line, [&host, "1", "d", "u"]), Some(password));
        }
    }
}
