"""Describes a replay in plans and reports. A replay runs recorded sessions again on each arm."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural
from pgtrial.report.kinds.kind import KindWords


class ReplayWords(KindWords):
    """Describes trials in which each trial runs the recorded sessions once."""

    def load(self, spec: StudySpec, plan: Plan) -> str:
        replay, connections = plan.load_points[0].replay, spec.load.replay.max_connections
        if replay is None:
            return super().load(spec, plan)
        most = f", at most {plural(connections, 'connection')}" if connections is not None else ""
        return (
            f"the capture {replay.capture} (SHA-256 {replay.capture_sha256}) on the dump {replay.data} (SHA-256 "
            f"{replay.data_sha256}): {replay.label}{most}"
        )

    def doubts(self, spec: StudySpec) -> list[str]:
        files = spec.load.replay.files
        return files.doubts if files is not None else []

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        replay = plan.load_points[0].replay
        return f"one replay {replay.pace}" if replay is not None else "one replay"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        return f"one replay, {format_duration(round(spec.load.expected_s))} as recorded"
