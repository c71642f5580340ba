"""Whether the host that a study names for a given server is the one that it runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pgtrial.facts.audit import Case, rule
from pgtrial.facts.collect import Subject, collector
from pgtrial.host.machine import LOCAL
from pgtrial.store.records import Finding


@collector("server")
def seen_on_its_host(subject: Subject) -> dict[str, Any]:
    """`process_seen`, of a server that is not the lab's: whether the host has the process that serves the lab."""
    if subject.connection is None or subject.ours or subject.machine in (None, LOCAL):
        return {}
    return {"process_seen": subject.server_process is not None}


@rule
def another_host(case: Case) -> Iterator[Finding]:
    """Facts and counters of the wrong host are worse than none."""
    for arm in case.arms:
        if case.value(arm, "server", "process_seen") is False:
            login = case.spec.resolved(arm).ssh
            yield Finding(
                rule="another_host",
                severity="warning",
                arms=[arm],
                message=f"{login}, which the study names as the host of {arm}, has no process of PostgreSQL that "
                "serves pgtrial's connection: its facts and counters may be those of another machine.",
                cure="Name the host that the server runs on. One in a container, or behind a pool of connections, is "
                "not recognised; and the login has to see the processes of others.",
            )
