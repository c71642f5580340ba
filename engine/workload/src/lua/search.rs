//! Finds and reads the files of scripts and modules.

use std::io::Read;
use std::path::{Path, PathBuf};

use ground::trust::{check_exchangeable, read_file};

use crate::program::Fatal;

/// The source of a script: a file or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptOrigin {
    Path(PathBuf),
    Stdin,
}

/// A script that was read, with the names under which Lua knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The name of the script in Lua's error messages: `@` and the path of the file, or `=stdin`.
    pub name: String,
    pub source: Vec<u8>,
    /// The name of the module, if the script was found as a module. It is passed to the script's top level.
    pub module: Option<String>,
}

impl Chunk {
    /// Reads a script. `test` is the name that the user gave. If it differs from the script's path, the script is a
    /// module of this name.
    pub fn read(source: &ScriptOrigin, test: Option<&str>) -> Result<Self, Fatal> {
        let (name, text, module) = match source {
            ScriptOrigin::Stdin => {
                let mut text = Vec::new();
                let read = std::io::stdin().read_to_end(&mut text).map(|_| text);
                ("=stdin".to_owned(), read, None)
            }
            ScriptOrigin::Path(path) => {
                let module = test.filter(|name| Path::new(name) != path);
                (format!("@{}", path.display()), runnable(path), module.map(str::to_owned))
            }
        };
        match text {
            Ok(text) => Ok(Self { source: without_first_comment(text), name, module }),
            Err(error) => Err(Fatal::new(format!("cannot read {}: {error}", name.trim_start_matches(['@', '='])))),
        }
    }
}

/// Reads a script. If the user is root, fails if another account could replace the file, because the script would then
/// run other code with root's rights.
fn runnable(path: &Path) -> std::io::Result<Vec<u8>> {
    check_exchangeable(path)?;
    read_file(path)
}

/// Returns the reason for which root must not run a file: another account could replace it. Returns `None` if the file
/// is safe or the user is not root.
pub fn refusal(file: &Path) -> Option<String> {
    check_exchangeable(file).err().map(|error| error.to_string())
}

/// Returns the files in which a search path of Lua looks for a module, in their order.
pub fn candidates(module: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    let place: Vec<u8> = module.iter().map(|byte| if *byte == b'.' { b'/' } else { *byte }).collect();
    let templates = path.split(|byte| *byte == b';').filter(|template| !template.is_empty());
    templates.map(|template| template.split(|byte| *byte == b'?').collect::<Vec<_>>().join(&place[..])).collect()
}

/// Removes the content of a first line that starts with `#`, because it is not Lua. The numbers of the lines stay the
/// same.
fn without_first_comment(text: Vec<u8>) -> Vec<u8> {
    if text.first() != Some(&b'#') {
        return text;
    }
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    text[end..].to_vec()
}

/// The patterns of paths at which sysbench installs its scripts.
pub const INSTALLED: [&str; 2] = ["/usr/share/sysbench/?.lua", "/usr/local/share/sysbench/?.lua"];

/// Returns Lua's `package.path` as sysbench sets it. In `LUA_PATH`, `;;` stands for the default path.
pub fn module_path(home: Option<&str>, lua_path: Option<&str>) -> String {
    let mut path = "./?.lua;./?/init.lua;./src/lua/?.lua;".to_owned();
    for place in ["5.1/?", "5.1/?/init", "?", "?/init"] {
        path.extend(home.map(|home| format!("{home}/.luarocks/share/lua/{place}.lua;")));
    }
    path += "/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua;";
    path.extend(INSTALLED.map(|template| format!("{template};")));
    chosen(lua_path, path)
}

/// Returns Lua's `package.cpath` as sysbench sets it.
pub fn library_path(home: Option<&str>, lua_cpath: Option<&str>) -> String {
    let mut path = "./?.so;".to_owned();
    for place in ["5.1/?", "?"] {
        path.extend(home.map(|home| format!("{home}/.luarocks/lib/lua/{place}.so;")));
    }
    path += "/usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so;";
    chosen(lua_cpath, path)
}

/// Returns the path in an environment variable, with `;;` replaced by the default path. Returns the default path if the
/// variable is not set.
fn chosen(path: Option<&str>, default: String) -> String {
    path.map_or_else(|| default.clone(), |path| path.replace(";;", &format!(";{default};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_for_the_shell_is_left_out_and_lines_keep_their_numbers() {
        assert_eq!(without_first_comment(b"#!/usr/bin/env sysbench\nx = 1".to_vec()), b"\nx = 1");
        assert_eq!(without_first_comment(b"#!sysbench".to_vec()), b"");
        assert_eq!(without_first_comment(b"x = #t".to_vec()), b"x = #t");
    }

    #[test]
    fn a_module_is_looked_for_in_the_order_of_the_path() {
        let found = candidates(b"a.b", b"./?.lua;;/x/?/?.so;whole");
        assert_eq!(found, [&b"./a/b.lua"[..], b"/x/a/b/a/b.so", b"whole"]);
    }

    #[test]
    fn a_script_that_cannot_be_read_is_named() {
        let missing = Chunk::read(&ScriptOrigin::Path("./no_such.lua".into()), None).unwrap_err();
        assert!(missing.lines[0].starts_with("cannot read ./no_such.lua: "), "{missing:?}");
    }
}
