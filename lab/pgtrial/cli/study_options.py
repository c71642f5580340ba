"""The options that several commands share, and the functions that read a study by them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.output import print_message
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.objections import objection_to_instructions
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.variants import Build
from pgtrial.servers.installations import find_servers
from pgtrial.store.directory import PLAN, STUDY, StudyDirectory
from pgtrial.store.study_file import Change, profiles_of, read_study, with_fleet

Profile = Annotated[
    str | None,
    typer.Option(
        help="The profile of the study to use. A profile is a variant of a study, such as a quick one, in its file. "
        "Default: the first profile in the study file.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="The seed for the random order of the trials. Default: the seed in the study file, or a random seed.",
        min=0,
    ),
]

Workload = Annotated[
    str | None, typer.Option(help="The load, in the same form as for `pgtrial compare`. Default: tpcb-like.")
]
Query = Annotated[
    str | None, typer.Option(help="One SQL query that the clients run, in place of a workload.", show_default=False)
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        help="A column from which a variable takes random values, in the same form as for `pgtrial compare`, e.g. "
        "id=orders.id. Repeatable.",
        metavar="NAME=TABLE.COLUMN",
        show_default=False,
    ),
]
OwnData = Annotated[
    list[str] | None,
    typer.Option(help="Your own data, in the same form as for `pgtrial compare`.", show_default=False),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="The number of threads of the load engine. Default: one thread for every 16 clients, but at most half as "
        "many threads as CPUs."
    ),
]
Blocks = Annotated[
    int | None, typer.Option(help="The largest number of blocks that are run. Default: as many as the budget holds.")
]
Budget = Annotated[str | None, typer.Option(help="The time for all blocks, e.g. 30min. Default: 1h.")]
Margin = Annotated[str | None, typer.Option(help="The margin below which a difference counts as equivalent, e.g. 1%.")]
Shared = Annotated[
    list[str] | None,
    typer.Option(
        help="A set-up that all arms have in common, in the form of an arm, e.g. postgres=17. Repeatable.",
        show_default=False,
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set any other key of the study file, by its section and name, e.g. load.interleave=250ms or "
        "load.clients='[1, 8]'. Write the value as in TOML; the quotes of a string may be left out. Repeatable.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]
Question = Annotated[
    str | None, typer.Option(help="The question that the study answers. It becomes the title of the report.")
]
Results = Annotated[
    Path | None,
    typer.Option(help="The directory of the study. Default: results/NAME-DATE-TIME.", show_default=False),
]
DrawnSeed = Annotated[
    int | None, typer.Option(help="The seed for the random order of the trials. Default: a random seed.", min=0)
]
New = Annotated[
    bool,
    typer.Option(
        "--new",
        help="Start a new study, even if there is an unfinished study with the same content that could be continued.",
    ),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines, one object for each event.")]


def read(study: str, profile: str | None, seed: int | None = None, change: Change = dict) -> StudySpec:
    """Returns the content of a study file or of a bundled study (`@name`). If the study has profiles and the user has
    not chosen one, prints which profile is used."""
    if not study.startswith("@"):
        _refuse_frozen(Path(study))
    names = profiles_of(study)
    if profile is None and names:
        profile = names[0]
        others = " or ".join(f"--profile {name}" for name in names[1:]) or "there is no other profile"
        print_message(f"profile {profile} of {study}; {others}")
    spec = read_study(study, profile, builds_here, change)
    return spec if seed is None else spec.model_copy(update={"study": spec.study.model_copy(update={"seed": seed})})


def _refuse_frozen(file: Path) -> None:
    """Raises StudyError if `file` is the study file that pgtrial has stored in the directory of somebody else's study.
    Such a study counts as somebody else's if this account did not make it on this machine. The user must run its
    directory instead, because pgtrial then first shows what the study does."""
    if file.name == STUDY and (file.parent / PLAN).is_file() and not StudyDirectory.open(file.parent).made_here:
        raise StudyError(
            f"{file} belongs to a study that was not made by this account on this machine; run its directory, `pgtrial "
            f"run {shlex.quote(str(file.parent))}`, which first shows what the study does, or read the file and its "
            "scripts and copy them to a directory of your own"
        )


def builds_here() -> list[Build]:
    """Returns the PostgreSQL installations of this machine, which are the arms of a study with `postgres = "every"`."""
    return [Build(server.version, str(server.bin), server.origin.split()[0]) for server in find_servers()]


def parsed(option: str, parse: Callable[[object], float], text: str) -> float:
    """Returns the number that the text of an option's value means, such as the seconds of `10min`. Raises StudyError
    with the name of the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise StudyError(f"{option}: {error}") from error


Instructions = Annotated[
    bool,
    typer.Option(
        "--instructions",
        help="Also count the CPU instructions that each server executes for a transaction, and name the functions that "
        "differ. Needs valgrind.",
    ),
]


def with_instructions(spec: StudySpec) -> StudySpec:
    """Returns the study with the option --instructions. Raises StudyError if the instructions cannot be counted."""
    load = spec.load.model_copy(update={"instructions": True})
    counting = spec.model_copy(update={"load": load})
    if (objection := objection_to_instructions(Design(counting))) is not None:
        raise StudyError(objection)
    return counting


Fleet = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        help="The address of the Ray cluster whose machines make the load. auto: the cluster to which this machine "
        "belongs. ray://HOST:10001: a cluster on other machines. local: a cluster on this machine, which pgtrial makes "
        "for the run.",
        metavar="ADDRESS",
        show_default=False,
    ),
]
Machines = Annotated[
    int | None,
    typer.Option(
        "--machines",
        help="The number of machines of the cluster that make the load. Default: all machines.",
        min=1,
        show_default=False,
    ),
]
ShareMachines = Annotated[
    bool,
    typer.Option(
        "--share-machines",
        help="Let one machine run several load engines if the cluster has fewer machines than --machines.",
    ),
]
FailOnRegression = Annotated[
    bool,
    typer.Option(
        "--fail-on-regression",
        help="Exit with status 1 if an arm is worse than the baseline, as `pgtrial verdict` does. "
        "Without this option a complete study has status 0.",
    ),
]


def by_fleet(spec: StudySpec, fleet: str | None, machines: int | None, *, share: bool) -> StudySpec:
    """Returns the study with the values of the options --fleet, --machines and --share-machines. Without these options
    the study is unchanged. Raises StudyError."""
    if fleet is None and machines is None and not share:
        return spec
    return with_fleet(spec, address=fleet, machines=machines, share_machines=share or None)
