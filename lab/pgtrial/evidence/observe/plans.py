"""Finds the plan that the arm's server uses for a statement of the load, with the values that the load uses.

The statements are not executed: each is explained by EXPLAIN in a read-only transaction, which is rolled back.

A statement without parameters has one plan. For a prepared statement PostgreSQL chooses between two kinds: the first
five executions get plans that are made for their values (custom plans). The sixth gets one plan for all values (the
generic plan) if its cost is not higher than the mean cost of the five, or if `plan_cache_mode` asks for it. EXPLAIN
EXECUTE gets its plan from the same function of the server, so the sixth EXPLAIN EXECUTE shows what the sixth execution
would use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice

import psycopg
from psycopg import sql

from pgtrial.loads.target import Session, value
from pgtrial.model.records.trial import PLAN_NODE, LoadStatement

_EXPLAINED = re.compile(r"\s*\(*\s*(select|insert|update|delete|merge|with|values|table)\b", re.IGNORECASE)
_PARAMETER = re.compile(r"\$(\d+)\b")
_VALUES = re.compile(r"'(?:[^']|'')*'|(?<![\w$.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", re.IGNORECASE)
_COSTS = re.compile(r"\s*\(cost=[^)]*\)$")
_PLANNING_TIME = re.compile(r"Planning Time: ([\d.]+) ms")
_PRUNED = re.compile(r"Subplans Removed|One-Time Filter: false")
"""Matches the words in a plan by which PostgreSQL shows that it left out a part of the plan, such as partitions,
because no row can match the value NULL."""
_NAME = "pgtrial_explained"

_CHOOSES = 6
"""The number of the execution at which PostgreSQL decides between custom plans and the generic plan."""
_TELLS_PLANNING_TIME = 100_000
"""The first version, as server_version_num counts (100000 is PostgreSQL 10), in which EXPLAIN shows the planning time
without executing the statement."""

_PLAN_CACHE_MODE = 120_000
_COUNTS_PLANS = 140_000
_EXPLAINS_GENERIC = 160_000
"""The first versions, as server_version_num counts, that have the setting plan_cache_mode (_PLAN_CACHE_MODE), the
counts of plans in pg_prepared_statements, and EXPLAIN (GENERIC_PLAN) (_EXPLAINS_GENERIC)."""


@dataclass(frozen=True)
class SentStatement:
    """A statement of the load, with the protocol and the values with which the load sends it."""

    text: str
    """The statement as the server parses it, with `$1` in place of the first parameter."""
    protocol: str = "simple"
    """The protocol, as pgbench names it, with which the load sends the statement: simple, extended or prepared."""
    values: Sequence[Sequence[str]] = ()
    """The values of the parameters in a few executions; empty if they are not known."""
    sent: str | None = None
    """The whole text of one execution, if the protocol inserts the values into the text; None if it is not known."""
    hides_values: bool = False
    """True if the values are data of the user, which must not appear in stored plans."""


def without_values(text: str) -> str:
    """Returns a statement on one line, with `?` in place of its numbers and quoted texts."""
    return _VALUES.sub("?", " ".join(text.split()))


def planned(session: Session, statement: SentStatement) -> LoadStatement:
    """Returns the statement with its plan. The result has no plan if the statement is of a kind that EXPLAIN does not
    accept, or if EXPLAIN fails.

    Raises psycopg.OperationalError if the session is lost.
    """
    if _EXPLAINED.match(statement.text):
        try:
            plan = _planned(session, statement)
            return plan.model_copy(update={"hides_statements": _hides_statements(session, statement.text)})
        except psycopg.Error:
            if session.closed:
                raise
    return LoadStatement(text=statement.text)


_WRITES = re.compile(r"\b(insert|update|delete|merge)\b", re.IGNORECASE)
_HIDES_STATEMENTS = """SELECT EXISTS (SELECT FROM pg_catalog.pg_proc p
        JOIN pg_catalog.pg_language l ON l.oid = p.prolang
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE l.lanname NOT IN ('internal', 'c') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
            AND p.proname::pg_catalog.text = ANY (%s::pg_catalog.text[]))
    OR %s::pg_catalog.bool AND EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE NOT tgisinternal)"""


def _hides_statements(session: Session, text: str) -> bool:
    """True if the statement names a function that a user has defined, or if it writes and the database has triggers.

    Such functions and triggers may run statements that EXPLAIN does not show.
    """
    words = sorted(set(re.findall(r"\w+", text.lower())))
    return bool(value(session, _HIDES_STATEMENTS, words, _WRITES.search(text) is not None))


def _planned(session: Session, statement: SentStatement) -> LoadStatement:
    parameters = max((int(number) for number in _PARAMETER.findall(statement.text)), default=0)
    if not parameters or statement.sent is not None:
        whole = statement.sent if parameters and statement.sent is not None else statement.text
        with _reading(session):
            plan = _without_costs(_explained(session, whole))
        return LoadStatement(text=statement.text, plan=_shown(plan, statement), chosen="literals")
    if statement.values and statement.protocol != "simple":
        return _chosen(session, statement)
    return LoadStatement(
        text=statement.text, plan=_for_any_values(session, statement.text, parameters), chosen="unknown"
    )


def _chosen(session: Session, statement: SentStatement) -> LoadStatement:
    """Returns the statement with the plan that the server uses after a few executions, and with the plan of the other
    kind (custom or generic), which it did not choose."""
    executions = list(islice(cycle(statement.values), _CHOOSES if statement.protocol == "prepared" else 1))
    with _prepared(session, statement.text):
        plans = [_execution(session, values) for values in executions]
        chosen = plans[-1]
        if session.info.server_version >= _PLAN_CACHE_MODE:
            other = "custom" if chosen.is_generic else "generic"
            session.execute(f"SET LOCAL plan_cache_mode = force_{other}_plan".encode())
            plans.append(_execution(session, executions[-1]))
    not_chosen = next((plan.lines for plan in plans if plan.is_generic != chosen.is_generic), [])
    return LoadStatement(
        text=statement.text,
        plan=_shown(chosen.lines, statement),
        chosen="generic" if chosen.is_generic else "custom",
        not_chosen=_shown(not_chosen, statement),
        planning_ms=min((plan.planning_ms for plan in plans if not plan.is_generic), default=None),
    )


@dataclass(frozen=True)
class _Execution:
    """The plan of one execution of the prepared statement."""

    lines: Sequence[str]
    is_generic: bool
    planning_ms: float


def _execution(session: Session, values: Sequence[str]) -> _Execution:
    """Returns the plan of an execution with these values.

    Before PostgreSQL 14, a generic plan is recognised by the parameters in it; a plan in which none occurs counts as a
    custom plan.
    """
    counts = session.info.server_version >= _COUNTS_PLANS
    before = value(session, _GENERIC_PLANS, _NAME) if counts else 0
    arguments = ", ".join(sql.Literal(text).as_string(session) for text in values)
    timed = "(SUMMARY)" if session.info.server_version >= _TELLS_PLANNING_TIME else ""
    explained = _explained(session, f"EXECUTE {_NAME}({arguments})", timed)
    lines = _without_costs(explained)
    after = value(session, _GENERIC_PLANS, _NAME) if counts else any(map(_PARAMETER.search, lines))
    times = [float(found[1]) for line in explained if (found := _PLANNING_TIME.match(line))]
    return _Execution(lines, is_generic=after > before, planning_ms=sum(times))


_GENERIC_PLANS = "SELECT generic_plans FROM pg_catalog.pg_prepared_statements WHERE name = %s"


def _for_any_values(session: Session, text: str, parameters: int) -> list[str]:
    """Returns the generic plan of a statement. Before PostgreSQL 16, EXPLAIN needs values, and pgtrial gives NULL for
    each of them. NULL matches no row, so PostgreSQL may leave partitions out of the plan; such a plan says nothing
    about other values, and an empty list is returned."""
    if session.info.server_version < _PLAN_CACHE_MODE:
        return []
    with _prepared(session, text):
        if session.info.server_version >= _EXPLAINS_GENERIC:
            # EXPLAIN (GENERIC_PLAN) needs the simple protocol, which would accept several statements; that the text was
            # prepared before proves that it is one statement
            rows = session.execute(f"EXPLAIN (GENERIC_PLAN) {text}".encode(), prepare=False).fetchall()
            return _without_costs([str(line) for (line,) in rows])
        session.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        plan = _without_costs(_explained(session, f"EXECUTE {_NAME}({', '.join(['NULL'] * parameters)})"))
    return [] if any(map(_PRUNED.search, plan)) else plan


def explain(session: Session, text: str, arguments: Sequence[str]) -> list[str]:
    """Returns the plan of a statement; `arguments` are the SQL literals of its parameters. Raises psycopg.Error if
    EXPLAIN fails."""
    if not arguments:
        with _reading(session):
            return _explained(session, text)
    with _prepared(session, text):
        return _explained(session, f"EXECUTE {_NAME}({', '.join(arguments)})")


@contextmanager
def _reading(session: Session) -> Iterator[None]:
    """A context with a read-only transaction, which is rolled back at the end."""
    with session.transaction(force_rollback=True):
        session.execute("SET TRANSACTION READ ONLY")
        yield


@contextmanager
def _prepared(session: Session, text: str) -> Iterator[None]:
    """A context with a read-only transaction in which the statement is prepared. The statement is deallocated at the
    end, since a rollback does not remove it."""
    try:
        with _reading(session):
            session.execute(f"PREPARE {_NAME} AS {text}".encode(), binary=True)
            yield
    finally:
        with suppress(psycopg.Error):
            session.execute(f"DEALLOCATE {_NAME}")


def _explained(session: Session, text: str, options: str = "") -> list[str]:
    # `binary` makes the protocol reject several statements in one text
    rows = session.execute(f"EXPLAIN {options} {text}".encode(), binary=True).fetchall()
    return [str(line) for (line,) in rows]


def nodes_of(plan: Sequence[str]) -> list[str]:
    """Returns the lines of a plan that name its nodes, such as `Index Scan using ...`, without the lines that show
    conditions, such as filters."""
    return [line for line in plan if PLAN_NODE.match(line)]


def _without_costs(explained: Sequence[str]) -> list[str]:
    """Returns a plan without costs and times."""
    return [_COSTS.sub("", line) for line in explained if not _PLANNING_TIME.match(line)]


def _shown(plan: Sequence[str], statement: SentStatement) -> list[str]:
    """Returns the plan as it may be stored: if the values of the statement are data of the user, `?` stands in their
    place."""
    if not statement.hides_values:
        return list(plan)
    return [line if PLAN_NODE.match(line) else _VALUES.sub("?", line) for line in plan]
