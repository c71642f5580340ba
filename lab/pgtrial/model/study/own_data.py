"""The keys `data`, `query` and `values` of `[load]`, with which users bring their own data, a query, and columns for
its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.units import Whole, variables

QUERY = "query.sql"
"""The name of the script that pgtrial makes from the key `query` of `[load]`."""

QUERY_OF_ARM = ".query.sql"
"""The end of the name of a script that pgtrial makes from the key `query` of an arm. The name of the arm comes before
it."""

NOT_FOR_OWN_DATA = {
    "scale": "it is the size of tables that pgtrial makes",
    "fillfactor": "it is for tables that pgtrial makes",
    "foreign_keys": "they are for tables that pgtrial makes",
}
"""The keys of `[load]` that do not apply to the user's own data, each with the reason."""

_NAME = r'(?:[^\W\d][\w$]*|"(?:[^"]|"")+")'
_COLUMN = re.compile(rf"({_NAME}(?:\.{_NAME})?)\.({_NAME})")


def is_query(script: str) -> bool:
    """True if pgtrial made the script from a query of the user (the key `query`). Such a script should only read data:
    pgtrial warns if it changes any."""
    return script == QUERY or script.endswith(QUERY_OF_ARM)


class DataFiles(Record):
    """The checksum and the size that the user's own data had when the study was planned."""

    sha256: str = Field(
        description="The checksum of the files of the user's data. For a database that pgtrial dumps, a random "
        "name for the dump."
    )
    size: Whole = Field(description="The size of the files of the user's data in bytes; 0 if it is not known.")


def column_parts(column: str) -> tuple[str, str] | None:
    """Returns the table and the column that a text such as `orders.id` or `shop.orders.id` names, as SQL writes them;
    None if the text does not name a column."""
    match = _COLUMN.fullmatch(column)
    return (match[1], match[2]) if match is not None else None


def _columns(values: dict[str, str]) -> dict[str, str]:
    for name, column in variables(values).items():
        if column_parts(column) is None:
            raise ValueError(f'{quoted(column)} is not a column; write the table and the column: {name} = "orders.id"')
    return values


def _data(data: list[str]) -> list[str]:
    if not all(text.strip() for text in data):
        raise ValueError("a path in the list is empty; write the path of a dump or of an SQL file")
    if len(data) > 1 and any(map(names_server, data)):
        raise ValueError(
            "a connection string must be the only item, because its database is dumped as a whole; "
            "remove the other items"
        )
    return data


def name_of_data(data: Sequence[str]) -> str:
    """Returns the name of data that come from files, for people: `schema.sql + rows.sql`."""
    return " + ".join(PurePosixPath(path).name for path in data)


OwnData = Annotated[list[str], AfterValidator(_data)]
ValueColumns = Annotated[dict[str, str], AfterValidator(_columns)]

_WEIGHTED = re.compile(r"(.+\.sql)=(\d{1,6})")


def weight_of(workload: str) -> tuple[str, int | None]:
    """Returns the path and the weight of a script such as `b.sql=3`. The weight is None if the text has none."""
    match = _WEIGHTED.fullmatch(workload)
    return (match[1], int(match[2])) if match is not None else (workload, None)


def objections_to_weights(workloads: list[str]) -> Iterator[str]:
    """Yields an objection, as the rest of a sentence, for each mistake in a list of scripts in which some have
    weights."""
    weights = [weight_of(workload) for workload in workloads]
    if all(weight is None for _, weight in weights):
        return
    for path, weight in weights:
        if weight is None and not path.endswith(".sql"):
            yield f"{path} cannot be mixed with scripts that have weights; give it a study of its own"
    if not any(weight is None or weight for _, weight in weights):
        yield "every script has the weight 0; give one of them a larger weight, such as b.sql=3"
