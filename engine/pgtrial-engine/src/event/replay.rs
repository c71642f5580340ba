//! The records about a replay in the events: the plan of the replay, and how its sessions and statements ended.

use super::counts::failures;
use drive::statistics::replay::{ReplayAccount, ReplayTotals, SessionCounts};
use events::{
    DistributionRecord, OtherTemplates, ReplayCounts, ReplayPlanRecord, ReplayRecord, ReplaySessions, ReplayTemplate,
};

/// The facts about a replay that are known before it begins. A template is the text of statements that differ only in
/// their values.
#[derive(Debug, Clone)]
pub struct ReplayDescription {
    pub plan: ReplayPlanRecord,
    /// The doubts about the recording (the capture): statements of the server's logs that it left out, added, or is not
    /// sure about. Each text is the number of such statements and the reason.
    pub doubts: Vec<String>,
    /// The templates (statement texts without their values) whose statements are counted separately, in the same order
    /// as their counts in [`ReplayTotals::accounts`].
    pub templates: Vec<TemplateName>,
    /// The number of all other templates. Their statements are counted together, in one more entry at the end of
    /// [`ReplayTotals::accounts`].
    pub other_templates: usize,
    /// True if the rows that statements return are hashed, so that two replays can be compared. If false, the rows are
    /// only counted.
    pub hashes_results: bool,
}

/// A template, the text of statements that differ only in their values, and its number in the recording. A long text is
/// cut off.
#[derive(Debug, Clone)]
pub struct TemplateName {
    pub id: u32,
    pub text: String,
}

impl ReplayDescription {
    /// Returns the counts of the replay for the last event, `done`. Templates (statement texts without their values) of
    /// which no statement ran are left out.
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
