//! The early end of a run. Statements that are still running are cancelled, so that none of them goes on in the server
//! and disturbs the next measurement. The original pgbench and sysbench just exit and leave such statements running.

use std::io;
use std::time::Duration;

use ground::poll::Token;

use crate::client::ClientState;
use crate::mode::{ClientOf, Mode};
use crate::report::Report;
use crate::shell::Shell;
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::network::Network;

/// The longest time that a run which ends early waits for its statements to end.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// The time after which statements that still run are cancelled again. The server ignores a cancel request that arrives
/// between two statements of a session or before the statement has begun.
const REPEAT_AFTER: Duration = Duration::from_millis(100);

impl<M: Mode<S>, S: Shell> Thread<'_, M, S> {
    /// Asks the server to cancel all running statements of `clients`, and waits until they have ended, but at most for
    /// [`END_PATIENCE`]. Statements that may still run then are reported.
    pub fn cancel_statements(&mut self, clients: &mut [ClientOf<M, S>]) {
        self.shared.note_ending();
        for connection in clients.iter_mut().filter_map(|client| client.connection.as_mut()) {
            if connection.is_in_pipeline() {
                // Without a Sync message the server does not report the end of the pipeline. An error of the socket can
                // be ignored, since it ends the session anyway.
                let _ = connection.end_pipeline();
            }
        }
        let end = self.shell.network().now() + END_PATIENCE;
        let mut problem = None;
        loop {
            let busy = clients.iter().filter_map(|client| client.connection.as_ref()?.busy_backend());
            if busy.clone().next().is_none() {
                return;
            }
            let now = self.shell.network().now();
            if now >= end {
                let count = busy.count();
                let reason = problem.map_or_else(String::new, |error| format!(" ({error})"));
                let text = format!(
                    "{count} statements may still be running on the server: they did not end within {} s after they were \
                     cancelled{reason}; see pg_stat_activity before you measure again",
                    END_PATIENCE.as_secs()
                );
                return self.counters.report(Report::Note(text));
            }
            problem = self.shell.cancel(busy, end).err().or(problem);
            if self.receive_ends(clients, REPEAT_AFTER).is_err() {
                return;
            }
        }
    }

    /// Reads and discards the replies of `clients` until all replies are complete or `patience` is over.
    fn receive_ends(&mut self, clients: &mut [ClientOf<M, S>], patience: Duration) -> io::Result<()> {
        let until = self.shell.now() + patience.as_nanos() as Nanos;
        let mut ready = S::Ready::default();
        loop {
            let mut is_any_busy = false;
            for client in clients.iter_mut() {
                let Some(connection) = &mut client.connection else { continue };
                if connection.busy_backend().is_none() {
                    continue;
                }
                let network = self.shell.network();
                match connection.receive(&mut self.sockets.buffer, network, Token(client.index)) {
                    Ok(None) => is_any_busy = true,
                    Ok(Some(_)) => {}
                    Err(_) => {
                        client.connection = None;
                        client.state = ClientState::Finished;
                    }
                }
            }
            let left = until.saturating_sub(self.shell.now());
            if !is_any_busy || left == 0 {
                return Ok(());
            }
            self.shell.wait(&mut ready, Some(Duration::from_nanos(left)))?;
        }
    }
}
