"""kill -9 of machines of a Ray cluster at random moments in studies whose load they make."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from tests.loads.fleet.rays import PATIENCE_S, cluster_of_two_nodes, remove_sessions

from bench.reliability.kills import HOST_CHANGED, MACHINES
from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing, machine_unchanged
from bench.reliability.labs import Lab, forget, run_to_its_end

_IN_A_STUDY = 2
_STUDY_S = 80.0
_WITHIN_S = 5.0
_MARK = "FLEET_OF_RELIABILITY"
"""A variable that all processes of the cluster have inherited."""


def _run(campaign: Campaign) -> Iterator[Figure]:
    planned = campaign.part(MACHINES)
    if not planned:
        return
    with _cluster() as cluster:
        killer = _Killer(Attack(campaign, "machines", "kill -9 of a machine of a Ray cluster", planned), cluster)
        text = f'{HOST_CHANGED}[fleet]\naddress = "{cluster.address}"\nmachines = 2\n'
        studies, trials, lost = 0, 0, 0
        while killer.attack.count < planned:
            folder = campaign.scratch / "machines" / str(studies)
            killer.left = _IN_A_STUDY
            with machine_unchanged(killer.attack):
                study = run_to_its_end(killer.attack, folder, text, killer)
            studies += 1
            if study is None:
                break
            trials += len(study.trials())
            for trial in study.trials():
                if trial.status == "failed":
                    lost += 1
                    if "was lost" not in (trial.reason or ""):
                        killer.attack.defect(f"a trial that lost a machine failed with: {trial.reason}")
            _check_ended(killer.attack)
            forget(folder)
    yield killer.attack.figure(f"{studies} studies with {trials} trials, {lost} of which failed by the loss")


@contextmanager
def _cluster() -> Iterator[Any]:
    """Starts two machines, which are processes here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_MARK, str(os.getpid()))
        try:
            cluster = cluster_of_two_nodes()
        except pytest.skip.Exception as missing:
            raise Missing(str(missing)) from None
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            raise Missing(f"Ray did not start on this machine: {error}") from None
    try:
        yield cluster
    finally:
        cluster.shutdown()
        remove_sessions()


class _Killer:
    """Kills the machine that is not the cluster's head while an engine runs, and adds another one."""

    def __init__(self, attack: Attack, cluster: Any) -> None:
        self.attack = attack
        self.left = 0
        self._cluster = cluster

    def __call__(self, lab: Lab) -> bool:
        if not self.left or self.attack.count == self.attack.planned:
            return False
        while lab.runs and not _engines():
            time.sleep(0.05)
        if not lab.runs:
            return False
        time.sleep(self.attack.campaign.chance.uniform(0, _WITHIN_S))
        for node in list(self._cluster.worker_nodes):
            self._cluster.remove_node(node, allow_graceful=False)
        lab.was_attacked = True
        self.left -= 1
        self.attack.done()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(_MARK, str(os.getpid()))
            self._cluster.add_node(wait=False, num_cpus=1)
        return True


def _check_ended(attack: Attack) -> None:
    """Engines of machines that were killed end by themselves."""
    deadline = time.monotonic() + PATIENCE_S
    while _engines() and time.monotonic() < deadline:
        time.sleep(0.5)
    for engine in _engines():
        attack.defect(f"the engine {engine.pid} of a machine that was killed still runs")


def _engines() -> list[psutil.Process]:
    """Returns the engines that machines of this cluster have started."""
    every = [process for process in psutil.process_iter(["name"]) if process.info["name"] == "pgtrial-engine"]
    return [process for process in every if _environment(process).get(_MARK) == str(os.getpid())]


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


KIND = Kind("machines", lambda campaign: campaign.part(MACHINES) / _IN_A_STUDY * _STUDY_S, _run)
