"""What a command prints depends on what it is told of the terminal: tests tell it of none."""

import os

# by these rich and typer take what is no terminal for one, or for a narrow one; typer reads them when it is imported
for _name in (
    "FORCE_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "TERMINAL_WIDTH",
    "COLUMNS",
):
    os.environ.pop(_name, None)
