//! The connections that `pgbench -i` loads over.

use std::sync::Arc;

use wire::session::Session;
use wire::target::Target;

use super::options::InitOptions;
use crate::session::{Backends, LoadError};

/// What each step works with.
pub struct Loader<'a> {
    pub target: &'a Arc<Target>,
    pub session: &'a mut Session,
    pub options: &'a InitOptions,
    pub backends: &'a Backends,
}

impl Loader<'_> {
    /// Opens connections to work on `items` things in parallel. Returns none if the loader's own session does as well.
    pub fn open_helpers(&self, items: usize) -> Result<Vec<Session>, LoadError> {
        let count = self.options.connections().min(items);
        // With several hosts, another connection might reach another server.
        let params = &self.target.params;
        if count < 2 || params.endpoints.len() > 1 || params.load_balance_random {
            return Ok(Vec::new());
        }
        let mut helpers = Vec::new();
        for _ in 0..count {
            let helper = Session::open(self.target).map_err(LoadError::Connect)?;
            self.backends.add(&helper);
            helpers.push(helper);
        }
        Ok(helpers)
    }
}
