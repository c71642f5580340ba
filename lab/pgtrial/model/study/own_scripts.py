"""The keys `workload` and `query` of `[arms.NAME]`, with which each arm gets a script or query of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model import marks
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.jobs import is_job
from pgtrial.model.study.keys import Key
from pgtrial.model.study.own_data import ValueColumns
from pgtrial.model.study.sql_texts import own_query

_OTHER_KINDS = ("suite:", "replay:", "pack:")


def own_script(path: str) -> str:
    """Returns the path of a pgbench script, or the name of a job with an SQL file, unchanged. Raises ValueError for any
    other workload."""
    if is_job(path):
        if not path.endswith(".sql"):
            raise ValueError(
                f"{quoted(path)} names no SQL file; an arm's job is job:FILE.sql, and a program that is a job must be "
                "the same for all arms"
            )
        return path
    if path.startswith(_OTHER_KINDS) or path.endswith(".lua") or not (path.endswith(".sql") or "/" in path):
        raise ValueError(
            f"{quoted(path)} is not a pgbench script; an arm's workload is the path of one .sql file, or a job, "
            f"job:FILE.sql; any other workload must be the same for all arms and belongs in {marks.section('load')}"
        )
    return path


class ScriptKeys(Record):
    """The keys of an arm that replace the load of all arms by a script, query or job of the arm's own."""

    workload: Annotated[Annotated[str, AfterValidator(own_script)] | None, Key(shows=("load.script",))] = Field(
        None,
        description="In an arm: the path of a pgbench [script](tutorials/own-query.md#4-two-forms-of-a-query) "
        "that only this arm runs, `new.sql`, or a [job](jobs.md#two-jobs), `job:new.sql`. The rest of the load is the "
        "same for all arms.",
    )
    query: Annotated[Annotated[str, AfterValidator(own_query)] | None, Key(shows=("load.script",))] = Field(
        None, description="In an arm: an SQL query that only this arm runs, in place of `workload`."
    )
    values: Annotated[ValueColumns | None, Key(shows=("load.values",))] = Field(
        None,
        description="In an arm: the columns from which variables of the arm's script take their values, `{ id = "
        '"orders_v7.id" }`. The values are drawn from the data of this arm; all other variables have the values of '
        "`[load] values`, which are the same in all arms.",
    )
