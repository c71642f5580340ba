//! The report at the end of a replay.

use std::collections::BTreeSet;
use std::fmt::{Result, Write};

use super::description::shortened;
use crate::event::ReplayDescription;
use drive::Outcome;
use drive::plan::Plan;
use drive::statistics::replay::{IN_FAILED_TRANSACTION, ReplayAccount, ReplayTotals, SessionCounts};
use drive::statistics::{Failures, LoadStatistics};
use latency::{Latencies, Moments};

/// The number of characters after which the text of a template (a statement without its values) is cut off in the
/// tables.
const LONGEST_TEXT: usize = 80;

/// Returns the text of the report. Its tables have at most `listed` rows.
pub fn report(plan: &Plan, described: &ReplayDescription, outcome: &Outcome, listed: usize) -> String {
    let mut total = outcome.measure.clone();
    total.merge(&outcome.drain);
    let nothing = ReplayTotals::default();
    let totals = outcome.of_mode.replay().unwrap_or(&nothing);
    let mut report = Report { out: String::new(), plan, described, outcome, total, totals };
    // Writing to a string cannot fail, so the result is ignored.
    let _ = report.write(listed);
    report.out
}

struct Report<'a> {
    out: String,
    plan: &'a Plan,
    described: &'a ReplayDescription,
    outcome: &'a Outcome,
    /// The counts of the measured part and of the time after it, in which the transactions that are still running are
    /// finished.
    total: LoadStatistics,
    totals: &'a ReplayTotals,
}

/// The counts of the statements of one template (a statement text without its values), or of all other templates
/// together.
struct Row<'a> {
    name: String,
    account: &'a ReplayAccount,
}

/// The numbers of errors of one template's statements (statements that differ only in their values) with one SQLSTATE.
/// The report lists the greatest value first. Values are compared field by field, and the first field counts errors
/// that were not recorded, so statements with such errors come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StatementErrors {
    new: u64,
    following: u64,
    gone: u64,
    recorded: u64,
}

impl Row<'_> {
    /// Returns an entry for each SQLSTATE with which statements of the template failed, in the replay or when they were
    /// recorded: the numbers of errors, and a text with the SQLSTATE and the statement. The SQLSTATE 25P02 has no
    /// entry, since such an error only follows from an earlier error of its transaction.
    fn errors(&self) -> Vec<(StatementErrors, String)> {
        let ReplayAccount { expected, unexpected, missing, consequences, .. } = self.account;
        let kinds: BTreeSet<&String> = [expected, unexpected, missing].into_iter().flat_map(Failures::keys).collect();
        let count = |failures: &Failures, kind: &str| failures.get(kind).copied().unwrap_or_default();
        kinds
            .into_iter()
            .filter(|kind| *kind != IN_FAILED_TRANSACTION)
            .map(|kind| {
                let errors = StatementErrors {
                    new: count(unexpected, kind),
                    following: count(consequences, kind),
                    gone: count(missing, kind),
                    recorded: count(expected, kind),
                };
                (errors, format!("{kind:<8}  {}", self.name))
            })
            .collect()
    }
}

impl Report<'_> {
    fn write(&mut self, listed: usize) -> Result {
        self.write_settings()?;
        self.write_sessions()?;
        self.write_statements()?;
        self.write_times()?;
        self.write_errors(listed)?;
        self.write_templates(listed)
    }

    fn write_settings(&mut self) -> Result {
        let Self { out, plan, described, outcome, .. } = self;
        let replayed = &described.plan;
        writeln!(out, "capture: {}", replayed.capture)?;
        if replayed.sample_percent < 100.0 || replayed.copies > 1 {
            writeln!(out, "sample: {}% of the sessions, copies: {}", replayed.sample_percent, replayed.copies)?;
        }
        match replayed.speed {
            Some(speed) => writeln!(out, "pace: recorded times, speed {speed}")?,
            None => writeln!(out, "pace: as fast as possible")?,
        }
        writeln!(out, "maximum number of connections: {}", plan.clients)?;
        writeln!(out, "number of threads: {}", plan.jobs)?;
        writeln!(out, "duration: {:.3} s (recorded: {:.3} s)", outcome.elapsed_s, replayed.recorded_s)
    }

    fn write_sessions(&mut self) -> Result {
        let (out, planned) = (&mut self.out, self.described.plan.sessions.0);
        let SessionCounts { begun, finished, refused, lost, begun_before, left_open } = self.totals.sessions;
        writeln!(out, "sessions: {finished} of {planned} finished")?;
        for (count, what) in [
            (begun.saturating_sub(finished + lost), "begun and not finished"),
            (refused, "got no connection"),
            (lost, "lost their connection"),
            (begun_before, "ended a transaction that they had not begun; it may have begun before the capture"),
            (left_open, "left in a transaction; it may have ended after the capture"),
        ] {
            if count > 0 {
                writeln!(out, "  {count} {what}")?;
            }
        }
        let connect_ms = 1000.0 * self.outcome.reconnect_s / begun.max(1) as f64;
        writeln!(out, "average connection time = {connect_ms:.3} ms")
    }

    fn write_statements(&mut self) -> Result {
        let (statements, rows) = self.totals.statements();
        let Self { out, described, outcome, totals, .. } = self;
        let planned = described.plan.statements.0;
        let rate = if outcome.elapsed_s > 0.0 { statements as f64 / outcome.elapsed_s } else { 0.0 };
        writeln!(out, "statements: {statements} of {planned} executed ({rate:.1} per second)")?;
        writeln!(out, "transactions: {}", totals.transactions)?;
        writeln!(out, "rows returned or changed: {rows}")?;
        if totals.other_rows() > 0 {
            writeln!(
                out,
                "  {} statements returned or changed a different number of rows than recorded",
                totals.other_rows()
            )?;
        }
        for (failures, what) in [
            (&totals.expected, "errors as recorded"),
            (&totals.unexpected, "errors that were not recorded"),
            (&totals.missing, "recorded errors that did not occur"),
        ] {
            writeln!(out, "{what}: {}{}", failures.values().sum::<u64>(), kinds(failures))?;
        }
        if !described.doubts.is_empty() {
            writeln!(out, "statements that the capture left out, added, or is not sure about:")?;
        }
        described.doubts.iter().try_for_each(|doubt| writeln!(out, "  {doubt}"))
    }

    fn write_times(&mut self) -> Result {
        let Self { out, total, .. } = self;
        if total.counts.transactions() == 0 {
            return Ok(());
        }
        write_time(out, "response time", &total.latencies, Some(&total.counts.moments))?;
        if let Some(schedule) = &total.schedule {
            write_time(out, "  from sending", &schedule.service, None)?;
            write_time(out, "  schedule lag", &schedule.lags, Some(&total.counts.lag))?;
        }
        Ok(())
    }

    /// Writes the table of errors by statement and SQLSTATE. Errors that the capture did not record come first. An
    /// error with SQLSTATE 25P02 is counted with the earlier error that aborted its transaction.
    fn write_errors(&mut self, listed: usize) -> Result {
        let mut errors: Vec<(StatementErrors, String)> = self.rows().iter().flat_map(Row::errors).collect();
        errors.sort_by(|(one, _), (other, _)| other.cmp(one));
        let all = errors.len();
        errors.truncate(listed);
        let out = &mut self.out;
        if !errors.is_empty() {
            writeln!(
                out,
                "\nerrors by statement ({} of {all}); \"following\": later statements of the transaction that only failed because of it (25P02)",
                errors.len()
            )?;
            writeln!(out, "{:>9} {:>9} {:>9} {:>9} SQLSTATE  statement", "new", "following", "recorded", "gone")?;
        }
        for (StatementErrors { new, following, gone, recorded }, what) in errors {
            writeln!(out, "{new:>9} {following:>9} {recorded:>9} {gone:>9} {what}")?;
        }
        Ok(())
    }

    /// Writes the table of the templates (statement texts without their values) whose statements took the most time in
    /// total.
    fn write_templates(&mut self, listed: usize) -> Result {
        let mut rows = self.rows();
        let all = rows.len();
        rows.sort_by(|one, other| other.account.moments.sum.total_cmp(&one.account.moments.sum));
        let whole = rows.iter().map(|row| row.account.moments.sum).sum::<f64>().max(f64::MIN_POSITIVE);
        rows.truncate(listed);
        if rows.is_empty() {
            return Ok(());
        }
        let mut out = String::new();
        let shown = rows.len();
        writeln!(out, "\ntemplates by total time ({shown} of {all}), times from sending to the answer:")?;
        writeln!(
            out,
            "{:>7} {:>12} {:>12} {:>10} {:>10} {:>10} {:>12}  statement",
            "share", "total s", "statements", "mean ms", "p95 ms", "new errors", "rows"
        )?;
        for Row { name, account } in rows {
            let (sum, p95) =
                (account.moments.sum, account.times.percentile(95.0).unwrap_or_default().min(account.moments.max));
            writeln!(
                out,
                "{:>6.1}% {:>12.3} {:>12} {:>10.3} {:>10.3} {:>10} {:>12}  {name}",
                100.0 * sum / whole,
                sum / 1e6,
                account.statements,
                account.moments.mean() / 1000.0,
                p95 / 1000.0,
                account.unexpected(),
                account.rows,
            )?;
        }
        self.out += &out;
        Ok(())
    }

    /// Returns a row for each template (a statement text without its values) of which at least one statement ran.
    fn rows(&self) -> Vec<Row<'_>> {
        let names = self.described.templates.iter().map(|template| {
            let text = shortened(&template.text, LONGEST_TEXT);
            format!("{}: {text}", template.id)
        });
        let others = format!("({} other templates)", self.described.other_templates);
        let rows = names.chain([others]).zip(&self.totals.accounts).map(|(name, account)| Row { name, account });
        rows.filter(|row| row.account.statements > 0).collect()
    }
}

/// Returns a text with the number of failures of each kind, or an empty text if nothing failed.
fn kinds(failures: &Failures) -> String {
    let kinds: Vec<_> = failures.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
}

fn write_time(out: &mut String, what: &str, times: &Latencies, moments: Option<&Moments>) -> Result {
    let Some(percentiles) = times.percentiles() else { return Ok(()) };
    let percentiles = percentiles.at_most(moments.map_or(f64::INFINITY, |moments| moments.max));
    write!(out, "{what} in ms: ")?;
    if let Some(moments) = moments {
        write!(out, "average {:.3}, ", moments.mean() / 1000.0)?;
    }
    let at =
        [("p50", percentiles.p50), ("p95", percentiles.p95), ("p99", percentiles.p99), ("p99.9", percentiles.p999)];
    let listed: Vec<_> = at.iter().map(|(name, us)| format!("{name} {:.3}", us / 1000.0)).collect();
    write!(out, "{}", listed.join(", "))?;
    match moments {
        Some(moments) => writeln!(out, ", max {:.3}", moments.max / 1000.0),
        None => writeln!(out),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::TemplateName;
    use crate::frontend::never_run::Nothing;
    use drive::plan::{Load, ReplayPlan, ReplayTiming};
    use drive::statistics::ModeTotals;
    use ground::shard::ClientShare;
    use workload::seeds::Seeds;

    fn account(statements: u64, us: u64) -> ReplayAccount {
        let mut account = ReplayAccount { statements, rows: 2 * statements, ..ReplayAccount::default() };
        for _ in 0..statements {
            account.moments.add(us as f64);
            account.times.record(us * 1000);
        }
        account
    }

    #[test]
    fn the_templates_that_took_the_most_time_come_first() {
        let part = ClientShare::whole(3);
        let timing = ReplayTiming::Recorded { speed: 2.0 };
        let load = Load::replayed(Arc::new(Nothing), ReplayPlan { timing, time: None, accounts: Arc::new([]) });
        let plan = Plan::new(None, part, Seeds::derive(0, &part, 0, 1, None), load);
        let template = |id, text: &str| TemplateName { id, text: text.to_owned() };
        let described = ReplayDescription {
            plan: events::ReplayPlanRecord {
                capture: "/c".to_owned(),
                sessions: 5.into(),
                statements: 99.into(),
                recorded_s: 7.0,
                most_at_once: 3,
                speed: Some(2.0),
                sample_percent: 50.0,
                copies: 1,
            },
            doubts: vec!["6 statements in doubt".to_owned()],
            templates: vec![template(4, "select 1"), template(7, "update"), template(8, "never")],
            other_templates: 12,
            hashes_results: true,
        };
        let mut slow = account(2, 5000);
        slow.unexpected.insert("42P01".to_owned(), 1);
        slow.consequences.insert("42P01".to_owned(), 60);
        slow.expected.insert("23505".to_owned(), 3);
        slow.missing.insert("23505".to_owned(), 2);
        let totals = ReplayTotals {
            sessions: SessionCounts { begun: 4, finished: 3, refused: 1, left_open: 1, ..SessionCounts::default() },
            transactions: 6,
            unexpected: [("42P01".to_owned(), 1)].into(),
            accounts: vec![account(5, 1000), slow, ReplayAccount::default(), account(1, 1)],
            ..ReplayTotals::default()
        };
        let of_mode = ModeTotals::Replay(totals);
        let mut outcome = Outcome { elapsed_s: 4.0, of_mode, reconnect_s: 0.008, ..Outcome::default() };
        outcome.measure.commit(3_000_000);
        let text = report(&plan, &described, &outcome, 2);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "sample: 50% of the sessions, copies: 1",
            "pace: recorded times, speed 2",
            "maximum number of connections: 3",
            "duration: 4.000 s (recorded: 7.000 s)",
            "sessions: 3 of 5 finished",
            "1 begun and not finished",
            "1 got no connection",
            "average connection time = 2.000 ms",
            "statements: 8 of 99 executed (2.0 per second)",
            "transactions: 6",
            "rows returned or changed: 16",
            "errors as recorded: 0",
            "errors that were not recorded: 1 (42P01: 1)",
            "statements that the capture left out, added, or is not sure about:",
            "6 statements in doubt",
            "new following recorded gone SQLSTATE statement",
            "1 60 0 0 42P01 7: update",
            "0 0 3 2 23505 7: update",
            "templates by total time (2 of 3), times from sending to the answer:",
            "66.7% 0.010 2 5.000 5.000 1 4 7: update",
            "33.3% 0.005 5 1.000 1.000 0 10 4: select 1",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(lines.last().map(String::as_str), Some("33.3% 0.005 5 1.000 1.000 0 10 4: select 1"));
        assert!(report(&plan, &described, &outcome, 9).contains("  (12 other templates)\n"));
    }
}
