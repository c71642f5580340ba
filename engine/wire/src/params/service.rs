//! Service files: named sets of connection parameters.

use std::path::{Path, PathBuf};

use super::conninfo::is_space;
use super::environment::Environment;
use super::error::ParamsError;
use super::options::Options;

/// libpq reads lines into a buffer of this many bytes.
const LINE_BUFFER: usize = 1024;

/// Adds what the service that `service` or `PGSERVICE` names says of parameters not set so far.
///
/// The service is looked for in `PGSERVICEFILE`, or else `~/.pg_service.conf`, then in the machine-wide file. Source:
/// PostgreSQL 18 documentation, 32.17.
pub(super) fn fill(options: &mut Options, env: &dyn Environment) -> Result<(), ParamsError> {
    let named = options.get("service").map(str::to_owned);
    let Some(service) = named.or_else(|| env.var("PGSERVICE")) else {
        return Ok(());
    };
    let personal = match env.var("PGSERVICEFILE") {
        Some(file) => Some(PathBuf::from(file)),
        None => env.home().map(|home| home.join(".pg_service.conf")).filter(|file| file.exists()),
    };
    let system = match env.var("PGSYSCONFDIR") {
        Some(directory) => vec![PathBuf::from(directory)],
        None => env.system_directories(),
    };
    let system = system.into_iter().map(|directory| directory.join("pg_service.conf")).filter(|file| file.exists());
    for file in personal.into_iter().chain(system) {
        if fill_from_file(&file, &service, options)? {
            return Ok(());
        }
    }
    Err(ParamsError::ServiceNotFound(service))
}

/// Adds what one file says of the service; `false` if it does not know it.
fn fill_from_file(file: &Path, service: &str, options: &mut Options) -> Result<bool, ParamsError> {
    let name = file.display().to_string();
    let content = std::fs::read(file).map_err(|_| ParamsError::ServiceFileNotFound(name.clone()))?;
    fill_from_text(&String::from_utf8_lossy(&content), &name, service, options)
}

fn fill_from_text(text: &str, file: &str, service: &str, options: &mut Options) -> Result<bool, ParamsError> {
    let mut found = false;
    for (index, line) in text.lines().enumerate() {
        let place = (file.to_owned(), index + 1);
        if line.len() >= LINE_BUFFER - 1 {
            let (file, line) = place;
            return Err(ParamsError::ServiceLineTooLong { file, line });
        }
        let line = line.trim_matches(is_space);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if found {
                break;
            }
            found = header.strip_prefix(service).is_some_and(|after| after.starts_with(']'));
        } else if found {
            set(line, place, options)?;
        }
    }
    Ok(found)
}

fn set(line: &str, (file, at): (String, usize), options: &mut Options) -> Result<(), ParamsError> {
    match line.split_once('=') {
        Some(("service", _)) => Err(ParamsError::NestedService { file, line: at }),
        Some((keyword, value)) if options.store_if_absent(keyword, value) => Ok(()),
        _ => Err(ParamsError::ServiceSyntax { file, line: at }),
    }
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
        fn any_text_is_read_or_refused(text in "(\\[s\\]|[a-z=#\\[\\] \n\r])*") {
            let _ = filled(&text);
        }
    }
}
