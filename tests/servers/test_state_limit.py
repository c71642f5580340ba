"""Tests of the limit for the size of the state directory: the oldest templates, builds and copies of installations are
removed first.
"""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pgtrial.files.locks import open_lock, wait_for
from pgtrial.servers.builds.kept import Builds, Made, Order
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.state_limit import trim, use_of_install
from pgtrial.servers.templates import TemplateKey, TemplateOrder
from pgtrial.servers.workspace import Workspace
from tests.conftest import require_root, require_server
from tests.servers.builds import scripted_build

SIZE = 1 << 20


def aged(path, days):
    moment = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))


@pytest.fixture
def state(tmp_path):
    for name in ("templates", "builds", "installs"):
        (tmp_path / name).mkdir()
    return tmp_path


def build(state, name, days):
    def make(home, log, earlier):
        (home / "bin").mkdir()
        (home / "bin" / "postgres").write_bytes(b"x" * SIZE)
        return Made("bin", {}, [], 1)

    store = Builds(state / "builds")
    store.ensure(Order(name, name, "here", make), lambda text: None)
    store.close()
    aged(state / "builds" / name / "lock", days)


def install(state, name, days):
    home = state / "installs" / name
    home.mkdir()
    (home / "postgres").write_bytes(b"x" * SIZE)
    open_lock(use_of_install(home)).close()
    aged(use_of_install(home), days)
    return home


def template(state, days):
    def fill(data):
        data.mkdir(parents=True)
        (data / "PG_VERSION").write_bytes(b"x" * SIZE)

    store, key = Templates(state / "templates"), TemplateKey("PostgreSQL 18.6 1234 initdb", "18.6", 1)
    store.ensure(TemplateOrder(key, "scale 1", {}, fill), state / "staging", lambda text: None, [])
    store.close()
    moment = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    (state / "templates" / key.name / "uses.json").write_text(f'{{"by_study": {{"": "{moment}"}}}}')
    return key.name


def left(state):
    folders = [state / name for name in ("templates", "builds", "installs")]
    return sorted(path.name for folder in folders for path in folder.iterdir() if path.is_dir())


def trimmed(state, limit):
    return trim(Templates(state / "templates"), Builds(state / "builds"), state / "installs", limit)


def test_the_least_recently_used_of_all_kinds_go_until_the_rest_fits(state):
    build(state, "old", 9)
    install(state, "pg18.6-1", 8)
    of_template = template(state, 7)
    build(state, "new", 1)
    install(state, "pg17.1-2", 2)
    everything = left(state)
    assert trimmed(state, 100 * SIZE) is None
    assert left(state) == everything
    sentence = trimmed(state, int(2.5 * SIZE))
    assert left(state) == ["new", "pg17.1-2"]
    assert of_template not in left(state)
    assert sentence.startswith("removed 1 build and 1 installation and 1 template of 3")
    assert sentence.endswith("(PGTRIAL_STATE_LIMIT)")


def test_what_a_running_lab_uses_stays(state):
    home = install(state, "pg18.6-1", 8)
    install(state, "pg17.1-2", 2)
    build(state, "used", 9)
    running = Builds(state / "builds")
    running.ensure(Order("used", "used", "here", lambda *_: pytest.fail("it is there")), lambda text: None)
    aged(state / "builds" / "used" / "lock", 9)
    with open_lock(use_of_install(home)) as lock:
        wait_for(lock, shared=True)
        trimmed(state, 0)
        assert left(state) == ["pg18.6-1", "used"]
    running.close()
    trimmed(state, 0)
    assert left(state) == []


@pytest.mark.server
def test_a_new_run_removes_what_is_beyond_the_limit_and_says_so(fresh_state, monkeypatch):
    monkeypatch.setenv("PGTRIAL_STATE_LIMIT", "1kB")
    for name in ("builds", "installs"):
        (fresh_state / name).mkdir(exist_ok=True)
    build(fresh_state, "old", 9)
    with Workspace(fresh_state) as workspace:
        assert any("removed 1 build of" in notice for notice in workspace.notices)
        assert left(fresh_state) == []


@pytest.mark.server
def test_a_copy_of_an_installation_stays_while_a_run_uses_it(fresh_state):
    require_root()
    closed = fresh_state / "root-only"
    closed.mkdir(mode=0o700)
    server = replace(require_server(18), bin=scripted_build(closed / "build"))
    state = fresh_state / "state"
    with Workspace(state) as workspace:
        copied = workspace.reachable(server)
        assert copied.bin.is_relative_to(state / "installs")
        trimmed(state, 0)
        assert copied.bin.is_dir()
    trimmed(state, 0)
    assert not copied.bin.exists()
