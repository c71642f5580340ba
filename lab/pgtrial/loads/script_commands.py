"""The commands of pgbench scripts as the engine reads them, and one run of a script."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgtrial.loads.engine import EngineRun, FrontEnd, load_command
from pgtrial.loads.process import finished, last_words, starting
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.units import STATEMENT_LENGTH, shortened

_ERROR = "pgbench: error: "


@dataclass(frozen=True)
class ScriptCommand:
    """A statement or a backslash command."""

    line: int
    """The line of the script on which the command begins, counted from 1."""
    text: str
    """The first line of the command."""
    sql: str | None
    """The statement with parameters in the place of variables; None for a backslash command."""
    variables: Sequence[str]
    """The variables for which its parameters stand."""
    values: Sequence[Sequence[str]] = ()
    """The values of its parameters in a client's first transactions.

    Transactions in which only a server or a shell knows a value are left out.
    """
    sent: Sequence[str] = ()
    """The text of a whole transaction, which the simple protocol sends at once."""

    def place_in(self, file: str) -> str:
        """Returns where the command stands in a file: `orders.sql, line 3 (select 1;)`."""
        return f"{file}, line {self.line} ({shortened(' '.join(self.text.split()), STATEMENT_LENGTH)})"


@dataclass(frozen=True)
class ScriptFailure:
    """Why a script did not run to its end."""

    words: str
    sqlstate: str | None = None
    """The SQLSTATE with which the server has refused a statement; None if it has not refused one."""
    command: int | None = None
    """The number of the failed command in the script, counted from 0; None if none was under way."""


def script_commands(options: Sequence[str]) -> list[ScriptCommand]:
    """Returns the commands of the scripts that pgbench's options name.

    Raises StudyError in the engine's words, which begin with the script's path.
    """
    with starting() as engine:
        done = finished([engine, "pgbench", *options, "--list-commands"], {})
    if done.returncode != 0:
        words = [line.removeprefix(_ERROR) for line in done.stderr.splitlines() if line.startswith(_ERROR)]
        raise StudyError(words[-1] if words else last_words(done.stderr.splitlines(), done.returncode))
    commands = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        ScriptCommand(
            command["line"],
            command["text"].strip(),
            command["sql"],
            command["variables"] or [],
            [values for values in command["values"] or [] if None not in values],
            command["sent"] or [],
        )
        for command in commands
    ]


def run_once(
    front_end: FrontEnd, options: Sequence[str], env: Mapping[str, str], limit_s: float
) -> ScriptFailure | None:
    """Runs the front end once, with `options` that limit it to one transaction. Returns why that failed, or None.
    Raises StudyError."""
    failure: ScriptFailure | None = None
    with EngineRun(load_command(front_end, options, env), env) as run:
        try:
            for event in run.events(time.monotonic() + limit_s):
                if event["event"] == "error" and failure is None:
                    words = event["message"].splitlines()[0].removeprefix("ERROR:").strip()
                    failure = ScriptFailure(words, event["sqlstate"], event["command"])
        except TrialError:
            return ScriptFailure(f"it has not ended after {limit_s:.0f}s, the limit of a rehearsal")
        if run.finish() == 0 and failure is None:
            return None
        return failure or ScriptFailure(run.last_words().removeprefix(_ERROR))
