//! pgtrial-engine: makes a load on PostgreSQL and measures it. Linked as `pgbench` or `sysbench` it is that tool.

mod event;
mod frontend;
#[doc(hidden)]
pub mod measured;

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

/// Runs the program with the process's arguments: its name or the first word picks a front end.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let program = args.next().unwrap_or_default();
    match Path::new(&program).file_name().and_then(|name| name.to_str()) {
        Some("pgbench") => return frontend::pgbench::main(args.collect()),
        Some("sysbench") => return frontend::sysbench::main(args.collect()),
        _ => {}
    }
    match args.next().as_deref() {
        Some("pgbench") => frontend::pgbench::main(args.collect()),
        Some("sysbench") => frontend::sysbench::main(args.collect()),
        Some("tasks") => frontend::tasks::main(args.collect()),
        Some("merge") => frontend::merge::main(args.collect()),
        Some("null-server") => null_server::main(args.collect()),
        Some("--help" | "-?" | "-h") => {
            print_stdout(USAGE);
            ExitCode::SUCCESS
        }
        Some("--version" | "-V") => {
            let version = env!("CARGO_PKG_VERSION");
            print_stdout(format_args!("pgtrial-engine {version} (events protocol {})\n", event::PROTOCOL));
            ExitCode::SUCCESS
        }
        Some(other) => {
            print_stderr(format_args!(
                "pgtrial-engine: unknown command \"{other}\"; there are: pgbench, sysbench, tasks, merge, null-server\n"
            ));
            ExitCode::from(1)
        }
        None => {
            print_stderr(USAGE);
            ExitCode::from(1)
        }
    }
}
