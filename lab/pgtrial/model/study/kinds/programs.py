"""The load of a study whose arms have client programs. They make the load in place of the load engine."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model.metrics import METRICS
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.study.kinds.kind import Asked, LoadKind, misplaced, sizes
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.programs import NOT_FOR_PROGRAMS, PROGRAMS


class Programs(LoadKind):
    """Batches of operations that each arm's client program runs. The study has a load point for each scale."""

    stored = ClientPrograms
    why_no_fleet = "a client program runs on the machine of pgtrial"
    why_no_instructions = "a client program decides by itself what it sends"
    has_plans = False
    has_known_sql = False
    is_of_the_user = True
    follows_the_arm = True
    runs_in_batches = True

    def is_meant(self, load: LoadKeys) -> bool:
        return PROGRAMS in load.workload

    def objections(self, load: LoadKeys) -> Iterator[str]:
        if self.is_meant(load):
            if len(load.workload) > 1:
                yield f"{PROGRAMS} stands for the commands of the arms; give other workloads a study of their own"
            yield from misplaced(load, NOT_FOR_PROGRAMS, PROGRAMS)

    def misfit(self, load: LoadKeys, metric: str) -> str | None:
        if METRICS[metric].follows_throughput:
            return "takes the time of each operation, and client programs report only batches; leave the metric out"
        return super().misfit(load, metric)

    def points(self, study: Asked) -> list[LoadPoint]:
        return [
            LoadPoint(workload=PROGRAMS, programs=True, clients=1, protocol="the driver's", **size)
            for size in sizes(study.load)
        ]

    def may_do_without_tables(self, study: Asked) -> bool:
        return study.has_given

    def starts_programs(self, load: LoadKeys) -> bool:
        return True
