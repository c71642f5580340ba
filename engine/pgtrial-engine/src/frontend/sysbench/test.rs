//! Finds the test that the command line names: a built-in test, or a Lua script. Scripts are searched for in the same
//! directories as in sysbench.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::log::SysbenchError;
use super::options::Unknown;
use super::options::values::Numbers;
use ground::text;
use workload::Executors;
use workload::host;
use workload::lua::{INSTALLED, Invocation, LuaScript, ScriptOrigin, Voice, module_path};
use workload::oltp;
use workload::settings::OptionSpec;

/// The name of sysbench's test of file access, which this program does not have.
const FILE_TEST: &str = "fileio";

/// A test, and the name under which messages and the help mention it.
pub struct Test {
    pub name: String,
    pub program: TestProgram,
}

/// The program that runs the test.
pub enum TestProgram {
    /// A built-in test that measures the machine (CPU, memory, threads, mutex) and needs no server.
    Host(host::MachineTest),
    Native(oltp::OltpTest),
    Script(Box<LuaScript>),
}

impl Test {
    /// Loads the test that the command line names or, if it names none, the script on standard input. Loading a script
    /// runs the code at its top level. `voice` receives the output of the script, and `executors` execute statements
    /// that the script sends outside of a load. `warn` is called with a warning if the named script does not exist and
    /// a built-in test of the same name is used instead.
    pub fn load(
        invocation: &Invocation,
        voice: Arc<dyn Voice>,
        executors: Executors,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, SysbenchError> {
        let Some(name) = &invocation.test else {
            let script = LuaScript::load(ScriptOrigin::Stdin, invocation, voice, executors)?;
            return Ok(Self { name: "<stdin>".to_owned(), program: TestProgram::Script(Box::new(script)) });
        };
        let program = match find(name, &Machine::this()) {
            Found::FileTest => {
                return Err(SysbenchError::fatal(format_args!(
                    "pgtrial is for PostgreSQL and does not have the '{name}' test of the machine: use sysbench itself"
                )));
            }
            Found::Host(test) => TestProgram::Host(test),
            Found::Nothing => {
                return Err(SysbenchError::fatal(format_args!(
                    "Cannot find benchmark '{name}': no such built-in test, file or module"
                )));
            }
            Found::Native(test) => TestProgram::Native(test),
            Found::InPlaceOf(test) => {
                warn(&format!("there is no file '{name}', so the built-in test '{}' is used", test.name));
                TestProgram::Native(test)
            }
            Found::Script(path) => {
                TestProgram::Script(Box::new(LuaScript::load(ScriptOrigin::Path(path), invocation, voice, executors)?))
            }
        };
        Ok(Self { name: base_name(name).to_owned(), program })
    }

    /// Returns the options that the test declares, in the order in which its help lists them.
    pub fn options(&self) -> Vec<OptionSpec> {
        let mut options = match &self.program {
            TestProgram::Host(test) => return (test.options)(),
            TestProgram::Native(test) => test.options(),
            TestProgram::Script(script) => script.options().unwrap_or_default(),
        };
        options.sort_by(|one, other| one.name.cmp(&other.name));
        options
    }

    /// Returns how whole numbers may be written in the test's options.
    pub fn numbers(&self) -> Numbers {
        match &self.program {
            TestProgram::Host(_) => Numbers::Plain,
            TestProgram::Native(_) => Numbers::Doubles,
            TestProgram::Script(_) => Numbers::Sizes,
        }
    }

    /// Returns true if the test declares options. Its command `help` then describes them; without options, the test has
    /// no help.
    pub fn declares_options(&self) -> bool {
        match &self.program {
            TestProgram::Host(_) => true,
            TestProgram::Native(test) => !test.options().is_empty(),
            TestProgram::Script(script) => script.options().is_some(),
        }
    }

    /// Returns how options are handled that neither the test nor sysbench declares.
    pub fn unknown_options(&self) -> Unknown {
        match &self.program {
            TestProgram::Script(script) if script.options().is_none() => Unknown::Taken,
            TestProgram::Native(test) if !test.is_modern() => Unknown::Ignored,
            TestProgram::Script(_) | TestProgram::Native(_) | TestProgram::Host(_) => Unknown::Refused,
        }
    }

    /// Returns the names of the commands that a built-in database test has.
    pub fn commands(test: &oltp::OltpTest) -> &'static [&'static str] {
        if test.is_modern() {
            &["prepare", "prewarm", "run", "cleanup", "help"]
        } else if test.options().is_empty() {
            &["prepare", "run", "cleanup"]
        } else {
            &["prepare", "run", "cleanup", "help"]
        }
    }
}

/// Returns the last component of a path.
fn base_name(name: &str) -> &str {
    let trimmed = name.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some(base) if !base.is_empty() => base,
        _ => name,
    }
}

/// The result of the search for a test.
enum Found {
    FileTest,
    Host(host::MachineTest),
    Native(oltp::OltpTest),
    /// The name ends with `.lua` and there is no such file, but there is a built-in test of this name, which is used
    /// instead.
    InPlaceOf(oltp::OltpTest),
    Script(PathBuf),
    Nothing,
}

/// The files and environment variables on which the search for a test depends. Unit tests use invented files and
/// variables.
struct Machine<'a> {
    is_file: &'a dyn Fn(&Path) -> bool,
    /// The values of the environment variables `HOME` and, in the next field, `LUA_PATH`.
    home: Option<String>,
    lua_path: Option<String>,
}

impl Machine<'_> {
    fn this() -> Self {
        let variable = |name| std::env::var_os(name).map(|value| text::of(value.as_bytes()));
        Self { is_file: &Path::is_file, home: variable("HOME"), lua_path: variable("LUA_PATH") }
    }
}

/// Searches for a test in the same order as sysbench: tests of the machine, then a script with this path, then a Lua
/// module in the search path. Built-in database tests are found where sysbench would find the scripts that are
/// installed with it, so a script of the same name in the working directory is found first.
fn find(name: &str, machine: &Machine<'_>) -> Found {
    if name == FILE_TEST {
        return Found::FileTest;
    }
    if let Some(test) = host::find(name) {
        return Found::Host(test);
    }
    let path = text::path(name);
    if (machine.is_file)(&path) {
        return Found::Script(path);
    }
    let module = name.replace('.', "/");
    let exists = |template: &str| {
        let path = text::path(&template.replace('?', &module));
        (machine.is_file)(&path).then_some(path)
    };
    let templates = module_path(machine.home.as_deref(), machine.lua_path.as_deref());
    let mut of_user = templates.split(';').filter(|template| !template.is_empty() && !INSTALLED.contains(template));
    if let Some(path) = of_user.find_map(exists) {
        return Found::Script(path);
    }
    if let Some(test) = oltp::find(name) {
        return Found::Native(test);
    }
    if let Some(path) = INSTALLED.into_iter().find_map(exists) {
        return Found::Script(path);
    }
    match base_name(name).strip_suffix(".lua").and_then(oltp::find) {
        Some(test) => Found::InPlaceOf(test),
        None => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, files: &[&str], lua_path: Option<&str>) -> String {
        let is_file = |path: &Path| files.iter().any(|file| Path::new(file) == path);
        let machine =
            Machine { is_file: &is_file, home: Some("/home/me".to_owned()), lua_path: lua_path.map(str::to_owned) };
        match find(name, &machine) {
            Found::Native(test) => format!("native {}", test.name),
            Found::InPlaceOf(test) => format!("in place of {}", test.name),
            Found::Script(path) => path.display().to_string(),
            Found::FileTest => "refused".to_owned(),
            Found::Host(test) => format!("host {}", test.name),
            Found::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn built_in_tests_come_after_files_and_modules_of_the_user() {
        assert_eq!(found("oltp_read_only", &[], None), "native oltp_read_only");
        assert_eq!(found("oltp_read_only", &["/usr/share/sysbench/oltp_read_only.lua"], None), "native oltp_read_only");
        assert_eq!(found("oltp_read_only", &["./oltp_read_only.lua"], None), "./oltp_read_only.lua");
        assert_eq!(found("oltp_read_only", &["oltp_read_only"], None), "oltp_read_only");
    }

    #[test]
    fn scripts_are_found_as_files_and_as_modules() {
        assert_eq!(found("dir/a.lua", &["dir/a.lua"], None), "dir/a.lua");
        assert_eq!(found("dir.a", &["./dir/a.lua"], None), "./dir/a.lua");
        let rock = "/home/me/.luarocks/share/lua/5.1/a.lua";
        assert_eq!(found("a", &[rock], None), rock);
        assert_eq!(found("tpcc", &["/usr/share/sysbench/tpcc.lua"], None), "/usr/share/sysbench/tpcc.lua");
        assert_eq!(found("a", &["./a.lua"], Some("/x/?.lua")), "nothing");
        assert_eq!(found("a", &["./a.lua"], Some("/x/?.lua;;")), "./a.lua");
        assert_eq!(found("a", &[], None), "nothing");
    }

    #[test]
    fn scripts_that_are_built_in_need_no_file() {
        assert_eq!(found("/usr/share/doc/sysbench/tests/db/oltp.lua", &[], None), "in place of oltp");
        assert_eq!(found("oltp_read_write.lua", &[], None), "in place of oltp_read_write");
        assert_eq!(found("/x/oltp.lua", &["/x/oltp.lua"], None), "/x/oltp.lua");
        assert_eq!(found("/x/foo.lua", &[], None), "nothing");
    }

    #[test]
    fn tests_of_the_machine_come_before_files() {
        assert_eq!(found("cpu", &["cpu", "./cpu.lua"], None), "host cpu");
        assert_eq!(found("fileio", &["./fileio.lua"], None), "refused");
        assert_eq!(found("./cpu.lua", &["./cpu.lua"], None), "./cpu.lua");
    }

    #[test]
    fn messages_name_the_last_part_of_a_path() {
        assert_eq!([base_name("a/b.lua"), base_name("d/"), base_name("/"), base_name("x")], ["b.lua", "d", "/", "x"]);
    }
}
