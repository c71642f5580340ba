//! The machine's environment, from which connection parameters are resolved: variables, the user's account, and
//! directories.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The environment on which connection parameters depend, besides the command line. Tests have an implementation of
/// their own.
pub trait Environment {
    /// Returns the value of an environment variable, if it is set. A variable can be set to an empty text.
    fn var(&self, name: &str) -> Option<String>;

    /// Returns the name of the operating-system account that this process runs as.
    fn user_name(&self) -> Option<String>;

    /// Returns the user's home directory, in which `.pgpass`, `.pg_service.conf` and `.postgresql` are.
    fn home(&self) -> Option<PathBuf>;

    /// Returns the directories in which servers put their Unix sockets by default: those of the Debian and Red Hat
    /// packages, then PostgreSQL's own default.
    ///
    /// A build of libpq has one such directory. This client looks in all of them, to find the servers of any build.
    fn socket_directories(&self) -> Vec<PathBuf> {
        vec!["/var/run/postgresql".into(), "/tmp".into()]
    }

    /// Returns the directories in which the machine-wide `pg_service.conf` may be: those of the Debian and Red Hat
    /// packages, and PostgreSQL's own default.
    fn system_directories(&self) -> Vec<PathBuf> {
        vec!["/etc/postgresql-common".into(), "/etc/sysconfig/pgsql".into(), "/usr/local/pgsql/etc".into()]
    }
}

/// The environment of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| ground::text::of(value.as_bytes()))
    }

    fn user_name(&self) -> Option<String> {
        Some(account()?.name)
    }

    fn home(&self) -> Option<PathBuf> {
        match std::env::var_os("HOME") {
            Some(home) if !home.is_empty() => Some(home.into()),
            _ => Some(account()?.dir),
        }
    }
}

/// Returns the operating-system account of the effective user.
fn account() -> Option<nix::unistd::User> {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_user_name_and_a_home() {
        let name = ProcessEnvironment.user_name().unwrap();
        let id = std::process::Command::new("id").arg("-un").output().unwrap();
        assert_eq!(String::from_utf8(id.stdout).unwrap().trim(), name);
        assert!(ProcessEnvironment.home().unwrap().is_absolute());
    }

    #[test]
    fn variables_of_this_process_are_seen() {
        assert!(ProcessEnvironment.var("PATH").is_some());
        assert_eq!(ProcessEnvironment.var("PGTRIAL_NO_SUCH_VARIABLE"), None);
    }
}
