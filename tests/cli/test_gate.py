"""`pgtrial gate` from the command line, and the steps of the GitHub Action and of the GitLab job as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from pgtrial.cli import gate
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.statistics import p8
from pgtrial.store.directory import StudyDirectory
from tests.conftest import require_engine
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
JOB = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())[".pgtrial-gate"]
STUDY = """
[load]
workload = "app-tasks"
tasks    = {{ apps = 1, tasks = 2, rows = 1000, pool = 1 }}
[server]
dsn      = "{dsn}"
[arms.fast]
[arms.slow]
settings = {{ default_transaction_read_only = "on" }}
"""
"""Trials of a fraction of a second; each task of one arm fails, so that the verdict depends on no speed."""


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


# ---- the steps

FAKE_PYTHON = """#!/bin/sh
# python3 -m venv FOLDER: a folder whose python installs nothing and whose pgtrial is that of the tests
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\n" "$@" >> {folder}/installed\\n' > "$3/bin/python"
ln -s {pgtrial} "$3/bin/pgtrial"
chmod +x "$3/bin/python"
"""

FAKE_GH = """#!{python}
import os, pathlib, re, sys
arguments = sys.argv[1:]
folder = pathlib.Path({folder!r})
with (folder / "calls").open("a") as calls:
    calls.write(" ".join(arguments) + "\\n")
if (folder / "forbidden").exists():
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
assert os.environ["GH_TOKEN"] == "t0ken"
bodies = [argument.removeprefix("body=@") for argument in arguments if argument.startswith("body=@")]
if bodies:
    number = arguments[arguments.index("PATCH") + 1].rpartition("/")[2] if "PATCH" in arguments else "7"
    (folder / ("comment-" + number)).write_text(pathlib.Path(bodies[0]).read_text())
else:
    marker = re.search(r'startswith\\("(.*?)"\\)', arguments[-1])[1]
    for path in sorted(folder.glob("comment-*")):
        if path.read_text().startswith(marker):
            print(path.name.rpartition("-")[2])
"""

FAKE_CURL = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
folder = pathlib.Path({folder!r})
with (folder / "calls").open("a") as calls:
    calls.write(" ".join(arguments) + "\\n")
if (folder / "forbidden").exists():
    sys.exit(22)
assert 'PRIVATE-TOKEN: t0ken"' in pathlib.Path("curl.conf").read_text()
bodies = [argument.removeprefix("body@") for argument in arguments if argument.startswith("body@")]
if bodies:
    number = arguments[-1].rpartition("/")[2] if "PUT" in arguments else "7"
    (folder / ("comment-" + number)).write_text(pathlib.Path(bodies[0]).read_text())
else:
    notes = [(path.name.rpartition("-")[2], path.read_text()) for path in sorted(folder.glob("comment-*"))]
    print(json.dumps([{{"id": int(number), "body": body}} for number, body in notes]))
"""


@dataclass
class Runner:
    """A runner of continuous integration: a clean directory, and what is found on its PATH in place of the real."""

    root: Path
    pgtrial: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.folder, self.work, self.temporary = (self.root / name for name in ("fakes", "work", "temporary"))
        for path in (self.folder, self.work, self.temporary):
            path.mkdir()
        for name, text in (("python3", FAKE_PYTHON), ("gh", FAKE_GH), ("curl", FAKE_CURL)):
            fake = self.folder / name
            fake.write_text(text.format(python=sys.executable, folder=str(self.folder), pgtrial=self.pgtrial))
            fake.chmod(0o755)

    def bash(self, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("HOME", "PGTRIAL_STATE", "LANG") if name in os.environ}
        environment = {
            **kept,
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "PGTRIAL_ENGINE": str(require_engine()),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_OUTPUT": str(self.root / "output"),
            "GITHUB_STEP_SUMMARY": str(self.root / "steps.md"),
            "GITHUB_REPOSITORY": "me/mine",
            **self.variables,
            **variables,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(command, cwd=self.work, env=environment, capture_output=True, text=True, check=False)

    def action(self, only: str = "", **inputs: str) -> dict[str, subprocess.CompletedProcess[str]]:
        """The steps of the Action with these inputs, or one of them; by name."""
        known = {f"inputs.{name}": key.get("default", "") for name, key in ACTION["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        known |= {"github.event.pull_request.number": "12", "steps.keep.outputs.artifact-url": "https://x/1"}
        done = {}
        for step in ACTION["runs"]["steps"]:
            if "uses" in step or only not in step["name"]:
                continue
            output = self.root / "output"
            lines = output.read_text().splitlines() if output.exists() else []
            known |= {f"steps.gate.outputs.{name}": value for name, _, value in (line.partition("=") for line in lines)}
            values = {name: filled_in(text, known) for name, text in step["env"].items()}
            assert "${{" not in step["run"], "inputs reach a script by its environment alone"
            done[step["name"]] = self.bash(step["run"], values)
        return done

    @property
    def gate(self) -> Path:
        """What the Action leaves."""
        return self.temporary / "pgtrial-gate"

    def comments(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.folder.glob("comment-*"))}


def filled_in(text: str, known: dict[str, str]) -> str:
    """The value of an environment variable of a step, its expressions by what is known."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known.get(found[1], ""), text)


INPUTS = {"study": "gate.toml", "budget": "40s", "install": "./pgtrial.whl", "token": "t0ken"}


@pytest.fixture(scope="module")
def database(clusters):
    cluster = clusters(18)
    with cluster.target.connect() as session:
        session.autocommit = True
        session.execute("CREATE DATABASE gate")
        yield f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=gate"
        session.execute("DROP DATABASE gate WITH (FORCE)")


@pytest.fixture(scope="module")
def after_a_gate(tmp_path_factory, database, commands, workspace):
    """A runner on which the Action has found that HEAD is slower, and what its steps said."""
    runner = Runner(tmp_path_factory.mktemp("runner"), commands.folder / "pgtrial")
    (runner.work / "gate.toml").write_text(STUDY.format(dsn=database))
    (runner.folder / "comment-3").write_text("a comment of a person: <!-- pgtrial gate: gate -->")
    return runner, runner.action(base="fast", head="slow", **INPUTS)


@pytest.mark.server
def test_the_steps_of_the_action_run_a_gate(after_a_gate):
    runner, done = after_a_gate
    assert [step.returncode for step in done.values()] == [0, 0, 0, 1], [step.stderr for step in done.values()]
    assert (runner.folder / "installed").read_text().split() == [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--",
        "./pgtrial.whl",
    ]
    assert sorted(path.name for path in runner.gate.iterdir()) == [
        "gate.tar.xz", "junit.xml", "summary.md", "verdict.json",
    ]  # fmt: skip
    result = json.loads((runner.gate / "verdict.json").read_text())
    assert (result["arms"], result["primary"][0]["verdict"]) == (["fast", "slow"], "worse")
    assert outcome_in(runner.gate / "junit.xml") == "failure"
    text = (runner.gate / "summary.md").read_text()
    assert text.startswith("### pgtrial gate: fail\n")
    assert "fail: slow failed in all 8 trials" in text
    assert (runner.root / "steps.md").read_text() == f"{text}\n"
    assert (runner.root / "output").read_text() == "status=1\n"


@pytest.mark.server
def test_the_bundle_of_a_gate_is_whole(after_a_gate, pgtrial):
    runner, _ = after_a_gate
    assert "the verdict follows from the" in pgtrial("verify", "gate.tar.xz", cwd=runner.gate).stdout
    assert pgtrial("verdict", "gate.tar.xz", cwd=runner.gate).returncode == 1


@pytest.mark.server
def test_one_comment_is_written_and_then_updated(after_a_gate):
    runner, _ = after_a_gate
    text = (runner.gate / "summary.md").read_text()
    person = runner.comments()["comment-3"]
    assert runner.comments() == {
        "comment-3": person,
        "comment-7": f"<!-- pgtrial gate: gate -->\n{text}\n[Bundle](https://x/1)\n",
    }
    (runner.gate / "summary.md").write_text("anew\n")
    runner.action("Update the comment", **INPUTS)
    assert runner.comments().keys() == {"comment-3", "comment-7"}
    assert runner.comments()["comment-7"].startswith("<!-- pgtrial gate: gate -->\nanew\n")
    assert runner.comments()["comment-3"] == person
    assert (runner.folder / "calls").read_text().count("--method POST") == 1
    (runner.gate / "summary.md").write_text(text)


@pytest.mark.server
def test_a_token_that_may_not_write_costs_the_comment_alone(after_a_gate):
    runner, _ = after_a_gate
    (runner.folder / "forbidden").touch()
    done = runner.action("Update the comment", **INPUTS)["Update the comment"]
    (runner.folder / "forbidden").unlink()
    assert done.returncode == 0
    assert "::notice::" in done.stdout


@pytest.fixture
def runner(tmp_path, commands):
    made = Runner(tmp_path, commands.folder / "pgtrial")
    (made.work / "gate.toml").write_text('[load]\nworkload = "select-only"\n')
    return made


@pytest.mark.server
def test_the_steps_fail_after_a_comparison_that_is_empty(runner):
    done = runner.action(base="jit=on", head="jit=off", **{**INPUTS, "budget": "1s"})
    assert [step.returncode for step in done.values()] == [0, 0, 0, 2], [step.stderr for step in done.values()]
    text = (runner.gate / "summary.md").read_text()
    assert "no verdict: a verdict needs at least 8 blocks" in text
    assert "set --budget " in text
    assert outcome_in(runner.gate / "junit.xml") == "error"
    assert "no verdict" in runner.comments()["comment-7"]
    assert not (runner.gate / "gate.tar.xz").exists()


@pytest.mark.server
def test_the_steps_fail_after_an_error(runner):
    done = runner.action(base="jit=on", head="jitt=off", **INPUTS)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 3]
    assert "did you mean jit" in (runner.gate / "summary.md").read_text()


def test_a_gate_that_passes_without_a_result_fails(tmp_path):
    program = tmp_path / "pgtrial"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    runner = Runner(tmp_path, program)
    done = runner.action(base="a", head="b", **INPUTS)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 2]


HOSTILE = {
    "base": "$(touch stolen)`touch stolen`",
    "head": '"; touch stolen; "',
    "study": "'; touch stolen; '.toml",
    "budget": "$(touch stolen)",
    "profile": "--results=stolen",
    "name": '"; touch stolen #`$(touch stolen)',
    "install": "--index-url=http://evil; touch stolen",
    "fail_on": "worse; touch stolen",
}


@pytest.mark.server
def test_inputs_are_no_commands(runner):
    done = runner.action(**{**INPUTS, **HOSTILE})
    assert done["Conclude"].returncode == 3
    assert not list(runner.root.rglob("stolen"))
    assert (runner.folder / "installed").read_text().splitlines()[-1] == HOSTILE["install"]
    assert list(runner.comments()) in ([], ["comment-7"])


def job(runner: Runner, **variables: str) -> list[subprocess.CompletedProcess[str]]:
    """The parts of the GitLab job."""
    known = {**JOB["variables"], "CI_PROJECT_DIR": str(runner.work), "CI_JOB_NAME": "perf gate", **variables}
    known |= {"CI_JOB_URL": "https://g/j/1", "CI_API_V4_URL": "https://g/api/v4", "CI_PROJECT_ID": "5"}
    parts = ("\n".join(JOB[name]) for name in ("before_script", "script", "after_script"))
    return [runner.bash(part, known) for part in parts]


MERGE_REQUEST = {"CI_MERGE_REQUEST_IID": "12", "PGTRIAL_TOKEN": "t0ken", "PGTRIAL_STUDY": "gate.toml"}


@pytest.mark.server
def test_the_job_of_gitlab_fails_after_a_comparison_that_is_empty_and_has_one_comment(runner):
    variables = {**MERGE_REQUEST, "PGTRIAL_BASE": "jit=on", "PGTRIAL_HEAD": "jit=off", "PGTRIAL_BUDGET": "1s"}
    for _ in range(2):
        done = job(runner, **variables)
        assert [part.returncode for part in done] == [0, 2, 0], [part.stderr for part in done]
    (comment,) = runner.comments().values()
    assert comment.startswith("<!-- pgtrial gate: perf-gate -->\n### pgtrial gate: no verdict\n")
    assert comment.endswith("[Bundle](https://g/j/1/artifacts/browse/pgtrial-gate)\n")
    assert "t0ken" not in (runner.folder / "calls").read_text()
    assert not (runner.work / "curl.conf").exists()


@pytest.mark.server
def test_the_job_of_gitlab_without_a_token_has_its_files_alone(runner):
    variables = {**MERGE_REQUEST, "PGTRIAL_BASE": "$(touch stolen)", "PGTRIAL_HEAD": '"; touch stolen; "'}
    done = job(runner, **{**variables, "PGTRIAL_TOKEN": ""})
    assert [part.returncode for part in done] == [0, 3, 0]
    assert runner.comments() == {}
    assert not list(runner.root.rglob("stolen"))
    assert "pgtrial gate: error" in done[1].stdout
    assert outcome_in(runner.work / JOB["artifacts"]["reports"]["junit"]) == "error"
