//! The counters of one thread: the current period (one second, or one round of slices), the counts and latencies of
//! that period, the totals of each script, and the transaction log.

use std::io;

use crate::client::Client;
use crate::outcome::CpuTime;
use crate::plan::{Plan, ScriptOptions};
use crate::report::{Report, Reporter, ThreadTotals};
use crate::schedule::{Period, Schedule};
use crate::shell::Shell;
use crate::statistics::log::{Entry, FailureKind, TransactionEnd, TransactionLog};
use crate::statistics::replay::ReplayTotals;
use crate::statistics::{LoadStatistics, ScriptAccount, SliceTime};
use ground::clock::{Nanos, Phase};
use workload::Actions;

/// The counters of a thread.
pub struct Counters<'a> {
    options: &'a ScriptOptions,
    /// The thread's number in the engine.
    pub thread: usize,
    reports: Reporter,
    pub schedule: Schedule,
    pub period: Period,
    /// The time from which on no transaction may begin: the end of the load or, if several engines take turns in slices
    /// of time, the end of this engine's slice.
    pub start_deadline: Nanos,
    /// The number of clients that take part in this engine's slice, and the time at which that number last changed.
    /// Used only if several engines take turns in slices of time.
    taking_part: (u64, Nanos),
    pub statistics: LoadStatistics,
    log: Option<TransactionLog>,
    pub totals: ThreadTotals,
    cpu_at_measure: Option<CpuTime>,
    /// True if the counts of the period are not the only place where the end of a transaction has to be recorded. This
    /// is so if the run has a transaction log or totals for each script, or if it must tell which transactions were
    /// late, were retried or began after their scheduled start.
    is_detailed: bool,
}

impl<'a> Counters<'a> {
    /// Makes the counters of thread `thread`. `statistics` has the counters of one period, all of them zero, for the
    /// mode of the load, such as a closed loop or a replay. The thread adds its transactions to `statistics`.
    pub fn new(plan: &'a Plan, thread: usize, statistics: LoadStatistics, reports: Reporter) -> io::Result<Self> {
        let options = &plan.options;
        let schedule = Schedule::new(0, plan.warmup, None, None);
        let scripts = plan.scripts();
        let sample = &plan.seeds.threads[thread].sample;
        Ok(Self {
            options,
            thread,
            reports,
            // A period cannot end before the load has started.
            period: Period { ends: Nanos::MAX, ..schedule.first() },
            schedule,
            start_deadline: Nanos::MAX,
            taking_part: (0, 0),
            is_detailed: statistics.schedule.is_some()
                || options.latency_limit.is_some()
                || options.log.is_some()
                || options.tries != Some(1)
                || scripts.len() > 1,
            statistics: LoadStatistics { slice_time: plan.slices.map(|_| SliceTime::default()), ..statistics },
            log: options.log.as_ref().map(|log| TransactionLog::open(log, thread, sample.clone())).transpose()?,
            totals: ThreadTotals {
                scripts: scripts.iter().map(|script| ScriptAccount::new(script.commands.len())).collect(),
                // A capture can have so many statement templates that it would delay the first statements if these
                // totals were made when the load starts.
                replay: plan.load.replay().map(|replay| ReplayTotals::new(replay.accounts.len())).unwrap_or_default(),
                ..ThreadTotals::default()
            },
            cpu_at_measure: None,
        })
    }

    /// Starts counting when the load starts.
    pub fn start(&mut self, schedule: Schedule) {
        self.schedule = schedule;
        self.period = schedule.first();
        // The slices of other engines may come before this engine's first slice.
        self.start_deadline = if schedule.slices.is_some() { 0 } else { schedule.end };
        self.totals.reconnect_ns = 0;
        if self.period.phase == Phase::Measure {
            self.cpu_at_measure = CpuTime::of_thread();
        }
        if let Some(log) = &mut self.log {
            log.begin(schedule.measure);
        }
    }

    /// Makes the load end earlier, at `end`. Returns false and changes nothing if the load already ends by `end`, or if
    /// several engines take turns in slices of time.
    pub fn cut(&mut self, end: Nanos) -> bool {
        let is_cut = self.schedule.cut(end, &mut self.period);
        if is_cut {
            self.start_deadline = self.schedule.start_deadline(&self.period);
        }
        is_cut
    }

    /// Reports the counts of the period that is over to the main thread, and begins the next period.
    pub fn begin_next_period(&mut self) {
        let next = self.schedule.after(&self.period);
        self.report_period(self.period.ends);
        if next.phase != self.period.phase {
            match next.phase {
                Phase::Measure => {
                    self.empty_accounts();
                    self.totals.reconnect_ns = 0;
                    self.cpu_at_measure = CpuTime::of_thread();
                }
                Phase::Drain => self.note_cpu(),
                Phase::Warmup => {}
            }
        }
        self.period = next;
        self.start_deadline = self.schedule.start_deadline(&next);
    }

    /// Counts the client as taking part in the load from `now` on, if `now` is within this engine's slice. Used only if
    /// several engines take turns in slices of time.
    pub fn enter_slice<O, A: Actions, S: Shell>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        let Some(slice) = self.period.slice.filter(|_| !client.takes_part) else { return };
        let start_deadline = self.schedule.start_deadline(&self.period);
        if (self.schedule.start + slice.begins..start_deadline).contains(&now) {
            self.start_deadline = start_deadline;
            self.count_clients(now);
            self.taking_part.0 += 1;
            client.takes_part = true;
        }
    }

    /// Stops counting the client as taking part in this engine's slice. Used only if several engines take turns in
    /// slices of time.
    pub fn leave_slice<O, A: Actions, S: Shell>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        if std::mem::take(&mut client.takes_part) {
            self.count_clients(now);
            self.taking_part.0 -= 1;
        }
    }

    /// Returns the next time at which a client that cannot begin a transaction at `now` can begin one: the beginning of
    /// this engine's next slice, or the end of the load. Used only if several engines take turns in slices of time.
    pub fn next_slice(&self, now: Nanos) -> Nanos {
        let own = self.period.slice.map(|slice| self.schedule.start + slice.begins);
        own.filter(|begins| now < *begins).unwrap_or(self.period.ends.min(self.schedule.end))
    }

    /// Adds the time until `now` of all clients that take part in this engine's slice.
    fn count_clients(&mut self, now: Nanos) {
        let (clients, since) = self.taking_part;
        // The clients of one round of the event loop may come here in another order than that in which they read the
        // clock.
        let now = now.max(since);
        let (from, to) = (since.saturating_sub(self.schedule.start), now - self.schedule.start);
        // With a rate, transactions that run on after the end of a slice were scheduled to start in that slice. The
        // time after the slice is not counted: no transaction can start in it.
        let counted = match self.period.slice.filter(|_| self.statistics.schedule.is_some()) {
            Some(slice) => to.min(slice.ends).saturating_sub(from.max(slice.begins)),
            None => to - from,
        };
        if let Some(slice_time) = self.statistics.slice_time.as_mut().filter(|_| clients > 0) {
            slice_time.add(clients * counted, from, to);
        }
        self.taking_part.1 = now;
    }

    /// Reports the thread's last counts and its totals to the main thread. The thread ended at `ended`, and
    /// `unfinished` of its clients had not finished.
    pub fn finish(&mut self, ended: Nanos, unfinished: usize) {
        self.note_cpu();
        self.report_period(ended);
        if self.period.phase == Phase::Warmup {
            // The run ended in the warm-up, so that nothing was measured.
            self.empty_accounts();
        }
        let log_error = self.log.take().and_then(|log| log.finish(ended).err());
        let totals = std::mem::take(&mut self.totals);
        let totals =
            Box::new(ThreadTotals { ended, log_error, unfinished, held_up_ns: self.reports.held_up_ns(), ..totals });
        self.report(Report::Finished { thread: self.thread, totals });
    }

    /// Sends a report to the main thread.
    pub fn report(&self, report: Report) {
        self.reports.report(report);
    }

    /// Counts a committed transaction.
    #[inline(always)]
    pub fn commit<O, A: Actions, S: Shell>(&mut self, client: &Client<O, A, S>, now: Nanos) {
        let latency = now - client.transaction.scheduled;
        self.statistics.commit(latency);
        if self.is_detailed {
            self.commit_in_detail(client, now, latency);
        }
    }

    #[inline(never)]
    fn commit_in_detail<O, A: Actions, S: Shell>(&mut self, client: &Client<O, A, S>, now: Nanos, latency: Nanos) {
        let transaction = &client.transaction;
        let lag = transaction.began - transaction.scheduled;
        let is_late = self.options.latency_limit.is_some_and(|limit| u128::from(latency) > limit.as_nanos());
        let has_schedule = self.statistics.schedule.is_some();
        if let Some(schedule) = &mut self.statistics.schedule {
            schedule.service.record(now - transaction.began);
            schedule.lags.record(lag);
        }
        let is_one_of_several = self.totals.scripts.len() > 1;
        let script = &mut self.totals.scripts[transaction.script];
        for counts in [&mut self.statistics.counts, &mut script.whole] {
            if has_schedule {
                counts.lag.add(lag as f64 / 1000.0);
            }
            counts.late += u64::from(is_late);
            counts.add_retries(transaction.tries - 1);
        }
        script.whole.moments.add(latency as f64 / 1000.0);
        if is_one_of_several {
            script.latencies.record(latency);
        }
        self.log(client, now, TransactionEnd::Committed { latency });
    }

    /// Counts a transaction that failed and is not tried again.
    pub fn fail<O, A: Actions, S: Shell>(&mut self, client: &Client<O, A, S>, sqlstate: &str) {
        for counts in [&mut self.statistics.counts, &mut self.totals.scripts[client.transaction.script].whole] {
            counts.fail(sqlstate);
            counts.other_failures += u64::from(FailureKind::of(sqlstate) == FailureKind::Other);
            counts.add_retries(client.transaction.tries - 1);
        }
    }

    /// Counts and logs a transaction that failed and is not tried again. Its client goes on with another transaction.
    pub fn end_failed<O, A: Actions, S: Shell>(
        &mut self,
        client: &mut Client<O, A, S>,
        sqlstate: &str,
        kind: FailureKind,
        now: Nanos,
    ) {
        self.fail(client, sqlstate);
        self.log(client, now, TransactionEnd::Failed(kind));
        self.count(client);
    }

    /// Counts and logs a transaction that was skipped because it was already too late when it could have started.
    pub fn skip<O, A: Actions, S: Shell>(&mut self, client: &mut Client<O, A, S>, now: Nanos) {
        self.statistics.counts.skipped += 1;
        self.totals.scripts[client.transaction.script].whole.skipped += 1;
        self.log(client, now, TransactionEnd::Skipped);
        self.count(client);
    }

    /// Adds one to the client's number of measured transactions, whether this transaction was committed, failed or
    /// skipped. Does nothing in the warm-up.
    #[inline]
    pub fn count<O, A: Actions, S: Shell>(&self, client: &mut Client<O, A, S>) {
        client.done += u64::from(self.period.phase != Phase::Warmup);
    }

    /// Records how late a free client was woken for its scheduled start, in nanoseconds.
    pub fn note_oversleep(&mut self, lag: Nanos) {
        if let Some(schedule) = &mut self.statistics.schedule {
            schedule.oversleeps.record(lag);
        }
    }

    /// Writes the end of a transaction to the transaction log, if the run has a log and is not in its warm-up.
    pub fn log<O, A: Actions, S: Shell>(&mut self, client: &Client<O, A, S>, now: Nanos, end: TransactionEnd) {
        let Some(log) = &mut self.log else { return };
        if self.period.phase == Phase::Warmup {
            return;
        }
        let transaction = &client.transaction;
        let lag = match end {
            TransactionEnd::Committed { .. } => transaction.began - transaction.scheduled,
            TransactionEnd::Failed(_) | TransactionEnd::Skipped => 0,
        };
        log.note(&Entry {
            client: client.number,
            number: client.done,
            script: transaction.script,
            ended: now,
            end,
            lag,
            retries: transaction.tries - 1,
        });
    }

    fn report_period(&mut self, ended: Nanos) {
        let period = Period { ends: ended.max(self.period.begins), ..self.period };
        self.count_clients(period.ends);
        let empty = self.statistics.emptied();
        let statistics = Box::new(std::mem::replace(&mut self.statistics, empty));
        self.report(Report::Tick { thread: self.thread, period, statistics });
    }

    fn empty_accounts(&mut self) {
        for account in &mut self.totals.scripts {
            *account = ScriptAccount::new(account.commands.len());
        }
    }

    fn note_cpu(&mut self) {
        if let (Some(before), Some(now)) = (self.cpu_at_measure.take(), CpuTime::of_thread()) {
            self.totals.cpu = now - before;
        }
    }
}
