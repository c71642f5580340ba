//! Executes the commands of built-in tests and of scripts: `prepare`, `run`, `cleanup`, and others.

use std::sync::Arc;

use super::help;
use super::host;
use super::log::{Level, Log, SysbenchError};
use super::plan;
use super::report::observer::LoadRun;
use super::report::run::run_test;
use super::test::{Test, TestProgram};
use crate::frontend::common::sent_statements::listed;
use drive::plan::Plan;
use drive::{Abortion, Observer, RunError};
use ground::clock::Clock;
use ground::interrupt;
use ground::output::print_stdout;
use tables::sysbench::{cleanup, prepare, prewarm};
use wire::statement::QueryMode;
use wire::target::Target;
use workload::host::MachineTest as HostTest;
use workload::lua::{LuaScript, NO_MYSQL, Role};
use workload::settings::Settings;
use workload::statistics::Hooks;
use workload::{AbortReason, StagedActions, Workload, oltp};

/// The data that a command needs: the test, the values of its options, the log, and the clock.
pub struct CommandContext<'a> {
    pub test: &'a Test,
    pub settings: Arc<Settings>,
    pub log: &'a mut Log,
    pub clock: Clock,
}

impl CommandContext<'_> {
    /// Executes the command with this name. Returns the exit status.
    pub fn execute(mut self, command: &str) -> Result<u8, SysbenchError> {
        self.check_options(command)?;
        match &self.test.program {
            TestProgram::Host(test) => self.host(test, command),
            TestProgram::Native(test) => self.native(test, command),
            TestProgram::Script(script) => self.script(script, command),
        }
    }

    /// Rejects options that are not valid for the command: `--shard` is for `run` and `prepare` only, `--start-at` for
    /// `run` only, and `--mark-by` for `prepare` only.
    fn check_options(&self, command: &str) -> Result<(), SysbenchError> {
        if self.settings.text("shard").is_some() && !matches!(command, "run" | "prepare") {
            return Err(SysbenchError::fatal("--shard is for the commands 'run' and 'prepare' only"));
        }
        if self.settings.text("start_at").is_some() && command != "run" {
            return Err(SysbenchError::fatal("--start-at is for the command 'run' only"));
        }
        if self.settings.text("mark_by").is_some() && command != "prepare" {
            return Err(SysbenchError::fatal("--mark-by is for the command 'prepare' only"));
        }
        Ok(())
    }

    /// Executes a command of a test that measures the machine without a server. Such a test has no `prepare` and no
    /// `cleanup`.
    fn host(&mut self, test: &HostTest, command: &str) -> Result<u8, SysbenchError> {
        match command {
            "help" => self.describe(),
            "prepare" | "cleanup" => Err(self.not_implemented(command)),
            "run" => {
                let load = (test.load)(&self.settings)?;
                let plan = host::run(&self.settings, &load)?;
                Ok(self.run(&plan, &*load.hooks))
            }
            _ => Err(unknown(command)),
        }
    }

    fn native(&mut self, test: &oltp::OltpTest, command: &str) -> Result<u8, SysbenchError> {
        if command == "help" {
            return self.describe();
        }
        if !Test::commands(test).contains(&command) {
            return Err(unknown(command));
        }
        let target = self.target()?;
        match command {
            "prepare" => {
                end_by_signal(&target)?;
                if test.is_modern() {
                    self.announce_threads();
                }
                prepare(test, &self.settings, plan::shard(&self.settings)?, &target)?;
            }
            "prewarm" => {
                end_by_signal(&target)?;
                self.announce_threads();
                prewarm(test, &self.settings, &target)?;
            }
            "cleanup" => {
                end_by_signal(&target)?;
                cleanup(test, &self.settings, &target)?;
            }
            _ => {
                let part = plan::part(&self.settings)?;
                let mode = test.mode(&self.settings);
                let workload = self.listed(test.workload(&self.settings, part.shard)?, mode)?;
                let clients = plan::command(&self.settings, part, target, workload, mode);
                return Ok(self.run(&plan::load(&self.settings, clients)?, test));
            }
        }
        Ok(0)
    }

    /// Executes a command of a script. A command that the script defines takes precedence over the commands that all
    /// scripts have.
    fn script(&mut self, script: &LuaScript, command: &str) -> Result<u8, SysbenchError> {
        if let Some(is_parallel) = script.is_parallel(command) {
            return self.perform(script, command, is_parallel);
        }
        match command {
            "help" if script.has("help") => {
                script.help()?;
                Ok(0)
            }
            "help" => self.describe(),
            "prepare" | "cleanup" if script.has(command) => self.perform(script, command, false),
            "prepare" | "cleanup" => Err(self.not_implemented(command)),
            "run" => {
                let target = self.target()?;
                let part = plan::part(&self.settings)?;
                script.init()?;
                let mode = plan::mode_of_scripts(&self.settings);
                let workload = self.listed(script.workload(Role::Events)?, mode)?;
                let clients = plan::command(&self.settings, part, target, workload, mode);
                Ok(self.run(&plan::load(&self.settings, clients)?, script))
            }
            _ => Err(unknown(command)),
        }
    }

    /// Returns the workload. With `--list-statements`, the returned workload also writes the statements that its
    /// clients send to a file.
    fn listed(
        &self,
        workload: Arc<dyn Workload<StagedActions>>,
        mode: QueryMode,
    ) -> Result<Arc<dyn Workload<StagedActions>>, SysbenchError> {
        let file = self.settings.text("list_statements").map(ground::text::path);
        listed(workload, mode, file.as_deref()).map_err(SysbenchError::fatal)
    }

    fn describe(&self) -> Result<u8, SysbenchError> {
        if !self.test.declares_options() {
            return Err(self.not_implemented("help"));
        }
        print_stdout(help::test_options(&self.test.name, &self.test.options()));
        Ok(0)
    }

    fn not_implemented(&self, command: &str) -> SysbenchError {
        SysbenchError::error(format_args!("'{}' test does not implement the '{command}' command.", self.test.name))
    }

    /// Writes the line that sysbench writes before it starts the threads of a command, if there are several threads.
    fn announce_threads(&mut self) {
        if self.settings.int("threads") > 1 {
            self.log.text(Level::Notice, "Initializing worker threads...\n");
        }
    }

    /// Returns the address of the server. Fails if the options name a database driver, or a mode of prepared
    /// statements, that this program does not have.
    fn target(&self) -> Result<Arc<Target>, SysbenchError> {
        match self.settings.text("db_driver") {
            None | Some("pgsql") => {}
            // A script may work without a database. If it connects to MySQL, it fails at that point.
            Some("mysql") if matches!(self.test.program, TestProgram::Script(_)) => {}
            Some("mysql") => return Err(SysbenchError::fatal(NO_MYSQL)),
            Some(other) => return Err(SysbenchError::fatal(format_args!("invalid database driver name: '{other}'"))),
        }
        match self.settings.text("db_ps_mode") {
            Some("auto" | "disable") => {}
            other => {
                let other = other.unwrap_or("");
                return Err(SysbenchError::fatal(format_args!("Invalid value for db-ps-mode: {other}")));
            }
        }
        plan::target(&self.settings)
    }

    /// Runs a load with this plan. `test` contains the functions that the test defines itself, such as its own reports.
    /// Returns the exit status.
    fn run(&mut self, plan: &Plan, test: &dyn Hooks) -> u8 {
        let (settings, clock) = (&self.settings, self.clock);
        run_test(LoadRun { settings, plan, clock, test, log: &mut *self.log })
    }

    /// Executes a command that is a function of the script, in one client or, if `parallel` is true, in all clients at
    /// the same time. If several engines share the run (`--shard`), a parallel command runs in the clients of each
    /// engine, and any other command runs in the first engine only.
    fn perform(&mut self, script: &LuaScript, command: &str, parallel: bool) -> Result<u8, SysbenchError> {
        let target = self.target()?;
        let part = plan::part_of_command(&self.settings, parallel)?;
        if part.clients() == 0 {
            let shard = part.shard;
            let line = format!(
                "Shard {shard}: '{command}' is not a parallel command, so only shard 1/{} executes it\n",
                shard.of
            );
            self.log.text(Level::Notice, &line);
            return Ok(0);
        }
        if !parallel || self.settings.int("threads") <= 1 {
            // The function runs in the Lua state in which the script was loaded, so it sees the variables that the
            // script has set.
            return Ok(script.perform(command).map(|()| 0)?);
        }
        self.announce_threads();
        let workload = script.workload(Role::Command(command.to_owned()))?;
        let plan = plan::command(&self.settings, part, target, workload, plan::mode_of_scripts(&self.settings));
        let interrupt = interrupt::catch().map_err(SysbenchError::fatal)?;
        match drive::run(&plan, self.clock, &interrupt, &mut Failures { log: &mut *self.log }) {
            Ok(outcome) if outcome.interrupted => Ok(interrupt::STATUS),
            Ok(_) => Ok(0),
            Err(RunError::Unready) => Ok(1),
            Err(error) => Err(SysbenchError::fatal(error)),
        }
    }
}

/// Sets up the handling of SIGINT and SIGTERM: the statements that the command is running on the server are then
/// cancelled, which ends the command.
fn end_by_signal(target: &Target) -> Result<(), SysbenchError> {
    target.obey(&interrupt::catch().map_err(SysbenchError::fatal)?);
    Ok(())
}

fn unknown(command: &str) -> SysbenchError {
    SysbenchError::error(format_args!("Unknown command: {command}"))
}

/// The observer of a command. The event loop calls it for each client that is aborted, and it logs the reason.
struct Failures<'a> {
    log: &'a mut Log,
}

impl Observer for Failures<'_> {
    fn aborted(&mut self, abortion: &Abortion) {
        match &abortion.cause {
            drive::Cause::Program(AbortReason::Fatal(lines)) => self.log.fatal(lines),
            cause => self.log.text(Level::Fatal, cause),
        }
    }

    fn note(&mut self, text: &str) {
        self.log.text(Level::Fatal, text);
    }
}
