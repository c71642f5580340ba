//! The options that several front ends share, as rows of their option tables. Each front end includes the rows that it
//! needs, with its own group and help text.

use super::arguments::RunArguments;
use super::failure::Failure;
use super::pooling::{MAX_CONNECTIONS, MAX_TASKS, arrival};
use super::sharing;
use super::values::{count, count_to, latency_limit, max_tries, positive_seconds, rate, seconds};
use crate::event::Events;
use drive::start_at::StartAt;
use ground::options::{Argument, OptionRow, SetResult, set};
use wire::params::Given;

/// The heading of the options for the output in a help text.
pub const OUTPUT: &str = "Output:";

/// The heading of the options for the connection in a help text.
pub const CONNECTION: &str = "Connection:";

type Row = OptionRow<RunArguments, Failure, ()>;
type ConnectionRow = OptionRow<Given, Failure, ()>;

const fn text(spec: &'static str, field: fn(&mut Given) -> &mut Option<String>) -> ConnectionRow {
    ConnectionRow::text(spec, (), "", field)
}

const fn switch(spec: &'static str, field: fn(&mut RunArguments) -> &mut bool) -> Row {
    Row::switch(spec, (), "", field)
}

const fn value(spec: &'static str, set: fn(&mut RunArguments, &Argument<'_>) -> SetResult<Failure>) -> Row {
    Row::value(spec, (), "", set)
}

pub const DBNAME: ConnectionRow = text("-d, --dbname=DBNAME", |given| &mut given.dbname);
pub const HOST: ConnectionRow = text("-h, --host=HOSTNAME", |given| &mut given.host);
pub const PORT: ConnectionRow = text("-p, --port=PORT", |given| &mut given.port);
pub const USERNAME: ConnectionRow = text("-U, --username=USERNAME", |given| &mut given.user);

pub const PROGRESS: Row = value("-P, --progress=NUM", |o, v| set(&mut o.output.progress, count(v)));
pub const RATE: Row = value("-R, --rate=NUM", |o, v| set(&mut o.load.settings.interval_ns, rate(v.text)));
pub const TRANSACTIONS: Row = value("-t, --transactions=NUM", |o, v| set(&mut o.load.transactions, count(v)));
pub const LATENCY_LIMIT: Row =
    value("-L, --latency-limit=NUM", |o, v| set(&mut o.load.settings.script.latency_limit, latency_limit(v.text)));
pub const MAX_TRIES: Row = value("--max-tries=NUM", |o, v| set(&mut o.load.settings.script.tries, max_tries(v.text)));
pub const CONTINUE_ON_ERROR: Row = switch("--continue-on-error", |o| &mut o.load.settings.script.continue_on_error);
pub const EXIT_ON_ABORT: Row = switch("--exit-on-abort", |o| &mut o.load.settings.exit_on_abort);
pub const VERBOSE_ERRORS: Row = switch("--verbose-errors", |o| &mut o.load.settings.script.notes.failures);
pub const WAIT_FOR_SERVER: Row =
    value("--wait-for-server=SECONDS", |o, v| set(&mut o.load.settings.wait_for_server, seconds(v)));
pub const WARMUP: Row = value("--warmup=SECONDS", |o, v| set(&mut o.load.settings.warmup, seconds(v)));
pub const EVENTS: Row =
    value("--events=FILE|-", |o, v| set(&mut o.output.events, Ok::<_, Failure>(Events::named(v.text))));

pub const LIST_STATEMENTS: Row =
    value("--list-statements=FILE", |o, v| set(&mut o.output.statements, Ok::<_, Failure>(ground::text::path(v.text))));

pub const SHARD: Row = value("--shard=I/N", |o, v| set(&mut o.load.shard, sharing::shard(v.text)));
pub const SLICE: Row = value("--slice=TIME", |o, v| set(&mut o.load.slicing.length, sharing::slice_length(v.text)));
pub const SLICE_OF: Row = value("--slice-of=I/N", |o, v| set(&mut o.load.slicing.part, sharing::slice_part(v.text)));
pub const SLICE_SEED: Row =
    value("--slice-seed=NUM", |o, v| set(&mut o.load.slicing.seed, sharing::slice_seed(v.text)));
pub const START_AT: Row = value("--start-at=WHEN|-", |o, v| set(&mut o.load.settings.start, StartAt::read(v.text)));

pub const APPS: Row =
    value("--apps=NUM", |o, v| set(&mut o.load.pooling.apps, count_to(v, MAX_CONNECTIONS).map(|apps| apps as usize)));
pub const ARRIVAL: Row =
    value("--arrival=at-once|RATE|poisson:RATE", |o, v| set(&mut o.load.pooling.arrival, arrival(v)));
pub const POOL: Row =
    value("--pool=SIZE", |o, v| set(&mut o.load.pooling.size, count_to(v, MAX_CONNECTIONS).map(|size| size as usize)));
pub const POOL_LIFETIME: Row =
    value("--pool-lifetime=SECONDS", |o, v| set(&mut o.load.pooling.lifetime, positive_seconds(v)));
pub const POOL_TIMEOUT: Row =
    value("--pool-timeout=SECONDS", |o, v| set(&mut o.load.pooling.timeout, positive_seconds(v)));
pub const TASKS: Row = value("--tasks=NUM", |o, v| set(&mut o.load.pooling.tasks, count_to(v, MAX_TASKS)));
