//! The reader of command lines, for fuzz targets.

use super::options::{CommandLine, Declared, Unknown, checks};
use workload::settings::{OptionSpec, OptionValue};

/// Reads a command line whose options may name files, all with this `content`; whether it is understood by a test with an
/// option `tables`.
pub fn read_options(args: &[String], content: &[u8]) -> bool {
    let Ok(line) = CommandLine::read(args, &|_| Ok(content.to_vec()), &mut |_| {}) else { return false };
    let Ok(checked) = checks::check(&line, &mut |_| {}) else { return false };
    let tables = OptionSpec { name: "tables".to_owned(), description: String::new(), default: OptionValue::Int(1) };
    let declared = Declared { options: &[tables], unknown: Unknown::Refused, sizes: true };
    line.settle(&checked, declared).is_ok()
}
