"""Describes a job in plans and reports. A job is a set of statements or a program that ends by itself, such as CREATE
INDEX, and whose time is measured."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration
from pgtrial.report.kinds.kind import KindWords


class JobWords(KindWords):
    """Describes trials in which each trial is a single run of a job, such as CREATE INDEX."""

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        return f"one run of the job, no warm-up; it has failed after {format_duration(spec.load.job.limit)}"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        return f"one run of the job, ended after {format_duration(spec.load.job.limit)}"
