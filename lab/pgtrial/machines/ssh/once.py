"""Commands that are carried out once, also when the connection drops while they run.

Such a command is a *job*: a directory on the host with its script, its output and, when it has ended, its status. It
is begun by whoever makes the directory; a lab that asks again after a drop waits for the job instead of beginning anew.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path

from pgtrial.model.resources import filled, resource

LOST = 255
"""Status of a job of which the end is not known."""

_POLL_S = 0.1
_POLLS_WITHOUT_PROCESS = 100
"""After these a job that has no process yet will not get one: the connection dropped just then."""

_JOB = resource("job.sh", __package__)
_END_JOBS = resource("end_jobs.sh", __package__)
"""What runs is stopped before its children are looked for: it would go on with its next command when one is killed."""


def job(script: str, home: Path, done_with: Sequence[Path] = ()) -> str:
    """The script that carries another one out once with `home` as its directory, or waits for its end.

    It prints what that one printed and ends with its status, or with LOST. Jobs that are `done_with` are removed.
    """
    return filled(
        _JOB,
        remove=f"rm -rf {shlex.join(str(path) for path in done_with)}" if done_with else ":",
        home=shlex.quote(str(home)),
        end=f"end-{secrets.token_hex(8)}",
        lost=LOST,
        poll=_POLL_S,
        patience=_POLLS_WITHOUT_PROCESS,
        script=script.removesuffix("\n"),
    )


def end_all(jobs: Path) -> str:
    """The script that ends the jobs below a directory that still run, and removes it."""
    return filled(_END_JOBS, jobs=shlex.quote(str(jobs)))
