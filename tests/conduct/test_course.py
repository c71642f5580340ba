"""The sampler around a load: only where the study wants it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pgtrial.conduct.course import observed
from pgtrial.model.study.load_section import LoadSection


def test_a_study_may_do_without_it():
    course: Any = SimpleNamespace(load=LoadSection(observe=False), deltas={}, observation=None)
    nothing: Any = None
    with observed(course, nothing, nothing) as sampler:
        sampler.load_begins(1)
        sampler.measure_begins()
    assert (course.deltas, course.observation) == ({}, None)
