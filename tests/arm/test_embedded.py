"""Embedded arms: the same bytes and a fresh server for every trial."""

from __future__ import annotations

import pytest

from pgtrial.arm.base import Needs, make_arms
from pgtrial.arm.processes import server_processes
from pgtrial.errors import ArmError, StudyError
from pgtrial.study.spec import StudySpec
from tests.conftest import VERSIONS, require_engine, require_server


def _spec(a=None, b=None, **sections):
    return StudySpec.model_validate(
        {"load": {"scale": 1, "clients": 2}, **sections, "arms": {"A": a or {}, "B": b or {}}}
    )


def _silent(line):
    del line


@pytest.fixture
def arms_of(workspace):
    made = []

    def make(spec):
        require_server(18)
        arms = make_arms(spec, workspace)
        made.extend(arms.values())
        return arms

    yield make
    for arm in made:
        arm.close()


@pytest.mark.parametrize("major", VERSIONS)
def test_every_trial_of_every_version_starts_from_the_same_data(arms_of, workspace, tmp_path, major):
    require_engine()
    require_server(major)
    spec = _spec(server={"postgres": str(major), "settings": {"work_mem": "9MB"}})
    arm = arms_of(spec)["A"]
    arm.check(Needs.of(spec))
    arm.prepare(1, _silent)
    for _ in range(2):
        timings: dict[str, float] = {}
        with arm.serve(1, tmp_path / "server.log", timings) as target, target.connect() as connection:
            assert connection.execute("SHOW work_mem").fetchone() == ("9MB",)
            assert connection.execute("SELECT count(*), sum(abalance) FROM pgbench_accounts").fetchone() == (100000, 0)
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            connection.execute("UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 1")
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
            assert arm.data_directory is not None
            served = arm.data_directory
        assert timings.keys() == {"restore", "start", "stop"}
        assert arm.data_directory is None
        assert not served.exists()
        assert server_processes(served) == []
    assert "database system is ready" in (tmp_path / "server.log").read_text()


def test_arms_that_differ_in_settings_alone_share_a_template(arms_of, workspace):
    require_engine()
    spec = _spec(b={"settings": {"shared_buffers": "32MB"}})
    arms = arms_of(spec)
    assert arms["A"].kind == arms["B"].kind
    arms["A"].prepare(1, _silent)
    lines: list[str] = []
    arms["B"].prepare(1, lines.append)
    assert lines == []


def test_initdb_options_make_another_template(arms_of, tmp_path):
    spec = _spec(a={"initdb": ["--wal-segsize=1"]})
    arms = arms_of(spec)
    assert arms["A"].kind != arms["B"].kind
    with arms["A"].serve(0, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SHOW wal_segment_size").fetchone() == ("1MB",)


def test_the_template_is_frozen_and_its_wal_is_ready_made(arms_of, tmp_path):
    require_engine()
    spec = _spec()
    arm = arms_of(spec)["A"]
    with arm.serve(1, tmp_path / "log", {}) as target, target.connect() as connection:
        query = "SELECT count(*) FROM pg_ls_waldir()"
        segments = connection.execute(query).fetchone()
        assert segments is not None
        assert segments[0] >= 4
        row = connection.execute(
            "SELECT relallvisible = relpages, obj_description(oid) FROM pg_class WHERE relname = 'pgbench_accounts'"
        ).fetchone()
        assert row is not None
        assert row[0]
        assert row[1].startswith("loaded by pgtrial")


def test_without_reset_the_next_trial_finds_what_the_last_one_left(arms_of, tmp_path):
    require_engine()
    arm = arms_of(_spec(a={"reset": "none"}))["A"]
    for expected in (0, 1):
        with arm.serve(1, tmp_path / "log", {}) as target, target.connect() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (expected,)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")


def test_reset_by_vacuum_empties_the_history_on_the_same_directory(arms_of, tmp_path):
    require_engine()
    arm = arms_of(_spec(a={"reset": "vacuum"}))["A"]
    directories = set()
    for _ in range(2):
        with arm.serve(1, tmp_path / "log", {}) as target, target.connect() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
            directories.add(arm.data_directory)
    assert len(directories) == 1


def test_a_setting_that_postgresql_refuses_is_found_before_the_first_trial(arms_of):
    spec = _spec(b={"settings": {"random_page_costs": "1"}})
    arms = arms_of(spec)
    arms["A"].check(Needs.of(spec))
    with pytest.raises(StudyError, match=r'arms\.B: .*unrecognized configuration parameter "random_page_costs"'):
        arms["B"].check(Needs.of(spec))


def test_more_clients_than_connections_are_found_before_the_first_trial(arms_of):
    spec = _spec(load={"scale": 1, "clients": [1, 30]}, b={"settings": {"max_connections": 30}})
    with pytest.raises(StudyError, match=r"arms\.B: 30 clients need max_connections of at least 37 .* has 30"):
        arms_of(spec)["B"].check(Needs.of(spec))


def test_a_scale_that_does_not_fit_the_disk_is_found_before_loading(arms_of):
    spec = _spec(load={"scale": 1_000_000})
    with pytest.raises(StudyError, match=r"scale 1000000 does not fit the disk: it needs about 3[0-9,]+ MB"):
        arms_of(spec)["A"].check(Needs.of(spec))


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("data_directory", "a data directory of its own"),
        ("unix_socket_directories", "private socket directory"),
        ("include", "directive"),
        ("work mem", "not the name of a PostgreSQL setting"),
    ],
)
def test_settings_that_are_not_for_a_study_are_refused_by_name(arms_of, setting, why):
    with pytest.raises(StudyError, match=why):
        arms_of(_spec(b={"settings": {setting: "x"}}))


def test_a_wrong_initdb_option_names_the_arm(arms_of):
    spec = _spec(b={"initdb": ["--no-such-option"]})
    with pytest.raises(
        StudyError, match=r"arms\.B: initdb of PostgreSQL 18\S* with the options --no-such-option failed"
    ):
        arms_of(spec)["B"].check(Needs.of(spec))


def test_a_server_that_cannot_start_for_a_trial_leaves_no_directory(arms_of, workspace, tmp_path, monkeypatch):
    arm = arms_of(_spec(a={"settings": {"shared_buffers": "900TB"}}))["A"]
    before = set(workspace.run.iterdir())
    with pytest.raises(ArmError, match="does not start"), arm.serve(0, tmp_path / "log", {}):
        pass
    assert set(workspace.run.iterdir()) == before
