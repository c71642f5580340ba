"""Helpers for tests of gates: a gate whose studies need no server, and readers of the JUnit files that gates write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pgtrial.cli import gate, gate_of_studies
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.statistics import p8
from pgtrial.store.directory import StudyDirectory
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run


def write_verdict(study: StudyDirectory) -> None:
    """Writes the study's verdict.json, the part of a report that a gate reads to write its own files."""
    study.write_file("verdict.json", read_measured(study).result.model_dump_json(indent=1))


Ratio = float | None | StudyError
"""The speed of HEAD in comparison with BASE in a study that is not run. None stands for a study that a signal stops,
and an error for a study that ends with this error.
"""


def of_measured_studies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[StudySpec]]:
    """Replaces the run of a gate's study by made trials, and returns `measure(ratio, sd)`, which sets their ratio.

    The trials of HEAD are `ratio` times as fast as those of BASE; with a ratio of None the study is stopped. In a gate
    of several studies, `ratio` may have one for each study, by the study's name. `measure` returns the list to which
    each study that the gate starts is added.
    """
    started: list[StudySpec] = []

    def measure(ratio: Ratio | dict[str, Ratio], sd: float = 0.002):
        def start(spec, results, *, conclude, console, **_):
            started.append(spec)
            of_study = ratio[spec.study.name] if isinstance(ratio, dict) else ratio
            if isinstance(of_study, StudyError):
                raise of_study
            if of_study is None:
                return 143
            arms = tuple(spec.arms)
            created = f"2026-11-20T14:{len(started):02}:00+00:00"
            plan = make_plan(arms, blocks=12)
            plan = plan.model_copy(update={"looks": p8.looks(12, len(arms) - 1), "created": created})
            trials = run(plan, noisy({arms[1]: of_study}, sd=sd))
            path = results or Path("results", "s" if len(started) == 1 else f"s-{len(started)}")
            conclude(write_study(path, plan, trials, Audit(findings=[]), spec.study.question, spec=spec))
            return 0

        for module in (gate, gate_of_studies):
            monkeypatch.setattr(module, "start", start)
            monkeypatch.setattr(module, "build_report", write_verdict)
        return started

    return measure


def outcome_in(file: str) -> str | None:
    """Returns the element of the one test case of a JUnit file."""
    (case,) = ElementTree.parse(file).iter("testcase")
    return case[0].tag if len(case) else None


def property_in(file: str, name: str) -> str | None:
    """Returns the value of a property of a JUnit file."""
    properties = ElementTree.parse(file).iter("property")
    return next((found.get("value") for found in properties if found.get("name") == name), None)
