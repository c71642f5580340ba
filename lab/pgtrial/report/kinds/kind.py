"""Describes the load of a study in plans and reports. The class in this module has the words for loads of transactions;
subclasses for other kinds of load replace them."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural


class KindWords:
    """Describes a kind of load in words."""

    def load(self, spec: StudySpec, plan: Plan) -> str:
        """Returns a description of the load that a study applies to every arm, such as its script, clients and rate."""
        load = spec.load
        return f"{plural(len(plan.load_points), 'load point')}, {load.protocol} protocol, fill factor {load.fillfactor}"

    def doubts(self, spec: StudySpec) -> list[str]:
        """Returns sentences that say how a replay may differ from the sessions that were recorded. The result is empty
        if the load is not a replay."""
        return []

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        """Returns the lengths of a trial and its amount of work in words, for the report of a study that has run."""
        lengths = f"{format_duration(plan.warmup_s)} of warm-up, {format_duration(plan.duration_s)} measured"
        found = plan.lengths.preliminary if plan.lengths is not None else None
        return lengths if found is None else f"{lengths}; chosen after a block that does not count: {found.text}"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        """Returns a description of each trial, for the plan of a study."""
        return f"{format_duration(plan.warmup_s)} of warm-up and {format_duration(plan.duration_s)} measured"
