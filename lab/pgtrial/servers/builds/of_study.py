"""Builds all servers and extensions that a study names by their source, and checks out the commits in which its client
programs run, before the first trial. The study then uses what was made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import MadeHere, sources_of
from pgtrial.model.study.sources import GitSource, is_source, source_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.builds.checkouts import checkout_order
from pgtrial.servers.builds.extensions import extension_order
from pgtrial.servers.builds.kept import BuildError, Builds, record_beside
from pgtrial.servers.builds.postgres import server_order
from pgtrial.servers.installations import ServerBinaries, program_digest, resolve
from pgtrial.servers.run_directory import RunDirectory


def has_sources(spec: StudySpec) -> bool:
    """True if a server or an extension of the study is built from source, or a client program runs in the files of a
    commit."""
    return any(sources_of(spec.resolved(arm)) for arm in spec.arms)


def built(spec: StudySpec, builds: Builds, run_directory: RunDirectory, report: Callable[[str], None]) -> StudySpec:
    """Builds the servers and extensions that the study names by their source, and checks out the commits of its client
    programs. Returns the study with arms that name the bin directories of the builds and the directories of the
    commits, and that have the SQL which creates the extensions.

    If a server is built with a profile (PGO), its training load runs in `run_directory`. Builds that exist on
    this machine are used again. Raises BuildError, StudyError and StoreError.
    """
    if not has_sources(spec):
        return spec
    arms = {}
    for arm, table in spec.arms.items():
        setup = spec.resolved(arm)
        # the extensions come before the SQL that all arms share
        changed: dict[str, Any] = {"setup_sql": setup.setup_sql}
        try:
            if isinstance(setup, MadeHere) and (is_source(setup.postgres) or setup.extensions):
                server, created = _built(setup, builds, run_directory, report)
                changed["postgres"] = str(server.bin)
                changed["setup_sql"] = [*map(_creation, created), *setup.setup_sql]
            if is_source(directory := setup.command_directory or ""):
                changed["command_directory"] = str(_checked_out(directory, builds, report))
        except BuildError as error:
            raise BuildError(f"arms.{arm}: {error}") from None
        except StudyError as error:
            raise StudyError(f"arms.{arm}: {error}") from None
        arms[arm] = table.model_copy(update=changed)
    shared = spec.server.model_copy(update={"setup_sql": []})
    return spec.model_copy(update={"server": shared, "arms": arms})


def facts_of_build(setup: object) -> dict[str, Any]:
    """Returns the facts about the build of an arm's server; empty if pgtrial has not built the server."""
    if not isinstance(setup, MadeHere) or "/" not in setup.postgres:
        return {}
    programs = resolve(setup.postgres).bin
    record = record_beside(programs)
    if record is None:
        return {}
    if setup.layouts is None:
        return record.facts
    # each trial records which of the layouts it had
    program = {"program": str(programs / "postgres"), "program_sha256": program_digest(LOCAL, programs)}
    return {**record.facts, **program}


def _built(
    setup: MadeHere, builds: Builds, run_directory: RunDirectory, report: Callable[[str], None]
) -> tuple[ServerBinaries, list[str]]:
    """Builds the server and the extensions of an arm. Returns the programs of the server, and the names of the
    extensions to create in the arm's databases."""
    if is_source(setup.postgres):
        server = resolve(str(builds.ensure(server_order(setup, run_directory, report), report).programs))
    else:
        server = resolve(setup.postgres)
    if not setup.extensions:
        return server, []
    sources = list(map(source_of, setup.extensions))
    kept = builds.ensure(extension_order(server, sources, setup.compiler, report), report)
    return resolve(str(kept.programs)), kept.record.created


def _checked_out(text: str, builds: Builds, report: Callable[[str], None]) -> Path:
    """Returns a directory with the files of a commit, which the study names as `git:PATH@REF`."""
    source = source_of(text)
    assert isinstance(source, GitSource)
    return builds.ensure(checkout_order(source, report), report).programs


def _creation(extension: str) -> str:
    return f'CREATE EXTENSION IF NOT EXISTS "{extension}" CASCADE'
