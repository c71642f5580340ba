"""The type for what pgtrial knows about the rows of a table: their number, and digests that do not depend on their
order."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record, added


class TableRows(Record):
    """The number and the digest of a table's rows, on one server or in one copy of an arm's data. Equal rows have equal
    digests in all versions of PostgreSQL."""

    rows: int | None = Field(
        None,
        description="The number of rows in the table. In a large table pgtrial looks up only a sample of keys, "
        "and this is the number of keys for which it found a row. None if the rows were not read.",
    )
    digest: str | None = Field(
        None, description="The digest of the rows that `rows` counts, in any order; None if they were not read."
    )
    columns: dict[str, str] = Field(
        {}, description="The digest of each column, by its name. It is computed only if the rows of the arms differ."
    )
    sample: int = Field(
        0, description="The number of keys that were looked up in a large table; 0 if all rows were read."
    )
    estimate: float | None = added(
        None,
        "The number of all rows in a large table, of which only a sample was read, as the statistics of the server "
        "estimate it; None if all rows were read, or if the server has no statistics of the table.",
    )
    changed_by_load: bool = Field(
        False,
        description="True if the load changes the table on a server that pgtrial did not make, so that the "
        "changes of earlier trials stay in the table.",
    )
    unread: str | None = added(
        None, "The server's message if the rows could not be read; None if they were read, or if the record is older."
    )
    has_policies: bool = added(
        False,
        "True if policies of row-level security may hide rows from the role of the load. The rows that this "
        "role sees were read.",
    )
