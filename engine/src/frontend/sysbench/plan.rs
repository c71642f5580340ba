//! From options to what the reactor runs: the server, and the plan of a load or of a command.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::refusal::Refusal;
use crate::connection::params::{self, Given, Password, ProcessEnvironment};
use crate::connection::statement::QueryMode;
use crate::connection::target::Target;
use crate::plan::{Limit, Notes, Plan, Seeds};
use crate::program::Workload;
use crate::program::settings::Settings;

/// The server that the options name; what they leave open is libpq's: the password from `PGPASSWORD` or the password file.
/// Lines that libpq would print on standard error come with it.
pub fn target(settings: &Settings) -> Result<(Arc<Target>, Vec<String>), Refusal> {
    let text = |name| settings.text(name).map(str::to_owned);
    let given = Given {
        host: text("pgsql_host"),
        port: Some(settings.int("pgsql_port").to_string()),
        user: text("pgsql_user"),
        // Without a name it is libpq's default and not pgbench's.
        dbname: Some(text("pgsql_db").unwrap_or_default()),
        password: settings.text("pgsql_password").map(Password::new),
        sslmode: text("pgsql_sslmode"),
        fallback_application_name: "sysbench".to_owned(),
    };
    let params = params::resolve(&given, &ProcessEnvironment)
        .map_err(|error| Refusal::fatal(format_args!("Connection to database failed: {error}\n")))?;
    let warnings = params.warnings.clone();
    Ok((Arc::new(Target::resolve(params)), warnings))
}

/// The plan of a load.
pub fn load(settings: &Settings, target: Arc<Target>, workload: Arc<dyn Workload>, mode: QueryMode) -> Plan {
    let seconds = |name| Duration::from_secs(count(settings, name));
    let (events, time) = (count(settings, "events"), seconds("time"));
    let rate = settings.double("rate");
    Plan {
        limit: Limit::Events { total: (events > 0).then_some(events), time: (!time.is_zero()).then_some(time) },
        warmup: seconds("warmup_time"),
        interval: (rate > 0.0).then(|| Duration::from_secs_f64(1.0 / rate)),
        pools: None,
        exit_on_abort: true,
        ..command(settings, target, workload, mode, true)
    }
}

/// The plan of a command: of all clients if it runs in `parallel`, else of one. One client's end is not the others'.
pub fn command(
    settings: &Settings,
    target: Arc<Target>,
    workload: Arc<dyn Workload>,
    mode: QueryMode,
    parallel: bool,
) -> Plan {
    let clients = if parallel { usize::try_from(settings.int("threads")).unwrap_or(1).max(1) } else { 1 };
    let jobs = match usize::try_from(settings.int("jobs")) {
        Ok(jobs @ 1..) => jobs,
        _ => available_parallelism().map_or(1, usize::from),
    }
    .min(clients);
    Plan {
        target,
        workload,
        clients,
        jobs,
        mode,
        limit: Limit::Events { total: None, time: None },
        warmup: Duration::ZERO,
        reconnect: false,
        staged: true,
        timed_commands: false,
        interval: None,
        pools: None,
        latency_limit: None,
        tries: Some(1),
        continue_on_error: false,
        wait_for_server: None,
        exit_on_abort: false,
        log: None,
        notes: Notes::default(),
        seeds: Seeds::derive(seed(settings), clients, jobs, None),
    }
}

fn count(settings: &Settings, name: &str) -> u64 {
    u64::try_from(settings.int(name)).unwrap_or(0)
}

/// `--rand-seed`; for 0 it is the time, in nanoseconds.
fn seed(settings: &Settings) -> u64 {
    match settings.int("rand_seed") {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64,
        seed => seed as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::params::SslMode;
    use crate::program::random::Random;
    use crate::program::settings::OptionValue;
    use crate::program::{Program, ScriptInfo};

    /// A workload that is never run.
    struct Nothing;

    impl Workload for Nothing {
        fn scripts(&self) -> Vec<ScriptInfo> {
            Vec::new()
        }

        fn client(&self, _client: usize, _random: Random) -> Box<dyn Program> {
            unreachable!("it is never run")
        }
    }

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
        load(&settings, target(&settings).unwrap().0, Arc::new(Nothing), QueryMode::Prepared)
    }

    #[test]
    fn a_load_ends_by_events_or_time_or_never() {
        let limit = |events, time| loaded(&[("threads", 1), ("events", events), ("time", time)]).limit;
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(limit(5, 10), Limit::Events { total: Some(5), time: seconds(10) });
        assert_eq!(limit(0, 10), Limit::Events { total: None, time: seconds(10) });
        assert_eq!(limit(0, 0), Limit::Events { total: None, time: None });
    }

    #[test]
    fn a_rate_is_an_interval() {
        assert_eq!(loaded(&[("threads", 1), ("rate", 4)]).interval, Some(Duration::from_millis(250)));
        assert_eq!(loaded(&[("threads", 1), ("rate", 0)]).interval, None);
    }

    #[test]
    fn jobs_are_at_most_as_many_as_clients() {
        let plan = loaded(&[("threads", 3), ("jobs", 2)]);
        assert_eq!((plan.clients, plan.jobs, plan.seeds.clients.len()), (3, 2, 3));
        assert_eq!(loaded(&[("threads", 3), ("jobs", 8)]).jobs, 3);
        assert!((1..=3).contains(&loaded(&[("threads", 3)]).jobs));
    }

    #[test]
    fn commands_run_in_all_clients_or_in_one() {
        let settings = settings(&[("threads", 3)]);
        let clients = |parallel| {
            let (target, _) = target(&settings).unwrap();
            command(&settings, target, Arc::new(Nothing), QueryMode::Simple, parallel).clients
        };
        assert_eq!([clients(true), clients(false)], [3, 1]);
    }

    #[test]
    fn the_server_is_the_one_of_the_options() {
        let mut settings = settings(&[("pgsql_port", 7)]);
        for (name, text) in [("pgsql_db", "base"), ("pgsql_password", "secret"), ("pgsql_sslmode", "require")] {
            settings.set(name, OptionValue::Text(Some(text.to_owned())));
        }
        let params = target(&settings).unwrap().0.params.clone();
        assert_eq!((params.user.as_str(), params.dbname.as_str()), ("me", "base"));
        assert_eq!((params.endpoints[0].port, params.tls.mode), (7, SslMode::Require));
        assert_eq!(params.endpoints[0].password.as_ref().map(Password::reveal), Some("secret"));
    }

    #[test]
    fn a_wrong_port_is_a_failed_connection() {
        let refused = target(&settings(&[("pgsql_port", 99_999)])).err();
        let expected = "Connection to database failed: invalid port number: \"99999\"\n".to_owned();
        assert_eq!(refused, Some(Refusal::Fatal(vec![expected])));
    }
}
