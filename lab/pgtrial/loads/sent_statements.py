"""The statements that a load sends, found out by a short run of one client, for loads that no file lists."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pgtrial.files.reading import read_text
from pgtrial.loads.engine import EngineRun, FrontEnd, load_command
from pgtrial.model.errors import TrialError
from pgtrial.store.temporary import temporary_folder

_LIMIT_S = 30.0
"""The longest time that the run takes, seconds. Statements that were sent until then count, also if the run fails."""
_LONGEST = 10_000
"""The longest statement that is kept, in characters; longer ones are such as an INSERT of many rows."""


@dataclass(frozen=True)
class SentText:
    """A statement as the engine has sent it once, with its parameters."""

    sql: str
    """The statement as the server parses it, with `$1` where a parameter stands."""
    values: Sequence[str | None]
    """The values of its parameters; None for NULL."""
    sent: str | None
    """The whole text, where the protocol puts the values into it."""


def sent_statements(front_end: FrontEnd, options: Sequence[str], env: Mapping[str, str]) -> list[SentText]:
    """Runs a load that ends by itself, and returns what it sent: each text with its first executions.

    Raises StudyError and StoreError as EngineRun does. A load that fails still returns what it sent.
    """
    with temporary_folder() as folder:
        file = folder / "statements.jsonl"
        command = load_command(front_end, [*options, f"--list-statements={file}"], env)
        with EngineRun(command, env) as run, suppress(TrialError):
            for _ in run.events(time.monotonic() + _LIMIT_S):
                pass
        lines = read_text(file).splitlines() if file.exists() else []
    found = []
    for line in lines:
        with suppress(ValueError):  # the last line of an engine that was killed may be cut
            found.append(SentText(**json.loads(line)))
    return [one for one in found if len(one.sent or one.sql) <= _LONGEST]
