//! pgtrial-engine: makes a load on PostgreSQL and measures it. Linked as `pgbench` or `sysbench` it is that tool.

mod event;
mod frontend;

/// For the fuzz target of command lines.
pub use frontend::sysbench::options::settle::accepts as sysbench_accepts;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use ground::options::ERROR;
use ground::output::{print_stderr, print_stdout};

const USAGE: &str = "\
pgtrial-engine makes a load on PostgreSQL and measures it.

Usage:
  pgtrial-engine pgbench [OPTION]... [DBNAME]   as pgbench; see pgtrial-engine pgbench --help
  pgtrial-engine sysbench [OPTION]... [TEST] [COMMAND]   as sysbench; see pgtrial-engine sysbench --help
  pgtrial-engine tasks [OPTION]... [DBNAME]     an application's tasks on pools of connections; see --help there
  pgtrial-engine order-entry [OPTION]... COMMAND [DBNAME]   TPC-C's transactions: load, run, check; see --help there
  pgtrial-engine replay [OPTION]... DIRECTORY [DBNAME]   the sessions of a capture; see --help there
  pgtrial-engine merge [OPTION]... [FILE]...    the events of several machines as those of one run; see --help there
  pgtrial-engine capture [OPTION]... LOG...     a server's logs as a capture for replays; see --help there
  pgtrial-engine null-server [OPTION]...        a server with nothing behind it; see --help there
  pgtrial-engine --version
  pgtrial-engine --help

A link named pgbench or sysbench to this program is that tool.
";

/// A front end: it gets the arguments after its name.
type FrontEnd = fn(Vec<String>) -> ExitCode;

/// The front ends by their names, and whether a link of that name to the program is that front end.
const FRONT_ENDS: [(&str, bool, FrontEnd); 8] = [
    ("pgbench", true, frontend::pgbench::main),
    ("sysbench", true, frontend::sysbench::main),
    ("tasks", false, frontend::tasks::main),
    ("order-entry", false, frontend::order_entry::main),
    ("replay", false, frontend::replay::main),
    ("merge", false, frontend::merge::main),
    ("capture", false, frontend::capture::main),
    ("null-server", false, null_server::main),
];

/// Runs the program with the process's arguments: its name or the first word picks a front end.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().map(|arg| ground::text::of(arg.as_bytes()));
    let program = args.next().unwrap_or_default();
    let link = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some((_, _, main)) = FRONT_ENDS.iter().find(|(name, is_link, _)| *is_link && *name == link) {
        return main(args.collect());
    }
    let Some(command) = args.next() else {
        print_stderr(USAGE);
        return ExitCode::from(ERROR);
    };
    if let Some((_, _, main)) = FRONT_ENDS.iter().find(|(name, ..)| *name == command) {
        return main(args.collect());
    }
    match command.as_str() {
        "--help" | "-?" | "-h" => print_stdout(USAGE),
        "--version" | "-V" => {
            let version = env!("CARGO_PKG_VERSION");
            print_stdout(format_args!("pgtrial-engine {version} (events protocol {})\n", event::PROTOCOL));
        }
        _ => {
            let names = FRONT_ENDS.map(|(name, ..)| name).join(", ");
            print_stderr(format_args!("pgtrial-engine: unknown command \"{command}\"; there are: {names}\n"));
            return ExitCode::from(ERROR);
        }
    }
    ExitCode::SUCCESS
}
