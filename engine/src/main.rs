//! pgtrial-engine: makes a load on PostgreSQL and measures it. Linked as `pgbench` it is that tool.

mod connection;
mod event;
mod frontend;
mod ledger;
mod load;
mod plan;
mod program;
mod reactor;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
pgtrial-engine makes a load on PostgreSQL and measures it.

Usage:
  pgtrial-engine pgbench [OPTION]... [DBNAME]   as pgbench; see pgtrial-engine pgbench --help
  pgtrial-engine --version
  pgtrial-engine --help

A link named pgbench to this program is pgbench.
";

fn main() -> ExitCode {
    let mut args = std::env::args();
    let program = args.next().unwrap_or_default();
    if Path::new(&program).file_name().is_some_and(|name| name == "pgbench") {
        return frontend::pgbench::main(args.collect());
    }
    match args.next().as_deref() {
        Some("pgbench") => frontend::pgbench::main(args.collect()),
        Some("--help" | "-?" | "-h") => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some("--version" | "-V") => {
            println!("pgtrial-engine {} (events protocol {})", env!("CARGO_PKG_VERSION"), event::PROTOCOL);
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!("pgtrial-engine: unknown command \"{other}\"; there is: pgbench");
            ExitCode::from(1)
        }
        None => {
            eprint!("{USAGE}");
            ExitCode::from(1)
        }
    }
}
