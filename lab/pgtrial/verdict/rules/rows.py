"""Rules on rows: whether the arms have the same data, and whether statements find rows on both arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgtrial.model.quoting import quoted
from pgtrial.model.records.facts import Facts
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.rows import TableRows
from pgtrial.model.units import STATEMENT_LENGTH, plural, shortened
from pgtrial.verdict.rules.case import Case, Concern, listed, rule, unlike

_FEWEST_CALLS = 300
"""With fewer calls than this in one of the arms, it may be chance that a statement found no rows there."""
_FINDS = 0.01
"""A statement counts as one that finds rows if it returns at least this number of rows for each call, on average."""

_OTHER_NUMBER = 1.25
"""Two estimates of the number of a table's rows differ if their ratio exceeds this. Autovacuum analyzes a table when a
tenth of it has changed, so that estimates of equal tables differ by less."""

_SAME_ROWS = (
    "Load one dump into all arms ([load] data, or pg_restore into given servers), or have the SQL that makes the rows "
    "make the same ones each time: SELECT setseed(0.5) before random(), and constant values in place of "
    "gen_random_uuid() and now()."
)


@rule("unequal_data", "the arms do not have the same rows")
def unequal_data(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm, about the first table whose rows differ from the baseline's.

    A given server is run by somebody else, and pgtrial does not reset its tables. The load may change a table there,
    and the change stays, so that a difference in such a table is only a warning.
    """
    servers = [(arm, facts) for arm in case.arms for facts in case.deployments.get(arm, [case.facts[arm]])]
    base = _tables(servers[0][1]) if servers and servers[0][0] == case.baseline else {}
    reported = set()
    for arm, facts in servers[1:]:
        tables = _tables(facts)
        odd = [name for name in base if tables and _differ(base[name], tables.get(name))]
        grave = [name for name in odd if not base[name].changed_by_load]
        if odd and (arm, bool(grave)) not in reported:
            reported.add((arm, bool(grave)))
            yield _concern(_Unlike(case.baseline, arm, facts.deployment, base, tables), grave or odd, grave=bool(grave))


@rule("rows_not_compared", "rows could not be compared")
def rows_not_compared(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm, about the first table whose rows were not compared because pgtrial
    could not read them."""
    for arm in case.arms:
        tables = _tables(case.facts[arm])
        unread = {name: reason for name, rows in tables.items() if (reason := why_not_compared(rows)) is not None}
        if unread:
            name, reason = next(iter(unread.items()))
            more = f"; so are those of {plural(len(unread) - 1, 'more table')}" if len(unread) > 1 else ""
            yield Concern(
                [arm],
                f"The rows of the table {name} in {arm} are not compared with those of the other arms: {reason}{more}.",
                "Let the role of the load read all rows (GRANT SELECT, BYPASSRLS), or make sure in another way that "
                "the arms have the same ones.",
            )


def why_not_compared(rows: TableRows) -> str | None:
    """Returns the reason why the rows of a table were not compared; None if they were."""
    if rows.unread is not None:
        return rows.unread
    return "policies of row-level security may hide some from the load's role" if rows.has_policies else None


@rule("rows_in_one_arm", "a statement finds rows in one arm only", over_trials=True)
def rows_in_one_arm(case: Case) -> Iterator[Concern]:
    """Finds statements that find rows in one arm but never in the other, so that the other arm has less work to do.

    Replays of recorded sessions and suites of queries have rules of their own, because they know the rows of each
    statement (`answers.py`, `suites.py`).
    """
    for arm in case.others:
        for number, point in enumerate(case.plan.load_points):
            if point.kind.knows_each_statement:
                continue
            base, other = (_counted(case, name, point) for name in (case.baseline, arm))
            odd = [text for text in base if text in other and _one_finds_none(base[text], other[text])]
            if odd:
                counts = listed(
                    f"{of[1]:,} rows in {of[0]:,} calls in {name}"
                    for name, of in ((case.baseline, base[odd[0]]), (arm, other[odd[0]]))
                )
                more = f"; so do {len(odd) - 1} more statements" if len(odd) > 1 else ""
                yield Concern(
                    [case.baseline, arm],
                    f"The statement {quoted(shortened(odd[0], STATEMENT_LENGTH))} finds rows in one arm only: {counts}"
                    f"{more}.",
                    f"What finds nothing is answered sooner. {_SAME_ROWS}",
                    "withhold",
                    cells=[(arm, number)],
                )


def _counted(case: Case, arm: str, point: LoadPoint) -> dict[str, tuple[int, int]]:
    """Returns the numbers of calls and of rows of each statement, over all trials of an arm."""
    counted: dict[str, tuple[int, int]] = {}
    for trial in case.completed(arm, point):
        for text, one in trial.statement_rows.items():
            calls, rows = counted.get(text, (0, 0))
            counted[text] = calls + one.calls, rows + one.rows
    return counted


def _one_finds_none(base: tuple[int, int], other: tuple[int, int]) -> bool:
    enough = min(base[0], other[0]) >= _FEWEST_CALLS
    finds = max(rows / calls for calls, rows in (base, other)) >= _FINDS if enough else False
    return finds and 0 in (base[1], other[1])


def _tables(facts: Facts) -> dict[str, TableRows]:
    return {name: TableRows.model_validate(rows) for name, rows in facts.facts.get("data", {}).items()}


def _differ(base: TableRows, other: TableRows | None) -> bool:
    """True if pgtrial could read the rows on both servers and they differ, or if the other server does not have the
    table, or another number of rows than the sample shows."""
    if other is None or _have_other_numbers(base, other):
        return True
    return None not in (base.digest, other.digest) and (base.rows, base.digest) != (other.rows, other.digest)


def _have_other_numbers(base: TableRows, other: TableRows) -> bool:
    """True if the estimates of the numbers of rows in a large table differ on two servers."""
    return unlike(base.estimate, other.estimate, _OTHER_NUMBER)


@dataclass(frozen=True)
class _Unlike:
    """The tables of the baseline, and the tables of an arm or of one of its deployments (servers of the same product)
    that differ from them."""

    baseline: str
    arm: str
    deployment: int | None
    base: Mapping[str, TableRows]
    tables: Mapping[str, TableRows]

    @property
    def server(self) -> str:
        """Returns in words whose tables these are: the name of an arm or, if the arm has several deployments, of a
        deployment."""
        return self.arm if self.deployment is None else f"deployment {self.deployment + 1} of {self.arm}"


def _concern(unlike: _Unlike, odd: list[str], *, grave: bool) -> Concern:
    more = f"; {plural(len(odd) - 1, 'more table')} differ" if len(odd) > 1 else ""
    kept = "" if grave else " (the load changes it, and given servers keep what earlier trials wrote)"
    return Concern(
        list(dict.fromkeys((unlike.baseline, unlike.arm))),
        f"The arms do not have the same rows: {_words(unlike, odd[0])}{kept}{more}.",
        _SAME_ROWS if grave else "Load the tables again into all arms from one dump before a study, if that matters.",
        "withhold" if grave else "warning",
    )


def _words(of: _Unlike, name: str) -> str:
    """Returns in words how a table differs from the same table of the baseline."""
    base, other = of.base[name], of.tables.get(name)
    if other is None:
        return f"there is no table {name} in {of.server}"
    looked_up = f", looked up by {base.sample:,} keys" if base.sample else ""
    if _have_other_numbers(base, other):
        return (
            f"the table {name} has about {base.estimate:,.0f} rows in {of.baseline} and {other.estimate:,.0f} in "
            f"{of.server}, as PostgreSQL estimates"
        )
    counts = f"{base.rows:,} rows in {of.baseline} and {other.rows:,} in {of.server}{looked_up}"
    missing = sorted(base.columns.keys() ^ other.columns.keys())
    unlike = [column for column, digest in base.columns.items() if other.columns.get(column, digest) != digest]
    if missing:
        return f"the table {name} has the column {missing[0]} in one of them alone ({counts})"
    if unlike:
        return f"the table {name} differs in the column {unlike[0]} ({counts})"
    if base.rows != other.rows:
        return f"the table {name} has {counts}"
    return f"the table {name} has the same values in each column, but in other combinations ({counts})"
