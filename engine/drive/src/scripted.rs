//! The actions that only programs of pgbench scripts have: pipelines, and commands that the engine executes without
//! asking the server.

use crate::client::Awaited;
use crate::mode::{Asked, ClientOf, Mode};
use crate::shell::{Shell, TransportOf};
use crate::thread::Thread;
use ground::clock::Nanos;
use wire::Connection;
use wire::statement::QueryMode;
use workload::{ScriptActions, ScriptStep, StartPipeline};

impl<M: Mode<S, Actions = ScriptActions>, S: Shell> Thread<'_, M, S> {
    /// Asks the server, in prepared mode, to prepare the statements of a pipeline before the pipeline begins.
    pub fn prepare_pipeline(
        &mut self,
        connection: &mut Connection<TransportOf<S>>,
        StartPipeline { command, statements }: StartPipeline<'_>,
    ) -> Asked {
        let statements = if self.plan.mode == QueryMode::Prepared { statements } else { &[] };
        (Awaited::Prepared { command }, connection.prepare(statements))
    }

    /// Carries out a step of a script, which is an action without a statement: the end of a pipeline, or the beginning
    /// or end of a command that the engine executes itself. Returns the current time if the client goes on at once,
    /// else `None`.
    pub fn step_script(&mut self, client: &mut ClientOf<M, S>, step: ScriptStep, now: Nanos) -> Option<Nanos> {
        match step {
            ScriptStep::SyncPipeline { command } => {
                client.connection.as_mut().map(Connection::sync_pipeline);
                Some(self.finish_command(client, command, now))
            }
            ScriptStep::EndPipeline { command } => {
                let sent = client.connection.as_mut().map(Connection::end_pipeline);
                self.note_receiving(client.number);
                self.sent(client, Awaited::Statement { command, last: false }, sent)
            }
            ScriptStep::Announce { command } => {
                self.note_command(client, command);
                Some(now)
            }
            ScriptStep::Local { command } => Some(self.finish_command(client, command, now)),
        }
    }
}
