//! The table of the general options, which do not belong to a test: the name, kind, default, description and check of
//! each option. The checks store the values in the settings.

use std::fmt::Display;

use super::command_line::{CONFIG_FILE, CommandLine, same_name};
use super::values::{OptionKind, Written, evaluate};
use crate::frontend::common::sharing;
use crate::frontend::sysbench::log::SysbenchError;
use drive::start_at::StartAt;
use workload::settings::{OptionValue, Settings};

/// A general option, which belongs to sysbench itself and not to one of its tests.
#[derive(Debug, Clone, Copy)]
pub struct SysbenchOption {
    pub group: Group,
    /// The name of the option, in which words are separated by dashes.
    pub name: &'static str,
    pub kind: OptionKind,
    /// The default value, as it would be written on a command line; `None` if the option has no default.
    pub default: Option<&'static str>,
    pub description: &'static str,
    /// The function that checks the value and stores it in the settings.
    pub check: Check,
}

/// The section of the help in which an option is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    General,
    Random,
    LogText,
    LogLatency,
    Database,
    Mysql,
    Pgsql,
    /// The options that later versions of sysbench have.
    Later,
    /// The options that only pgtrial has. Scripts cannot read these options.
    Own,
}

/// A function that checks the value of an option and stores it in the settings.
pub type Check = fn(&mut Checks<'_>, &SysbenchOption) -> Result<(), SysbenchError>;

impl SysbenchOption {
    /// Returns the value that the setting has if the option is not given: the default value, or
    /// `OptionValue::Text(None)` if there is no default.
    pub fn default(&self) -> OptionValue {
        let written = self.default.map_or_else(|| Written::Words(Vec::new()), |text| Written::Text(text.to_owned()));
        evaluate(self.kind, &written).unwrap_or(OptionValue::Text(None))
    }
}

/// The greatest number of checkpoints that `--report-checkpoints` may name.
const MAX_CHECKPOINTS: usize = 256;

/// The options that sysbench checks before it looks for the test, in the same order as in sysbench. All other options
/// are checked after the test has been found.
#[rustfmt::skip]
pub const CHECKED_FIRST: &[&str] = &[
    "threads", "events", "time", "forced-shutdown", "thread-stack-size", "warmup-time", "thread-init-timeout", "debug",
    "validate", "rand-seed", "compat", "rand-type", "rand-spec-iter", "rand-spec-pct", "rand-spec-res", "rand-pareto-h",
    "rand-zipfian-exp", "rate", "report-interval", "report-checkpoints", "verbosity", "percentile", "histogram",
];

const fn option(
    group: Group,
    name: &'static str,
    kind: OptionKind,
    default: Option<&'static str>,
    description: &'static str,
    check: Check,
) -> SysbenchOption {
    SysbenchOption { group, name, kind, default, description, check }
}

/// The check that accepts every value that is valid for the kind of the option.
const ANY: Check = |checks, option| checks.keep(option).map(drop);

const NOT_NEGATIVE: Check = |checks, option| checks.number(option, 0).map(drop);

use Group::{Database, General, Later, LogLatency, LogText, Mysql, Own, Pgsql, Random};
use OptionKind::{Bool, Double, File, Int, List, Size, Text};

/// The options, in the order in which the help lists them.
#[rustfmt::skip]
pub const OPTIONS: &[SysbenchOption] = &[
    option(General, "threads", Int, Some("1"), "number of threads to use",
        |checks, option| match checks.renamed(option, "num-threads", 1)? {
            0 => Err(invalid_number("threads", 0)),
            _ => Ok(()),
        }),
    option(General, "events", Int, Some("0"), "limit for total number of events",
        |checks, option| checks.renamed(option, "max-requests", 0).map(drop)),
    option(General, "time", Int, Some("10"), "limit for total execution time in seconds",
        |checks, option| {
            if checks.renamed(option, "max-time", 0)? == 0 && checks.settings.int("events") == 0 {
                (checks.warn)("Both event and time limits are disabled, running an endless test");
            }
            Ok(())
        }),
    option(General, "forced-shutdown", Text, Some("off"), "number of seconds to wait after the --time limit before forcing shutdown, or 'off' to disable",
        |checks, option| {
            let text = checks.text(option)?.unwrap_or_else(|| "off".to_owned());
            let is_valid = checks.settings.int("time") == 0 || is_forced_shutdown(&text);
            is_valid.then_some(()).ok_or_else(|| invalid_text("forced-shutdown", &text))
        }),
    option(General, "thread-stack-size", Size, Some("64K"), "size of stack per thread",
        |checks, option| {
            let is_size = checks.number(option, 1).is_ok();
            // sysbench's message contains 0 in place of a text that is not a size.
            is_size.then_some(()).ok_or_else(|| SysbenchError::fatal("Invalid value for thread-stack-size: 0.\n"))
        }),
    option(General, "rate", Int, Some("0"), "average transactions rate. 0 for unlimited rate",
        |checks, option| checks.renamed(option, "tx-rate", 0).map(drop)),
    option(General, "report-interval", Int, Some("0"), "periodically report intermediate statistics with a specified interval in seconds. 0 disables intermediate reports", NOT_NEGATIVE),
    option(General, "report-checkpoints", List, Some(""), "dump full statistics and reset all counters at specified points in time. The argument is a list of comma-separated values representing the amount of time in seconds elapsed from start of test when report checkpoint(s) must be performed. Report checkpoints are off by default.", check_checkpoints),
    option(General, "debug", Bool, Some("off"), "print more debugging info", ANY),
    option(General, "validate", Bool, Some("off"), "perform validation checks where possible", ANY),
    option(General, "help", Bool, Some("off"), "print help and exit", ANY),
    option(General, "version", Bool, Some("off"), "print version and exit", ANY),
    option(General, CONFIG_FILE, File, None, "File containing command line options", ANY),
    option(General, "tx-rate", Int, Some("0"), "deprecated alias for --rate", ANY),
    option(General, "max-requests", Int, Some("0"), "deprecated alias for --events", ANY),
    option(General, "max-time", Int, Some("0"), "deprecated alias for --time", ANY),
    option(General, "num-threads", Int, Some("1"), "deprecated alias for --threads", ANY),

    option(Random, "rand-type", Text, Some("special"), "random numbers distribution {uniform,gaussian,special,pareto}", check_distribution),
    option(Random, "rand-spec-iter", Int, Some("12"), "number of iterations used for numbers generation", ANY),
    option(Random, "rand-spec-pct", Int, Some("1"), "percentage of values to be treated as 'special' (for special distribution)", ANY),
    option(Random, "rand-spec-res", Int, Some("75"), "percentage of 'special' values to use (for special distribution)", ANY),
    option(Random, "rand-seed", Int, Some("0"), "seed for random number generator. When 0, the current time is used as a RNG seed.", ANY),
    option(Random, "rand-pareto-h", Double, Some("0.2"), "parameter h for pareto distribution", ANY),

    option(LogText, "verbosity", Int, Some("3"), "verbosity level {5 - debug, 0 - only critical messages}",
        |checks, option| {
            let given = checks.number(option, i64::MIN)?;
            let verbosity = if checks.settings.is_on("debug") { 5 } else { given };
            checks.settings.set(option.name, OptionValue::Int(verbosity));
            if (0..=5).contains(&verbosity) {
                return Ok(());
            }
            Err(SysbenchError::Plain(format!("Invalid value for verbosity: {verbosity}")))
        }),

    option(LogLatency, "percentile", Int, Some("95"), "percentile to calculate in latency statistics (1-100). Use the special value of 0 to disable percentile calculations",
        |checks, option| match checks.number(option, i64::MIN)? {
            0..=100 => Ok(()),
            percentile => Err(SysbenchError::fatal(format_args!("Invalid value for --percentile: {percentile}"))),
        }),
    option(LogLatency, "histogram", Bool, Some("off"), "print latency histogram in report",
        |checks, option| {
            checks.keep(option)?;
            let has_latencies = checks.settings.int("percentile") != 0 || !checks.settings.is_on("histogram");
            has_latencies
                .then_some(())
                .ok_or_else(|| SysbenchError::fatal("--histogram cannot be used with --percentile=0"))
        }),

    option(Database, "db-driver", Text, Some("pgsql"), "specifies database driver to use ('help' to get list of available drivers)", ANY),
    option(Database, "db-ps-mode", Text, Some("auto"), "prepared statements usage mode {auto, disable}", ANY),
    option(Database, "db-debug", Bool, Some("off"), "print database-specific debug information", ANY),

    option(Mysql, "mysql-host", List, Some("localhost"), "MySQL server host", ANY),
    option(Mysql, "mysql-port", List, Some("3306"), "MySQL server port", ANY),
    option(Mysql, "mysql-socket", List, None, "MySQL socket", ANY),
    option(Mysql, "mysql-user", Text, Some("sbtest"), "MySQL user", ANY),
    option(Mysql, "mysql-password", Text, Some(""), "MySQL password", ANY),
    option(Mysql, "mysql-db", Text, Some("sbtest"), "MySQL database name", ANY),
    option(Mysql, "mysql-ssl", Bool, Some("off"), "use SSL connections, if available in the client library", ANY),
    option(Mysql, "mysql-ssl-cipher", Text, Some(""), "use specific cipher for SSL connections", ANY),
    option(Mysql, "mysql-compression", Bool, Some("off"), "use compression, if available in the client library", ANY),
    option(Mysql, "mysql-debug", Bool, Some("off"), "trace all client library calls", ANY),
    option(Mysql, "mysql-ignore-errors", List, Some("1213,1020,1205"), "list of errors to ignore, or \"all\"", ANY),
    option(Mysql, "mysql-dry-run", Bool, Some("off"), "Dry run, pretend that all MySQL client API calls are successful without executing them", ANY),

    option(Pgsql, "pgsql-host", Text, Some("localhost"), "PostgreSQL server host", ANY),
    option(Pgsql, "pgsql-port", Int, Some("5432"), "PostgreSQL server port", ANY),
    option(Pgsql, "pgsql-user", Text, Some("sbtest"), "PostgreSQL user", ANY),
    option(Pgsql, "pgsql-password", Text, Some(""), "PostgreSQL password", ANY),
    option(Pgsql, "pgsql-db", Text, Some("sbtest"), "PostgreSQL database name", ANY),

    option(Later, "pgsql-sslmode", Text, None, "PostgreSQL SSL mode {disable, allow, prefer, require, verify-ca, verify-full}", ANY),
    option(Later, "rand-zipfian-exp", Double, Some("0.8"), "exponent of the zipfian distribution, which --rand-type=zipfian chooses",
        |checks, option| {
            checks.keep(option)?;
            let is_valid = checks.settings.double("rand_zipfian_exp") >= 0.0;
            is_valid.then_some(()).ok_or_else(|| SysbenchError::fatal("--rand-zipfian-exp must be >= 0"))
        }),
    option(Later, "thread-init-timeout", Int, Some("30"), "number of seconds to wait for all threads to connect and initialize", NOT_NEGATIVE),
    option(Later, "warmup-time", Int, Some("0"), "number of seconds to run before the measured part, with separate statistics", NOT_NEGATIVE),

    option(Own, "compat", Text, Some("1.0.20"), "version of sysbench whose default values are used {1.0.20, master}. With master, the default of --rand-type is uniform",
        |checks, option| {
            let version = checks.text(option)?.unwrap_or_default();
            let is_known = ["1.0.20", "master"].contains(&version.as_str());
            is_known.then_some(()).ok_or_else(|| invalid_text("compat", &version))
        }),
    option(Own, "jobs", Int, None, "number of operating system threads on which the --threads run. By default, up to 12 --threads have one each, and more --threads share two for each CPU, but at least four",
        |checks, option| checks.number(option, 1).map(drop)),
    option(Own, "jsonl", Text, None, "write the events of the run as JSON Lines to this file, or with '-' to standard output instead of the report", ANY),
    option(Own, "list-statements", Text, None, "write the statements that the threads of 'run' send to this file as JSON Lines, each with the values of its first six executions", ANY),
    option(Own, "mark-by", Text, None, "run this query in the transaction of each statement of 'prepare' that may create objects. The query must return one value, SQL that marks the created objects, which is then run before the commit", ANY),
    option(Own, "no-describe", Bool, Some("off"), "do not ask for the columns of the results of prepared statements (Describe), unlike libpq. The server then has less to do", ANY),
    option(Own, "percentiles", List, None, "percentiles to report in addition to --percentile, such as 50,99,99.9",
        |checks, option| {
            let is_percentile = |item: &String| item.parse::<f64>().is_ok_and(|p| p > 0.0 && p <= 100.0);
            let wrong = checks.list(option)?.into_iter().find(|item| !is_percentile(item));
            wrong.map_or(Ok(()), |item| Err(invalid_text("percentiles", &item)))
        }),
    option(Own, "shard", Text, None, "run only shard I of the load that the other options describe and that N engines share; written I/N, with I from 1 to N. --jobs is the number for this engine alone",
        |checks, option| check_text(checks, option, |text| sharing::shard(text).map(drop))),
    option(Own, "slice", Text, None, "take turns with other engines in slices of this length, such as 250ms. Needs --slice-of, --slice-seed and --start-at",
        |checks, option| check_text(checks, option, |text| sharing::slice_length(text).map(drop))),
    option(Own, "slice-of", Text, None, "number I of this engine among the N engines that take turns; written I/N, with I from 1 to N",
        |checks, option| check_text(checks, option, |text| sharing::slice_part(text).map(drop))),
    option(Own, "slice-seed", Text, None, "seed of the random order in which engines take turns. Must be the same for all of them",
        |checks, option| check_text(checks, option, |text| sharing::slice_seed(text).map(drop))),
    option(Own, "start-at", Text, None, "begin the load at this time, at most 60 s from now: Unix seconds with decimals, or monotonic:SECONDS of this machine's monotonic clock. With '-' the time is read as a line from standard input when all threads are ready",
        |checks, option| check_text(checks, option, |text| StartAt::read(text).map(drop).map_err(|error| error.to_string()))),
];

/// The state of checking the general options: the command line, and the values of the options that have been checked so
/// far.
pub struct Checks<'a> {
    pub line: &'a CommandLine,
    pub settings: Settings,
    /// The function that is called with each warning about a deprecated or dubious option. It is called at once, also
    /// if a later option causes an error.
    pub warn: &'a mut dyn FnMut(&str),
}

impl Checks<'_> {
    /// Stores the value of an option. A switch with an invalid value counts as off here, and is rejected later when the
    /// test is known.
    fn keep(&mut self, option: &SysbenchOption) -> Result<OptionValue, SysbenchError> {
        let value = if option.kind == OptionKind::Bool {
            OptionValue::Bool(self.line.is_on(option.name))
        } else {
            self.line.value(option.name, option.kind)?.unwrap_or_else(|| option.default())
        };
        self.settings.set(option.name, value.clone());
        Ok(value)
    }

    /// Stores the value of an option that is a text or the name of a file, and returns the text.
    fn text(&mut self, option: &SysbenchOption) -> Result<Option<String>, SysbenchError> {
        self.keep(option)?;
        Ok(self.settings.text(&option.name.replace('-', "_")).map(str::to_owned))
    }

    /// Stores the value of an option that is a list of texts, and returns the list.
    fn list(&mut self, option: &SysbenchOption) -> Result<Vec<String>, SysbenchError> {
        Ok(if let OptionValue::List(items) = self.keep(option)? { items } else { Vec::new() })
    }

    /// Stores the value of an option that is a number, and returns it. Fails if the number is less than `min`. An
    /// option without a value is 0.
    fn number(&mut self, option: &SysbenchOption, min: i64) -> Result<i64, SysbenchError> {
        let OptionValue::Int(number) = self.keep(option)? else { return Ok(0) };
        if number < min { Err(invalid_number(option.name, number)) } else { Ok(number) }
    }

    /// Stores the value of an option that is a number and that can also be given by a `deprecated` name, and returns
    /// the number. A value under the deprecated name is used if it is greater than `unset`; otherwise the value under
    /// the new name is used.
    fn renamed(&mut self, option: &SysbenchOption, deprecated: &str, unset: i64) -> Result<i64, SysbenchError> {
        match self.line.value(deprecated, OptionKind::Int)? {
            Some(OptionValue::Int(number)) if number < 0 => Err(invalid_number(deprecated, number)),
            Some(OptionValue::Int(number)) if number > unset => {
                (self.warn)(&format!("--{deprecated} is deprecated, use --{} instead", option.name));
                self.settings.set(option.name, OptionValue::Int(number));
                Ok(number)
            }
            Some(_) | None => self.number(option, 0),
        }
    }
}

/// Returns sysbench's error for an option whose number is out of range.
fn invalid_number(name: &str, number: i64) -> SysbenchError {
    SysbenchError::fatal(format_args!("Invalid value for --{name}: {number}.\n"))
}

/// Returns sysbench's error for an option whose text is not valid.
fn invalid_text(name: &str, text: &str) -> SysbenchError {
    SysbenchError::fatal(format_args!("Invalid value for --{name}: '{text}'"))
}

/// Returns the option with this name, where a dash and an underscore count as the same character. Returns `None` if
/// there is no such option.
pub fn find(name: &str) -> Option<&'static SysbenchOption> {
    OPTIONS.iter().find(|known| same_name(known.name, name))
}

/// Checks an option whose value is a text: the function `read` must accept the text. An option that is not given is
/// accepted, too.
fn check_text<E: Display>(
    checks: &mut Checks<'_>,
    option: &SysbenchOption,
    read: fn(&str) -> Result<(), E>,
) -> Result<(), SysbenchError> {
    checks.text(option)?.map_or(Ok(()), |text| read(&text).map_err(SysbenchError::fatal))
}

/// Returns true if this value is valid for `--forced-shutdown`: `off`, a number of seconds, or a percentage of
/// `--time`.
fn is_forced_shutdown(text: &str) -> bool {
    text.eq_ignore_ascii_case("off") || text.strip_suffix('%').unwrap_or(text).parse::<u32>().is_ok()
}

fn check_checkpoints(checks: &mut Checks<'_>, option: &SysbenchOption) -> Result<(), SysbenchError> {
    for (index, point) in checks.list(option)?.iter().enumerate() {
        if !point.parse::<i32>().is_ok_and(|seconds| seconds >= 0) {
            return Err(invalid_text("report-checkpoints", point));
        }
        if index >= MAX_CHECKPOINTS {
            return Err(SysbenchError::fatal(format_args!(
                "Too many checkpoints in --report-checkpoints (up to {MAX_CHECKPOINTS} can be defined)"
            )));
        }
    }
    Ok(())
}

/// Checks the option `--rand-type`. With `--compat=master` its default is `uniform`.
fn check_distribution(checks: &mut Checks<'_>, option: &SysbenchOption) -> Result<(), SysbenchError> {
    checks.keep(option)?;
    if checks.settings.text("compat") == Some("master") && checks.line.last(option.name).is_none() {
        checks.settings.set(option.name, OptionValue::Text(Some("uniform".to_owned())));
    }
    let name = checks.settings.text("rand_type").unwrap_or("");
    if ["uniform", "gaussian", "special", "pareto", "zipfian"].contains(&name) {
        return Ok(());
    }
    Err(SysbenchError::fatal(format_args!("Invalid random numbers distribution: {name}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_dashes_and_underscores_and_nothing_else() {
        assert_eq!(find("rand_spec-iter").map(|known| known.name), Some("rand-spec-iter"));
        assert!(find("rand-spec").is_none() && find("Threads").is_none() && find("").is_none());
    }

    #[test]
    fn no_name_is_there_twice() {
        for (index, known) in OPTIONS.iter().enumerate() {
            assert!(OPTIONS[..index].iter().all(|other| !same_name(other.name, known.name)), "{}", known.name);
        }
    }

    #[test]
    fn what_is_checked_first_is_an_option() {
        assert!(CHECKED_FIRST.iter().all(|name| find(name).is_some()));
    }
}
