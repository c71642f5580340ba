//! Makes the plan of a test that measures the machine (CPU, memory, threads, mutex) and needs no server. Each client
//! has a thread of its own.

use std::sync::Arc;

use super::log::SysbenchError;
use super::plan;
use drive::plan::{LoadMode, Plan};
use workload::host;
use workload::settings::Settings;

/// Returns the plan of a run of `test`.
pub fn run(settings: &Settings, test: &host::MachineLoad) -> Result<Plan, SysbenchError> {
    if settings.int("jobs") > 0 {
        return Err(SysbenchError::fatal(
            "--jobs is for tests of the database: in a test of the machine each of the --threads is a thread of the \
             operating system",
        ));
    }
    let part = plan::part(settings)?;
    let threads = part.clients();
    let mut plan = plan::load(settings, plan::staged(settings, part, threads, None, Arc::clone(&test.workload)))?;
    if let LoadMode::Staged(load, _) = &mut plan.load.mode {
        load.events = load.events.filter(|_| test.obeys_events);
        load.events_each = test.events_each;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::settings::OptionValue;

    fn planned(name: &str, options: &[(&str, i64)]) -> Result<Plan, SysbenchError> {
        let test = host::find(name).unwrap();
        let mut settings = Settings::default();
        (test.options)().into_iter().for_each(|spec| settings.set(&spec.name, spec.default));
        options.iter().for_each(|(name, number)| settings.set(name, OptionValue::Int(*number)));
        let load = (test.load)(&settings).unwrap();
        run(&settings, &load)
    }

    #[test]
    fn each_client_has_a_thread_and_there_is_no_server() {
        for test in host::TESTS {
            let plan = planned(test.name, &[("threads", 5)]).unwrap();
            assert!((plan.clients, plan.jobs) == (5, 5) && plan.is_spread() && plan.target.is_none(), "{}", test.name);
        }
    }

    #[test]
    fn tests_have_limits_of_their_own() {
        let limits = |name: &str| {
            let limits = planned(name, &[("threads", 5), ("events", 9)]).unwrap().load.limits();
            (limits.of_all_clients, limits.of_each_client)
        };
        assert_eq!([limits("cpu"), limits("threads")], [(Some(9), None); 2]);
        assert_eq!(limits("mutex"), (Some(9), Some(1)));
        // The clients write 100 GiB in total, 1 KiB in each event. Each of the five clients runs a fifth of these
        // events.
        assert_eq!(limits("memory"), (None, Some(100 * (1 << 20) / 5)));
    }

    #[test]
    fn threads_are_not_shared_out_among_jobs() {
        let refused = planned("cpu", &[("threads", 5), ("jobs", 2)]).err();
        assert!(
            matches!(&refused, Some(SysbenchError::Fatal(lines)) if lines[0].starts_with("--jobs ")),
            "{refused:?}"
        );
    }
}
