//! Makes from sysbench's options everything that the event loop needs: the address of the server, and the plan (the
//! limits, the rate and all other settings) of a load or of another command.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::log::SysbenchError;
use super::report::options::ReportOptions;
use crate::frontend::common::messages::USER;
use crate::frontend::common::sharing;
use crate::frontend::common::sharing::{Length, SharingError, SliceOptions, WHOLE_SECONDS};
use drive::alone::{Alone, ProtocolOptions, Server};
use drive::plan::{Load, LoadMode, Plan, StagedPlan};
use drive::slices::Slices;
use drive::start_at::StartAt;
use ground::interrupt;
use ground::shard::{ClientShare, Shard};
use wire::OpenError;
use wire::params::{Given, ParamsError, Password};
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use workload::seeds::Seeds;
use workload::settings::Settings;
use workload::{Executors, StagedActions, Workload};

/// The number of clients up to which each client has a thread of its own, as in sysbench. The operating system divides
/// processor time among threads. On a machine with few processors, a few clients that share threads would therefore get
/// less processor time than sysbench's clients.
const ALONE: usize = 12;

/// The greatest number of events that can wait in the queue of `--rate`. sysbench's ring buffer has 131,072 places, one
/// of which always stays free.
const LONGEST_QUEUE: u64 = 131_071;

/// Returns the address of the server that the options name. Missing parameters are filled in as libpq does: the
/// password, for example, is taken from `PGPASSWORD` or the password file. The error is sysbench's message.
pub fn target(settings: &Settings) -> Result<Arc<Target>, SysbenchError> {
    let failed = |error| SysbenchError::fatal(format_args!("Connection to database failed: {error}\n"));
    find(settings).map_err(failed)
}

/// Returns the same address as [`target`]. The error is the plain error in the connection parameters, without
/// sysbench's words around it.
fn find(settings: &Settings) -> Result<Arc<Target>, ParamsError> {
    let text = |name| settings.text(name).map(str::to_owned);
    let given = Given {
        host: text("pgsql_host"),
        port: Some(settings.int("pgsql_port").to_string()),
        user: text("pgsql_user"),
        // If the options name no database, the default is libpq's, as in sysbench, and not pgbench's. The empty name
        // stands for libpq's default.
        dbname: Some(text("pgsql_db").unwrap_or_default()),
        password: settings.text("pgsql_password").map(Password::new),
        sslmode: text("pgsql_sslmode"),
        options_win: true,
        // sysbench's sessions have no application_name.
        fallback_application_name: String::new(),
    };
    Target::of(&given, USER)
}

/// Returns which shard (share of the load) this engine runs, if `--shard` says that several engines share the load.
pub fn shard(settings: &Settings) -> Result<Shard, SysbenchError> {
    settings.text("shard").map_or(Ok(Shard::WHOLE), sharing::shard).map_err(SysbenchError::fatal)
}

/// Returns the clients (sysbench's threads) of the whole run that belong to this engine. Fails if there are fewer
/// clients than engines, or if several engines share the run without a given random seed.
pub fn part(settings: &Settings) -> Result<ClientShare, SysbenchError> {
    let shard = shard(settings)?;
    let clients = usize::try_from(settings.int("threads")).unwrap_or(1).max(1);
    sharing::check_enough(shard, clients, "threads").map_err(SysbenchError::fatal)?;
    if shard.is_part() && settings.int("rand_seed") == 0 {
        return Err(SysbenchError::fatal(sharing::needs_seed("--rand-seed")));
    }
    Ok(ClientShare::of_clients(shard, clients))
}

/// Returns the plan of a load: the plan `command` with the limits, the rate, the warm-up, the planned start and the
/// slices that the options ask for.
pub fn load(settings: &Settings, command: Plan) -> Result<Plan, SysbenchError> {
    let seconds = |name| Duration::from_secs(count(settings, name));
    let (events, time) = (count(settings, "events"), seconds("time"));
    let rate = settings.double("rate");
    let start = settings.text("start_at").map(StartAt::read).transpose().map_err(SysbenchError::fatal)?;
    let slices = slices(settings, start.is_some(), seconds("warmup_time"), time)?;
    let total = (events > 0).then(|| command.part.transactions(events));
    let warmup = seconds("warmup_time");
    let mut plan = Plan { warmup, exit_on_abort: true, start, slices, is_command: false, ..command };
    let load = StagedPlan {
        events: total,
        events_each: None,
        time: (!time.is_zero()).then_some(time),
        interval_ns: (rate > 0.0).then(|| 1e9 / rate),
        longest_queue: (rate > 0.0).then_some(LONGEST_QUEUE),
    };
    if let LoadMode::Staged(staged, _) = &mut plan.load.mode {
        *staged = load;
    }
    Ok(plan)
}

/// Returns the slices of time in which this engine runs its load while other engines pause, or `None` if the options
/// request no slices. Both the warm-up and the measured part must consist of whole rounds, in which each engine has one
/// slice.
fn slices(
    settings: &Settings,
    has_start: bool,
    warmup: Duration,
    time: Duration,
) -> Result<Option<Slices>, SysbenchError> {
    let text = |name| settings.text(name);
    let options = || {
        Ok::<_, SharingError>(SliceOptions {
            length: text("slice").map(sharing::slice_length).transpose()?,
            part: text("slice_of").map(sharing::slice_part).transpose()?,
            seed: text("slice_seed").map(sharing::slice_seed).transpose()?,
        })
    };
    let length = |option, time| Length { option, time, unit: WHOLE_SECONDS };
    let lengths = [length("--warmup-time", warmup), length("--time", time)];
    let slices = options().and_then(|options| options.settle(has_start, &lengths)).map_err(SysbenchError::fatal)?;
    if slices.is_some() && ReportOptions::read(settings).grace.is_some() {
        let message =
            "--forced-shutdown cannot be combined with --slice: transactions that outlast a slice are always finished";
        return Err(SysbenchError::fatal(message));
    }
    Ok(slices)
}

/// Returns this engine's share of the clients of a command. If `parallel` is true, the command runs in all clients;
/// otherwise it runs in one client.
pub fn part_of_command(settings: &Settings, parallel: bool) -> Result<ClientShare, SysbenchError> {
    if parallel { part(settings) } else { Ok(ClientShare::of_clients(shard(settings)?, 1)) }
}

/// Returns a function that makes executors. An executor connects to the server and sends those statements of a script
/// that no client sends: statements at the top level of the script, in `init`, in `done`, and in its functions for
/// reports.
pub fn executors(settings: &Arc<Settings>) -> Executors {
    let settings = Arc::clone(settings);
    Box::new(move || {
        let found = Arc::clone(&settings);
        let server = move || {
            let unknown = |message| OpenError { message, sqlstate: "08001".to_owned() };
            let target = find(&found).map_err(|error| unknown(error.to_string()))?;
            let interrupt = interrupt::catch().map_err(|error| unknown(error.to_string()))?;
            target.obey(&interrupt);
            Ok(Server { target, interrupt })
        };
        let protocol = ProtocolOptions {
            mode: mode_of_scripts(&settings),
            describes: describes(&settings),
            format: ResultFormat::Binary,
        };
        Box::new(Alone::new(server, protocol))
    })
}

/// Returns the query mode for a script's statements: simple with `--db-ps-mode=disable`, and otherwise prepared.
pub fn mode_of_scripts(settings: &Settings) -> QueryMode {
    if settings.text("db_ps_mode") == Some("disable") { QueryMode::Simple } else { QueryMode::Prepared }
}

/// Returns true if executions of prepared statements also send Describe, to get the columns of the result. Returns
/// false with `--no-describe`.
fn describes(settings: &Settings) -> bool {
    !settings.is_on("no_describe")
}

/// Returns the plan of a command that uses the server. If a client is aborted, the other clients go on. Without
/// `--jobs`, the number of threads is chosen by [`threads_for`].
pub fn command(
    settings: &Settings,
    part: ClientShare,
    target: Arc<Target>,
    workload: Arc<dyn Workload<StagedActions>>,
    mode: QueryMode,
) -> Plan {
    let clients = part.clients();
    let jobs = match usize::try_from(settings.int("jobs")) {
        Ok(jobs @ 1..) => jobs.min(clients),
        _ => threads_for(clients, available_parallelism().map_or(1, NonZero::get)),
    };
    Plan {
        mode,
        describes: describes(settings),
        format: ResultFormat::Binary,
        ..staged(settings, part, jobs, Some(target), workload)
    }
}

/// Returns the number of threads for this number of clients: one thread for each client, up to [`ALONE`] clients. For
/// more clients, there are two threads for each processor, but at least four. So many clients keep even a few threads
/// busy, and fewer threads cause fewer context switches.
fn threads_for(clients: usize, processors: usize) -> usize {
    if clients <= ALONE { clients } else { clients.min((2 * processors).max(4)) }
}

/// Returns the plan of a command such as `prepare`, whose clients only execute the actions that come before their first
/// transaction. The plan has no limits and no rate; [`load`] adds them for tests that have transactions.
pub fn staged(
    settings: &Settings,
    part: ClientShare,
    jobs: usize,
    target: Option<Arc<Target>>,
    workload: Arc<dyn Workload<StagedActions>>,
) -> Plan {
    let seeds = Seeds::derive(seed(settings), &part, 0, jobs, None);
    let load = Load::staged(workload, StagedPlan::default());
    Plan { jobs, is_command: true, ..Plan::new(target, part, seeds, load) }
}

fn count(settings: &Settings, name: &str) -> u64 {
    u64::try_from(settings.int(name)).unwrap_or(0)
}

/// Returns the value of `--rand-seed`. If it is 0, returns a seed made from the current time, in nanoseconds.
fn seed(settings: &Settings) -> u64 {
    match settings.int("rand_seed") {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64,
        seed => seed as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::never_run::Nothing;
    use wire::params::SslMode;
    use workload::settings::OptionValue;

    fn settings(options: &[(&str, i64)]) -> Settings {
        let mut settings = Settings::default();
        settings.set("pgsql_host", OptionValue::Text(Some("/nowhere".to_owned())));
        settings.set("pgsql_port", OptionValue::Int(5432));
        settings.set("pgsql_user", OptionValue::Text(Some("me".to_owned())));
        settings.set("rand_seed", OptionValue::Int(7));
        for (name, number) in options {
            settings.set(name, OptionValue::Int(*number));
        }
        settings
    }

    fn loaded(options: &[(&str, i64)]) -> Plan {
        let settings = settings(options);
        load_of(&settings)
    }

    fn load_of(settings: &Settings) -> Plan {
        let target = target(settings).unwrap();
        let part = part(settings).unwrap();
        load(settings, command(settings, part, target, Arc::new(Nothing), QueryMode::Prepared)).unwrap()
    }

    fn staged_of(plan: &Plan) -> StagedPlan {
        match &plan.load.mode {
            LoadMode::Staged(staged, _) => *staged,
            _ => unreachable!("loads of sysbench are staged"),
        }
    }

    #[test]
    fn a_load_ends_by_events_or_time_or_never() {
        let limit = |events, time| {
            let plan = staged_of(&loaded(&[("threads", 1), ("events", events), ("time", time)]));
            (plan.events, plan.time)
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(limit(5, 10), (Some(5), seconds(10)));
        assert_eq!(limit(0, 10), (None, seconds(10)));
        assert_eq!(limit(0, 0), (None, None));
    }

    #[test]
    fn a_rate_is_an_interval() {
        assert_eq!(loaded(&[("threads", 1), ("rate", 4)]).interval_ns(), Some(250e6));
        assert_eq!(loaded(&[("threads", 1), ("rate", 0)]).interval_ns(), None);
    }

    #[test]
    fn jobs_are_at_most_as_many_as_clients() {
        let plan = loaded(&[("threads", 3), ("jobs", 2)]);
        assert_eq!((plan.clients, plan.jobs, plan.seeds.clients.len()), (3, 2, 3));
        assert_eq!(loaded(&[("threads", 3), ("jobs", 8)]).jobs, 3);
    }

    #[test]
    fn few_clients_have_a_thread_each_and_many_share_two_for_each_processor() {
        let jobs = |threads: i64, jobs: i64| loaded(&[("threads", threads), ("jobs", jobs)]).jobs;
        let processors = available_parallelism().unwrap().get();
        assert_eq!([jobs(3, 0), jobs(100, 0), jobs(100, 5)], [3, threads_for(100, processors), 5]);
        assert_eq!([1, 12, 13, 256].map(|clients| threads_for(clients, 2)), [1, 12, 4, 4]);
        assert_eq!([12, 20, 256].map(|clients| threads_for(clients, 16)), [12, 20, 32]);
        assert_eq!(threads_for(13, 1), 4);
    }

    #[test]
    fn commands_run_in_all_clients_or_in_one() {
        let clients = |settings: &Settings, parallel| {
            let (part, target) = (part_of_command(settings, parallel).unwrap(), target(settings).unwrap());
            command(settings, part, target, Arc::new(Nothing), QueryMode::Simple).clients
        };
        let whole = settings(&[("threads", 3)]);
        assert_eq!([clients(&whole, true), clients(&whole, false)], [3, 1]);
        for (text, expected) in [("1/2", [2, 1]), ("2/2", [1, 0])] {
            let shard = of_shard(text, &[("threads", 3)]);
            assert_eq!([true, false].map(|parallel| part_of_command(&shard, parallel).unwrap().clients()), expected);
        }
    }

    fn of_shard(text: &str, options: &[(&str, i64)]) -> Settings {
        let mut settings = settings(options);
        settings.set("shard", OptionValue::Text(Some(text.to_owned())));
        settings
    }

    #[test]
    fn a_part_has_its_threads_and_what_these_take_of_the_events() {
        let plans = ["1/2", "2/2"].map(|text| load_of(&of_shard(text, &[("threads", 3), ("events", 10)])));
        assert_eq!(plans.each_ref().map(|plan| (plan.clients, plan.part.number(0))), [(2, 0), (1, 2)]);
        let limits = plans.map(|plan| (staged_of(&plan).events, staged_of(&plan).time));
        assert_eq!(limits, [6, 4].map(|total| (Some(total), None)));
    }

    #[test]
    fn parts_that_could_not_be_shared_out_are_refused() {
        for (text, seed, message) in [("1/4", 7, "3 threads cannot be shared out among 4"), ("1/2", 0, "--rand-seed")] {
            let refused = part(&of_shard(text, &[("threads", 3), ("rand_seed", seed)])).unwrap_err();
            assert!(matches!(&refused, SysbenchError::Fatal(lines) if lines[0].contains(message)), "{refused:?}");
        }
    }

    #[test]
    fn the_server_is_the_one_of_the_options() {
        let mut settings = settings(&[("pgsql_port", 7)]);
        for (name, text) in [("pgsql_db", "base"), ("pgsql_password", "secret"), ("pgsql_sslmode", "require")] {
            settings.set(name, OptionValue::Text(Some(text.to_owned())));
        }
        let params = target(&settings).unwrap().params.clone();
        assert_eq!((params.user.as_str(), params.dbname.as_str()), ("me", "base"));
        assert_eq!((params.endpoints[0].port, params.tls.mode), (7, SslMode::Require));
        assert_eq!(params.endpoints[0].password.as_ref().map(Password::reveal), Some("secret"));
    }

    #[test]
    fn a_wrong_port_is_an_error_of_its_connection() {
        let target = target(&settings(&[("pgsql_port", 99_999)])).unwrap();
        let refused = target.params.endpoints[0].address.as_ref().unwrap_err();
        assert_eq!(refused.to_string(), "invalid port number: \"99999\"");
    }
}
