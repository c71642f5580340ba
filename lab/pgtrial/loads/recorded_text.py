"""Writes recorded statements as SQL that can be run by itself: with the values of their parameters in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from psycopg import sql

from pgtrial.loads.sql_scanner import Scanner

_PARAMETER = re.compile(r"\$(\d+)")


def with_values(text: str, values: Sequence[str | None]) -> str:
    """Returns a statement in which each parameter, such as `$1`, is replaced by its value as an SQL literal.

    The literals have no type, like the values of parameters whose types the client did not send. Nothing is replaced in
    quoted texts and comments. A parameter without a value stays as it is.
    """
    parts: list[str] = []
    position = 0
    for token in Scanner().tokens(text):
        found = _PARAMETER.fullmatch(text, token.start, token.end) if token.kind == "other" else None
        if found is not None and 0 < int(found[1]) <= len(values):
            literal = sql.Literal(values[int(found[1]) - 1]).as_string().strip()
            parts += [text[position : token.start], literal]
            position = token.end
    return "".join([*parts, text[position:]])
