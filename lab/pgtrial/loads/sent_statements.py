"""Finds the statements that a load sends by a short run with one client, for loads whose statements no file lists."""

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
"""The longest time that the run may take, in seconds. The statements that were sent until then are returned even if the
run fails."""
_LONGEST = 10_000
"""The length, in characters, beyond which a statement is left out of the result. Statements of this length are usually
an INSERT of many rows."""


@dataclass(frozen=True)
class SentText:
    """A statement as the engine sent it once, with the values of its parameters."""

    sql: str
    """The statement as the server parses it, with `$1` in place of the first parameter."""
    values: Sequence[str | None]
    """The values of the parameters; None for NULL."""
    sent: str | None
    """The whole text that was sent, if the protocol inserts the values into the text (the simple protocol); else
    None."""


def sent_statements(front_end: FrontEnd, options: Sequence[str], env: Mapping[str, str]) -> list[SentText]:
    """Runs a load that ends by itself after a few transactions, and returns the statements that it sent: each distinct
    text with its first few executions.

    Raises StudyError if the engine cannot be started, and StoreError if no temporary folder can be created. If the load
    fails, the statements that it sent until then are returned.
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
        with suppress(ValueError):  # if the engine was killed, its last line may be incomplete
            found.append(SentText(**json.loads(line)))
    return [one for one in found if len(one.sent or one.sql) <= _LONGEST]
