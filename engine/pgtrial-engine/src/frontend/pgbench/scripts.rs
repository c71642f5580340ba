//! The scripts that `-b`, `-S`, `-N` and `-f` name: found, read and parsed when the option is read.

use std::io::Read;

use super::messages::Failure;
use super::values::weight;
use ground::output::plain_io_message;
use workload::pgbench::builtin;
use workload::pgbench::builtin::Builtin;
use workload::pgbench::{Parsed, parse};

/// How many scripts a run may have.
const MOST: usize = 128;

/// The built-in script whose name starts with `name`.
pub fn named(name: &str) -> Result<&'static Builtin, Failure> {
    builtin::find(name).map_err(|message| Failure::error(message).plain(&builtin::listing()))
}

/// A built-in script, `NAME` or `NAME@WEIGHT`.
pub fn builtin(text: &str) -> Result<Parsed, Failure> {
    let (name, weight) = split_weight(text)?;
    let script = named(name)?;
    parse(script.description, weight, script.text.as_bytes()).map_err(Failure::error)
}

/// A script from a file, `FILE` or `FILE@WEIGHT`; the file `-` is standard input.
pub fn file(text: &str) -> Result<Parsed, Failure> {
    let (name, weight) = split_weight(text)?;
    let mut bytes = Vec::new();
    let read = if name == "-" {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        let mut file = std::fs::File::open(name).map_err(|error| cannot("open", name, &error))?;
        file.read_to_end(&mut bytes)
    };
    read.map_err(|error| cannot("read", name, &error))?;
    parse(name, weight, &bytes).map_err(Failure::error)
}

/// Adds a script to those of the run.
pub fn add(scripts: &mut Vec<Parsed>, script: Parsed) -> Result<(), Failure> {
    if scripts.len() >= MOST {
        return Err(Failure::error(format!("at most {MOST} SQL scripts are allowed")));
    }
    scripts.push(script);
    Ok(())
}

/// The weights of all scripts together.
pub fn total_weight(scripts: &[Parsed]) -> u64 {
    scripts.iter().map(|script| script.weight).sum()
}

fn cannot(what: &str, name: &str, error: &std::io::Error) -> Failure {
    Failure::error(format!("could not {what} file \"{name}\": {}", plain_io_message(error)))
}

/// A name and the weight after its last `@`, 1 without one.
fn split_weight(text: &str) -> Result<(&str, u64), Failure> {
    match text.rsplit_once('@') {
        Some((name, digits)) => Ok((name, weight(digits)?)),
        None => Ok((text, 1)),
    }
}
