"""Checks of SQL that the user writes into the study file as text, such as `query` and `setup_sql`."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/", re.DOTALL)
"""Matches a comment that contains no other comment. Comments within `/*` and `*/` can be nested in SQL."""


def has_statement(sql: str) -> bool:
    """True if an SQL text has more than white space, comments and semicolons."""
    while (without := _COMMENT.sub(" ", sql)) != sql:
        sql = without
    return bool(sql.replace(";", "").strip())


def own_query(text: str) -> str:
    """Returns the query unchanged. Raises ValueError if it has no statement."""
    if not has_statement(text):
        raise ValueError('the query is empty; write the statement, such as query = "select ..."')
    return text
