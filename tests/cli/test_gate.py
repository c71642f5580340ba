"""`pgtrial gate` from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pgtrial.cli import gate
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.statistics import p8
from pgtrial.store.bundle import write_bundle
from pgtrial.store.directory import StudyDirectory
from tests.conftest import require_engine
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run

# ---- without a server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    Path("s.toml").write_text('[load]\nworkload = "select-only"\n[arms]\nold = { postgres = "17" }\nnew = {}\n')
    return tmp_path


def write_verdict(study: StudyDirectory) -> None:
    """The part of a report that a gate's files rest on."""
    study.write_file("verdict.json", read_measured(study).result.model_dump_json(indent=1))


@pytest.fixture
def measured(monkeypatch):
    """Studies that the gate starts have run already, with this ratio of HEAD to BASE; what it started is kept."""
    started: list[StudySpec] = []

    def measure(ratio: float | None, sd: float = 0.002):
        def start(spec, results, *, conclude, console, **_):
            started.append(spec)
            if ratio is None:
                return 143
            arms = tuple(spec.arms)
            plan = make_plan(arms, blocks=12)
            plan = plan.model_copy(update={"looks": p8.looks(12, len(arms) - 1)})
            trials = run(plan, noisy({arms[1]: ratio}, sd=sd))
            conclude(write_study(results or Path("results/s"), plan, trials, Audit(findings=[]), spec.study.question))
            return 0

        monkeypatch.setattr(gate, "start", start)
        monkeypatch.setattr(gate, "build_report", write_verdict)
        return started

    return measure


FILES = {
    "summary_file": Path("gate.md"),
    "junit_file": Path("gate.xml"),
    "bundle": Path("gate.tar.xz"),
}


def run_gate(*pair: str, **options) -> int:
    return gate.gate_command(*pair, **{"study": "s.toml", **FILES, **options})


def test_arms_are_named_as_in_compare_or_as_in_the_study(folder, measured):
    started = measured(1.0)
    run_gate("old", "jit=off")
    run_gate("a=postgres=17", "default", results=Path("other"), budget="3min", base_twice=True)
    first, second = started
    assert {name: arm.postgres for name, arm in first.arms.items()} == {"old": "17", "jit=off": None}
    assert first.arms["jit=off"].settings == {"jit": "off"}
    assert (first.verdict.budget, first.verdict.blocks) == (600.0, None)
    assert first.study.question == "s: old or jit=off?"
    assert list(second.arms) == ["a", "default", "a again"]
    assert second.arms["a again"] == second.arms["a"]
    assert (second.verdict.budget, second.study.question) == (180.0, "s: a or default?")


def test_sources_are_relative_to_the_current_directory_and_a_commit_is_not_compared_with_itself(folder, measured):
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@x"]
    for words in (
        ["init", "-q"],
        ["add", "s.toml"],
        ["commit", "-qm", "one"],
        ["commit", "-qm", "two", "--allow-empty"],
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
    Path("ci").mkdir()
    shutil.copy("s.toml", "ci/s.toml")
    started = measured(1.0)
    assert run_gate("postgres=git:.@HEAD~1", "postgres=git:.@HEAD", study="ci/s.toml") == 0
    assert {arm.postgres.partition("@")[0] for arm in started[0].arms.values()} == {f"git:{folder}"}
    assert run_gate("a=postgres=git:.@HEAD", "b=postgres=git:.@HEAD~0", study="ci/s.toml", results=Path("other")) == 2
    assert "a and b are identical, so that nothing was compared" in Path("gate.md").read_text()


def test_settings_of_one_value_are_not_compared(folder, measured):
    measured(1.0)
    assert run_gate("work_mem=4MB", "work_mem=4096kB") == 2
    assert "equal in effect" in Path("gate.md").read_text()


def test_a_gate_writes_its_files_and_has_the_status(folder, measured, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "steps.md")
    Path("steps.md").write_text("before\n")
    measured(0.94)
    assert run_gate("jit=on", "jit=off", json=True) == 1
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads(Path("results/s/verdict.json").read_text())
    text = Path("gate.md").read_text()
    assert text.startswith("### pgtrial gate: fail\n\n**fail: jit=off is 5.99% slower than jit=on.**")
    assert Path("steps.md").read_text() == f"before\n{text}\n"
    assert outcome_in("gate.xml") == "failure"
    assert subprocess.run(["tar", "-tf", "gate.tar.xz"], check=True, capture_output=True, text=True).stdout


def outcome_in(file: str) -> str | None:
    """The element of the one test case of a JUnit file."""
    (case,) = ElementTree.parse(file).iter("testcase")
    return case[0].tag if len(case) else None


@pytest.mark.parametrize(
    ("measurement", "options", "expected"),
    [
        ((1.0,), {}, (0, None)),
        ((1.06,), {"fail_on": "not-equivalent"}, (1, "failure")),
        ((0.985, 0.03), {}, (2, "error")),
        ((0.985, 0.03), {"accept_undecided": True}, (0, None)),
    ],
)
def test_the_rules_of_a_gate_are_options(folder, measured, measurement, options, expected):
    measured(*measurement)
    assert (run_gate("jit=on", "jit=off", **options), outcome_in("gate.xml")) == expected


def test_a_gate_that_is_stopped_leaves_no_pass_behind(folder, measured):
    measured(1.0)
    assert run_gate("jit=on", "jit=off") == 0
    measured(None)
    assert run_gate("jit=on", "jit=off") == 143
    assert outcome_in("gate.xml") == "error"
    assert "pgtrial gate: error" in Path("gate.md").read_text()
    assert not Path("gate.tar.xz").exists()


@pytest.mark.parametrize("option", FILES)
def test_a_file_that_no_gate_has_written_stays(folder, measured, option):
    """Not the study file, and not a bundle of somebody's."""
    measured(1.0)
    run_gate("jit=on", "jit=off")
    Path("gate.xml").unlink()
    Path("notes.xml").write_text("<notes/>")
    study = StudyDirectory.open(Path("results/s"))
    (study.path / "gate.json").unlink()
    write_bundle(study, Path("mine.tar.xz"), everything=False)
    for name in ("s.toml", "notes.xml", "mine.tar.xz"):
        before = Path(name).read_bytes()
        with pytest.raises(StudyError, match=f"{name}: what is there was not written by an earlier pgtrial"):
            run_gate("jit=on", "jit=off", **{option: Path(name)})
        assert Path(name).read_bytes() == before
        assert Path("gate.md").exists(), "nothing is removed where something is refused"


def test_a_step_summary_that_cannot_be_written_costs_no_result(folder, measured, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "absent/steps.md")
    measured(1.0)
    assert run_gate("jit=on", "jit=off") == 0
    assert "the summary is not appended to GITHUB_STEP_SUMMARY=absent/steps.md: No such" in capsys.readouterr().err


# ---- with real servers and the real engine


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200", "PGTRIAL_ENGINE": str(require_engine())}
    return lambda *arguments, cwd: commands.run([*map(str, arguments)], Path(cwd), environment)


WRONG = {
    "absent.toml": (["jit=on", "jit=off", "--study", "absent.toml"], "there is no study file absent.toml"),
    "setting": (["jit=on", "jitt=off"], "did you mean jit"),
    "setup": (["jit=on", "fast"], "'fast' is no set-up"),
    "budget": (["jit=on", "jit=off", "--budget", "soon"], "--budget: 'soon'"),
    "no time": (["jit=on", "jit=off", "--budget", "0"], "--budget 0 is no time"),
    "password": (["host=db", "postgresql://me:hunter2@db/%zz"], "is not a connection string"),
}


@pytest.mark.server
@pytest.mark.parametrize("case", WRONG)
def test_an_error_is_in_the_files_too(pgtrial, tmp_path, case):
    (tmp_path / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    arguments, said = WRONG[case]
    arguments = arguments if "--study" in arguments else [*arguments, "--study", "s.toml"]
    files = ["--summary", "gate.md", "--junit", "gate.xml", "--bundle", "gate.tar.xz"]
    done = pgtrial("gate", *arguments, *files, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert said in done.stderr
    assert outcome_in(tmp_path / "gate.xml") == "error"
    written = "".join(path.read_text() for path in (tmp_path / "gate.md", tmp_path / "gate.xml"))
    assert "pgtrial gate: error" in written
    assert "hunter2" not in written + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate.md", "gate.xml", "s.toml"]


@pytest.mark.server
def test_files_are_tried_before_the_load(pgtrial, tmp_path):
    (tmp_path / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    for option in ("--summary", "--junit", "--bundle"):
        done = pgtrial("gate", "jit=on", "jit=off", "--study", "s.toml", option, "absent/f", cwd=tmp_path)
        assert done.returncode == 3
        assert f"{option} absent/f cannot be written; name a file in a directory that is there" in done.stderr
