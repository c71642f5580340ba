"""An error of any command is status 3 and a sentence: 1 is a regression and 2 is no verdict for what reads them."""

import os

import pytest

from pgtrial.cli import COMMANDS
from tests.conftest import require_engine

pytestmark = pytest.mark.server

WRONG = {
    "demo": [["--results"], ["--nonsense"], ["extra"]],
    "run": [[], ["absent.toml"], ["broken.toml"], ["@nothing"], ["--more", "1h"], ["@demo", "--seed", "-1"]],
    "stop": [[], ["absent"], ["--nonsense"], ["."]],
    "compare": [[], ["jit=on"], ["jit=on", "jit=off", "--clients", "x"], ["jit=on", "jit=off", "--budget", "1s"]],
    "capacity": [[], ["a", "b"], ["--p99", "20ms"], ["jit=on", "--p99", "0"], ["jit=on", "jit=off", "--p99", "soon"]],
    "screen": [[], ["jit"], ["jit=on"], ["jit=on,off", "--clients", "1,8"], ["jit=on,off", "--budget", "1s"]],
    "gate": [[], ["jit=on"], ["jit=on", "jit=off"], ["a", "b", "--study", "broken.toml"], ["a", "b", "--fail-on", "x"]],
    "upgrade": [
        [],
        ["15"],
        ["15", "15", "--data", "broken.toml", "--query", "SELECT 1"],
        ["15", "18", "--query", "SELECT 1"],
        ["15", "18", "--data", "broken.toml"],
        ["15", "18", "--data", "broken.toml", "--log", "absent"],
        ["15", "18", "--data", "absent", "--query", "SELECT 1"],
        ["15", "18", "--data", "broken.toml", "--statements-of", "host=/absent"],
    ],
    "bisect": [[], ["a"], ["a", "b"], ["a", "b", "--study", "broken.toml"], ["a", "b", "--study", "@demo"]],
    "selftest": [["absent"], ["--planted", "99%"], ["--budget", "soon"], ["--clients", "0"]],
    "plan": [[], ["absent.toml"], ["broken.toml"], ["@demo", "--nonsense"]],
    "verdict": [[], ["absent"], ["empty"], ["broken.tar.xz"]],
    "judge": [[], ["absent"], ["empty"], ["broken.toml"], ["--draw", "a"], ["broken.toml", "--margin", "x"]],
    "report": [[], ["absent"], ["empty"], ["broken.tar.xz"]],
    "bundle": [[], ["absent"], ["empty"], ["broken.tar.xz"]],
    "verify": [[], ["absent"], ["empty"], ["broken.tar.xz"]],
    "rerun": [[], ["absent"], ["empty"], ["broken.tar.xz"], ["--budget"]],
    "history": [[], ["add"], ["add", "absent"], ["add", "broken.tar.xz"], ["show", "--directory", "absent"], ["sing"]],
    "publish": [[], ["absent"], ["broken.toml"], ["empty", "-o", "broken.toml"]],
    "serve": [["absent"], ["--port", "0"], ["--port", "x"], ["broken.toml"]],
    "sql": [[], ["SELECT 1"], ["SELECT 1", "absent"], ["SELEC 1", "empty"]],
    "metrics": [[], ["absent"], ["empty"]],
    "facts": [["absent"], ["broken.toml"], ["broken.tar.xz"], ["--profile", "x"]],
    "pack": [[], ["check"], ["check", "absent"], ["sing"], ["list", "x"]],
    "list": [["extra"], ["--nonsense"]],
    "cleanup": [
        ["extra"],
        ["--unused", "soon"],
        ["--template", "absent"],
        ["--build", "absent"],
        ["--forget", "absent"],
    ],
    "order-entry": [[], ["sing"], ["load", "--warehouses", "0"], ["run", "-c", "x"]],
    "generate": [[], ["absent"], ["reports", "--scale", "0"]],
    "tasks": [["--tasks", "0"], ["--nonsense"], ["--pool=x"]],
    "capture": [[], ["absent.log"], ["--nonsense"], ["--from=soon", "broken.toml"]],
    "replay": [[], ["absent"], ["empty"], ["--nonsense", "empty"]],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("wrong")
    (made / "empty").mkdir()
    (made / "broken.toml").write_text("[load\n")
    (made / "broken.tar.xz").write_bytes(b"no archive")
    return made


def files_of(folder):
    """Returns what is in the folder beside the state directory."""
    return sorted(path for path in folder.rglob("*") if "state" not in path.relative_to(folder).parts)


def test_each_command_has_wrong_inputs():
    assert WRONG.keys() | {"pgbench", "sysbench"} == COMMANDS.keys()


@pytest.mark.parametrize("command", WRONG)
def test_an_error_is_status_3_and_one_sentence(commands, folder, command):
    environment = {**os.environ, "PGTRIAL_ENGINE": str(require_engine()), "PGTRIAL_STATE": str(folder / "state")}
    before = files_of(folder)
    for arguments in WRONG[command]:
        done = commands.run([command, *arguments], folder, environment)
        said = [line for line in done.stderr.splitlines() if "warning: left out" not in line]
        assert (done.returncode, done.stdout) == (3, ""), (arguments, done)
        assert len(said) == 1, (arguments, done.stderr)
        assert "error: " in said[0], (arguments, done.stderr)
    assert files_of(folder) == before


@pytest.mark.parametrize("program", ["pgbench", "sysbench"])
def test_the_originals_keep_their_status(commands, folder, program):
    environment = {**os.environ, "PGTRIAL_ENGINE": str(require_engine())}
    assert commands.run([program, "--time=x", "absent", "run"], folder, environment).returncode == 1
