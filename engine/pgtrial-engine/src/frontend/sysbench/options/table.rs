//! Every option that does not belong to a test: its name, kind, default and description.

use super::values::Kind;

/// Where an option stands in the help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    General,
    Random,
    LogText,
    LogLatency,
    Database,
    Mysql,
    Pgsql,
    /// What later versions of sysbench have.
    Later,
    /// What only pgtrial has: tests do not see these.
    Own,
}

/// An option that is known without a test.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    pub group: Group,
    /// With dashes.
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written; `None` where there is none.
    pub default: Option<&'static str>,
    pub description: &'static str,
}

const fn option(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    description: &'static str,
) -> Definition {
    Definition { group, name, kind, default, description }
}

use Group::{Database, General, Later, LogLatency, LogText, Mysql, Own, Pgsql, Random};
use Kind::{Bool, Double, File, Int, List, Size, Text};

/// The options in the order of the help text.
#[rustfmt::skip]
pub const OPTIONS: &[Definition] = &[
    option(General, "threads", Int, Some("1"), "number of threads to use"),
    option(General, "events", Int, Some("0"), "limit for total number of events"),
    option(General, "time", Int, Some("10"), "limit for total execution time in seconds"),
    option(General, "forced-shutdown", Text, Some("off"), "number of seconds to wait after the --time limit before forcing shutdown, or 'off' to disable"),
    option(General, "thread-stack-size", Size, Some("64K"), "size of stack per thread"),
    option(General, "rate", Int, Some("0"), "average transactions rate. 0 for unlimited rate"),
    option(General, "report-interval", Int, Some("0"), "periodically report intermediate statistics with a specified interval in seconds. 0 disables intermediate reports"),
    option(General, "report-checkpoints", List, Some(""), "dump full statistics and reset all counters at specified points in time. The argument is a list of comma-separated values representing the amount of time in seconds elapsed from start of test when report checkpoint(s) must be performed. Report checkpoints are off by default."),
    option(General, "debug", Bool, Some("off"), "print more debugging info"),
    option(General, "validate", Bool, Some("off"), "perform validation checks where possible"),
    option(General, "help", Bool, Some("off"), "print help and exit"),
    option(General, "version", Bool, Some("off"), "print version and exit"),
    option(General, "config-file", File, None, "File containing command line options"),
    option(General, "tx-rate", Int, Some("0"), "deprecated alias for --rate"),
    option(General, "max-requests", Int, Some("0"), "deprecated alias for --events"),
    option(General, "max-time", Int, Some("0"), "deprecated alias for --time"),
    option(General, "num-threads", Int, Some("1"), "deprecated alias for --threads"),

    option(Random, "rand-type", Text, Some("special"), "random numbers distribution {uniform,gaussian,special,pareto}"),
    option(Random, "rand-spec-iter", Int, Some("12"), "number of iterations used for numbers generation"),
    option(Random, "rand-spec-pct", Int, Some("1"), "percentage of values to be treated as 'special' (for special distribution)"),
    option(Random, "rand-spec-res", Int, Some("75"), "percentage of 'special' values to use (for special distribution)"),
    option(Random, "rand-seed", Int, Some("0"), "seed for random number generator. When 0, the current time is used as a RNG seed."),
    option(Random, "rand-pareto-h", Double, Some("0.2"), "parameter h for pareto distribution"),

    option(LogText, "verbosity", Int, Some("3"), "verbosity level {5 - debug, 0 - only critical messages}"),

    option(LogLatency, "percentile", Int, Some("95"), "percentile to calculate in latency statistics (1-100). Use the special value of 0 to disable percentile calculations"),
    option(LogLatency, "histogram", Bool, Some("off"), "print latency histogram in report"),

    option(Database, "db-driver", Text, Some("pgsql"), "specifies database driver to use ('help' to get list of available drivers)"),
    option(Database, "db-ps-mode", Text, Some("auto"), "prepared statements usage mode {auto, disable}"),
    option(Database, "db-debug", Bool, Some("off"), "print database-specific debug information"),

    option(Mysql, "mysql-host", List, Some("localhost"), "MySQL server host"),
    option(Mysql, "mysql-port", List, Some("3306"), "MySQL server port"),
    option(Mysql, "mysql-socket", List, None, "MySQL socket"),
    option(Mysql, "mysql-user", Text, Some("sbtest"), "MySQL user"),
    option(Mysql, "mysql-password", Text, Some(""), "MySQL password"),
    option(Mysql, "mysql-db", Text, Some("sbtest"), "MySQL database name"),
    option(Mysql, "mysql-ssl", Bool, Some("off"), "use SSL connections, if available in the client library"),
    option(Mysql, "mysql-ssl-cipher", Text, Some(""), "use specific cipher for SSL connections"),
    option(Mysql, "mysql-compression", Bool, Some("off"), "use compression, if available in the client library"),
    option(Mysql, "mysql-debug", Bool, Some("off"), "trace all client library calls"),
    option(Mysql, "mysql-ignore-errors", List, Some("1213,1020,1205"), "list of errors to ignore, or \"all\""),
    option(Mysql, "mysql-dry-run", Bool, Some("off"), "Dry run, pretend that all MySQL client API calls are successful without executing them"),

    option(Pgsql, "pgsql-host", Text, Some("localhost"), "PostgreSQL server host"),
    option(Pgsql, "pgsql-port", Int, Some("5432"), "PostgreSQL server port"),
    option(Pgsql, "pgsql-user", Text, Some("sbtest"), "PostgreSQL user"),
    option(Pgsql, "pgsql-password", Text, Some(""), "PostgreSQL password"),
    option(Pgsql, "pgsql-db", Text, Some("sbtest"), "PostgreSQL database name"),

    option(Later, "pgsql-sslmode", Text, None, "PostgreSQL SSL mode {disable, allow, prefer, require, verify-ca, verify-full}"),
    option(Later, "rand-zipfian-exp", Double, Some("0.8"), "exponent of the zipfian distribution, which --rand-type=zipfian chooses"),
    option(Later, "thread-init-timeout", Int, Some("30"), "number of seconds to wait for all threads to connect and initialize"),
    option(Later, "warmup-time", Int, Some("0"), "number of seconds to run before the measured part, with statistics kept apart"),

    option(Own, "compat", Text, Some("1.0.20"), "version of sysbench whose defaults are used {1.0.20, master}: master's --rand-type is uniform"),
    option(Own, "jobs", Int, None, "number of operating system threads that carry the --threads; by default as many as there are CPUs"),
    option(Own, "jsonl", Text, None, "write what happens as JSON Lines to this file, or with '-' to standard output in place of the report"),
    option(Own, "percentiles", List, None, "percentiles to report in addition to --percentile, such as 50,99,99.9"),
    option(Own, "shard", Text, None, "run part I of N, written I/N from 1, of the run that the other options say, which N engines share; --jobs is each engine's own"),
    option(Own, "start-at", Text, None, "begin the load at this time, Unix seconds with decimals, at most 60 s ahead; with '-' at the one that is read as a line from standard input when all threads are ready"),
];

/// The option of this name, in which dashes and underscores are the same.
pub fn find(name: &str) -> Option<&'static Definition> {
    OPTIONS.iter().find(|known| same_name(known.name, name))
}

/// Whether two names differ at most in dashes and underscores.
pub fn same_name(one: &str, other: &str) -> bool {
    let folded = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.bytes().map(folded).eq(other.bytes().map(folded))
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
}
