"""Attackers: roles of given servers, authors of dumps, bundles, histories and repositories, other accounts, commenters.

Each attack is carried out against commands as users type them, on real servers of PostgreSQL 15 and 18, by root as the
victim. Where a trap could fail to spring for another reason, it is sprung by hand first, or the refusal is compared.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context

from tests.cli.forked import forked_commands
from tests.conftest import public_directory, running_clusters

from bench.reliability import traps_in_files, traps_in_studies, traps_on_data, traps_on_servers
from bench.reliability.ground import Ground, Trap
from bench.reliability.kind import Attack, Campaign, Figure, Kind
from pgtrial.servers.leftovers import clean
from pgtrial.servers.workspace import Workspace

_NAME = "attackers"
_AT_ONCE = 4
"""The number of groups of attacks that run beside each other, each with servers and a state directory of its own."""
_WHOLE_S = 750.0

_PATHS = {15: '"$user", public', 18: "public, pg_catalog"}
"""The search path of the database in which all names are overloaded, by version: the default, and the owner's first."""


def _groups() -> dict[str, list[Trap]]:
    """Returns the attacks grouped by their origin, those that take longest first."""
    of_servers = {
        f"objects and sessions of a role without superuser on {major}": [
            *traps_on_servers.objects(major),
            *traps_on_servers.sessions(major),
            *traps_on_servers.overloads(major, path),
        ]
        for major, path in _PATHS.items()
    }
    of_bystanders = {
        f"tables and indexes of bystanders on {major}": [*traps_on_data.bystanders(major)] for major in _PATHS
    }
    return {
        **of_bystanders,
        **of_servers,
        "bundles and folders of studies": [*traps_in_studies.studies()],
        "repositories": [*traps_in_files.repositories()],
        "files in the place of what is written": [*traps_in_files.written()],
        "files, programs and variables of another account": [*traps_in_files.read()],
        "texts of dumps": [*traps_on_servers.dumps()],
        "secrets": [*traps_on_data.secrets(*_PATHS)],
        "archives and texts for terminals": [*traps_in_studies.archives()],
        "comments, branches and inputs of the Action": [*traps_in_files.comments()],
        "histories, and files of bystanders": [*traps_in_studies.histories(), *traps_on_data.files()],
    }


def _run(campaign: Campaign) -> Iterator[Figure]:
    with ProcessPoolExecutor(_AT_ONCE, mp_context=get_context("fork")) as pool:
        groups = [pool.submit(_group, campaign, source) for source in _groups()]
        try:
            for done in as_completed(groups):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no other group begins


def _group(campaign: Campaign, source: str) -> Figure:
    """Carry out the attacks of one group, in a process of its own."""
    root = public_directory(campaign.scratch)
    state = root / "state"
    os.environ["PGTRIAL_STATE"] = str(state)
    traps = _groups()[source]
    attack = Attack(campaign, _NAME, source, len(traps))
    try:
        with (
            Workspace(state) as workspace,
            running_clusters(workspace, {}) as clusters,
            forked_commands() as commands,
        ):
            ground = Ground.make(replace(campaign, state=state), commands, clusters, root / "ground")
            for trap in traps:
                ground.spring(trap, attack)
    finally:
        for notice in clean(state):
            campaign.report(f"  {notice}")
        shutil.rmtree(root, ignore_errors=True)
    return attack.figure("; ".join(trap.what for trap in traps))


KIND = Kind(_NAME, lambda campaign: _WHOLE_S, _run)
