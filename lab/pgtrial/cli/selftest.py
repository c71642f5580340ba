"""`pgtrial selftest`: finds out which differences can be found on this machine, by studies of servers that are known to
be equal, or known to be slower by a certain share."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from pgtrial.cli import study_options
from pgtrial.cli.by_options import by_options
from pgtrial.cli.conduct import Conclusion, conduct
from pgtrial.cli.output import json_text, print_message, warn
from pgtrial.cli.progress import shown
from pgtrial.cli.study_options import parsed
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.trust import Allow, Trust, check_trust
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.selftest import (
    FIRST_WORK,
    Wanted,
    calibration_of,
    certify,
    check_budget,
    keep_for_studies,
    lost_share,
    next_work,
    selftest_of,
    study_of,
)
from pgtrial.conduct.study_directory import RESULTS, find_or_create, plan_now
from pgtrial.machines.interrupt import interruptible
from pgtrial.model.errors import PgtrialError, StoreError, StudyError
from pgtrial.model.records.machine import Selftest
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import as_written, parse_duration, parse_share, percent
from pgtrial.report.build import build_report
from pgtrial.report.tables.certificate import caution, lines
from pgtrial.store.certificates import selftest_in, study_certificate, write_certificate, write_selftest
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import check_safe_to_write
from pgtrial.store.temporary import temporary_folder

_DEFAULT = Wanted()
_by_options = by_options(
    {
        "load.workload": "--workload",
        "load.scale": "--scale",
        "load.clients": "--clients",
        "load.interleave": "--interleave",
        "verdict.budget": "--budget",
        "study.seed": "--seed",
    }
)
_LEAST, _MOST = 0.005, 0.5
"""The smallest and the largest loss of throughput that a self-test can build into an arm."""


def selftest_command(
    directory: Annotated[
        Path | None,
        typer.Argument(help="The directory of an unfinished self-test to continue.", show_default=False),
    ] = None,
    *,
    budget: Annotated[str, typer.Option(help="The time for the whole self-test, e.g. 10min or 2h.")] = "10min",
    planted: Annotated[
        str,
        typer.Option(
            help=(
                "The losses of throughput that pgtrial builds into arms, to see whether the studies find them, "
                "e.g. 5% or 3%,5%."
            )
        ),
    ] = "5%",
    workload: Annotated[str, typer.Option(help="The load: select-only or tpcb-like.")] = _DEFAULT.workload,
    scale: Annotated[int, typer.Option(help="The scale factor of pgbench's tables.", min=1)] = _DEFAULT.scale,
    clients: Annotated[
        int, typer.Option(help="The number of clients that run transactions at the same time.", min=1)
    ] = _DEFAULT.clients,
    interleave: Annotated[
        str,
        typer.Option(
            help="Whether the arms take turns in short slices of time. auto: if possible. off: the trials run one "
            "after the other. A time such as 250ms: the length of a slice."
        ),
    ] = _DEFAULT.interleave,
    server: Annotated[
        str | None,
        typer.Option(
            help=(
                "The connection string of an existing server to test, in place of a server that pgtrial starts itself."
            ),
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="The directory of the self-test. Default: results/selftest-DATE-TIME.", show_default=False),
    ] = None,
    seed: study_options.DrawnSeed = None,
    trust: Trust = False,
    allow: Allow = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the progress and then the certificate as JSON Lines.")
    ] = False,
) -> int:
    """Find out how small a difference pgtrial can find on this machine, and write a certificate.

    pgtrial measures two equal servers, and one that is slower by a known share, under the same load. The certificate
    states how long it takes on this machine to find a difference, how many studies of the two equal servers got a
    verdict by mistake, and how many studies found the slower server. Reports of later studies on this machine name the
    certificate.

    The exit status is 1 if studies of the equal servers found a difference more often than chance explains.
    """
    if directory is not None:
        study = StudyDirectory.open(directory)
        selftest = selftest_in(study)
        if selftest is None:
            raise StudyError(
                f"{directory} is the directory of a study and not of a self-test; `pgtrial run {directory}` continues "
                "the study"
            )
        if not study.made_here:
            check_trust(str(directory), effects_of(study.spec), trust=trust, allow=allow)
        return _conduct(study, study.spec, selftest, as_json=json)
    wanted = Wanted(
        workload=workload,
        server=server,
        planted=_shares(planted),
        scale=scale,
        clients=clients,
        interleave=interleave,
        budget_s=parsed("--budget", parse_duration, budget),
        seed=seed,
    )
    try:
        return run(wanted, results, as_json=json)
    except PgtrialError as error:
        error.reword(_by_options)
        raise


def run(wanted: Wanted, results: Path | None, *, as_json: bool) -> int:
    """Calibrates the extra work of the slower server, runs the study, writes its certificate, and returns the exit
    status. Raises StudyError."""
    check_budget(wanted)
    check_safe_to_write(results or RESULTS)
    began = time.monotonic()
    selftest = calibrated(wanted, as_json=as_json)
    spec = study_of(wanted, selftest, wanted.budget_s - (time.monotonic() - began))
    study, _ = find_or_create(spec, results, anew=True)
    write_selftest(study, selftest)
    return _conduct(study, spec, selftest, as_json=as_json)


def calibrated(wanted: Wanted, *, as_json: bool) -> Selftest:
    """Finds an amount of extra work that costs a server a certain share of its throughput, which the self-test then
    builds into an arm. Repeats the measurement with more or less work until the cost is known precisely enough."""
    work, attempt = FIRST_WORK, 1
    while True:
        print_message(f"calibrating: measuring what it costs the server to count {work:,} rows in each transaction")
        with temporary_folder() as folder:
            spec = calibration_of(wanted, work)
            study = StudyDirectory.create(folder / "study", spec, plan_now(spec))
            with interruptible(), shown(Terminal(), as_json=as_json) as listener:
                run_study(study, listener, spec=spec)
            lost = lost_share(study)
        other = next_work(work, lost.estimate, attempt)
        if other is None:
            print_message(f"this extra work costs {percent(lost.estimate)} of the throughput")
            return selftest_of(wanted, work, lost)
        work, attempt = other, attempt + 1


def _conduct(study: StudyDirectory, spec: StudySpec, selftest: Selftest, *, as_json: bool) -> int:
    def conclude(study: StudyDirectory) -> Conclusion:
        certificate = certify(study, selftest)
        write_certificate(study, certificate)
        return Conclusion(build_report(study), Group(*map(Text, lines(certificate))))

    status = conduct(study, spec, as_json=as_json, quiet=True, again=_again, conclude=conclude, reword=_by_options)
    certificate = study_certificate(study) if status == 0 else None
    if certificate is None:
        return status
    if as_json:
        json_text(certificate.model_dump_json())
    try:
        keep_for_studies(certificate)
    except StoreError as error:
        warn(f"the certificate could not be stored for reports of later studies, which will not name it: {error}")
    sentence = caution(certificate)
    if sentence is not None:
        warn(sentence)
    return 0 if sentence is None else 1


def _again(directory: Path) -> str:
    return f"pgtrial selftest {shlex.quote(str(directory))}"


def _shares(planted: str) -> list[float]:
    shares = [parsed("--planted", parse_share, share) for share in planted.split(",")]
    for share in shares:
        if not _LEAST <= share <= _MOST:
            raise StudyError(
                f"--planted {as_written(share)} is out of range; write losses between {as_written(_LEAST)} and "
                f"{as_written(_MOST)}"
            )
    if len(set(shares)) < len(shares):
        raise StudyError(f"--planted {planted} names a share twice; leave one out")
    return shares
