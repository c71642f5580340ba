"""Root writes no file of the engine, runs no script and waits for no pipe that another account could exchange."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from pgtrial.loads.process import engine_path
from tests.conftest import public_directory, require_engine, require_root

pytestmark = pytest.mark.machine


@pytest.fixture
def home():
    require_root()
    require_engine()
    root = public_directory()
    home = root / "home"
    home.mkdir()
    (home / "test.lua").write_text('function event() os.execute("true") end\n')
    (home / "shell.sql").write_text("\\shell true\n")
    (home / "requires.lua").write_text("")
    os.mkfifo(home / "pipe")
    for path in (home, *home.iterdir()):
        shutil.chown(path, "nobody")
    yield home
    shutil.rmtree(root)


def refused(*words, cwd=None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "SUDO_UID"}
    done = subprocess.run(
        [engine_path(), *map(str, words)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


def test_a_lua_script_of_another_account_is_not_run(home):
    assert "belongs to the account nobody" in refused("sysbench", home / "test.lua", "run")


def test_a_lua_script_is_not_run_where_another_account_could_give_it_modules(home):
    script = home.parent / "own.lua"
    script.write_text('require("requires")\nfunction event() end\n')
    assert "belongs to the account nobody" in refused("sysbench", script, "run", cwd=home)


def test_a_script_with_shell_of_another_account_is_not_run(home):
    assert "belongs to the account nobody" in refused("pgbench", "-n", "-f", home / "shell.sql")


def test_a_pipe_of_another_account_is_not_waited_for(home):
    said = refused("capture", home / "pipe", "--output", home.parent / "capture")
    assert "belongs to the account nobody" in said


def test_a_capture_is_not_written_below_a_directory_of_another_account(home):
    log = home.parent / "log"
    log.write_text("")
    assert "belongs to the account nobody" in refused("capture", log, "--anonymize", "--output", home / "capture")
    assert not (home / "capture").exists()
