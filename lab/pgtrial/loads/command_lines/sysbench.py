"""Builds the engine's command line for sysbench tests."""

from __future__ import annotations

from pathlib import PurePosixPath

from pgtrial.loads.command_lines.command_line import Asked, UnlistedLine
from pgtrial.loads.engine import refusal_by_sysbench
from pgtrial.loads.process import lua_environment
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.store.temporary import temporary_folder

_SHORT_RUN_S = 5


class SysbenchLine(UnlistedLine):
    """Builds the command line for a sysbench test, whose clients repeat it until the time is over."""

    front_end = "sysbench"

    def options(self, asked: Asked) -> list[str]:
        load, point = asked.load, asked.point
        warmup, duration = map(asked.turn.wall_s, load.phases_s)
        options = [*_test(asked), f"--threads={point.clients}", f"--jobs={self.threads(asked)}"]
        options += [f"--time={duration:.0f}", f"--warmup-time={warmup:.0f}", *_protocol_and_seed(asked)]
        rate = [] if point.rate is None else [f"--rate={point.rate:.0f}"]
        return [*options, *rate, *asked.turn.options(asked.seed)]

    def counted_options(self, asked: Asked, transactions: int) -> list[str]:
        return self._one_thread(asked, transactions, limit_s=0)

    def short_options(self, asked: Asked) -> list[str]:
        return self._one_thread(asked, self.short_run, limit_s=_SHORT_RUN_S)

    def _one_thread(self, asked: Asked, events: int, *, limit_s: int) -> list[str]:
        limits = ["--threads=1", "--jobs=1", f"--events={events}", f"--time={limit_s}"]
        return [*_test(asked), *limits, *_protocol_and_seed(asked)]


def _test(asked: Asked) -> list[str]:
    workload = asked.point.workload
    return [str(asked.script or workload), *asked.load.sysbench.arguments(workload)]


def _protocol_and_seed(asked: Asked) -> list[str]:
    # sysbench replaces the seed 0 by the current time
    mode = "disable" if asked.point.protocol == "simple" else "auto"
    return [f"--db-ps-mode={mode}", f"--rand-seed={asked.seed or 1}"]


def check_sysbench(spec: StudySpec) -> None:
    """Checks that the engine accepts the sysbench tests in the study file and their options, by asking the engine
    before any load runs. Raises StudyError with the engine's message if it does not."""
    for path in filter(is_sysbench, spec.load.workload):
        test = PurePosixPath(path).name
        with temporary_folder() as folder:
            for name, text in spec.scripts.items():
                if "/" not in name:  # files in subfolders belong to packs
                    (folder / name).write_bytes(text.encode())
            named = str(folder / test) if test in spec.scripts else test
            options = spec.load.sysbench.arguments(test)
            complaint = refusal_by_sysbench(named, options, lua_environment(folder))
        if complaint is not None:
            words = complaint.replace(f"{folder}/", "")
            raise StudyError(
                f"{marks.heading('load')}{test}: the engine rejects this test: {words}; correct the script, or "
                f"{marks.key('load.sysbench')}"
            )
