"""The load of a study that is a suite: its queries run one after the other, in one session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pgtrial.model import marks
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.study.kinds.kind import Asked, LoadKind, misplaced, sizes
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.suites import (
    NOT_FOR_SUITES,
    SUITE,
    SuiteSection,
    is_suite,
    objections_to_scale,
    queries_of,
    suite_of,
)


class Suite(LoadKind):
    """The queries of a suite, each of which runs in every trial as often as the study says. The study has a single load
    point."""

    stored = SuiteLoad
    why_no_turns = "the queries of a suite run to their end"
    why_no_fleet = "one session runs the queries of a suite, so several machines cannot share the load"
    why_no_instructions = (
        "a suite consists of queries and not of transactions; count a single query of it as the key query"
    )
    why_no_metrics = "are not for a suite, whose queries have claims of their own; remove it"
    is_of_the_user = True
    has_planned_time = False
    has_data_of_known_size = True
    takes_decimal_scales = True
    is_of_queries = True
    fewer = "queries"

    def is_meant(self, load: LoadKeys) -> bool:
        return any(map(is_suite, load.workload))

    def own_end(self, load: LoadKeys) -> SuiteSection:
        return load.suite

    def objections(self, load: LoadKeys) -> Iterator[str]:
        if self.is_meant(load):
            if len(load.workload) > 1:
                yield "a suite is judged by its queries, and other workloads are not; give the suite a study of its own"
            if len(load.scale) > 1:
                yield "a suite has one scale; give each scale a study of its own"
            yield from objections_to_scale(load.scale[0])
            yield from misplaced(load, NOT_FOR_SUITES, "a suite")
        elif load.suite != SuiteSection():
            suite = marks.short_key("load", "suite")
            yield f"{suite} is for the workload suite:NAME; set this workload, or remove {suite}"

    def is_paced(self, load: LoadKeys) -> bool:
        return True

    def points(self, study: Asked) -> list[LoadPoint]:
        load, asked = study.load, study.load.suite
        name = PurePosixPath(load.workload[0].removeprefix(SUITE)).name
        data = suite_of(name, study.scripts).data
        suite = SuiteLoad(
            name=name,
            queries=queries_of(name, study.scripts),
            runs=asked.runs,
            limit_s=asked.limit_s,
            cache=asked.cache,
            data=data,
            unchecked=asked.unchecked,
        )
        size = sizes(load)[0] if data is not None or load.data else {"scale": 1}
        return [LoadPoint(workload=f"{SUITE}{name}", **size, clients=1, protocol="simple", suite=suite)]

    def has_family(self, load: LoadKeys) -> bool:
        return self.parts(load) > 0

    def parts(self, load: LoadKeys) -> int:
        return load.suite.queries or 0

    def restarts_server(self, load: LoadKeys) -> bool:
        return load.suite.drops_caches

    def empties_caches(self, load: LoadKeys) -> bool:
        return load.suite.cache == "cold"
