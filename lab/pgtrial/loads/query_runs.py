"""Runs each query of a suite (queries in files, each of which is timed) once, before a study begins, to find queries
that fail."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pgtrial.loads.engine import EngineRun, load_command
from pgtrial.loads.script_commands import ScriptFailure
from pgtrial.model.errors import TrialError


def failed_queries(options: Sequence[str], env: Mapping[str, str], longest_s: float) -> dict[str, ScriptFailure]:
    """Runs each query once, and returns the failures by the name of the query. A query that is cancelled at its time
    limit does not count as failed.

    `options` are the engine's options. Raises StudyError if the engine cannot be started, and TrialError if it fails
    although no query has failed, or if it still runs after `longest_s` seconds.
    """
    failed: dict[str, ScriptFailure] = {}
    with EngineRun(load_command("suite", options, env), env) as run:
        for event in run.events(time.monotonic() + longest_s):
            if event["event"] == "query" and event["message"] is not None:
                words = event["message"].splitlines()[0].removeprefix("ERROR:").strip()
                by_server = state if len(state := event["sqlstate"] or "") == _LENGTH else None
                failed.setdefault(event["query"], ScriptFailure(words, by_server))
        if run.finish() != 0 and not failed:
            raise TrialError(run.last_words())
    return failed


_LENGTH = 5
"""The number of characters of an SQLSTATE, by which a code of the server is told from other codes of the engine."""
