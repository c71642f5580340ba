//! The reasons for which the replay of a statement may do something else than the statement did.

use std::collections::HashMap;

use crate::format::Protocol;
use crate::left_out::Reason;
use crate::parameters::{Values, may_be_cut};
use crate::sql::commands::writes;
use crate::sql::untyped::has_untyped_parameter;

/// Finds doubtful statements. It remembers what it has found in the texts of templates.
#[derive(Default)]
pub struct Doubts {
    /// By template, whether the types of its parameters decide what it does.
    untyped: HashMap<u32, bool>,
}

/// A statement as the log has it.
pub struct Logged<'a> {
    pub protocol: Protocol,
    pub text: &'a str,
    pub template: u32,
    /// The values that were bound, if the log has a list of them.
    pub bound: Option<&'a Values>,
    /// True if the session's statement before has the same template, both are outside of transaction blocks as far as the
    /// log has these, and the log does not have the numbers of transactions.
    pub may_continue_batch: bool,
}

impl Doubts {
    /// Returns the reasons for which a statement is doubtful.
    pub fn of(&mut self, logged: &Logged<'_>) -> impl Iterator<Item = Reason> + use<> {
        let is_cut = logged.bound.is_some_and(|values| values.iter().flatten().any(|value| may_be_cut(value)));
        let is_untyped = logged.bound.is_some_and(|values| !values.is_empty() && self.is_untyped(logged));
        let is_batch = logged.protocol != Protocol::Simple && logged.may_continue_batch && writes(logged.text);
        let found = [(is_cut, Reason::ValuesCut), (is_batch, Reason::BatchUnknown), (is_untyped, Reason::TypesUnknown)];
        found.into_iter().filter_map(|(is_it, reason)| is_it.then_some(reason))
    }

    fn is_untyped(&mut self, logged: &Logged<'_>) -> bool {
        *self.untyped.entry(logged.template).or_insert_with(|| has_untyped_parameter(logged.text))
    }
}
