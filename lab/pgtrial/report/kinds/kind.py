"""Describes the load of a study in plans and reports. The class here has the words for loads of transactions; other
kinds of load replace them."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural


class KindWords:
    """The words of a kind of load."""

    def load(self, spec: StudySpec, plan: Plan) -> str:
        """Returns what every arm has to serve."""
        load = spec.load
        return f"{plural(len(plan.load_points), 'load point')}, {load.protocol} protocol, fill factor {load.fillfactor}"

    def doubts(self, spec: StudySpec) -> list[str]:
        """Returns what the load may do otherwise than the recorded one, a text each; empty if nothing was recorded."""
        return []

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        """Returns the lengths and the amount of work of a trial in words, for the report of a study that has run."""
        lengths = f"{format_duration(plan.warmup_s)} of warm-up, {format_duration(plan.duration_s)} measured"
        found = plan.lengths.preliminary if plan.lengths is not None else None
        return lengths if found is None else f"{lengths}; chosen after a block that does not count: {found.text}"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        """Returns what each trial will be, for the plan of a study."""
        return f"{format_duration(plan.warmup_s)} of warm-up and {format_duration(plan.duration_s)} measured"
