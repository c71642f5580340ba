"""The tables of trials in which something was lost: when transactions failed, and what the server said last."""

from __future__ import annotations

from pgtrial.report.data import StudyData
from pgtrial.report.tables import SECTIONS, Table


def failure_tables(data: StudyData) -> list[Table]:
    """Failures by arm and by trial, then the trials that failed or whose server went, in their own words."""
    return [*(make(data) for make in SECTIONS["failures"]), failure_span_table(data), server_log_table(data)]


def failure_span_table(data: StudyData) -> Table:
    """When transactions failed in the trials whose server went, or that failed."""
    rows = [
        [
            str(trial.index + 1),
            trial.arm,
            "warm-up" if span.phase == "warmup" else "measured part",
            span.kind,
            f"{span.first_s}" if span.first_s == span.last_s else f"{span.first_s} to {span.last_s}",
            f"{span.failures:,}",
        ]
        for trial in data.trials
        if trial.status == "failed" or trial.server_log_tail
        for span in trial.failure_spans
    ]
    caption = "When transactions failed, in trials that failed or whose server had something to say."
    return Table(caption, ["trial", "arm", "part", "SQLSTATE or kind", "second", "failed"], rows, frozenset({0, 5}))


def server_log_table(data: StudyData) -> Table:
    """The server's last words, line by line."""
    rows = [[str(trial.index + 1), trial.arm, line] for trial in data.trials for line in trial.server_log_tail]
    return Table("What the server's log said last during the load.", ["trial", "arm", "line"], rows, frozenset({0}))
