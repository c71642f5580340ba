"""Builds the engine's command line for a suite, a set of queries in files, each of which is timed."""

from __future__ import annotations

from pathlib import Path

from pgtrial.loads.command_lines.command_line import Asked, CommandLine
from pgtrial.loads.engine import PAUSE
from pgtrial.model.records.load_point import LoadPoint


class SuiteLine(CommandLine):
    """Builds the command line for the queries of a suite (a set of query files), which run one after the other in one
    session."""

    front_end = "suite"
    lists_statements = True

    def options(self, asked: Asked) -> list[str]:
        return [*suite_options(asked.point, asked.script), *asked.seeded]


def suite_options(point: LoadPoint, folder: Path | None) -> list[str]:
    """Returns the engine's options for the suite of a load point, whose query files are in `folder`."""
    suite = point.suite
    if suite is None or folder is None:
        return []
    files = [word for file in suite.query_files.values() for word in ("-f", str(folder / file))]
    before = "--warmup" if suite.cache == "warm" else PAUSE
    return [*files, f"--runs={suite.runs}", f"--limit={suite.limit_s:g}", before]
