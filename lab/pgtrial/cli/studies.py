"""`pgtrial studies`: the bundled studies."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from pgtrial.cli.study_options import builds_here
from pgtrial.conduct.plan import make_plan, study_estimate
from pgtrial.model.errors import StudyError
from pgtrial.model.units import format_duration
from pgtrial.store.study_file import bundled_studies, profiles_of, read_study


def command() -> None:
    """List the bundled studies with their profiles and the time that each takes at most.

    Run one with `pgtrial run @NAME`, or `pgtrial run @NAME --profile PROFILE`; `pgtrial plan` tells more.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("study", style="bold", no_wrap=True)
    table.add_column("question")
    table.add_column("profile", no_wrap=True)
    table.add_column("at most", no_wrap=True, justify="right")
    for name, question in bundled_studies().items():
        first: tuple[str, str] = (f"@{name}", question)
        profiles: list[str | None] = [*profiles_of(f"@{name}")]
        for profile in profiles or [None]:
            table.add_row(*first, profile or "", _time(f"@{name}", profile))
            first = ("", "")
    Console().print(table)


def _time(study: str, profile: str | None) -> str:
    """How long the blocks take at most, without loading; a question mark where this machine lacks the servers."""
    try:
        spec = read_study(study, profile, builds_here)
        plan = make_plan(spec, seed=0, created="")
    except StudyError:
        return "?"
    return format_duration(study_estimate(spec, plan))
