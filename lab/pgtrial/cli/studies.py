"""`pgtrial studies`: the bundled studies."""

from __future__ import annotations

from rich.console import Console

from pgtrial.cli.study_options import builds_here
from pgtrial.conduct.plan import make_plan, study_estimate
from pgtrial.model.errors import StudyError
from pgtrial.model.units import format_duration
from pgtrial.report.table import Table, by_place, for_terminal
from pgtrial.store.study_file import bundled_studies, profiles_of, read_study


def command() -> None:
    """List the bundled studies with their profiles and the time that each takes at most.

    Run one with `pgtrial run @NAME`, or `pgtrial run @NAME --profile PROFILE`; `pgtrial plan` shows the details.
    """
    rows = [
        ("" if place else f"@{name}", "" if place else question, profile or "", _time(f"@{name}", profile))
        for name, question in bundled_studies().items()
        for place, profile in enumerate(profiles_of(f"@{name}") or [None])
    ]
    columns = by_place("study", "question", "profile", "at most", right=[3])
    Console().print(for_terminal(Table("", rows, columns)))


def _time(study: str, profile: str | None) -> str:
    """How long the blocks take at most, without loading; a question mark if this machine lacks the servers."""
    try:
        spec = read_study(study, profile, builds_here)
        plan = make_plan(spec, seed=0, created="")
    except StudyError:
        return "?"
    return format_duration(study_estimate(spec, plan))
