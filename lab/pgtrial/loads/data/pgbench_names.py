"""Finds out whether a script of pgbench names pgbench's own tables in its SQL."""

from __future__ import annotations

import re

from pgtrial.loads.sql_scanner import Scanner

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

_META_COMMAND = re.compile(r"^[ \t]*\\(?:[^\n\\]|\\(?!\n)|\\\n)*$", re.MULTILINE)
"""Matches a meta-command: a line that begins with a backslash; a backslash at its end continues it."""


def names_tables(script: str) -> bool:
    """True if the SQL of a script names one of the tables; comments, quoted texts and meta-commands do not count.

    The body of a DO or CREATE FUNCTION is a quoted text that is run, and counts.
    """
    return _names_tables(_META_COMMAND.sub("", script), runs_texts=False)


def _names_tables(text: str, *, runs_texts: bool) -> bool:
    first = ""
    for token in Scanner().tokens(text):
        part = text[token.start : token.end]
        match token.kind:
            case "end":
                first = ""
            case "quoted" if part.startswith('"'):
                if part[1:-1] in TABLES:
                    return True
            case "quoted" if runs_texts or first in ("do", "create"):
                if _names_tables(_unquoted(part), runs_texts=True):
                    return True
            case "other":
                first = first or part.lower()
                if part.lower() in TABLES:
                    return True
    return False


def _unquoted(quoted: str) -> str:
    """Returns the inside of a text in quotes or dollar quotes."""
    if quoted.startswith("$"):
        mark = quoted[: quoted.index("$", 1) + 1]
        return quoted.removeprefix(mark).removesuffix(mark)
    return quoted[quoted.index("'") + 1 :].removesuffix("'").replace("''", "'")
