"""Confirms the winning set-up of a screening study: compares it with the first level of each factor, in a study of its
own. `pgtrial screen --confirm` and `pgtrial run DIRECTORY --confirm` do this."""

from __future__ import annotations

from pgtrial.cli.by_options import Reword
from pgtrial.cli.conduct import start
from pgtrial.cli.output import print_message
from pgtrial.conduct.study_directory import RESULTS
from pgtrial.model.errors import StudyError
from pgtrial.model.marks import in_toml
from pgtrial.model.records.results import StudyResult
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.report.screen import changed_levels
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.screens import confirmation


def check_screens(spec: StudySpec) -> None:
    """Raises StudyError if a study is no screening study, so that it has no winning set-up to confirm."""
    if not spec.factors:
        raise StudyError(
            "--confirm is for studies that screen factors, such as those of `pgtrial screen`; leave it out"
        )


def confirm(study: StudyDirectory, spec: StudySpec, *, as_json: bool = False, reword: Reword = in_toml) -> int:
    """Runs the study that compares the winning set-up of a screening study that has ended, and returns its exit status.
    `spec` is the screening study as the user gave it, with its passwords.

    An unfinished study of this winning set-up goes on. A study in a directory that the user chose is confirmed in a
    directory beside it. If no second level has won, there is nothing to compare; prints this and returns 0.
    """
    result: StudyResult = read_measured(study).result
    levels = changed_levels(result)
    if result.screen is None or not levels:
        print_message("there is nothing to confirm: no factor is better with its second level, as far as is decided")
        return 0
    print_message(f"confirming {', '.join(levels)} against the first levels, in a study of its own")
    is_chosen = study.path.absolute().parent != RESULTS.absolute()
    beside = study.path.with_name(f"{study.path.name}-confirm") if is_chosen else None
    return start(confirmation(spec, result.screen.winner), beside, as_json=as_json, reword=reword)
