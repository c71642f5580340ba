//! pgtrial-engine: makes a load on PostgreSQL and measures it. Linked as `pgbench` or `sysbench` it is that tool.

mod event;
mod frontend;

/// For the fuzz target of command lines.
pub use frontend::sysbench::options::settle::accepts as sysbench_accepts;

use std::path::Path;
use std::process::ExitCode;

use ground::output::{print_stderr, print_stdout};

const USAGE: &str = "\
pgtrial-engine makes a load on PostgreSQL and measures it.

Usage:
  pgtrial-engine pgbench [OPTION]... [DBNAME]   as pgbench; see pgtrial-engine pgbench --help
  pgtrial-engine sysbench [OPTION]... [TEST] [COMMAND]   as sysbench; see pgtrial-engine sysbench --help
  pgtrial-engine tasks [OPTION]... [DBNAME]     an application's tasks on pools of connections; see --help there
  pgtrial-engine merge [OPTION]... [FILE]...    the events of several machines as those of one run; see --help there
  pgtrial-engine null-server [OPTION]...        a server with nothing behind it; see --help there
  pgtrial-engine --version
  pgtrial-engine --help

A link named pgbench or sysbench to this program is that tool.
";

/// A front end: it gets the arguments after its name.
type FrontEnd = fn(Vec<String>) -> ExitCode;

/// The front ends by their names. A link to the program with one of the first `LINKS` names is that tool.
const FRONT_ENDS: [(&str, FrontEnd); 5] = [
    ("pgbench", frontend::pgbench::main),
    ("sysbench", frontend::sysbench::main),
    ("tasks", frontend::tasks::main),
    ("merge", frontend::merge::main),
    ("null-server", null_server::main),
];
const LINKS: usize = 2;

fn front_end(front_ends: &[(&str, FrontEnd)], wanted: &str) -> Option<FrontEnd> {
    front_ends.iter().find(|(name, _)| *name == wanted).map(|(_, main)| *main)
}

/// Runs the program with the process's arguments: its name or the first word picks a front end.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let program = args.next().unwrap_or_default();
    let link = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(main) = front_end(&FRONT_ENDS[..LINKS], link) {
        return main(args.collect());
    }
    let Some(command) = args.next() else {
        print_stderr(USAGE);
        return ExitCode::from(1);
    };
    if let Some(main) = front_end(&FRONT_ENDS, &command) {
        return main(args.collect());
    }
    match command.as_str() {
        "--help" | "-?" | "-h" => print_stdout(USAGE),
        "--version" | "-V" => {
            let version = env!("CARGO_PKG_VERSION");
            print_stdout(format_args!("pgtrial-engine {version} (events protocol {})\n", event::PROTOCOL));
        }
        _ => {
            let names = FRONT_ENDS.map(|(name, _)| name).join(", ");
            print_stderr(format_args!("pgtrial-engine: unknown command \"{command}\"; there are: {names}\n"));
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}
