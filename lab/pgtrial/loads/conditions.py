"""The consistency conditions of order entry, checked by the engine before and after a load."""

from __future__ import annotations

from pgtrial.loads.process import engine_path, finished, last_words, starting
from pgtrial.loads.target import Target
from pgtrial.model.errors import TrialError

_VIOLATED = 2
"""The engine's exit status where a condition does not hold."""


def violated_condition(server: Target) -> str | None:
    """The first condition that does not hold, with its number and both values; None if all hold.

    Raises TrialError, and StudyError for an engine that is built for another platform.
    """
    with starting(engine_path()) as engine:
        done = finished([engine, "order-entry", "check"], server.environment())
    if done.returncode == 0:
        return None
    told = [line.partition("error: ")[2] for line in done.stderr.splitlines() if "error: " in line]
    if done.returncode != _VIOLATED or not told:
        said = told[-1] if told else last_words(done.stderr.splitlines(), done.returncode)
        raise TrialError(f"the consistency conditions could not be checked: {said}")
    others = len(told) - 1
    more = f", and {others} more {'does' if others == 1 else 'do'} not hold" if others else ""
    return told[0] + more
