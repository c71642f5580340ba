"""Lists the commands of pgbench scripts, as the engine parses them, and runs a script once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgtrial.loads.engine import EngineRun, FrontEnd, load_command
from pgtrial.loads.process import finished, last_words, starting
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.units import short_statement

_ERROR = "pgbench: error: "


@dataclass(frozen=True)
class ScriptCommand:
    """A command of a script: an SQL statement or a backslash command."""

    line: int
    """The line of the script on which the command begins, counted from 1."""
    text: str
    """The first line of the command's text, for messages."""
    sql: str | None
    """The SQL statement, with parameters in place of variables; None for a backslash command."""
    variables: Sequence[str]
    """The variables of the script in whose places `sql` has parameters, in the order of the parameters."""
    values: Sequence[Sequence[str]] = ()
    """The values of the parameters in the first transactions of one client, one sequence for each transaction.

    Transactions in which a value becomes known only after a query or a shell command has run are left out.
    """
    sent: Sequence[str] = ()
    """The whole text that is sent for the command in each of the first transactions, with the values in it.

    Empty if the values are sent as parameters, beside the text.
    """

    def location_in(self, file: str) -> str:
        """Returns the file, line and text of the command for messages, such as `orders.sql, line 3 (select 1;)`."""
        return f"{file}, line {self.line} ({short_statement(self.text)})"


@dataclass(frozen=True)
class ScriptFailure:
    """The reason why a script, or a query, did not run to its end."""

    words: str
    sqlstate: str | None = None
    """The SQLSTATE with which the server rejected a statement; None if the server rejected none."""
    command: int | None = None
    """The position of the failed command in the script, counted from 0; None if no command was running."""


def script_commands(options: Sequence[str]) -> list[ScriptCommand]:
    """Returns the commands of the scripts that these options of pgbench name.

    Raises StudyError with the engine's message, which begins with the path of the script.
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
    """Runs a front end of the engine once, with `options` that limit it to one transaction. Returns why the transaction
    failed, or None if it succeeded. Raises StudyError if the engine cannot be started."""
    failure: ScriptFailure | None = None
    with EngineRun(load_command(front_end, options, env), env) as run:
        try:
            for event in run.events(time.monotonic() + limit_s):
                if event["event"] == "error" and failure is None:
                    words = event["message"].splitlines()[0].removeprefix("ERROR:").strip()
                    failure = ScriptFailure(words, event["sqlstate"], event["command"])
        except TrialError:
            return ScriptFailure(f"it was still running after {limit_s:.0f}s, the time limit of a rehearsal")
        if run.finish() == 0 and failure is None:
            return None
        return failure or ScriptFailure(run.last_words().removeprefix(_ERROR))
