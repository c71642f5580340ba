//! `pgbench -i`: the steps that make pgbench's four tables.

mod generate;
mod layout;
mod loader;
mod maintenance;
pub mod options;
mod rows;
mod statements;

use std::sync::Arc;
use std::time::Instant;

use wire::session::Session;
use wire::target::Target;

use crate::error::LoadError;
use crate::mark::mark_made;
use crate::session::{Backends, execute};
use loader::Loader;
use options::InitOptions;

/// A step of the initialization, which one letter of `--init-steps` names.
#[derive(Clone, Copy)]
pub struct InitStep {
    letter: char,
    /// The line that is printed before the step begins.
    announcement: &'static str,
    /// The name of the step in the summary that is printed at the end.
    name: &'static str,
    run: fn(&mut Loader) -> Result<(), LoadError>,
}

const fn step(
    letter: char,
    announcement: &'static str,
    name: &'static str,
    run: fn(&mut Loader) -> Result<(), LoadError>,
) -> InitStep {
    InitStep { letter, announcement, name, run }
}

const STEPS: [InitStep; 7] = [
    step('d', "dropping old tables...", "drop tables", |loader| execute(loader.session, statements::DROP)),
    step('t', "creating tables...", "create tables", create_tables),
    step('g', "generating data (client-side)...", "client-side generate", generate::generate),
    step('G', "generating data (server-side)...", "server-side generate", |loader| {
        execute_all(loader, &statements::generate_on_server(loader.options))
    }),
    step('v', "vacuuming...", "vacuum", maintenance::vacuum),
    step('p', "creating primary keys...", "primary keys", maintenance::create_primary_keys),
    step('f', "creating foreign keys...", "foreign keys", |loader| execute_all(loader, &statements::foreign_keys())),
];

impl InitStep {
    /// Returns the step that a letter of `--init-steps` names, or `None` if the letter names no step.
    pub fn from_letter(letter: char) -> Option<Self> {
        STEPS.into_iter().find(|step| step.letter == letter)
    }
}

/// Runs the steps in the given order, prints each step and, at the end, the times of all steps. Adds the server process
/// of every connection to `backends`, so that an interrupt can cancel its work.
pub fn initialize(
    target: &Arc<Target>,
    session: &mut Session,
    options: &InitOptions,
    steps: &[InitStep],
    backends: &Backends,
) -> Result<(), LoadError> {
    backends.add(session);
    let mut loader = Loader::new(target, session, options, backends);
    let (mut total, mut times) = (0.0, Vec::new());
    for step in steps {
        let began = Instant::now();
        (target.user.tell)(step.announcement);
        (step.run)(&mut loader)?;
        let seconds = began.elapsed().as_secs_f64();
        times.push(format!("{} {seconds:.2} s", step.name));
        total += seconds;
    }
    (target.user.tell)(&format!("done in {total:.2} s ({}).", times.join(", ")));
    Ok(())
}

/// Makes the tables. With `--mark-by`, the transaction that makes the tables also runs the statements that mark them,
/// so that an interruption leaves no table without its mark.
fn create_tables(loader: &mut Loader) -> Result<(), LoadError> {
    let mark_by = loader.options.mark_by.as_deref();
    if mark_by.is_none() {
        return create_all(loader);
    }
    execute(loader.session, "begin")?;
    create_all(loader)?;
    mark_made(loader.session, mark_by)?;
    execute(loader.session, "commit")
}

fn create_all(loader: &mut Loader) -> Result<(), LoadError> {
    execute_all(loader, &statements::create(loader.options))?;
    if loader.options.partitions > 0 {
        (loader.target.user.tell)(&format!("creating {} partitions...", loader.options.partitions));
    }
    execute_all(loader, &statements::create_partitions(loader.options))
}

fn execute_all(loader: &mut Loader, statements: &[String]) -> Result<(), LoadError> {
    statements.iter().try_for_each(|sql| execute(loader.session, sql))
}
