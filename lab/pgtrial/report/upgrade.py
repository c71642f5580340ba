"""The report of a rehearsal of an upgrade: what breaks, what gets other rows, what gets another plan, and what gets
slower, in this order, for the terminal, as Markdown and as an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.upgrade import (
    ArmName,
    NewError,
    OnNew,
    OtherPlan,
    OtherRows,
    RehearsedStatement,
    TimedStatement,
    TimedStatements,
    Upgrade,
    UpgradedArm,
)
from pgtrial.model.units import format_duration, plural, short_statement
from pgtrial.report.html import static_page
from pgtrial.report.markdown import escaped, table_lines
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.plans import side_by_side
from pgtrial.report.tables.results import milliseconds
from pgtrial.report.words import query_times_as_long

_Finding = TypeVar("_Finding")

_NULL = "NULL"
_UPGRADED: ArmName = "pg_upgraded"
_ANALYSED: ArmName = "pg_upgraded, analysed"


@dataclass(frozen=True)
class Part:
    """A part of the report: its title, sentences, and tables."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[Table[Any]] = ()
    plans: Sequence[Table[Any]] = ()
    """The plans that differ, side by side. The terminal does not show them."""


@dataclass(frozen=True)
class _Found(Generic[_Finding]):
    """A finding about a statement, with the arms of the new version that have it."""

    statement: RehearsedStatement
    arms: Sequence[ArmName]
    finding: _Finding


def times_in(directory: str, result: StudyResult, *, plans_differ: bool) -> TimedStatements:
    """Returns the times of the statements that a study has measured. `directory` is the name of the study's directory,
    and `plans_differ` is true if it is the study of the statements whose plans differ."""
    timed = [
        TimedStatement(
            name=claim.query,
            old_us=claim.time_us.get(claim.baseline),
            new_us=claim.time_us.get(claim.arm),
            verdict=claim.verdict,
            is_slower=claim.is_slower,
            factor=query_times_as_long(claim),
        )
        for claim in result.queries
        if claim.query is not None
    ]
    return TimedStatements(directory=directory, plans_differ=plans_differ, statements=timed)


def exit_status(upgrade: Upgrade) -> int:
    """Returns the exit status of a rehearsal: 1 if something breaks, returns other rows or gets slower, otherwise 2 if
    something was not compared or is undecided, otherwise 0."""
    if _failed(upgrade) or _errors(upgrade) or _rows(upgrade) or _slow(upgrade):
        return 1
    not_compared = len(_compared(upgrade)) < len(upgrade.statements)
    return 2 if _undecided(upgrade) or not_compared or upgrade.no_times is not None else 0


def headline(upgrade: Upgrade) -> str:
    """Returns the findings as a sentence of counts: `From 15.18 to 18.6: of 12 statements 1 breaks, ...`."""
    counts = {
        "breaks": ("break", _names(_errors(upgrade))),
        "gets other rows": ("get other rows", _names(_rows(upgrade))),
        "gets another plan": ("get another plan", _names(_plans(upgrade))),
        "gets slower": ("get slower", {statement.name for statement in _slow(upgrade)}),
    }
    found = [f"{len(names)} {one if len(names) == 1 else many}" for one, (many, names) in counts.items() if names]
    versions = f"From {upgrade.old} to {upgrade.new}"
    if not upgrade.statements:
        return f"{versions}: the new version refuses the data, so that no statement was compared"
    compared = _compared(upgrade)
    is_known = bool(upgrade.times) and upgrade.no_times is None and not _undecided(upgrade)
    none = f"none breaks or gets other rows{', another plan or slower' if is_known else ' or another plan'}"
    of = (
        f"of {plural(len(compared), 'statement')} {', '.join(found) or none}"
        if compared
        else "no statement was compared"
    )
    return f"{versions}: {'; '.join([*_failed_ways(upgrade), of, *_unknown(upgrade)])}"


def _failed_ways(upgrade: Upgrade) -> Iterator[str]:
    """Yields clauses on the ways in which the new version did not get its data."""
    failed = {arm.name for arm in _failed(upgrade)}
    if failed - {_ANALYSED}:
        yield "the data are refused in one of two ways"
    if _ANALYSED in failed:
        yield "ANALYZE fails after pg_upgrade"


def _unknown(upgrade: Upgrade) -> Iterator[str]:
    """Yields clauses on what was not found out."""
    compared = _compared(upgrade)
    if compared and (left := len(upgrade.statements) - len(compared)):
        yield f"{left} {'was' if left == 1 else 'were'} not compared"
    if undecided := len(_undecided(upgrade)):
        yield f"{undecided} {'is' if undecided == 1 else 'are'} undecided"
    if not upgrade.times:
        yield "no times were measured"
    elif upgrade.no_times is not None:
        yield "not all times were measured"


def parts(upgrade: Upgrade) -> list[Part]:
    """Returns the parts of the report, in the order in which a reader needs them. A part without a finding says so in a
    sentence. If no statement was compared, only the part on what breaks is left."""
    if not upgrade.statements:
        return [_breaking(upgrade), *_uncompared(upgrade)]
    return [_breaking(upgrade), _other_rows(upgrade), _other_plans(upgrade), _slower(upgrade), *_uncompared(upgrade)]


def as_markdown(upgrade: Upgrade) -> str:
    """Returns the report as Markdown."""
    return "\n".join(_markdown(upgrade)).rstrip() + "\n"


def as_page(upgrade: Upgrade) -> str:
    """Returns the report as an HTML page in one file."""
    return static_page(
        "upgrade.html.j2", title=_title(upgrade), headline=headline(upgrade), parts=parts(upgrade), how=_how(upgrade)
    )


def _markdown(upgrade: Upgrade) -> Iterator[str]:
    yield f"# {escaped(_title(upgrade))}\n"
    yield f"**{escaped(headline(upgrade))}**\n"
    for part in parts(upgrade):
        yield f"## {part.title}\n"
        for sentence in part.sentences:
            yield f"{escaped(sentence)}\n"
        for table in (*part.tables, *part.plans):
            yield from table_lines(table)
    yield "## How it was compared\n"
    yield from (f"- {escaped(sentence)}" for sentence in _how(upgrade))


def _title(upgrade: Upgrade) -> str:
    return f"Upgrade from PostgreSQL {upgrade.old} to {upgrade.new}"


def _found(upgrade: Upgrade, finding_of: Callable[[OnNew], _Finding | None]) -> list[_Found[_Finding]]:
    """Returns the findings of one kind. Arms on which a statement shows the same are put together."""
    found: list[_Found[_Finding]] = []
    for statement in upgrade.statements:
        arms: list[tuple[_Finding, list[ArmName]]] = []
        for arm, on_new in statement.on.items():
            if (finding := finding_of(on_new)) is not None:
                same = next((of for known, of in arms if known == finding), None)
                if same is None:
                    arms.append((finding, [arm]))
                else:
                    same.append(arm)
        found += [_Found(statement, of, finding) for finding, of in arms]
    return found


def _errors(upgrade: Upgrade) -> list[_Found[NewError]]:
    return _found(upgrade, lambda on_new: on_new.error)


def _rows(upgrade: Upgrade) -> list[_Found[OtherRows]]:
    return _found(upgrade, lambda on_new: on_new.rows)


def _plans(upgrade: Upgrade) -> list[_Found[OtherPlan]]:
    return _found(upgrade, lambda on_new: on_new.plan)


def _names(found: Sequence[_Found[Any]]) -> set[str]:
    return {one.statement.name for one in found}


def _timed(upgrade: Upgrade) -> list[TimedStatement]:
    return [statement for study in upgrade.times for statement in study.statements]


def _undecided(upgrade: Upgrade) -> list[TimedStatement]:
    return [statement for statement in _timed(upgrade) if statement.verdict in ("undecided", "withheld")]


def _compared(upgrade: Upgrade) -> list[RehearsedStatement]:
    return [statement for statement in upgrade.statements if statement.not_compared is None]


def _nothing(upgrade: Upgrade, sentence: str) -> str:
    """Returns the sentence that says that a part has no finding, if any statement was compared."""
    return sentence if _compared(upgrade) else "No statement was compared."


@dataclass(frozen=True)
class _Slow:
    """A statement that is slower on the new version."""

    name: str
    text: str
    plan: str
    old: str | None
    new: str | None
    how: str


def _slow(upgrade: Upgrade) -> list[_Slow]:
    """Returns the statements that were cancelled on the new version only, and those that are slower in the studies of
    times."""
    with_other_plan = _names(_plans(upgrade))
    cancelled = {
        statement.name: f"cancelled after {format_duration(upgrade.limit_s)}"
        for statement in upgrade.statements
        if any(on_new.over_limit for on_new in statement.on.values()) and not _ends_after_analyze(statement)
    }
    timed = {statement.name: statement for statement in _timed(upgrade)}
    slow = []
    for statement in upgrade.statements:
        measured = timed.get(statement.name)
        how = cancelled.get(statement.name) or (
            measured.factor if measured is not None and measured.is_slower else None
        )
        if how is not None:
            plan = "other" if statement.name in with_other_plan else "same"
            times = (measured.old_us, measured.new_us) if measured is not None else (None, None)
            old, new = (None if time_us is None else milliseconds(time_us) for time_us in times)
            slow.append(_Slow(statement.name, _text(statement), plan, old, new, how))
    return slow


def _ends_after_analyze(statement: RehearsedStatement) -> bool:
    """True if a statement exceeds the limit only between pg_upgrade and the first ANALYZE."""
    exceeded = [arm for arm, on_new in statement.on.items() if on_new.over_limit]
    return exceeded == [_UPGRADED] and _ANALYSED in statement.on


def _refused_data(upgrade: Upgrade) -> list[str]:
    """Returns why the new version refused the data, for each way in which it could have got them."""
    return [f"The data, {arm.name}: {arm.failure}." for arm in _failed(upgrade)]


def _failed(upgrade: Upgrade) -> list[UpgradedArm]:
    """Returns the arms of the new version that did not get their data, without those that were not tried."""
    return [arm for arm in upgrade.arms if arm.failure is not None and not arm.is_absent]


def _usable(upgrade: Upgrade) -> list[ArmName]:
    """Returns the arms of the new version that got their data."""
    return [arm.name for arm in upgrade.arms if arm.failure is None]


def _breaking(upgrade: Upgrade) -> Part:
    errors, sentences = _errors(upgrade), _refused_data(upgrade)
    if not errors and not sentences:
        sentences = [_nothing(upgrade, f"No statement that runs on {upgrade.old} fails on {upgrade.new}.")]
    return Part(
        "What breaks",
        sentences,
        _table(
            f"Statements that run on {upgrade.old} and fail on {upgrade.new}.",
            upgrade,
            errors,
            Column("SQLSTATE", lambda row: row.finding.sqlstate),
            Column("error", lambda row: row.finding.message),
        ),
    )


def _other_rows(upgrade: Upgrade) -> Part:
    rows = _rows(upgrade)
    varying = [statement.name for statement in upgrade.statements if statement.rows_vary]
    sentences = [] if rows else [_nothing(upgrade, "No statement returns or changes other rows.")]
    if varying:
        sentences.append(
            f"The rows of {', '.join(varying)} differ between two executions on the same version, so that at most "
            "their number was compared."
        )
    return Part(
        "What gets other rows",
        sentences,
        _table(
            "Statements with other rows in any order, and the first value, row or column in which they differ.",
            upgrade,
            rows,
            number(f"rows in {upgrade.old}", lambda row: row.finding.old_rows, ","),
            number(f"in {upgrade.new}", lambda row: row.finding.new_rows, ","),
            Column("first difference", lambda row: _difference(upgrade, row.finding)),
        ),
    )


def _difference(upgrade: Upgrade, rows: OtherRows) -> str:
    if rows.old_columns or rows.new_columns:
        return f"the columns {', '.join(rows.old_columns)}, and now {', '.join(rows.new_columns)}"
    if rows.column is not None:
        old, new = (_NULL if value is None else value for value in (rows.old_value, rows.new_value))
        in_one_line = [" ".join(value.split()) for value in (old, new)]
        if in_one_line[0] != in_one_line[1]:
            old, new = in_one_line
        return f"{rows.column}: {old}, and now {new}"
    if rows.row is not None:
        only = upgrade.old if rows.old_rows > rows.new_rows else upgrade.new
        return f"only in {only}: {rows.row}"
    return "the number of rows"


def _other_plans(upgrade: Upgrade) -> Part:
    plans = _plans(upgrade)
    tables = _table(
        "Statements with another plan, and the first node in which the plans differ.",
        upgrade,
        plans,
        Column(f"node in {upgrade.old}", lambda row: row.finding.at_old),
        Column(f"in {upgrade.new}", lambda row: row.finding.at_new),
    )
    shown = [
        side_by_side(
            f"Plans of {one.statement.name} ({'; '.join(one.arms)})",
            [upgrade.old, upgrade.new],
            [one.finding.old, one.finding.new],
        )
        for one in plans
    ]
    none = [_nothing(upgrade, "No statement has another plan, as far as EXPLAIN shows plans.")]
    return Part("What gets another plan", [] if plans else none, tables, shown)


def _slower(upgrade: Upgrade) -> Part:
    slow, timed = _slow(upgrade), _timed(upgrade)
    sentences = []
    if timed:
        faster = sum(statement.verdict == "better" for statement in timed)
        undecided = len(_undecided(upgrade))
        measured = f"{plural(len(timed), 'statement')} measured"
        sentences.append(
            f"Of {measured}, {len(slow) or 'none'} got slower and {faster or 'none'} faster; "
            f"{undecided or 'none'} {'is' if undecided == 1 else 'are'} undecided."
        )
    if early := [statement.name for statement in upgrade.statements if _ends_after_analyze(statement)]:
        sentences.append(
            f"Between pg_upgrade and ANALYZE {', '.join(early)} took longer than {format_duration(upgrade.limit_s)}."
        )
    for study in upgrade.times:
        which = "another plan" if study.plans_differ else "the same plan"
        sentences.append(f"The study of the statements with {which} is in {study.directory}.")
    if upgrade.no_times is not None:
        sentences.append(f"Not all times were measured: {upgrade.no_times}.")
    if not upgrade.times and not upgrade.times_asked:
        sentences.append("No times were measured, as the option --no-times asks.")
    columns: list[Column[_Slow]] = [
        Column("statement", lambda row: row.name, whole=True),
        Column("text", lambda row: row.text),
        Column("plan", lambda row: row.plan),
        number(f"{upgrade.old}, ms", lambda row: row.old),
        number(f"{upgrade.new}, ms", lambda row: row.new),
        Column("slower", lambda row: row.how),
    ]
    return Part(
        "What gets slower",
        sentences,
        [Table("Slower statements, with their times in the median trial.", slow, columns)] if slow else [],
    )


def _uncompared(upgrade: Upgrade) -> Iterator[Part]:
    """Yields the part on what was not compared, if there is anything."""
    uncompared = [statement for statement in upgrade.statements if statement.not_compared is not None]
    absent = [f"{arm.name}: {arm.failure}." for arm in upgrade.arms if arm.is_absent]
    left_out = [f"Left out: {text}." for text in upgrade.left_out]
    if not (uncompared or absent or left_out):
        return
    columns: list[Column[RehearsedStatement]] = [
        Column("statement", lambda statement: statement.name, whole=True),
        Column("text", _text),
        Column("why", lambda statement: statement.not_compared),
    ]
    tables = [Table("Statements that were not compared.", uncompared, columns)] if uncompared else []
    yield Part("What was not compared", [*absent, *left_out], tables)


def _how(upgrade: Upgrade) -> Iterator[str]:
    """Yields sentences on how the versions were compared."""
    yield f"Both versions had the data of {', '.join(upgrade.data)}."
    yield f"The statements come from {upgrade.source}. The folder statements has each of them in a file."
    arms = "; ".join(_usable(upgrade)) or "none"
    yield f"Arms of the new version, by the way in which it got the data: {arms}."
    yield (
        f"Each statement ran once on each arm, for at most {format_duration(upgrade.limit_s)}, in a transaction that "
        "was rolled back. Rows are compared in any order, and floating-point numbers by their first digits. If rows "
        "differed, both versions executed the statement once more, since rows may depend on chance or on the time."
    )
    yield (
        "Plans are those of EXPLAIN. They differ if a node or the kind of a condition differs; costs, estimates and "
        "the texts of conditions are not compared."
    )
    yield f"pgtrial {upgrade.pgtrial}, {upgrade.created}."


def _table(caption: str, upgrade: Upgrade, found: Sequence[_Found[Any]], *columns: Column[Any]) -> list[Table[Any]]:
    """Returns a table of findings with the columns that all of them have, and with these further columns; no table if
    there is no finding."""
    if not found:
        return []
    usable = _usable(upgrade)
    known: list[Column[Any]] = [
        Column("statement", lambda row: row.statement.name, whole=True),
        Column("text", lambda row: _text(row.statement)),
    ]
    if any(list(row.arms) != usable for row in found):
        known.append(Column("arms", lambda row: "all" if list(row.arms) == usable else "; ".join(row.arms)))
    if any(row.statement.executions is not None for row in found):
        known.append(number("executions", lambda row: row.statement.executions, ","))
    return [Table(caption, found, [*known, *columns])]


def _text(statement: RehearsedStatement) -> str:
    return short_statement(statement.text.strip().removesuffix(";"))
