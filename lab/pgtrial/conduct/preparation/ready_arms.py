"""Makes the arms of a study ready before its first trial: builds the sources that the study names, checks each set-up,
and loads the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgtrial.conduct.preparation.startable import check_setups
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.model.study.design import Design
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.builds.of_study import built, has_sources
from pgtrial.servers.configured_values import check_configured
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory


def with_builds(design: Design, workspace: Workspace, listener: Listener) -> Design:
    """Builds the sources that the study names, checks the settings with the built servers, and returns the design with
    the builds. Raises StudyError."""
    if not has_sources(design.spec):
        return design
    spec = built(design.spec, workspace.builds, workspace, lambda text: listener(Preparing(text)))
    changed = replace(design, spec=spec)
    check_configured(changed)
    return changed


def prepare_arms(
    study: StudyDirectory, needs: Needs, arms: Mapping[str, Arm], maker: LoadMaker, listener: Listener
) -> None:
    """Checks that engines can run on the CPUs that the study names, checks the set-up of each arm, and loads its data.
    Before the first trial of a screening study, it also starts servers with the levels of the factors. Raises
    StudyError and ArmError."""
    if study.spec.load.cpus is not None:
        maker.check_cpus(study.spec.load.cpus)
    if not study.trials():
        check_setups(study.plan, arms, needs, listener)
    sentences: set[str] = set()
    check_arms(needs, arms, maker, listener, sentences)
    load_arms(needs, arms, listener, sentences)


def check_arms(
    needs: Needs, arms: Mapping[str, Arm], maker: LoadMaker, listener: Listener, sentences: set[str]
) -> None:
    """Checks the set-up of each arm, and that the machines which make the load reach its server.

    `sentences` has the notes that were already reported for arms on the same server; it gets the new ones. Raises
    StudyError and ArmError.
    """
    for arm in arms.values():
        listener(Preparing(f"{arm.name}: checking the set-up"))
        arm.check(needs)
        _report_notes(arm, listener, sentences)
        maker.check_reaches(arm.name, arm.targets)


def load_arms(needs: Needs, arms: Mapping[str, Arm], listener: Listener, sentences: set[str]) -> None:
    """Loads the data of each arm. `sentences` is that of `check_arms`. Raises StudyError and ArmError."""
    for arm in arms.values():
        for data in needs.of_arm(arm.name):
            arm.prepare(data, lambda text: listener(Preparing(text)))
            _report_notes(arm, listener, sentences)


def _report_notes(arm: Arm, listener: Listener, sentences: set[str]) -> None:
    """Reports the notes of an arm. `sentences` has the notes that were already reported for arms on the same server;
    they are not repeated."""
    while arm.notes:
        if (note := arm.notes.pop(0)) not in sentences:
            listener(Preparing(note, stays=True))
            sentences.add(note)
