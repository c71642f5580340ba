"""Describes client programs in plans and reports. A client program is a program of the user that connects to the server
and runs its own transactions, in place of the clients of the load engine."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.kinds.kind import KindWords


class ProgramsWords(KindWords):
    """Describes trials in which a client program of the user runs, in place of the clients of the load engine."""

    def load(self, spec: StudySpec, plan: Plan) -> str:
        commands = {arm: spec.resolved(arm).command for arm in plan.arms}
        return "the client program of each arm: " + "; ".join(f"{arm}: {text}" for arm, text in commands.items())
