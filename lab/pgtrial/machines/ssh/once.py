"""Commands that are carried out once, also when the connection drops while they run.

Such a command is a *job*: a directory on the host with its script, its output and, when it has ended, its status. It
is begun by whoever makes the directory; a lab that asks again after a drop waits for the job instead of beginning anew.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path

LOST = 255
"""Status of a job of which the end is not known."""

_POLL_S = 0.1
_POLLS_WITHOUT_PROCESS = 100
"""After these a job that has no process yet will not get one: the connection dropped just then."""

_JOB = """{{
{remove}
mask=$(umask)
umask 077
if mkdir {home} 2>/dev/null
then
cd {home} || exit {lost}
cat > script <<'{end}'
{script}
{end}
echo $$ > pid
(umask "$mask"; exec /bin/sh {home}/script) </dev/null >out 2>err
echo $? > status.new
mv status.new status
else
cd {home} || exit {lost}
polls=0
while [ ! -f status ]
do
if [ -s pid ]
then kill -0 "$(cat pid)" 2>/dev/null || [ -f status ] || exit {lost}
else polls=$((polls + 1)); [ $polls -lt {patience} ] || exit {lost}
fi
sleep {poll}
done
fi
cat out
cat err >&2
read -r status < status
exit $status
}}
"""

_END_ALL = """{{
tree() {{
    kill -STOP "$1" 2>/dev/null
    for child in $(ps -A -o pid= -o ppid= | awk -v parent="$1" '$2 == parent {{ print $1 }}'); do tree "$child"; done
    kill -9 "$1" 2>/dev/null
}}
for job in {jobs}/*
do
    [ -s "$job/pid" ] && [ ! -f "$job/status" ] && tree "$(cat "$job/pid")"
done
rm -rf {jobs}
}}
"""
"""What runs is stopped before its children are looked for: it would go on with its next command when one is killed."""


def job(script: str, home: Path, done_with: Sequence[Path] = ()) -> str:
    """The script that carries another one out once with `home` as its directory, or waits for its end.

    It prints what that one printed and ends with its status, or with LOST. Jobs that are `done_with` are removed.
    """
    return _JOB.format(
        remove=f"rm -rf {shlex.join(str(path) for path in done_with)}" if done_with else ":",
        home=shlex.quote(str(home)),
        script=script.removesuffix("\n"),
        end=f"end-{secrets.token_hex(8)}",
        lost=LOST,
        poll=_POLL_S,
        patience=_POLLS_WITHOUT_PROCESS,
    )


def end_all(jobs: Path) -> str:
    """The script that ends the jobs below a directory that still run, and removes it."""
    return _END_ALL.format(jobs=shlex.quote(str(jobs)))
