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


def refused(*words, cwd=None, given="", env=None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "SUDO_UID"} | (env or {})
    done = subprocess.run(
        [engine_path(), *map(str, words)],
        cwd=cwd,
        env=environment,
        input=given,
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


MODULE = 'io.open("{}/ran", "w") return {{}}\n'
"""The module that another account plants: it makes a file, which shows that the module ran."""


@pytest.fixture
def shared(home):
    """Returns a directory like /tmp that belongs to root and in which every account may make files."""
    shared = home.parent / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    planted = shared / "planted.lua"
    planted.write_text(MODULE.format(home.parent))
    os.mkfifo(shared / "pipe.lua")
    (shared / "library.so").write_text("")
    for path in shared.iterdir():
        shutil.chown(path, "nobody")
    return shared


@pytest.mark.parametrize("by", ["path", "stdin"])
@pytest.mark.parametrize(
    "line",
    [
        'require("planted")',
        'pcall(require, "planted") pcall(dofile, "planted.lua") error("belongs to the account nobody")',
        'dofile("./planted.lua")',
        'assert(loadfile("planted.lua"))()',
        'package.path = "{shared}/?.lua" require("planted")',
        'require("library")',
        'require("library.part")',
        'package.loadlib("./library.so", "*")',
        'require("ffi").load("./library.so")',
        'dofile("./pipe.lua")',
    ],
)
def test_a_file_that_another_account_has_put_into_a_directory_for_all_is_not_executed(shared, line, by):
    script = shared.parent / "own.lua"
    script.write_text(f"{line.format(shared=shared)}\nfunction event() end\n")
    said = refused("sysbench", script if by == "path" else "-", "run", cwd=shared, given=script.read_text())
    assert "belongs to the account nobody" in said
    assert not (shared.parent / "ran").exists()


def test_a_module_of_another_account_is_not_run_where_the_environment_leads_to_it(shared):
    script = shared.parent / "own.lua"
    script.write_text('require("planted")\nfunction event() end\n')
    rocks = shared / ".luarocks/share/lua"
    rocks.mkdir(parents=True)
    (shared / "planted.lua").rename(rocks / "planted.lua")
    for variable, value in (("HOME", shared), ("LUA_PATH", rocks / "?.lua")):
        said = refused("sysbench", script, "run", cwd=shared.parent, env={variable: str(value)})
        assert "belongs to the account nobody" in said
        assert not (shared.parent / "ran").exists()


def test_a_module_of_roots_own_is_run_in_a_directory_for_all(shared):
    (shared / "own.lua").write_text(MODULE.format(shared.parent))
    script = shared.parent / "script.lua"
    script.write_text('require("own") error("that is all")\n')
    assert "that is all" in refused("sysbench", script, "run", cwd=shared)
    assert (shared.parent / "ran").exists()


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
