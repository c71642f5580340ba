"""Client programs of a study: what is read with it, and what is refused before anything runs."""

from __future__ import annotations

import hashlib
import sys

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.programs import TRACKED
from pgtrial.store.comparison import comparison, name_arms, with_arms
from pgtrial.store.programs import check_programs_unchanged
from pgtrial.store.study_file import build_study
from tests.repositories import Repository

PYTHON = sys.executable


@pytest.fixture
def study(tmp_path):
    (tmp_path / "a.py").write_text("pass")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.py").write_text("pass # own")

    def make(*commands: str | None, load=(), server=(), **others):
        arms = {"abc"[n]: {} if text is None else {"command": text} for n, text in enumerate(commands)}
        data = {"load": dict(load), "server": dict(server), "arms": arms, **others}
        return build_study(data, "s.toml", tmp_path)

    return make


def test_commands_are_the_load_and_their_files_are_known(study, tmp_path):
    spec = study(f"{PYTHON} a.py --rows=a.py", f"{PYTHON} 'no file.py'")
    assert spec.load.kind.runs_in_batches
    digests = {PYTHON: _digest(PYTHON), "a.py": _digest(tmp_path / "a.py")}
    assert spec.resolved("a").command_files == digests
    assert spec.resolved("b").command_files == {PYTHON: digests[PYTHON]}
    assert spec.resolved("a").command_directory == str(tmp_path)
    assert thaw(freeze(spec)) == spec


def test_a_command_for_all_and_a_directory_of_its_own(study, tmp_path):
    arms = {"a": {}, "b": {"command_directory": "own"}}
    spec = build_study({"server": {"command": f"{PYTHON} a.py"}, "arms": arms}, "s.toml", tmp_path)
    assert spec.resolved("b").command_directory == str(tmp_path / "own")
    assert spec.resolved("a").command_files["a.py"] != spec.resolved("b").command_files["a.py"]


@pytest.fixture
def driver(tmp_path) -> Repository:
    """Returns a repository with a program that imports a module, which its second commit changes."""
    repository = Repository(tmp_path / "driver")
    repository.commit("one", {"bench.py": "import driver", "driver.py": "slow = False", "docs/notes": "one"})
    repository.commit("two", {"driver.py": "slow = True"})
    return repository


def test_a_command_may_run_in_the_files_of_a_commit(tmp_path, driver):
    arms = {name: {"command_directory": f"git:driver@{ref}"} for name, ref in (("a", "HEAD~1"), ("b", "main"))}
    spec = build_study({"server": {"command": f"{PYTHON} bench.py"}, "arms": arms}, "s.toml", tmp_path)
    commits = [driver.git("rev-parse", ref) for ref in ("HEAD~1", "HEAD")]
    assert [spec.resolved(arm).command_directory for arm in "ab"] == [f"git:{driver.path}@{one}" for one in commits]
    assert spec.resolved("a").command_files == {PYTHON: _digest(PYTHON)}, "those of the commit are known by its name"
    assert Design(spec).load.kind.runs_in_batches
    assert thaw(freeze(spec)) == spec


@pytest.mark.parametrize(
    ("directory", "complaint"),
    [
        ("git:driver@none", "the repository has no commit 'none'"),
        ("git:driver", "command_directory: the commit names no commit; write a branch, tag or commit behind @"),
        ("source:driver", "command_directory: a directory is written without source:; write its path"),
    ],
)
def test_a_commit_that_cannot_be_is_refused(tmp_path, driver, directory, complaint):
    arms = {"a": {"command_directory": directory}, "b": {}}
    with pytest.raises(StudyError) as refused:
        build_study({"server": {"command": f"{PYTHON} bench.py"}, "arms": arms}, "s.toml", tmp_path)
    assert complaint in str(refused.value)


def test_the_program_of_a_command_in_a_commit_has_to_be_installed(tmp_path, driver):
    arms = {"a": {"command_directory": "git:driver@HEAD"}, "b": {}}
    with pytest.raises(StudyError, match=r"\[arms\.a\] command: there is no program no-such-program; install it"):
        build_study({"server": {"command": "no-such-program bench.py"}, "arms": arms}, "s.toml", tmp_path)


def test_a_set_up_of_the_command_line_names_the_directory_from_here(tmp_path, driver, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ci").mkdir()
    change = with_arms(["command_directory=driver", "head=command_directory=git:driver@HEAD"])
    arms = change({"study": {}, "server": {"command": "x"}})["arms"]
    assert [setup["command_directory"] for setup in arms.values()] == [str(driver.path), f"git:{driver.path}@HEAD"]


def test_files_that_git_tracks_in_the_directory_belong_to_the_program(tmp_path, driver):
    def server():
        arms = {"a": {"command_directory": "driver"}, "b": {"command_directory": "driver"}}
        spec = build_study({"server": {"command": f"{PYTHON} bench.py"}, "arms": arms}, "s.toml", tmp_path)
        return spec.resolved("a")

    planned = server()
    assert planned.command_files.keys() == {PYTHON, "bench.py", TRACKED}
    (driver.path / "results").mkdir()
    (driver.path / "results" / "new.py").write_text("not tracked")
    driver.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    assert server() == planned
    check_programs_unchanged("a", planned)
    (driver.path / "driver.py").write_text("slow = None")
    assert server() != planned
    with pytest.raises(StudyError, match=r"files in .*/driver, in which the command .* runs, have changed since the"):
        check_programs_unchanged("a", planned)
    driver.commit("three", {})
    assert server() != planned
    driver.git("revert", "--no-edit", "HEAD")
    assert server() == planned, "the same files in another commit"


def _digest(path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.parametrize("change", ["rewritten", "removed"])
def test_a_file_that_has_changed_is_noticed(study, tmp_path, change):
    server = study(f"{PYTHON} a.py", f"{PYTHON} a.py").resolved("a")
    check_programs_unchanged("a", server)
    (tmp_path / "a.py").unlink()
    if change == "rewritten":
        (tmp_path / "a.py").write_text("pasS")
    with pytest.raises(
        StudyError, match=r"^arms\.a: a\.py of the command .* has changed since the study was planned; "
    ):
        check_programs_unchanged("a", server)


@pytest.mark.parametrize(
    ("commands", "sections", "complaint"),
    [
        (("x", None), {}, "[arms.b] has no command, but other arms have one as their load; give every arm a"),
        (
            (None, None),
            {"load": {"workload": "client-programs"}},
            "[arms.a] has no command, but the load client-programs consists of the arms' commands",
        ),
        ((None, None), {"server": {"command_directory": "own"}}, "[arms.a] has command_directory and no command;"),
        (
            ("x", "x"),
            {"load": {"workload": "select-only"}},
            "[load] workload: the commands of the arms are already the load;",
        ),
        (("x", "x"), {"load": {"query": "select 1"}}, "[load] query: the commands of the arms are already the load;"),
        (("x", "x"), {"load": {"clients": 4}}, "clients is not for client-programs: a program opens its own conn"),
        (("x", "x"), {"load": {"rate": 4}}, "rate is not for client-programs"),
        (("x", "x"), {"load": {"max_tries": 4}}, "max_tries is not for client-programs"),
        (("x", "x"), {"verdict": {"metrics": "p99"}}, 'metrics: "p99" takes the time of each operation'),
        (("x", "x"), {"verdict": {"metrics": "response"}}, 'metrics: "response" takes the time of each operation'),
        (
            ("x", "x"),
            {"fleet": {"address": "local"}},
            "[fleet] a client program runs on the machine of pgtrial; remove it",
        ),
        (("no-such-program", "x"), {}, "[arms.a] command: there is no program no-such-program on PATH; install it"),
        (("./none", "x"), {}, "[arms.a] command: there is no program /"),
        (("x", "node 'a"), {}, "[arms.b] command: no closing quotation; close the quote"),
        (("x", ""), {}, "[arms.b] command: the command is empty; write a program and its arguments"),
        (("x", "x postgres://me:secret@db/d"), {}, "[arms.b] command: a command is stored with the results, and this"),
        (("x", "x 'password=secret'"), {}, "[arms.b] command: a command is stored with the results, and this one"),
        (("x", "x"), {"server": {"command_directory": "nowhere"}}, "[arms.a] command_directory: there is no directory"),
    ],
)
def test_what_cannot_be_is_refused(study, commands, sections, complaint):
    named = [text and text.replace("x", PYTHON, 1) if text and text.startswith("x") else text for text in commands]
    with pytest.raises(StudyError) as refused:
        study(*named, **sections)
    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "name", "setup"),
    [
        ("command=node a.js", "command=node a.js", {"command": "node a.js"}),
        ("new=command=node a.js", "new", {"command": "node a.js"}),
        ("command=node a.js --x=1,y=2", "command=node a.js --x=1,y=2", {"command": "node a.js --x=1,y=2"}),
        ("command_directory=../b,command=c --x=1,y=2", "command_directory=../b,command=c --x=1,y=2",
         {"command_directory": "../b", "command": "c --x=1,y=2"}),
        ("n=postgres=17, command = ./b", "n", {"postgres": "17", "command": "./b"}),
        ("work_mem=4MB,jit=off,command=c", "work_mem=4MB,jit=off,command=c",
         {"settings": {"work_mem": "4MB", "jit": "off"}, "command": "c"}),
    ],
)  # fmt: skip
def test_arms_of_the_command_line(text, name, setup):
    assert name_arms([text]) == {name: setup}


def test_the_command_line_refuses_as_a_study_file_does():
    with pytest.raises(StudyError, match="has no command, but other arms have one"):
        comparison([f"command={PYTHON} a.py", "default"], "compare", None, 1, {})


def test_the_commands_of_arms_are_their_jobs_if_the_load_is_a_job_without_a_file(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = study("sh a.py", "pg_dump -Z 9", load={"workload": "job:"})
    assert (spec.load.workload, spec.load.job.command) == (["job:"], "sh a.py")
    assert spec.resolved("a").command_files == {"a.py": _digest(tmp_path / "a.py")}
    (point,) = Design(spec).load_points
    assert point.workload == "of each arm"
    assert [point.job.command_of(arm) for arm in "ab"] == ["sh a.py", "pg_dump -Z 9"]
    assert thaw(freeze(spec)) == spec


def test_an_arm_without_a_command_runs_the_job_of_the_load(study):
    load = {"workload": "job:", "job": {"command": "pg_dump -Z 1"}}
    spec = study(None, "pg_dump -Z 9", load=load)
    assert [spec.resolved(arm).command for arm in spec.arms] == ["pg_dump -Z 1", "pg_dump -Z 9"]
    (point,) = Design(spec).load_points
    assert point.workload == "pg_dump"


def test_the_directory_of_a_job_cannot_be_chosen(study):
    with pytest.raises(StudyError, match="has command_directory, which is for client programs"):
        study("true", "false", load={"workload": "job:"}, server={"command_directory": "own"})
