"""The steps of the GitHub Action and of the GitLab job, as they stand, run a gate."""

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
from tests.cli.gates import of_measured_studies, outcome_in, property_in
from tests.conftest import require_engine

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
"""A study with trials of a fraction of a second; each task of one arm fails, so that the verdict depends on no
speed.
"""


# ---- the steps


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200", "PGTRIAL_ENGINE": str(require_engine())}
    return lambda *arguments, cwd: commands.run([*map(str, arguments)], Path(cwd), environment)


@pytest.fixture
def measured(monkeypatch):
    """Returns a function `measure(ratio, sd)`. After a call, each study that a gate starts gets made trials of this
    ratio.
    """
    return of_measured_studies(monkeypatch)


FAKE_PYTHON = """#!/bin/sh
# python3 -m venv FOLDER: a folder whose python installs nothing and whose pgtrial is that of the tests
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'END'
#!/bin/sh
printf "%s\\n" "$@" >> {folder}/installed
# pip wheel --quiet --no-deps --wheel-dir FOLDER CHECKOUT
[ "$3" != wheel ] || touch "$7/pgtrial-1.0-py3.whl"
END
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
elif "graphql" in arguments:
    print("github-actions[bot]")
else:
    marker = re.search(r'startswith\\("(.*?)"\\)', arguments[-1])[1]
    login = re.search(r'login == "(.*?)"', arguments[-1])[1]
    for path in sorted(folder.glob("comment-*")):
        author = "outsider" if path.name == "comment-1" else "github-actions[bot]"
        if path.read_text().startswith(marker) and author == login:
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
elif arguments[-1].endswith("/user"):
    print(json.dumps({{"id": 42}}))
else:
    notes = [(path.name.rpartition("-")[2], path.read_text()) for path in sorted(folder.glob("comment-*"))]
    authors = {{"1": 666}}
    print(json.dumps([
        {{"id": int(number), "body": body, "author": {{"id": authors.get(number, 42)}}}} for number, body in notes
    ]))
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
        """Runs the steps of the Action with these inputs, or only the step `only`; returns each step's result by its
        name.
        """
        known = {f"inputs.{name}": key.get("default", "") for name, key in ACTION["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        known |= {"github.action_path": inputs.get("checkout", "")}
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
        """The directory into which the Action writes its files."""
        return self.temporary / "pgtrial-gate"

    def comments(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.folder.glob("comment-*"))}


def filled_in(text: str, known: dict[str, str]) -> str:
    """Returns the value of an environment variable of a step, with the known expressions filled in."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known.get(found[1], ""), text)


INPUTS = {"study": "gate.toml", "budget": "40s", "install": "./pgtrial.whl", "token": "t0ken"}


@pytest.fixture(scope="module")
def database(clusters):
    cluster = clusters(18)
    with cluster.target.connect_as_user() as session:
        session.autocommit = True
        session.execute("CREATE DATABASE gate")
        yield f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=gate"
        session.execute("DROP DATABASE gate WITH (FORCE)")


@pytest.fixture(scope="module")
def after_a_gate(tmp_path_factory, database, commands, workspace):
    """Returns a runner on which the Action has found that HEAD is slower, and the result of each step by its name."""
    runner = Runner(tmp_path_factory.mktemp("runner"), commands.folder / "pgtrial")
    (runner.work / "gate.toml").write_text(STUDY.format(dsn=database))
    (runner.folder / "comment-3").write_text("a comment of a person: <!-- pgtrial gate: gate -->")
    return runner, runner.action(base="fast", head="slow", **INPUTS)


@pytest.mark.server
def test_the_steps_of_the_action_run_a_gate(after_a_gate):
    runner, done = after_a_gate
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 1], [step.stderr for step in done.values()]
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
    assert "fail: slow failed in all 6 trials" in text
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
def test_a_comment_of_an_outsider_with_the_marker_is_not_ours(runner):
    forged = "<!-- pgtrial gate: gate -->\n### pgtrial gate: pass\n"
    (runner.folder / "comment-1").write_text(forged)
    for _ in range(2):
        runner.action(base="jit=on", head="jit=off", **{**INPUTS, "budget": "1s"})
    assert runner.comments().keys() == {"comment-1", "comment-7"}
    assert runner.comments()["comment-1"] == forged
    assert (runner.folder / "calls").read_text().count("--method POST") == 1


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
def test_a_list_of_studies_has_one_comment_and_one_status(runner, database, workspace):
    for rows in (1000, 2000):
        study = STUDY.format(dsn=database).replace("1000", str(rows))
        (runner.work / f"of-{rows}.toml").write_text(study)
    (runner.work / "gate.toml").write_text('[gate]\nstudies = ["of-1000.toml", "of-2000.toml"]\n')
    done = runner.action(base="fast", head="slow", **{**INPUTS, "budget": "100s"})
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 1], [step.stderr for step in done.values()]
    result = json.loads((runner.gate / "verdict.json").read_text())
    assert (result["gate"]["status"], list(result["studies"])) == (1, ["of-1000", "of-2000"])
    (comment,) = runner.comments().values()
    assert comment.startswith(
        "<!-- pgtrial gate: gate -->\n### pgtrial gate: fail\n\n**fail: 2 of 2 studies fail: of-1000 (slow failed "
    )
    (suite,) = ElementTree.parse(runner.gate / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    kept = runner.temporary / "pgtrial-earlier" / "gate.tar.xz"
    assert kept.read_bytes() == (runner.gate / "gate.tar.xz").read_bytes()
    runner.action(base="fast", head="slow", **{**INPUTS, "budget": "100s", "new": "true"})
    assert (
        "This is try 2 of a gate on the same set-ups. The earlier tries ended with: fail."
        in (runner.gate / "summary.md").read_text()
    )


@pytest.mark.server
def test_the_steps_fail_after_a_comparison_that_is_empty(runner):
    done = runner.action(base="jit=on", head="jit=off", **{**INPUTS, "budget": "1s"})
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 2], [step.stderr for step in done.values()]
    text = (runner.gate / "summary.md").read_text()
    assert "no verdict: a verdict needs at least 6 blocks" in text
    assert "set --budget " in text
    assert outcome_in(runner.gate / "junit.xml") == "error"
    assert "no verdict" in runner.comments()["comment-7"]
    assert not (runner.gate / "gate.tar.xz").exists()


@pytest.mark.server
def test_the_steps_fail_after_an_error(runner):
    done = runner.action(base="jit=on", head="jitt=off", **INPUTS)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 3]
    assert "did you mean jit" in (runner.gate / "summary.md").read_text()


OWN_CHECKOUT = {"study": "gate.toml", "budget": "1s", "token": "t0ken", "set_up": "work_mem=4MB"}


@pytest.mark.server
def test_the_action_builds_pgtrial_from_its_own_checkout_once(runner):
    (runner.folder / "cargo").symlink_to("/bin/true")
    checkout = runner.root / "checkout"
    (checkout / "lab").mkdir(parents=True)
    (checkout / "lab" / "a.py").write_text("1")
    keys = []
    for _ in range(2):
        runner.action(checkout=str(checkout), **OWN_CHECKOUT)
        keys += re.findall("key=(.*)", (runner.root / "output").read_text())
    wheel = runner.temporary / "pgtrial-wheel" / "pgtrial-1.0-py3.whl"
    build = f"-m pip wheel --quiet --no-deps --wheel-dir {wheel.parent} {checkout}"
    install = f"-m pip install --quiet -- {wheel}[server]"
    assert (runner.folder / "installed").read_text().split() == f"{build} {install} {install}".split()
    (checkout / "lab" / "a.py").write_text("2")
    (checkout / ".git").mkdir()
    runner.action("Identify", checkout=str(checkout), **OWN_CHECKOUT)
    keys.append(re.findall("key=(.*)", (runner.root / "output").read_text())[-1])
    assert keys[0] == keys[1] != keys[-1]
    assert re.fullmatch(r"pgtrial-wheel-[0-9a-f]{16}-cpython-\d+-linux-\w+", keys[0])


@pytest.mark.server
def test_a_runner_without_rust_is_told_so(runner):
    runner.variables["PATH"] = f"{runner.folder}:/bin"  # Rust of the system may be in /usr/bin
    done = runner.action("Install", checkout=str(runner.work), **OWN_CHECKOUT)
    assert done["Install pgtrial"].returncode == 3
    assert "::error::this runner has no Rust" in done["Install pgtrial"].stdout


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"set_up": "work_mem=4MB", "base": "jit=on"}, "leave one of them out"),
        ({"base": "jit=on"}, "nothing to compare; give set-up"),
        ({}, "nothing to compare; give set-up"),
    ],
)
def test_inputs_that_name_too_much_or_too_little_are_told_so(runner, inputs, words):
    done = runner.action("Compare", **INPUTS, **inputs)
    assert "status=3" in (runner.root / "output").read_text()
    assert words in done["Compare head with base"].stdout


@pytest.mark.server
def test_a_set_up_alone_reaches_the_gate(runner):
    runner.action(**INPUTS, set_up="work_mem=4MB")
    told = (
        r"a gate needs two set-ups to compare, and 'work\_mem=4MB' is only one; name BASE and HEAD, or one set-up with "
        "a repository"
    )
    assert told in (runner.gate / "summary.md").read_text()
    done = job(runner, **{**MERGE_REQUEST, "PGTRIAL_SETUP": "work_mem=4MB", "PGTRIAL_TOKEN": ""})
    assert done[1].returncode == 3
    assert told in done[1].stdout


@pytest.mark.server
def test_root_in_a_container_works_in_the_directories_of_the_runners_account(runner):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for path in (runner.root, runner.work, runner.work / "gate.toml", runner.temporary):
        os.chown(path, 65534, 65534)
    done = runner.action(base="jit=on", head="jitt=off", **INPUTS)
    assert done["Conclude"].returncode == 3
    assert "did you mean jit" in (runner.gate / "summary.md").read_text()


def red_bundle(runner: Runner, monkeypatch, folder: Path) -> None:
    """Leaves in a folder the bundle of a gate that failed, as an attempt before has kept it."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(runner.work)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    pair = {"base": "jit=on", "head": "jit=off", "study": "gate.toml", "budget": "40s"}
    assert gate.gate_command(**pair, bundle=folder / "gate.tar.xz") == 1
    shutil.rmtree("results")


@pytest.mark.server
def test_a_re_run_of_the_action_repeats_the_verdict_of_the_attempt_before(runner, measured, monkeypatch):
    measured(0.94)
    red_bundle(runner, monkeypatch, runner.temporary / "pgtrial-earlier")
    runner.variables["GITHUB_RUN_ATTEMPT"] = "2"
    done = runner.action(base="jit=on", head="jit=off", **INPUTS)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 1], [step.stderr for step in done.values()]
    assert "which stands: nothing was measured again" in (runner.gate / "summary.md").read_text()
    assert "which stands" in runner.comments()["comment-7"]
    assert property_in(str(runner.gate / "junit.xml"), "try") == "1"
    assert json.loads((runner.gate / "verdict.json").read_text())["gate"]["measured"] == "2026-11-20T14:01:00+00:00"
    kept = runner.temporary / "pgtrial-earlier" / "gate.tar.xz"
    assert kept.read_bytes() == (runner.gate / "gate.tar.xz").read_bytes()
    done = runner.action(base="jit=on", head="jitt=off", **INPUTS)
    assert (done["Conclude"].returncode, kept.exists()) == (3, True), "an error loses no verdict"


def test_the_cache_of_the_action_is_of_the_commit_and_of_what_the_steps_leave():
    cached = [step for step in ACTION["runs"]["steps"] if step.get("uses", "").startswith("actions/cache/")]
    of_wheel, of_bundle = cached[:2], cached[2:]
    assert [step["uses"].split("/")[2] for step in cached] == ["restore@v4", "save@v4"] * 2
    assert of_wheel[0]["with"] == of_wheel[1]["with"]
    assert {step["if"] for step in of_wheel} == {"inputs.install == ''"}
    restore, save = of_bundle
    assert save["with"] == {key: text for key, text in restore["with"].items() if key != "restore-keys"}
    assert save["with"]["path"] == "${{ runner.temp }}/pgtrial-earlier"
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    assert "github.sha" in restore["with"]["restore-keys"]
    assert save["if"] == "always()", "a red gate is what a re-run has to find"


@pytest.mark.server
def test_a_retry_of_the_job_of_gitlab_repeats_the_verdict(runner, measured, monkeypatch):
    measured(0.94)
    assert JOB["cache"] == {**JOB["cache"], "paths": ["pgtrial-gate/gate.tar.xz"], "when": "always"}
    red_bundle(runner, monkeypatch, runner.work / "pgtrial-gate")
    variables = {**MERGE_REQUEST, "PGTRIAL_BASE": "jit=on", "PGTRIAL_HEAD": "jit=off", "PGTRIAL_BUDGET": "40s"}
    done = job(runner, **variables)
    assert [part.returncode for part in done] == [0, 1, 0], [part.stderr for part in done]
    assert "which stands: nothing was measured again" in done[1].stdout
    assert (runner.work / "pgtrial-gate" / "gate.tar.xz").exists()
    done = job(runner, **{**variables, "PGTRIAL_NEW": "true"})
    assert done[1].returncode == 2, "a budget that is too short refuses what would be measured"


def test_a_gate_that_passes_without_a_result_fails(tmp_path):
    program = tmp_path / "pgtrial"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    runner = Runner(tmp_path, program)
    done = runner.action(base="a", head="b", **INPUTS)
    assert [step.returncode for step in done.values()] == [0, 0, 0, 0, 2]


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
    """Returns the parts of the GitLab job."""
    known = {**JOB["variables"], "CI_PROJECT_DIR": str(runner.work), "CI_JOB_NAME": "perf gate", **variables}
    known |= {"CI_JOB_URL": "https://g/j/1", "CI_API_V4_URL": "https://g/api/v4", "CI_PROJECT_ID": "5"}
    parts = ("\n".join(JOB[name]) for name in ("before_script", "script", "after_script"))
    return [runner.bash(part, known) for part in parts]


MERGE_REQUEST = {"CI_MERGE_REQUEST_IID": "12", "PGTRIAL_TOKEN": "t0ken", "PGTRIAL_STUDY": "gate.toml"}


@pytest.mark.server
def test_the_job_of_gitlab_fails_after_a_comparison_that_is_empty_and_has_one_comment(runner):
    variables = {**MERGE_REQUEST, "PGTRIAL_BASE": "jit=on", "PGTRIAL_HEAD": "jit=off", "PGTRIAL_BUDGET": "1s"}
    forged = "<!-- pgtrial gate: perf-gate -->\nof an outsider"
    (runner.folder / "comment-1").write_text(forged)
    for _ in range(2):
        done = job(runner, **variables)
        assert [part.returncode for part in done] == [0, 2, 0], [part.stderr for part in done]
    outsiders, comment = runner.comments().values()
    assert outsiders == forged
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
