"""The wall clock is set again and again while a study runs: by seconds, hours and days, forwards and back.

The clock is that of the study's processes (lab, engine, server), by a library that is preloaded into them; the clock of
the machine stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.reliability.kills import IN_TURNS
from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing, machine_unchanged
from bench.reliability.labs import Lab, forget, run_to_its_end
from pgtrial.model.records.trial import Trial

_STUDIES = 4
_STUDY_S = 30.0
_STEPS_S = (-86_400.0, -3_600.0, -60.0, -1.5, 0.0, 1.5, 60.0, 3_600.0, 86_400.0)
_BETWEEN_S = (0.2, 1.2)
_SOURCE = Path(__file__).with_name("clock.c")

_ONE_AFTER_THE_OTHER = IN_TURNS.replace("share_server = false", 'interleave = "off"').replace(
    "blocks = 3", "blocks = 2"
)


def _run(campaign: Campaign) -> Iterator[Figure]:
    attack = Attack(campaign, "clocks", "the clock is set while a study runs", _STUDIES)
    trials, steps = 0, 0
    with _clock(campaign) as clock:

        def set_clock(lab: Lab) -> bool:
            nonlocal steps
            time.sleep(campaign.chance.uniform(*_BETWEEN_S))
            # in place: programs have mapped the file, and one that is shorter for a moment would end them
            with clock.open("r+b") as file:
                file.write(round(1e9 * campaign.chance.choice(_STEPS_S)).to_bytes(8, "little", signed=True))
            steps += 1
            return True

        for number in range(_STUDIES):
            folder = campaign.scratch / "clocks" / str(number)
            text = (_ONE_AFTER_THE_OTHER, IN_TURNS)[number % 2]
            with machine_unchanged(attack):
                study = run_to_its_end(attack, folder, text, set_clock)
            for trial in study.trials() if study is not None else ():
                trials += 1
                _check(attack, trial)
            forget(folder)
            attack.done()
    yield attack.figure(f"set {steps} times by up to a day; {trials} trials, each as long as planned")


def _check(attack: Attack, trial: Trial) -> None:
    """Checks that setting the clock made no trial fail and changed no measured time."""
    if trial.status != "completed" or trial.measured is None:
        attack.defect(f"trial {trial.index} failed: {trial.reason}")
        return
    if not 1.5 < trial.measured.duration_s < 2.5:
        attack.defect(f"trial {trial.index} of 2 s has measured {trial.measured.duration_s} s")
    for name, seconds in trial.phases_s.items():
        if not 0 <= seconds < 600:
            attack.defect(f"the phase {name} of trial {trial.index} took {seconds} s")


@contextmanager
def _clock(campaign: Campaign) -> Iterator[Path]:
    """Yields the file that says by how much the clock is ahead, for all programs that are started in the context."""
    library, ahead = campaign.scratch / "clock.so", campaign.scratch / "clock"
    compiler = os.environ.get("CC", "cc")
    try:
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"{_SOURCE.name} could not be compiled: {error}") from None
    ahead.write_bytes(bytes(8))
    added = {"LD_PRELOAD": str(library), "RELIABILITY_CLOCK": str(ahead)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in added.items():
            patch.setenv(name, value)
        yield ahead


KIND = Kind("clocks", lambda campaign: _STUDIES * _STUDY_S, _run)
