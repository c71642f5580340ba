//! Adds BEGIN and COMMIT around transactions of several statements whose BEGIN is not in the log. A batch of the
//! extended protocol, which ends with one Sync, is such a transaction. The transaction numbers in the log, if it has
//! them, show which statements belong together.

use crate::format::{Error, Parameterization, Protocol, RecordedStatement, SessionId, TemplateShape, Writer};
use crate::parameters::Values;
use crate::sql::commands::BlockStep;
use crate::time::Micros;

/// A statement that is complete, and what is known about its transaction.
pub struct Completed {
    pub statement: RecordedStatement,
    pub parameters: Values,
    /// The number of the statement's transaction (see [`crate::log::Record::transaction`]).
    pub transaction: Option<u32>,
    pub step: BlockStep,
}

/// Writes the statements of a session. If several statements were one transaction although the log has no BEGIN, it
/// writes BEGIN before them and COMMIT or ROLLBACK after them.
#[derive(Default)]
pub struct Transactions(State);

#[derive(Default)]
enum State {
    /// The session is in no transaction that the next statement could continue, as far as the log shows.
    #[default]
    Outside,
    /// The session may be in a transaction of which this is the first statement. The statement is not written yet: if
    /// the next one belongs to the same transaction, BEGIN is written before both.
    First(u32, Box<Completed>),
    /// The session is in a transaction whose BEGIN is in the log. The field is the transaction's number, if it is
    /// known.
    Begun(Option<u32>),
    /// The session is in a transaction whose BEGIN is not in the log, and to which this module has added a BEGIN.
    Added(Added),
}

/// A transaction to which BEGIN was added, because the log contains several statements of it but no BEGIN.
struct Added {
    transaction: u32,
    has_failed: bool,
    /// The time at which the transaction's last statement ended.
    end: Micros,
}

impl Transactions {
    /// True if the session is in a transaction block whose BEGIN is in the log.
    pub fn is_in_block(&self) -> bool {
        matches!(self.0, State::Begun(_))
    }

    /// Writes a statement, or keeps it until the next one is known. Returns true if this call has added a BEGIN,
    /// because the statement is the second one of a transaction.
    pub fn write(&mut self, completed: Completed, id: SessionId, writer: &mut Writer) -> Result<bool, Error> {
        let number = completed.transaction.filter(|number| *number > 0);
        match std::mem::take(&mut self.0) {
            State::First(transaction, first) if number == Some(transaction) => {
                add(Command::Begin, first.statement.start, id, writer)?;
                let mut added = Added { transaction, has_failed: false, end: 0 };
                added.write(&first, id, writer)?;
                added.write(&completed, id, writer)?;
                self.0 = added.after(completed.step);
                Ok(true)
            }
            State::Added(mut added) if number == Some(added.transaction) || completed.step == BlockStep::End => {
                added.write(&completed, id, writer)?;
                self.0 = added.after(completed.step);
                Ok(false)
            }
            State::Begun(begun) if begun.is_none() || number == begun || completed.step == BlockStep::End => {
                write(&completed, id, writer)?;
                self.0 = if completed.step == BlockStep::End { State::Outside } else { State::Begun(begun) };
                Ok(false)
            }
            before => {
                before.end(id, writer)?;
                self.0 = match (completed.step, number) {
                    (BlockStep::Begin, _) => State::Begun(number),
                    (BlockStep::Stay, Some(number)) => {
                        self.0 = State::First(number, Box::new(completed));
                        return Ok(false);
                    }
                    _ => State::Outside,
                };
                write(&completed, id, writer)?;
                Ok(false)
            }
        }
    }

    /// Ends the session: writes the statement that [`Self::write`] has kept until the next one is known, or ends the
    /// transaction to which BEGIN was added.
    pub fn end(&mut self, id: SessionId, writer: &mut Writer) -> Result<(), Error> {
        std::mem::take(&mut self.0).end(id, writer)
    }
}

impl State {
    fn end(self, id: SessionId, writer: &mut Writer) -> Result<(), Error> {
        match self {
            State::Outside | State::Begun(_) => Ok(()),
            State::First(_, first) => write(&first, id, writer),
            State::Added(Added { has_failed: true, end, .. }) => add(Command::Rollback, end, id, writer),
            State::Added(Added { has_failed: false, end, .. }) => add(Command::Commit, end, id, writer),
        }
    }
}

impl Added {
    fn write(&mut self, completed: &Completed, id: SessionId, writer: &mut Writer) -> Result<(), Error> {
        let RecordedStatement { start, duration, failure, .. } = completed.statement;
        self.has_failed |= failure.is_some();
        self.has_failed &= completed.step != BlockStep::RollBackToSavepoint;
        self.end = self.end.max(start.saturating_add(duration.unwrap_or(0)));
        write(completed, id, writer)
    }

    /// Returns the state of the session after a statement of this transaction that has the effect `step`.
    fn after(self, step: BlockStep) -> State {
        if step == BlockStep::End { State::Outside } else { State::Added(self) }
    }
}

fn write(Completed { statement, parameters, .. }: &Completed, id: SessionId, writer: &mut Writer) -> Result<(), Error> {
    writer.statement(id, statement, parameters)
}

/// A statement that is not in the log and is added.
enum Command {
    Begin,
    Commit,
    Rollback,
}

fn add(command: Command, start: Micros, id: SessionId, writer: &mut Writer) -> Result<(), Error> {
    let text = match command {
        Command::Begin => "BEGIN",
        Command::Commit => "COMMIT",
        Command::Rollback => "ROLLBACK",
    };
    let parameters = Parameterization::Literals { places: &[], first: 1 };
    let template = writer.template(&TemplateShape { protocol: Protocol::Simple, text, parameters })?;
    let statement = RecordedStatement { start, template, ..RecordedStatement::default() };
    writer.statement::<String>(id, &statement, &[])
}
