"""The script of an arm: the keys `workload` and `query` of `[arms.NAME]`, by which arms differ in what clients do."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model import marks
from pgtrial.model.records import Record
from pgtrial.model.study.jobs import is_job
from pgtrial.model.study.keys import Key
from pgtrial.model.study.own_data import ValueColumns

_OTHER_KINDS = ("suite:", "replay:", "pack:")


def own_script(path: str) -> str:
    """Returns the path of a script of pgbench, or of the SQL file of a job. Raises ValueError for any other
    workload."""
    if is_job(path):
        if not path.endswith(".sql"):
            raise ValueError(
                f"{path!r} names no SQL file; an arm's job is job:FILE.sql, and a program that is a job is the same "
                "for all arms"
            )
        return path
    if path.startswith(_OTHER_KINDS) or path.endswith(".lua") or not (path.endswith(".sql") or "/" in path):
        raise ValueError(
            f"{path!r} is no script of pgbench's; an arm's workload is the path of one .sql file, or a job, "
            f"job:FILE.sql, and any other workload is the same for all arms, in {marks.section('load')}"
        )
    return path


def own_query(text: str) -> str:
    """Returns the query. Raises ValueError for an empty one."""
    if not text.strip().strip(";").strip():
        raise ValueError('it is empty; write the statement, query = "select ..."')
    return text


class ScriptKeys(Record):
    """The script of an arm, in place of the load that all arms have."""

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
        description="In an arm: the columns from which variables of its script take their values, "
        '`{ id = "orders_v7.id" }`. They are drawn from the data of this arm; all other variables have the values of '
        "`[load] values`, which are the same in all arms.",
    )
