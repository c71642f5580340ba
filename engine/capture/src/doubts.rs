//! Finds statements that may do something else in a replay than they did on the server.

use std::collections::HashMap;

use crate::format::Protocol;
use crate::left_out::Reason;
use crate::parameters::{Values, may_be_cut};
use crate::sql::commands::writes;
use crate::sql::untyped::Untyped;

/// Finds doubtful statements, which may do something else in a replay. The result of parsing is remembered for each
/// template (the text of a statement without its values), so that no text is parsed twice.
#[derive(Default)]
pub struct Doubts {
    /// For each template, its parameters whose types decide which function or operator is called. The log does not
    /// contain these types, so a replay may call another one.
    untyped: HashMap<u32, Untyped>,
}

/// A statement, with what the log shows about it.
pub struct Logged<'a> {
    pub protocol: Protocol,
    pub text: &'a str,
    pub template: u32,
    /// The values of the bound parameters, if the log lists them.
    pub bound: Option<&'a Values>,
    /// True if the statement may belong to the same batch, and thus to the same transaction, as the statement before
    /// it, and the log does not tell: both statements have the same template, neither is in a transaction block whose
    /// BEGIN is in the log, and the log does not have the numbers of transactions.
    pub may_continue_batch: bool,
}

impl Doubts {
    /// Returns the reasons to doubt that a replay of the statement does the same; none for most statements.
    pub fn of(&mut self, logged: &Logged<'_>) -> impl Iterator<Item = Reason> + use<> {
        let is_cut = logged.bound.is_some_and(|values| values.iter().flatten().any(|value| may_be_cut(value)));
        let is_untyped = logged.bound.is_some_and(|values| !values.is_empty() && self.is_untyped(logged, values));
        let is_batch = logged.protocol != Protocol::Simple && logged.may_continue_batch && writes(logged.text);
        let found = [(is_cut, Reason::ValuesCut), (is_batch, Reason::BatchUnknown), (is_untyped, Reason::TypesUnknown)];
        found.into_iter().filter_map(|(is_it, reason)| is_it.then_some(reason))
    }

    fn is_untyped(&mut self, logged: &Logged<'_>, values: &Values) -> bool {
        let untyped = self.untyped.entry(logged.template).or_insert_with(|| Untyped::of(logged.text));
        let value = |number: &u32| values.get((*number as usize).checked_sub(1)?)?.as_deref();
        let is_integer = |value: &str| value.parse::<i32>().is_ok();
        untyped.always || untyped.indexes.iter().filter_map(value).any(is_integer)
    }
}
