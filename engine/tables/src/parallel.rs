//! Runs work on several items at the same time, with a thread for each of several sessions.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use wire::session::Session;

use crate::error::LoadError;

/// The longest time for which [`for_each`] waits for each of the other threads to end after one thread has failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Calls `work` once for each item, in one thread for each session, and returns the sessions when all items are done.
///
/// After the first error the flag that `work` receives becomes true and no thread begins another item. The function
/// waits at most two seconds for each thread and then returns the error.
pub fn for_each<T: Send + Sync + 'static>(
    sessions: Vec<Session>,
    items: Vec<T>,
    work: impl Fn(&mut Session, &T, &AtomicBool) -> Result<(), LoadError> + Send + Sync + 'static,
) -> Result<Vec<Session>, LoadError> {
    let count = sessions.len();
    let shared = Arc::new((items, work, AtomicUsize::new(0), AtomicBool::new(false)));
    let (sender, receiver) = mpsc::channel();
    for mut session in sessions {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        thread::spawn(move || {
            let (items, work, next, stop) = &*shared;
            let mut own = iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)))
                .take_while(|_| !stop.load(Ordering::Relaxed));
            let done = own.try_for_each(|item| work(&mut session, item, stop)).map(|()| session);
            // If another thread has failed, `for_each` may have returned and dropped the receiver.
            let _ = sender.send(done);
        });
    }
    drop(sender);
    let mut done = Vec::new();
    while done.len() < count {
        match receiver.recv().unwrap_or(Err(LoadError::ThreadLost)) {
            Ok(session) => done.push(session),
            Err(first) => {
                shared.3.store(true, Ordering::Relaxed);
                drop(done);
                while receiver.recv_timeout(PATIENCE).is_ok() {}
                return Err(first);
            }
        }
    }
    Ok(done)
}
