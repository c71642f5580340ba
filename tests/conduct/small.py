"""Studies small enough for tests, on real servers with the real engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Listener, ProgressEvent, Second
from pgtrial.conduct.trial.run_trials import run_trials
from pgtrial.loads.data.kinds import Data
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.servers.arm import Arm
from pgtrial.servers.arms import make_arms
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import committed_per_second

PGTRIAL = Path(sys.executable).with_name("pgtrial")
"""The lab as users start it."""

GENTLE = str(Path(__file__).with_name("gentle.sql"))
"""A load without a rate whose clients mostly sleep, for tests in which speed is not the question: loads at full speed
take the processors from the tests beside them. A load with a rate does as well, and needs no rehearsal."""

FAST = {
    "shared_buffers": "16MB",
    "autovacuum": "off",
}

STUDY = """
[study]
name = "crash"
[load]
workload = "simple-update"
scale = 1
clients = 2
warmup = "500ms"
duration = "5s"
interleave = "off"
[arms.base]
[arms."no jit"]
settings = { jit = "off" }
[verdict]
blocks = 1
"""
"""A study file: one block of two trials, one after the other. A test that waits for a trial and then does something to
it may be late by seconds on a busy machine."""


def small_study(path: Path, blocks: int = 2, seed: int = 11, folder: Path = Path(), **sections: Any) -> StudyDirectory:
    """Makes a study directory at `path`. Its two arms differ in jit, and its trials measure for two seconds each and do
    not alternate. `folder` has the scripts of the load, and `sections` change or add keys.

    A trial fails if the machine stands still for as long as it measures, since it commits nothing then.
    """
    data: dict[str, Any] = {
        "load": {
            "workload": "simple-update",
            "scale": 1,
            "clients": 2,
            "warmup": "400ms",
            "duration": "2s",
            "interleave": "off",
        },
        "server": {"settings": FAST},
        "arms": {"base": {}, "no jit": {"settings": {"jit": "off"}}},
        "verdict": {"blocks": blocks},
    }
    for section, values in sections.items():
        data[section] = values if section == "arms" else {**data.get(section, {}), **values}
    if "data" in data["load"]:  # of the user's own, which has no scale
        del data["load"]["scale"]
    spec = build_study(data, "test", folder)
    return StudyDirectory.create(path, spec, make_plan(spec, seed, "2026-11-20T14:12:00+00:00"))


def run_one(study: StudyDirectory, planned: PlannedTrial, arm: Arm, listener: Listener) -> Trial:
    """Runs and stores one planned trial by itself."""
    return run_trials(study, [planned], {planned.arm: arm}, listener)[0]


def once(wanted: Callable[[ProgressEvent], bool], act: Callable[[], None]) -> Callable[[ProgressEvent], None]:
    """Returns a listener that calls `act` once, on the first event for which `wanted` is true."""
    done: list[ProgressEvent] = []

    def on_event(event: ProgressEvent) -> None:
        if not done and wanted(event):
            done.append(event)
            act()

    return on_event


def measuring(event: ProgressEvent) -> bool:
    """True for an event that comes when a second of the measured part has passed in which transactions were done."""
    return isinstance(event, Second) and event.phase == "measure" and event.tps > 0


@contextmanager
def one_arm(study: StudyDirectory) -> Iterator[Arm]:
    """Yields the arm of the first planned trial, with its data prepared so that it can be served."""
    with Workspace() as workspace:
        arm = make_arms(study.design, workspace)[study.plan.trials[0].arm]
        arm.prepare(PgbenchTables(1), lambda text: None)
        yield arm


def each_once(study: StudyDirectory) -> bool:
    """True if every planned trial is stored exactly once and nothing unfinished is left."""
    indexes = [trial.index for trial in study.trials()]
    return indexes == list(range(len(study.plan.trials))) and not study.unfinished()


def windows(study: StudyDirectory, block: int = 0) -> list[tuple[float, float, str]]:
    """Returns the planned slices of a block's trials, sorted by time, as (begin, end, arm) with times in seconds."""
    found = []
    for trial in study.trials():
        if trial.block == block:
            rows = study.slices(trial).iter_rows(named=True)
            found += [(row["planned_begin_s"], row["planned_end_s"], trial.arm) for row in rows]
    return sorted(found)


def committed_after_its_failures(study: StudyDirectory, trial: Trial) -> int:
    """Transactions in the seconds after the last one in which any failed."""
    last = max(span.last_s for span in trial.failure_spans)
    return sum(committed_per_second(study.timeline(trial))[last + 1 :])


def templates_with(store: Templates, data: Data) -> list[str]:
    """Returns the server versions of the stored templates that hold these data; other studies may have stored more."""
    keys = [json.loads(record.read_text())["key"] for record in store.root.glob("*/template.json")]
    return [key["version"] for key in keys if key["prepared"] == data.key["prepared"]]


def undeclared_differences(findings: Iterable[Finding]) -> list[str]:
    """Returns what is found to differ between the arms without being declared, except for the state of the machine:
    tests of the machine in another process may change it between the looks at two arms.
    """
    found = [finding.message for finding in findings if finding.rule == "undeclared_difference"]
    return [message for message in found if not re.match(r"The arms differ in (cpu|memory|os)\.", message)]


def title(process: psutil.Process) -> str:
    """Returns the title of a server's process; empty if the process has just ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def start_lab(directory: Path, study: str = STUDY) -> subprocess.Popen[str]:
    """Starts `pgtrial run` of a study file in a directory, as a process of its own."""
    (directory / "crash.toml").write_text(study)
    return subprocess.Popen(
        [PGTRIAL, "run", "crash.toml"],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
