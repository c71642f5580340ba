//! The machine as seen by the resolution of connection parameters.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The environment on which connection parameters depend besides the command line. Tests have one of their own.
pub trait Environment {
    /// Returns the value of an environment variable, if it is set (perhaps to nothing).
    fn var(&self, name: &str) -> Option<String>;

    /// Returns the operating system's name for the user that this process runs as.
    fn user_name(&self) -> Option<String>;

    /// Returns the user's home directory, which holds `.pgpass`, `.pg_service.conf` and `.postgresql`.
    fn home(&self) -> Option<PathBuf>;

    /// Returns the directories in which servers put their Unix sockets by default: Debian's and Red Hat's packages,
    /// then upstream's.
    ///
    /// A libpq has one such directory; this client finds the server of any build.
    fn socket_directories(&self) -> Vec<PathBuf> {
        vec!["/var/run/postgresql".into(), "/tmp".into()]
    }

    /// Returns the directories in which the machine-wide `pg_service.conf` may be: those of Debian's, Red Hat's and
    /// upstream's packages.
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

/// Returns the account of the effective user, as the system's name service knows it.
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
