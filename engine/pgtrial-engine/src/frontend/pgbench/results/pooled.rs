//! What the report says of tasks on pools of connections, where it would speak of clients otherwise.

use std::fmt::{Result, Write};

use super::{Report, share, write_percentiles};
use drive::ledger::tasks::Tasks;
use drive::plan::PoolPlan;
use latency::Moments;

impl Report<'_> {
    /// In place of the numbers of clients and of their transactions.
    pub(super) fn write_pools(&mut self, pools: &PoolPlan) -> Result {
        let PoolPlan { apps, tasks, arrival, size, timeout, lifetime, .. } = pools;
        let committed = self.total.counts.transactions();
        let out = &mut self.out;
        writeln!(out, "number of applications: {apps}")?;
        writeln!(out, "number of threads: {}", self.plan.jobs)?;
        if let Some(tries) = self.plan.options().tries {
            writeln!(out, "maximum number of tries: {tries}")?;
        }
        writeln!(out, "pool of each application: {size} connections, time-out {} s", timeout.as_secs_f64())?;
        if let Some(lifetime) = lifetime {
            writeln!(out, "lifetime of a connection: {} s", lifetime.as_secs_f64())?;
        }
        writeln!(out, "number of tasks per application: {tasks}, arrival {arrival}")?;
        writeln!(out, "number of transactions actually processed: {committed}/{}", pools.all_tasks())
    }

    /// What tasks waited for: the pool, and the server.
    pub(super) fn write_waits(&mut self, tasks: &Tasks) -> Result {
        let out = &mut self.out;
        let all = tasks.completed() + tasks.failed();
        writeln!(out, "number of pool time-outs: {}", share(tasks.timeouts.count, all))?;
        if tasks.timeouts.count > 0 {
            let (mean, max) = (tasks.timeouts.mean() / 1000.0, tasks.timeouts.max / 1000.0);
            writeln!(out, "waited before a pool time-out: avg {mean:.3} (max {max:.3}) ms")?;
        }
        let mut write = |name: &str, moments: &Moments| {
            let (mean, max) = (moments.mean() / 1000.0, moments.max / 1000.0);
            writeln!(out, "{name}: avg {mean:.3} (max {max:.3}) ms")
        };
        write("time in the pool's queue", &tasks.queue)?;
        write("time with the connection", &tasks.service)
    }

    pub(super) fn write_pool_percentiles(&mut self) -> Result {
        let Some(pooled) = &self.total.pooled else { return Ok(()) };
        write_percentiles(&mut self.out, "queue time", &pooled.queue, "")?;
        write_percentiles(&mut self.out, "service time", &pooled.service, "")
    }
}
