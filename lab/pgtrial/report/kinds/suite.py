"""Describes a suite in plans and reports. A suite is a set of queries in files, each of which is timed."""

from __future__ import annotations

from pgtrial.model.records.plan import Plan
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, plural
from pgtrial.report.kinds.kind import KindWords


class SuiteWords(KindWords):
    """Describes trials that run the queries of a suite, a set of query files."""

    def load(self, spec: StudySpec, plan: Plan) -> str:
        point = plan.load_points[0]
        return f"the suite {point.suite.name if point.suite else ''} in one session: {point.label}"

    def trial(self, spec: StudySpec, plan: Plan) -> str:
        suite = spec.load.suite
        before = "an unmeasured pass over all queries, then " if not suite.drops_caches else ""
        runs, limit = plural(suite.runs, "run"), format_duration(suite.limit_s)
        return f"{before}{runs} of each in random order; a query is cancelled after {limit}"

    def planned_trial(self, spec: StudySpec, plan: Plan) -> str:
        return f"{plural(spec.load.suite.runs, 'run')} of {plural(spec.load.suite.queries or 1, 'query')}"
