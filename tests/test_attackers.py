"""The attackers' campaign sees each way in which an attack works."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bench.reliability.attackers import _groups
from bench.reliability.ground import SECRET, Ground, Trap
from bench.reliability.kind import Attack, Campaign

from tests.cli.forked import Commands
from tests.conftest import require_root


@pytest.fixture
def ground(tmp_path):
    """Returns the ground of a campaign of attacks in which a shell script stands for the command `pgtrial`."""
    require_root()
    campaign = Campaign(tmp_path, tmp_path / "state", 1, 1, 1, 1, random.Random(1), lambda line: None)
    write_program(tmp_path, "echo done")
    return Ground.make(campaign, Commands(tmp_path), lambda major: pytest.fail("no server"), tmp_path / "ground")


def write_program(folder: Path, script: str) -> None:
    program = folder / "pgtrial"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def defects(ground: Ground, act) -> list[str]:
    """Returns the defects that are reported for an attack whose action is `act`."""

    def spring(of: Ground):
        act(of)
        yield from of.failures(of.pgtrial("list"))

    attack = Attack(ground.campaign, "attackers", "a test", 1)
    ground.spring(Trap("an attack", spring), attack)
    assert attack.count == 1
    return attack.defects


def test_an_attack_that_does_nothing_is_no_defect(ground):
    assert defects(ground, lambda of: None) == []


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda of: of.mark.touch(), "what the attacker wrote was run"),
        (lambda of: (of.victim / "secret").write_text("x"), "files of the victim's were changed"),
        (lambda of: (of.victim / "new").touch(), "files of the victim's were changed"),
        (lambda of: (of.work / "log").write_text(f"... {SECRET}"), "work/log shows the secret"),
    ],
)
def test_an_attack_that_works_is_a_defect(ground, act, told):
    assert defects(ground, act) == [f"an attack: {told}"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (f"echo {SECRET}", "printed the secret"),
        ("printf '\\033[2J'", "sent the terminal a sequence"),
        ("echo Traceback >&2", "ended with a traceback"),
    ],
)
def test_what_a_command_prints_is_read(ground, tmp_path, script, told):
    write_program(tmp_path, script)
    [defect] = defects(ground, lambda of: None)
    assert told in defect


def test_each_attack_has_a_name_of_its_own():
    names = [trap.what for traps in _groups().values() for trap in traps]
    assert len(names) > 200
    assert len(set(names)) == len(names)
