"""The commands of the documentation's pages, as a reader copies them: whole shell blocks, in their order."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commands_of(page: str) -> list[str]:
    """Returns the commands in the shell blocks of a page; one with a here-document has all its lines."""
    text = (ROOT / page).read_text()
    found: list[str] = []
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        open_end = False
        for line in block.splitlines():
            if open_end or (found and found[-1].endswith("\\")):
                found[-1] += f"\n{line}"
                open_end = open_end and line != "END"
            elif line and not line.startswith("#"):
                found.append(line)
                open_end = line.endswith("<<'END'")
    return found


def command_of(page: str, words: str) -> str:
    """Returns the one command of a page that has these words. Fails if the page has none, or several."""
    (command,) = [command for command in commands_of(page) if words in command]
    return command
