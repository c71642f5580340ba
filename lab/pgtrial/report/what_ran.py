"""The version of PostgreSQL, the machine, the operating system and the settings of a study, in short lines for readers
who have nothing but these lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgtrial.model.records.facts import Facts
from pgtrial.model.study.design import Design
from pgtrial.report.data import StudyData
from pgtrial.report.history import machine_of
from pgtrial.verdict.rules.case import known_value, listed


def what_ran(data: StudyData) -> Iterator[str]:
    """Yields a line on the servers and their machines, and a line on the settings that the study file sets. A line is
    left out if nothing is known for it."""
    known = {arm: facts for arm in data.plan.arms if (facts := data.facts.get(arm)) is not None}
    if known:
        version = _by_arm({arm: _version(facts) for arm, facts in known.items()})
        machine = _by_arm({arm: _machine(facts) for arm, facts in known.items()})
        yield f"{version} on {machine}"
    if settings := list(_settings(data, known)):
        yield f"settings: {', '.join(settings)}"


def _version(facts: Facts) -> str:
    version = known_value(facts, "server", "version")
    return f"PostgreSQL {version}" if version else "PostgreSQL of an unknown version"


def _machine(facts: Facts) -> str:
    system = known_value(facts, "os", "distribution") or known_value(facts, "os", "system")
    kernel = known_value(facts, "os", "kernel")
    return ", ".join(str(part) for part in (machine_of(facts), system, kernel) if part)


def _settings(data: StudyData, known: Mapping[str, Facts]) -> Iterator[str]:
    """Yields each setting that the study file sets, with its value. An arm for which it is not set has the value that
    its server had."""
    servers = Design.planned(data.spec, data.plan).servers
    for name in dict.fromkeys(name for server in servers.values() for name in server.settings):
        values: dict[str, str] = {}
        for arm, server in servers.items():
            of_server = known_value(known[arm], "settings", name) if arm in known else None
            values[arm] = server.settings.get(name) or ("default" if of_server is None else str(of_server))
        # the arms of a screening study have drawn levels, which are others in each block
        drawn = " or ".join(dict.fromkeys(values.values())) if data.plan.factors else None
        yield f"{name} = {drawn or _by_arm(values)}"


def _by_arm(values: Mapping[str, str]) -> str:
    """Returns the value that all arms have in common, or else the value of each arm with the arm's name."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return listed([f"{value} ({arm})" for arm, value in values.items()])
