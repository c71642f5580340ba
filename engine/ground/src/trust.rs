//! Checks that protect root from files that another account could replace: root neither writes nor executes such files.
//!
//! An account that can replace a file, or a directory in its path, can choose where root writes and what root executes.
//! The trusted accounts are root, the owner of this program, and the account that has called sudo. The lab has the same
//! rules (`pgtrial/files/trust.py`).

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs};

use nix::libc;
use nix::unistd::{Uid, User, geteuid};

const STICKY: u32 = 0o1000;
const WRITTEN_BY_GROUP: u32 = 0o020;
const WRITTEN_BY_OTHERS: u32 = 0o002;
const MOST_LINKS: usize = 40;

/// Creates a file, or truncates it if it exists, as `File::create` does. As root, fails if another account could
/// replace the file.
pub fn create_file(path: &Path) -> io::Result<File> {
    check_exchangeable(path)?;
    File::create(path)
}

/// Opens a file for reading. As root, rejects a pipe or a device of another account and does not wait for it.
pub fn open_file(path: &Path) -> io::Result<File> {
    if !geteuid().is_root() {
        return File::open(path);
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        check_exchangeable(path)?;
        return File::open(path);
    }
    // Another account may replace the file by a pipe at this moment. Opening a pipe without O_NONBLOCK would wait for a
    // writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Reads a whole file that is opened as by [`open_file`].
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns an error if the program runs as root and another account could replace the file at this path. If the file
/// does not exist, the check is made for the directory in which it would be created.
pub fn check_exchangeable(path: &Path) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    match weakness(path, &trusted())? {
        None => Ok(()),
        Some((place, why)) => Err(io::Error::other(format!(
            "root does not use this path, since {} {why}, which could replace it at any time; run the program as that \
             account, or name a path that only root can write",
            place.display()
        ))),
    }
}

/// Returns the user IDs of the accounts whose files root uses.
fn trusted() -> Vec<u32> {
    let program = env::current_exe().and_then(fs::metadata).map(|found| found.uid());
    let caller = env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
    [Some(0), program.ok(), caller].into_iter().flatten().collect()
}

/// Returns the first directory, link or file in the path that another account could replace, and the reason.
fn weakness(path: &Path, trusted: &[u32]) -> io::Result<Option<(PathBuf, String)>> {
    let mut waiting = parts_backwards(&std::path::absolute(path)?);
    let mut current = PathBuf::new();
    let mut links = 0;
    while let Some(part) = waiting.pop() {
        if part == ".." {
            current.pop();
            continue;
        }
        let step = current.join(&part);
        let found = match fs::symlink_metadata(&step) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        if let Some(why) = objection(&found, trusted) {
            return Ok(Some((step, why)));
        }
        if !found.is_symlink() {
            current = step;
            continue;
        }
        // The kernel's links in /proc lead to files that are already open.
        if step.starts_with("/proc") {
            return Ok(None);
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        waiting.extend(parts_backwards(&fs::read_link(&step)?));
    }
    Ok(None)
}

/// Returns the components of a path, with the last one first. A component that begins at the root has `/` at its end,
/// so that joining it to another path begins again at the root.
fn parts_backwards(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn objection(found: &Metadata, trusted: &[u32]) -> Option<String> {
    if !trusted.contains(&found.uid()) {
        let name = User::from_uid(Uid::from_raw(found.uid())).ok().flatten();
        let shown = name.map_or_else(|| format!("number {}", found.uid()), |account| account.name);
        return Some(format!("belongs to the account {shown}"));
    }
    let kind = found.file_type();
    if kind.is_symlink() || kind.is_char_device() || kind.is_fifo() || (kind.is_dir() && found.mode() & STICKY != 0) {
        return None;
    }
    let by_group = found.mode() & WRITTEN_BY_GROUP != 0 && found.gid() != 0;
    (by_group || found.mode() & WRITTEN_BY_OTHERS != 0).then(|| "can be written by other accounts".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    const OTHER: u32 = 65534;

    fn place(name: &str) -> PathBuf {
        let place = env::temp_dir().join(format!("pgtrial-trust-{}-{name}", std::process::id()));
        fs::create_dir(&place).unwrap();
        place
    }

    /// Returns a directory for a test of what root does, or `None` if the tests do not run as root.
    fn root(name: &str) -> Option<PathBuf> {
        geteuid().is_root().then(|| place(name))
    }

    #[test]
    fn a_directory_of_another_account_on_the_way_is_found() {
        let Some(place) = root("owner") else { return };
        let home = place.join("home");
        fs::create_dir(&home).unwrap();
        assert!(check_exchangeable(&home.join("log")).is_ok());
        chown(&home, Some(OTHER), None).unwrap();
        let refused = create_file(&home.join("log")).unwrap_err().to_string();
        assert!(refused.contains("belongs to the account"), "{refused}");
        assert!(!home.join("log").exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_link_in_the_middle_of_links_is_found() {
        let Some(place) = root("links") else { return };
        let home = place.join("home");
        fs::create_dir(&home).unwrap();
        symlink("/etc/hostname", home.join("middle")).unwrap();
        symlink("home/middle", place.join("first")).unwrap();
        assert!(check_exchangeable(&place.join("first")).is_ok());
        chown(&home, Some(OTHER), None).unwrap();
        assert!(check_exchangeable(&place.join("first")).is_err());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_directory_that_all_may_write_is_found_unless_it_is_like_tmp() {
        let Some(place) = root("mode") else { return };
        for (mode, trusted) in [(0o777, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_exchangeable(&place.join("log")).is_ok(), trusted, "{mode:o}");
        }
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn standard_output_by_its_path_is_used() {
        assert!(create_file(Path::new("/dev/null")).is_ok());
        assert!(check_exchangeable(Path::new("/dev/stdout")).is_ok());
    }
}
