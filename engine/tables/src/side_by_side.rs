//! Partitions of accounts filled side by side, each over one of several connections.
//!
//! Each connection empties and fills its partitions in one transaction of its own, so that COPY may freeze the rows (what
//! several engines fill nobody empties); none commits before all have filled theirs. A failure leaves everything as it was before. Only a server that dies
//! between two of the commits can leave some partitions old and others new.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::generate::{accounts_progress, fill_part, lock, small_tables};
use super::layout::Part;
use super::progress::Progress;
use super::{Failed, Load, Loader, execute};
use wire::session::Session;

/// The most connections when their number is left to us.
pub const MOST_JOBS: usize = 8;

/// How long the connections that give up are waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the connections share.
struct Work {
    load: Load,
    parts: Vec<Part>,
    next: AtomicUsize,
    stop: AtomicBool,
    progress: Mutex<Progress>,
}

/// How many connections are worth while, or asked for.
pub fn wanted(load: &Load) -> usize {
    load.jobs.unwrap_or_else(|| {
        let processors = thread::available_parallelism().map_or(1, |count| count.get());
        processors.min(MOST_JOBS).min(load.scale as usize)
    })
}

/// The connections to fill `parts` tables with, none where one connection alone does as well: an ordinary table can be
/// filled by the one transaction only that has emptied it.
pub fn helpers(loader: &Loader, parts: usize) -> Result<Vec<Session>, Failed> {
    let wanted = wanted(loader.load);
    let mut helpers = Vec::new();
    // Of several hosts, another connection might reach another server.
    let params = &loader.target.params;
    if wanted.min(parts) < 2 || params.endpoints.len() > 1 || params.load_balance_random {
        return Ok(helpers);
    }
    for _ in 0..wanted.min(parts) {
        match Session::open(loader.target).map_err(Failed::Open).and_then(|mut helper| {
            loader.backends.add(&mut helper)?;
            Ok(helper)
        }) {
            Ok(helper) => helpers.push(helper),
            // Nobody has asked for so many connections: those that there are will do.
            Err(_) if loader.load.jobs.is_none() => break,
            Err(failed) => return Err(failed),
        }
    }
    Ok(helpers)
}

/// Fills all tables: the small ones over the loader's own connection, then the accounts over the helpers'.
pub fn fill(loader: &mut Loader, parts: Vec<Part>, helpers: Vec<Session>) -> Result<(), Failed> {
    execute(loader.session, "begin")?;
    if !loader.load.shard.is_part() {
        execute(loader.session, "truncate table pgbench_branches, pgbench_history, pgbench_tellers")?;
    }
    small_tables(loader.session, loader.load)?;
    let work = Arc::new(Work {
        load: loader.load.clone(),
        parts,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        progress: Mutex::new(accounts_progress(loader.load)),
    });
    let count = helpers.len();
    let (sender, receiver) = mpsc::channel();
    for mut helper in helpers {
        let (work, sender): (_, Sender<Result<Session, Failed>>) = (Arc::clone(&work), sender.clone());
        thread::spawn(move || {
            let filled = fill_share(&mut helper, &work).map(|()| helper);
            // Nobody listens any more once the wait for those that give up is over.
            let _ = sender.send(filled);
        });
    }
    drop(sender);
    let filled = collect(&receiver, count, &work.stop);
    lock(&work.progress).clear();
    for mut helper in filled? {
        execute(&mut helper, "commit")?;
    }
    execute(loader.session, "commit")
}

/// The sessions when all are done, each with its transaction open; or the first failure, the others stopped.
fn collect(
    receiver: &Receiver<Result<Session, Failed>>,
    count: usize,
    stop: &AtomicBool,
) -> Result<Vec<Session>, Failed> {
    let mut filled = Vec::new();
    while filled.len() < count {
        match receiver.recv() {
            Ok(Ok(session)) => filled.push(session),
            Ok(Err(first)) => {
                stop.store(true, Ordering::Relaxed);
                drop(filled);
                while receiver.recv_timeout(PATIENCE).is_ok() {}
                return Err(first);
            }
            Err(mpsc::RecvError) => return Err(Failed::Lost),
        }
    }
    Ok(filled)
}

/// One connection's transaction, left open.
fn fill_share(session: &mut Session, work: &Work) -> Result<(), Failed> {
    execute(session, "begin")?;
    while let Some(part) = work.parts.get(work.next.fetch_add(1, Ordering::Relaxed)) {
        if !work.load.shard.is_part() {
            execute(session, &format!("truncate table {}", part.table))?;
        }
        fill_part(session, &work.load, part, &work.progress, &work.stop)?;
    }
    Ok(())
}
