"""Checks whether the SQL of a pgbench script names pgbench's own tables."""

from __future__ import annotations

import re

from pgtrial.loads.sql_scanner import Scanner

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

_META_COMMAND = re.compile(r"^[ \t]*\\(?:[^\n\\]|\\(?!\n)|\\\n)*$", re.MULTILINE)
"""Matches a meta-command: a line that begins with a backslash. A backslash at the end of the line continues the command
on the next line."""


def names_tables(script: str) -> bool:
    """True if the SQL of a script names one of pgbench's tables. Names in comments, quoted texts and meta-commands do
    not count.

    The body of DO or CREATE FUNCTION is a quoted text too, but it is code that is run, so names in it count.
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
    """Returns the content of a text in single quotes or dollar quotes."""
    if quoted.startswith("$"):
        mark = quoted[: quoted.index("$", 1) + 1]
        return quoted.removeprefix(mark).removesuffix(mark)
    return quoted[quoted.index("'") + 1 :].removesuffix("'").replace("''", "'")
