"""Describes the search for a capacity in plans and reports. A capacity is the highest rate at which the response time
keeps a limit."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration
from pgtrial.report.kinds.kind import KindWords
from pgtrial.statistics import capacity


class CapacityWords(KindWords):
    """Describes trials that search for the highest rate at which the response time keeps a limit."""

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        lengths = f"{format_duration(plan.warmup_s)} of warm-up in a closed loop, then probes at chosen rates"
        return f"{lengths}, {format_duration(plan.duration_s)} each or longer at slow rates"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        probes = f"{capacity.EXPECTED} probes of {format_duration(plan.duration_s)}"
        return f"{format_duration(plan.warmup_s)} of warm-up and about {probes}"
