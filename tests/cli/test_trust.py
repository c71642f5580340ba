"""Studies of somebody else: what they do is shown, and nothing of it runs before the user says so."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from pgtrial.cli import rerun, run, trust
from pgtrial.cli.facts import facts_command
from pgtrial.cli.gate import gate_command
from pgtrial.cli.history import history_command
from pgtrial.cli.plan import plan_command
from pgtrial.cli.stored import metrics_command
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.effects import Effect
from pgtrial.store import directory as stored
from pgtrial.store.bundle import write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.histories.directory import HistoryDirectory
from tests.histories import levels
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy
from tests.verdict.studies import run as run_plan


@pytest.fixture
def started(monkeypatch):
    """Returns the list of studies that would have been run. No study is run."""
    specs = []
    monkeypatch.setattr(rerun, "start", lambda spec, *_, **__: specs.append(spec) or 143)
    monkeypatch.setattr(run, "conduct", lambda study, spec, **_: specs.append(spec) or 143)
    return specs


def make(path: Path, of_arm=None, scripts=None) -> StudyDirectory:
    """Writes a study whose second arm has the keys `of_arm`, as if the account made it whose state directory
    PGTRIAL_STATE names.
    """
    plan = make_plan()
    made = write_study(path, plan, run_plan(plan, noisy({"off": 1.4}, sd=0.01)), Audit(findings=[]), "Is off faster?")
    arms = dict(made.spec.arms)
    arms["off"] = arms["off"].model_validate({**arms["off"].model_dump(exclude_unset=True), **(of_arm or {})})
    frozen = stored.freeze(made.spec.model_copy(update={"arms": arms}))
    (path / "study.toml").write_text(frozen)
    if scripts:
        (path / "scripts").mkdir()
        for name, text in scripts.items():
            (path / "scripts" / name).write_text(text)
        plan = plan.model_copy(update={"scripts": {name: stored.digest(text) for name, text in scripts.items()}})
    stored._write_plan(path, plan, frozen, made_here=True)
    return StudyDirectory.open(path)


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Makes a bundle as somebody else does on a machine of theirs."""

    def make_bundle(of_arm=None, scripts=None) -> Path:
        with monkeypatch.context() as theirs:
            theirs.setenv("PGTRIAL_STATE", str(tmp_path / "theirs"))
            # what pgtrial would cut from a bundle, somebody else may leave in it
            theirs.setattr(StudyDirectory, "without_secrets", lambda study: {})
            write_bundle(make(tmp_path / "study", of_arm, scripts), tmp_path / "b.tar.xz", everything=False)
        return tmp_path / "b.tar.xz"

    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return make_bundle


def test_what_this_account_made_here_runs_again_without_a_question(tmp_path, monkeypatch, started):
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "state"))
    mine = make(tmp_path / "mine", {"environment": {"LD_PRELOAD": "x.so"}})
    write_bundle(mine, tmp_path / "b.tar.xz", everything=False)
    assert rerun.rerun_command(tmp_path / "b.tar.xz") == 143
    assert run.run_command(str(mine.path)) == 143
    assert len(started) == 2


@pytest.mark.parametrize(
    "case",
    [
        ({"settings": {"archive_command": "sh -c id"}}, "commands", "off: sets archive_command = sh -c id"),
        ({"dsn": "env"}, "servers", "off: connects to env"),
        (
            {"storage": {"fs": "ext4", "on": "/dev/loop0", "overwrite": True}},
            "machine",
            "off: makes a file system ext4 on the device /dev/loop0, WHATEVER IS ON IT",
        ),
        ({"sysctl": {"vm.swappiness": "1"}}, "machine", "off: sets vm.swappiness = 1"),
        (
            {"postgres": "git:https://example.org/pg@" + "1" * 40},
            "sources",
            "off: builds the server git:https://example.org/pg@" + "1" * 40,
        ),
    ],
)
def test_a_strangers_study_is_shown_and_refused_until_its_kind_is_allowed(stranger, started, capsys, case):
    of_arm, kind, shown = case
    bundle = stranger(of_arm)
    for more in ({}, {"trust": True}, {"trust": True, "allow": "sql"}):
        with pytest.raises(StudyError, match=rf"unless you allow it: {kind}; .* --trust --allow {kind} if you want"):
            rerun.rerun_command(bundle, **more)
        assert shown in capsys.readouterr().err
    assert started == []
    assert rerun.rerun_command(bundle, trust=True, allow=kind) == 143
    assert len(started) == 1


def test_a_strangers_load_on_servers_of_our_own_takes_a_yes(stranger, started, capsys):
    bundle = stranger(scripts={"a.sql": "DELETE FROM x;\n\x1b]0;evil\x07SELECT 1;\n"})
    with pytest.raises(StudyError, match="there is no terminal to ask at"):
        rerun.rerun_command(bundle)
    shown = capsys.readouterr().err
    assert "DELETE FROM x;" in shown
    assert "\x1b" not in shown
    assert started == []
    assert rerun.rerun_command(bundle, trust=True) == 143


def test_the_folder_of_an_unpacked_bundle_is_a_strangers(stranger, started):
    bundle = stranger({"dsn": "env", "monitoring": {"cloudwatch": "my-db"}})
    subprocess.run(["tar", "-xf", bundle], check=True)
    with pytest.raises(StudyError, match="unless you allow it: servers"):
        run.run_command("study")
    of_file = (run.run_command, plan_command, facts_command, lambda study: gate_command("a", "b", study=study))
    for command in of_file:
        with pytest.raises(StudyError, match="belongs to a study that was not made by this account on this machine"):
            command("study/study.toml")
    assert started == []
    with pytest.raises(StudyError, match="unless you allow it: servers"):
        metrics_command(Path("study"))


def test_a_mark_of_another_study_or_another_account_is_none(stranger, tmp_path, started):
    stranger({"dsn": "env"})
    mine = make(tmp_path / "mine")
    plan = json.loads((tmp_path / "study" / "plan.json").read_text())
    plan["sha256"]["made here"] = json.loads((mine.path / "plan.json").read_text())["sha256"]["made here"]
    (tmp_path / "study" / "plan.json").write_text(json.dumps(plan))
    assert mine.made_here
    assert not StudyDirectory.open(tmp_path / "study").made_here


@pytest.mark.parametrize(
    ("answer", "word"), [("n", b"nothing of b.tar.xz runs"), ("y", b"pgtrial: the budget is too short for a verdict")]
)
def test_at_a_terminal_the_user_is_asked(stranger, tmp_path, answer, word):
    bundle = stranger()
    ours, theirs = pty.openpty()
    program = "import sys; from pgtrial.cli import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", program, "rerun", bundle.name, "--budget", "1s"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
    ) as asking:
        os.close(theirs)
        shown = b""
        while b"Run it? [y/N]:" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, f"{answer}\n".encode())
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the other end of a terminal is closed
            pass
        asking.wait()
    os.close(ours)
    assert b"was not made by this account on this machine; this is what it does:" in shown
    assert word in shown
    assert asking.returncode == {"n": 3, "y": 2}[answer]


def test_commands_of_a_history_are_shown_and_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('[load]\nworkload = "select-only"\n')
    begun = []
    monkeypatch.setattr("pgtrial.cli.history.run_gate", lambda spec, rules: begun.append(spec) or 1)
    setup = {"command": "sh -c id", "command_directory": "/"}
    entries = [one.model_copy(update={"setup": setup}) for one in levels(0.0, -0.05)]
    HistoryDirectory(Path("history")).add("s", entries)
    for more in ({}, {"trust": True}):
        with pytest.raises(StudyError, match="unless you allow it: commands"):
            history_command("confirm", study="s.toml", **more)
        assert "commit 9: runs sh -c id in /" in capsys.readouterr().err
    assert begun == []


def test_a_long_script_is_cut_and_the_cut_is_told(capsys):
    effect = Effect("sql", "\n".join(["a.sql:", *(f"SELECT {number};" for number in range(99))]))
    trust.check_trust("b", [effect], trust=True, allow=None)
    shown = capsys.readouterr().err
    assert "SELECT 58;" in shown
    assert "SELECT 59;" not in shown
    assert "... and 40 more lines: read the file before you trust it" in shown


def test_an_unknown_kind_is_refused():
    with pytest.raises(StudyError, match="--allow 'everything' is not a known word"):
        trust.check_trust("b", [], trust=True, allow="everything")
