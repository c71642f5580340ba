"""The steps that `run`, `compare` and `demo` share: run the study, show its progress, and write the report."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from pgtrial.cli.by_options import Reword
from pgtrial.cli.output import print_message, stopped, warn
from pgtrial.cli.progress import shown
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.planning.outlook import cautions, in_words, outlook
from pgtrial.conduct.planning.plan import More, warnings
from pgtrial.conduct.progress import Listener, Preparing, ProgressEvent, StudyBegins
from pgtrial.conduct.provider_metrics import import_metrics
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.machines.interrupt import Interrupted, interruptible
from pgtrial.model.errors import ArmError, PgtrialError, StoreError, StudyError
from pgtrial.model.marks import in_toml
from pgtrial.model.records.results import StudyResult
from pgtrial.model.study.cut_values import filled
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import has_secrets
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.brief import brief
from pgtrial.report.build import ReportNotWrittenError, build_report
from pgtrial.report.never_measured import never_measured
from pgtrial.servers.configured_values import check_configured
from pgtrial.store.directory import StudyDirectory

Again = Callable[[Path], str]
"""A function that returns the command with which the user continues the study in a directory."""


@dataclass(frozen=True)
class Conclusion:
    """The result of a study that has ended, and the text that the terminal shows for it."""

    result: StudyResult
    """The result that is in the report."""
    shown: RenderableType
    """The text that the terminal shows."""


Conclude = Callable[[StudyDirectory], Conclusion]
"""A function that writes the report of a study that has ended. It also does the other work with which its command ends,
such as printing whether the change passes the gate."""


def conclude_by_report(study: StudyDirectory, reword: Reword) -> Conclusion:
    """Writes the report of a study that has ended, and does nothing else. `reword` changes the text that the terminal
    shows."""
    result = build_report(study)
    return Conclusion(result, in_short(brief(result, study.plan, study.path, study.trials()), reword))


_REGRESSION = 1
"""The exit status if an arm is worse than the baseline. `pgtrial verdict` always returns it; commands that run a study
return it only with `--fail-on-regression`."""

_SOMETHING_IS_MISSING = 2
"""The exit status if a study is complete, but all trials of an arm failed, so that the arm was not measured."""


def start(
    spec: StudySpec,
    results: Path | None,
    *,
    anew: bool = False,
    as_json: bool = False,
    conclude: Conclude | None = None,
    console: Terminal | None = None,
    reword: Reword = in_toml,
    again: Again | None = None,
    fail_on_regression: bool = False,
) -> int:
    """Starts the study, or continues an unfinished study with the same content, and returns the exit status. With
    `anew` it starts the study even if an unfinished one could be continued. `results` is the directory of the study; if
    it is None, pgtrial makes one.

    `reword` changes each sentence before it is printed; the other parameters are those of `conduct`.
    """
    check_configured(Design(filled(spec, os.environ)))
    study, there = find_or_create(spec, results, anew=anew, after_budget=again is None)
    if there:
        print_message(f"going on with {study.path}: {len(study.trials())} of {len(study.plan.due)} trials are stored")
    if has_secrets(spec):
        warn(
            f"{study.path} does not contain the passwords of the connection strings; to go on later, set PGPASSWORD or "
            "use ~/.pgpass"
        )
    try:
        return conduct(
            study,
            spec,
            as_json=as_json,
            conclude=conclude,
            console=console,
            reword=reword,
            again=again,
            fail_on_regression=fail_on_regression,
        )
    except PgtrialError:
        if not there and not study.trials():
            # the study was refused before its first trial, so its directory holds nothing that could be continued
            shutil.rmtree(study.path, ignore_errors=True)
        raise


def conduct(
    study: StudyDirectory,
    spec: StudySpec,
    *,
    more: More | None = None,
    as_json: bool = False,
    quiet: bool = False,
    again: Again | None = None,
    conclude: Conclude | None = None,
    console: Terminal | None = None,
    reword: Reword = in_toml,
    fail_on_regression: bool = False,
) -> int:
    """Runs the trials that a study still lacks, or the further blocks of `more`, and then calls `conclude`, which by
    default writes the report.

    `again` returns the command with which the user continues the study, by default `pgtrial run DIRECTORY`. `quiet`
    leaves out the warnings before the first trial. The progress is drawn on `console`, by default stdout.

    Returns the exit status: 0 if the study is complete, 2 if no trial of an arm completed, 128 + the number of the
    signal if a signal stopped the study. With `fail_on_regression` the status is 1 if an arm is worse than the
    baseline, as for `pgtrial verdict`.
    """
    console = console or Terminal()
    ended = study.plan if more is not None else None
    goes_on = again(study.path) if again is not None else f"pgtrial run {shlex.quote(str(study.path))}"
    cautious = not quiet and more is None
    for warning in warnings(Design.planned(spec, study.plan), study.plan) if cautious else ():
        warn(reword(warning))

    try:
        with interruptible():
            with shown(console, as_json=as_json, reword=reword) as listener:
                run_study(study, _cautioning(listener, study, spec) if cautious else listener, spec=spec, more=more)
            for sentence in import_metrics(study, print_message):
                warn(f"{sentence}; pgtrial metrics {shlex.quote(str(study.path))} imports them later")
            conclusion = conclude(study) if conclude is not None else conclude_by_report(study, reword)
    except Interrupted as interrupted:
        if study.plan is ended:
            return stopped(interrupted)
        stored, planned = len(study.trials()), len(study.plan.due)
        return stopped(interrupted, f": {stored} of {planned} trials are stored; go on with: {goes_on}")
    except ReportNotWrittenError as lost:
        if not as_json:
            console.print(in_short(brief(lost.result, study.plan, study.path, study.trials()), reword))
        raise
    except (ArmError, StudyError, StoreError) as error:
        if study.plan is not ended and (stored := len(study.trials())):
            words = f"{error}".removesuffix(".")
            error.args = (
                f"{words}; {stored} of {len(study.plan.due)} trials are stored; correct this error, and then continue "
                f"the study with: {goes_on}",
            )
        raise
    missing = never_measured(study.plan, study.trials())
    if not as_json:
        console.print(conclusion.shown)
        console.print_line(f"report: {study.path / 'report.html'}")
    elif missing is not None:
        print_message(missing)
    if fail_on_regression and conclusion.result.exit_status == _REGRESSION:
        return _REGRESSION
    return 0 if missing is None else _SOMETHING_IS_MISSING


def _cautioning(listener: Listener, study: StudyDirectory, spec: StudySpec) -> Listener:
    """Returns a listener that passes events on to `listener`. It also warns if the margin is so small that the planned
    number of blocks can hardly show that two arms are equivalent, and for a screening study it says how large an effect
    the study can find, if the noise of this machine is known.

    The warning comes when the first trial begins. Before the first trial pgtrial rehearses the load, that is, runs it
    once on each arm. The rehearsal may refuse the study for a graver reason, and only after it are the lengths of the
    trials known.
    """

    def on_event(event: ProgressEvent) -> None:
        if isinstance(event, StudyBegins) and not event.stored:
            known = outlook(Design.planned(spec, study.plan), study.plan)
            for sentence in cautions(known, study.plan):
                listener(Preparing(f"warning: {sentence}", stays=True))
            if study.plan.factors and known is not None and known.precision is not None:
                listener(Preparing(f"by its end the study {in_words(known.precision)}", stays=True))
        listener(event)

    return on_event
