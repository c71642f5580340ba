"""sysbench and the engine side by side: how they are run, and what of their words is measured."""

from __future__ import annotations

import re
from pathlib import Path

from pgtrial.loads.target import Target
from tests.conftest import require, require_engine
from tests.engine.programs import Program

SYSBENCH = Path("/usr/bin/sysbench")
"""The original: Debian's package, release 1.0.20."""


class Side(Program):
    """sysbench, or what claims to be: told the server by options, and at home in the directory that it runs in."""

    def _led(self, target: Target, directory: Path | None) -> tuple[list[str], dict[str, str]]:
        where = [f"--pgsql-host={target.host}", f"--pgsql-port={target.port}"]
        who = [f"--pgsql-user={target.user}", f"--pgsql-db={target.dbname}"]
        return [*where, *who], {"HOME": str(directory)}


def original() -> Side:
    """Returns sysbench 1.0.20 with its PostgreSQL driver, which is not its default, or skips the test."""
    require(SYSBENCH.exists(), f"{SYSBENCH} (Debian's package sysbench)")
    return Side("original", (str(SYSBENCH), "--db-driver=pgsql"))


def ours() -> Side:
    """Returns the engine's front end for sysbench, or skips the test."""
    return Side("ours", (str(require_engine()), "sysbench"))


def _in_place(match: re.Match[str]) -> str:
    """Returns a `#` in place of a right-aligned number, with blanks before it so that the column keeps its width."""
    return match[1] + "#".rjust(len(match[2]))


_INTERVAL = (
    r"^\[ (\d+)s \] (thds: \d+) tps: \d+\.\d\d qps: \d+\.\d\d \(r/w/o: \d+\.\d\d/\d+\.\d\d/\d+\.\d\d\)"
    r" (lat \(ms,\d+%\)): \d+\.\d\d err/s(:?) \d+\.\d\d reconn/s: \d+\.\d\d$"
)
# What is measured, and so differs from run to run. Everything else, blanks and digits after the point included, has to
# be the same: counts of a run that is limited by its events, widths of columns.
_MEASURED = [
    (r"\(\d+\.\d\d per sec\.\)", "(#.00 per sec.)"),
    (r"^(    total time: +)\d+\.\d{4}s$", r"\1#.0000s"),
    (r"^( +(?:min|avg|max|sum|\d+..? percentile):)( +\d+\.\d\d)$", _in_place),
    (r"^(    events \(avg/stddev\): +\d+\.\d{4})/\d+\.\d\d$", r"\1/#.00"),
    (r"^(    execution time \(avg/stddev\): +)\d+\.\d{4}/\d+\.\d\d$", r"\1#.0000/#.00"),
    (_INTERVAL, r"[ #s ] \2 tps: # qps: # (r/w/o: #/#/#) \3: # err/s\4 # reconn/s: #"),
    (r"^\[ \d+s \] thds: (\d+) eps: \d+\.\d\d (lat \(ms,\d+%\)): \d+\.\d\d$", r"[ #s ] thds: \1 eps: # \2: #"),
    (r"^\[ \d+s \] queue length: \d+, concurrency: \d+$", "[ #s ] queue length: #, concurrency: #"),
    (r"^\[ \d+s \] Checkpoint report:$", "[ #s ] Checkpoint report:"),
    (r"^(DEBUG: +thread # +\d+: ) *min: .* (events: \d+)$", r"\1# \2"),
    (r"^(DEBUG: +total time taken by event execution:) \d+\.\d{4}s$", r"\1 #"),
    # rows of a histogram, as many as there are
    (r"(^[ \d]{7}\d\.\d{3} \|[* ]{40} \d+\n)+", "    ####.### |**** #\n"),
]
# In a run that is limited by time the counts are measured, too.
_COUNTED = [
    (r"^( {8}(?:read|write|other|total): +)\d+ *$", r"\1#"),
    (r"^( {4}(?:transactions|queries|ignored errors|reconnects): +)\d+ +\(", r"\1# ("),
    (r"^( {4}total number of events: +)\d+ *$", r"\1#"),
    (r"^(    events \(avg/stddev\): +)\d+\.\d{4}/", r"\1#.0000/"),
    (r"^(DEBUG: +thread # .*events:) \d+$", r"\1 #"),
]


def settle(text: str, *, timed: bool = False) -> str:
    """Returns `text` without the measured values; with `timed`, the counts of the run are replaced, too.

    Equal interval lines that follow each other count once, since a line at the very end of the run may be missing.
    """
    for pattern, replacement in [*_MEASURED, *(_COUNTED if timed else [])]:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return re.sub(r"^(?:\[ #s \] .*\n){2,}", _each_once, text, flags=re.MULTILINE)


def _each_once(block: re.Match[str]) -> str:
    return "".join(dict.fromkeys(block[0].splitlines(keepends=True)))
