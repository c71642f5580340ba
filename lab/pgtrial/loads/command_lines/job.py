"""Builds the engine's command lines for a job (statements that run once and are timed), and for the load that runs at
the same time as a job."""

from __future__ import annotations

import math
from pathlib import Path

from pgtrial.loads.command_lines.command_line import Asked, CommandLine
from pgtrial.loads.command_lines.pgbench import scripts_of
from pgtrial.loads.load_makers import Each
from pgtrial.model.records.job import BesideLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.load_section import LoadSection


class JobLine(CommandLine):
    """Builds the command line for a job, whose statements run once, in one session."""

    front_end = "pgbench"

    def options(self, asked: Asked) -> list[str]:
        return ["-n", *job_options(asked.script, asked.point), "-j", "1", *asked.seeded]


def job_options(script: Path | None, point: LoadPoint) -> list[str]:
    """Returns the options with which pgbench runs the statements of a job once, one after the other."""
    return [*scripts_of(point, script), "-M", point.protocol, "-c", "1", "-t", "1"]


def beside_options(
    load: LoadSection,
    point: LoadPoint,
    beside: BesideLoad,
    seed: int,
    *,
    script: Path | None,
    lengths: tuple[float, float],
) -> list[str]:
    """Returns the engine's options for the load that runs at the same time as a job. `script` is the script file of the
    load; None for a built-in script of pgbench.

    `lengths` are the length of the warm-up and the longest length of the measured phase, in seconds.
    """
    warmup_s, longest_s = lengths
    scripts = ["-b", beside.script] if script is None else ["-f", f"{script}@1", "-s", str(point.scale)]
    threads = min(beside.clients, load.threads or max(1, min(math.ceil(beside.clients / 16), Each().cpus)))
    options = ["-n", *scripts, "-M", beside.protocol, "-c", str(beside.clients), "-j", str(threads)]
    options += ["-R", f"{beside.rate:.10g}", "-T", f"{math.ceil(longest_s)}", "--warmup", f"{warmup_s:g}"]
    return [*options, "--time-after-connecting", "--random-seed", str(seed)]
