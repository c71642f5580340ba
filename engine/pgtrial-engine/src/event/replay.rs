//! The events' part on a replay: its plan, and what became of its sessions and statements.

use super::counts::failures;
use drive::ledger::replay::{ReplayAccount, ReplayTotals, SessionCounts};
use events::{
    DistributionRecord, OtherTemplates, ReplayCounts, ReplayPlanRecord, ReplayRecord, ReplaySessions, ReplayTemplate,
};

/// The facts about a replay that are known before it begins.
#[derive(Debug, Clone)]
pub struct ReplayDescription {
    pub plan: ReplayPlanRecord,
    /// What the capture left out, added or doubts, with the counts.
    pub doubts: Vec<String>,
    /// The templates that are counted separately, in the order of their accounts.
    pub templates: Vec<TemplateName>,
    /// The number of templates that are counted together.
    pub other_templates: usize,
    /// True if the contents of results are hashed.
    pub hashes_results: bool,
}

/// A template's number in the capture, and its text, which may be cut.
#[derive(Debug, Clone)]
pub struct TemplateName {
    pub id: u32,
    pub text: String,
}

impl ReplayDescription {
    /// Returns the totals of the replay. Templates without statements are left out.
    pub(super) fn event(&self, totals: Option<&ReplayTotals>) -> ReplayRecord {
        let nothing = ReplayTotals::default();
        let totals = totals.unwrap_or(&nothing);
        let (statements, rows) = totals.statements();
        let named = self.templates.iter().zip(&totals.accounts).filter(|(_, account)| account.statements > 0);
        let others = totals.accounts.get(self.templates.len()).filter(|_| self.other_templates > 0);
        ReplayRecord {
            sessions: sessions(&totals.sessions),
            statements: statements.into(),
            transactions: totals.transactions.into(),
            rows: rows.into(),
            other_rows: totals.other_rows().into(),
            expected_failures: failures(&totals.expected),
            unexpected_failures: failures(&totals.unexpected),
            missing_failures: failures(&totals.missing),
            templates: named
                .map(|(name, account)| ReplayTemplate {
                    template: name.id,
                    text: name.text.clone(),
                    counts: counts(account, self.hashes_results),
                })
                .collect(),
            other_templates: others.map(|account| OtherTemplates {
                templates: self.other_templates as u64,
                counts: counts(account, self.hashes_results),
            }),
        }
    }
}

fn sessions(counts: &SessionCounts) -> ReplaySessions {
    let SessionCounts { begun, finished, refused, lost, begun_before, left_open } = *counts;
    ReplaySessions {
        begun: begun.into(),
        finished: finished.into(),
        refused: refused.into(),
        lost: lost.into(),
        begun_before: begun_before.into(),
        left_open: left_open.into(),
    }
}

fn counts(account: &ReplayAccount, is_hashed: bool) -> ReplayCounts {
    ReplayCounts {
        statements: account.statements.into(),
        rows: account.rows.into(),
        rows_hash: is_hashed.then(|| format!("{:016x}", account.hash)),
        other_rows: account.other_rows.into(),
        expected_failures: failures(&account.expected),
        unexpected_failures: failures(&account.unexpected),
        missing_failures: failures(&account.missing),
        consequences: failures(&account.consequences),
        missing_consequences: failures(&account.missing_consequences),
        time_us: account
            .times
            .percentiles()
            .and_then(|percentiles| DistributionRecord::new(&account.moments, Some(percentiles))),
        histogram: account.times.encode(),
    }
}
