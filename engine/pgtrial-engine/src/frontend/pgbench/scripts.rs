//! The scripts that the options `-b`, `-S`, `-N` and `-f` name. They are read and parsed as soon as the option is read.

use std::io::Read;

use crate::frontend::common::failure::Failure;
use crate::frontend::common::scripts::ScriptSources;
use ground::c_numbers;
use ground::output::could_not;
use ground::random::Random;
use ground::trust::{check_exchangeable, open_file, read_file};
use wire::value::Value;
use workload::pgbench::builtin;
use workload::pgbench::builtin::Builtin;
use workload::pgbench::{Parsed, Scripts, drawn, is_variable_name, listed, parse};

/// The greatest number of scripts of a run.
const MAX_SCRIPTS: usize = 128;

/// Returns the built-in script whose name begins with `name`. Fails if no script or more than one matches; the error
/// lists all built-in scripts.
pub fn named(name: &str) -> Result<&'static Builtin, Failure> {
    builtin::find(name).map_err(|message| Failure::error(message).plain(&builtin::listing()))
}

/// Adds a built-in script, `NAME` or `NAME@WEIGHT`.
pub fn add_builtin(sources: &mut ScriptSources, text: &str) -> Result<(), Failure> {
    let (name, weight) = split_weight(text)?;
    let script = named(name)?;
    sources.needs_tables = true;
    add(sources, parse(script.description, weight, script.text.as_bytes()).map_err(Failure::error)?)
}

/// The meta-commands of scripts that run programs of the operating system.
const SHELL: [&[u8]; 2] = [b"\\shell", b"\\setshell"];

/// Adds a script from a file, `FILE` or `FILE@WEIGHT`; the file `-` is standard input.
pub fn add_file(sources: &mut ScriptSources, text: &str) -> Result<(), Failure> {
    let (name, weight) = split_weight(text)?;
    let mut bytes = Vec::new();
    let read = if name == "-" {
        sources.reads_stdin = true;
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        let mut file = open_file(&ground::text::path(name)).map_err(could_not(format_args!("open file \"{name}\"")))?;
        file.read_to_end(&mut bytes)
    };
    read.map_err(could_not(format_args!("read file \"{name}\"")))?;
    if name != "-" && SHELL.iter().any(|command| memchr::memmem::find(&bytes, command).is_some()) {
        check_exchangeable(&ground::text::path(name)).map_err(could_not(format_args!("run file \"{name}\"")))?;
    }
    add(sources, parse(name, weight, &bytes).map_err(Failure::error)?)
}

/// Adds the list of values that the option `--values=VARNAME=FILE` names. Each line of the file is one value; white
/// space in it is a part of the value.
pub fn add_values(sources: &mut ScriptSources, text: &str) -> Result<(), Failure> {
    let Some((name, path)) = text.split_once('=').filter(|(name, _)| is_variable_name(name.as_bytes())) else {
        return Err(Failure::error(format!("invalid list of values \"{text}\": it must be VARNAME=FILE")));
    };
    let bytes = read_file(&ground::text::path(path)).map_err(could_not(format_args!("open file \"{path}\"")))?;
    let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    if whole.is_empty() {
        return Err(Failure::error(format!(
            "the file \"{path}\" has no value for the variable \"{name}\": it must have at least one line"
        )));
    }
    let values = whole.split(|byte| *byte == b'\n').map(value).collect();
    sources.lists.retain(|(known, _)| known != name);
    sources.lists.push((name.to_owned(), values));
    Ok(())
}

/// Converts a line of a file to a value: an integer if the line is exactly how that integer is written, and otherwise a
/// text.
fn value(text: &[u8]) -> Value {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(number) if number.to_string().as_bytes() == text => Value::Int(number),
        _ => Value::Text(text.into()),
    }
}

/// The number of transactions of each script for which parameter values are listed. Six are enough to see which plans
/// PostgreSQL uses: it makes a custom plan for each of the first five executions of a prepared statement, and decides
/// at the sixth whether to use a generic plan.
const LISTED_TRANSACTIONS: usize = 6;

/// Returns the commands of all scripts as JSON, one command on each line. Each SQL command has examples of its
/// parameter values, drawn from the random generator `random` as a client of the run draws them.
pub fn listing(scripts: &[Parsed], linked: &Scripts, random: &Random) -> Result<String, Failure> {
    let mut lines = String::new();
    for (place, script) in scripts.iter().enumerate() {
        let sent = drawn(linked, place, random, LISTED_TRANSACTIONS);
        for (index, command) in listed(script).map_err(Failure::error)?.into_iter().enumerate() {
            let (sql, variables) = command.statement.map(|found| (found.sql, found.variables)).unzip();
            let of_command = || sent.iter().filter(|one| one.command == index);
            let line = serde_json::json!({
                "script": script.description,
                "line": command.line,
                "text": command.text,
                "values": sql.is_some().then(|| of_command().map(|one| &one.sent.values).collect::<Vec<_>>()),
                "sent": sql.is_some().then(|| of_command().filter_map(|one| one.sent.whole.as_ref()).collect::<Vec<_>>()),
                "sql": sql,
                "variables": variables,
            });
            lines.push_str(&format!("{line}\n"));
        }
    }
    Ok(lines)
}

fn add(sources: &mut ScriptSources, script: Parsed) -> Result<(), Failure> {
    if sources.scripts.len() >= MAX_SCRIPTS {
        return Err(Failure::error(format!("at most {MAX_SCRIPTS} SQL scripts are allowed")));
    }
    sources.scripts.push(script);
    Ok(())
}

/// Splits `NAME@WEIGHT` at the last `@`. The weight is 1 if there is no `@`.
fn split_weight(text: &str) -> Result<(&str, u64), Failure> {
    match text.rsplit_once('@') {
        Some((name, digits)) => Ok((name, weight(digits)?)),
        None => Ok((text, 1)),
    }
}

/// Reads the weight after `@`, as C's `strtol` does.
fn weight(text: &str) -> Result<u64, Failure> {
    let number = c_numbers::integer(text.as_bytes())
        .map_err(|_| Failure::error(format!("invalid weight specification: @{text}")))?;
    u64::try_from(number)
        .ok()
        .filter(|weight| *weight <= i32::MAX as u64)
        .ok_or_else(|| Failure::error(format!("weight specification out of range (0 .. {}): {number}", i32::MAX)))
}
