"""Embedded arms: the same bytes and a fresh server for every trial."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest

from pgtrial.evidence.collect.collect import collect
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.volumes import mount_of, mountinfo
from pgtrial.model.errors import ArmError, StartError, StudyError
from pgtrial.model.records.plan import Drawn
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers import made
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.postmaster import server_processes
from pgtrial.servers.workspace import Workspace
from tests.conftest import VERSIONS, require, require_engine, require_root, require_server

pytestmark = pytest.mark.machine


def _spec(a=None, b=None, **sections):
    return StudySpec.model_validate(
        {"load": {"scale": 1, "clients": 2}, **sections, "arms": {"A": a or {}, "B": b or {}}}
    )


def _silent(line):
    del line


@pytest.fixture
def arms_of(workspace):
    opened = []

    def make(spec):
        require_server(18)
        arms = make_arms(Design(spec), workspace)
        opened.extend(arms.values())
        return arms

    yield make
    for arm in opened:
        arm.close()


@pytest.mark.server
@pytest.mark.parametrize("major", VERSIONS)
def test_every_trial_of_every_version_starts_from_the_same_data(arms_of, workspace, tmp_path, major):
    require_engine()
    require_server(major)
    spec = _spec(server={"postgres": str(major), "settings": {"work_mem": "9MB"}})
    arm = arms_of(spec)["A"]
    arm.check(Needs.of(Design(spec)))
    arm.prepare(PgbenchTables(1), _silent)
    for _ in range(2):
        timings: dict[str, float] = {}
        with (
            arm.serve(PgbenchTables(1), tmp_path / "server.log", timings) as target,
            target.connect_as_user() as connection,
        ):
            assert connection.execute("SHOW work_mem").fetchone() == ("9MB",)
            assert connection.execute("SELECT count(*), sum(abalance) FROM pgbench_accounts").fetchone() == (100000, 0)
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            connection.execute("UPDATE pgbench_accounts SET abalance = 1 WHERE aid = 1")
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
            assert arm.data_directory is not None
            served = arm.data_directory
        assert timings.keys() == {"restore", "start", "stop"}
        assert arm.data_directory is None
        left = [path for path in served.rglob("*") if path.is_file()]
        assert all(path.stat().st_size < 1024 * 1024 for path in left), "what a trial read or wrote is made anew"
        assert server_processes(served) == []
    assert "database system is ready" in (tmp_path / "server.log").read_text()


def _end(session):
    session.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_server_that_goes_away_before_the_first_trial_is_told_in_one_sentence(fresh_state, monkeypatch):
    require_engine()
    spec = _spec()
    gone = "^arms.A: the server did not answer: terminating connection due to administrator command"
    with Workspace(fresh_state) as workspace:
        arm = make_arms(Design(spec), workspace)["A"]
        with monkeypatch.context() as patched:
            patched.setattr(made, "check_data", lambda name, needs, session: _end(session))
            with pytest.raises(StudyError, match=gone):
                arm.check(Needs.of(Design(spec)))
        with monkeypatch.context() as patched:
            patched.setattr(made, "fill_wal", lambda target, data: _end(target.connect_as_user()))
            with pytest.raises(ArmError, match=gone):
                arm.prepare(PgbenchTables(1), _silent)
        arm.prepare(PgbenchTables(1), _silent)
        arm.close()


@pytest.mark.server
def test_arms_that_differ_in_settings_alone_share_a_template(arms_of, workspace):
    require_engine()
    spec = _spec(b={"settings": {"shared_buffers": "32MB"}})
    arms = arms_of(spec)
    assert arms["A"].kind == arms["B"].kind
    arms["A"].prepare(PgbenchTables(1), _silent)
    lines: list[str] = []
    arms["B"].prepare(PgbenchTables(1), lines.append)
    assert lines == []


@pytest.mark.server
def test_initdb_options_make_another_template(arms_of, tmp_path):
    spec = _spec(a={"initdb": ["--wal-segsize=1"]})
    arms = arms_of(spec)
    assert arms["A"].kind != arms["B"].kind
    with arms["A"].serve(NO_TABLES, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SHOW wal_segment_size").fetchone() == ("1MB",)


@pytest.mark.server
def test_the_template_is_frozen_and_its_wal_is_ready_made(arms_of, tmp_path):
    require_engine()
    spec = _spec()
    arm = arms_of(spec)["A"]
    own = PgbenchTables(1, fillfactor=90)  # else another test may have made the template, with less WAL
    with arm.serve(own, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
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


@pytest.mark.server
def test_without_reset_the_next_trial_finds_what_the_last_one_left(arms_of, tmp_path):
    require_engine()
    arm = arms_of(_spec(a={"reset": "none"}))["A"]
    for expected in (0, 1):
        with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (expected,)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")


@pytest.mark.server
def test_reset_by_vacuum_empties_the_history_on_the_same_directory(arms_of, tmp_path):
    require_engine()
    arm = arms_of(_spec(a={"reset": "vacuum"}))["A"]
    directories = set()
    for _ in range(2):
        with arm.serve(PgbenchTables(1), tmp_path / "log", {}) as target, target.connect_as_user() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
            directories.add(arm.data_directory)
    assert len(directories) == 1


@pytest.mark.server
def test_arms_of_one_kind_are_given_each_others_kept_copies(arms_of, tmp_path):
    arms = arms_of(_spec(server={"reset": "vacuum"}, b={"settings": {"work_mem": "8MB"}}))
    copies = {}
    for name, place, found in (("A", 0, 0), ("B", 1, 0), ("B", 0, 1)):
        with (
            arms[name].serve(NO_TABLES, tmp_path / "log", {}, Drawn(place)) as target,
            target.connect_as_user() as connection,
        ):
            connection.execute("CREATE TABLE IF NOT EXISTS seen(arm text)")
            assert connection.execute("SELECT count(*) FROM seen").fetchone() == (found,)
            connection.execute("INSERT INTO seen VALUES ('x')")
            copies[place] = arms[name].data_directory
    assert len(set(copies.values())) == 2
    arms["A"].close()
    assert not any(copy.exists() for copy in copies.values())


@pytest.mark.server
def test_a_setting_that_postgresql_refuses_is_found_before_the_first_trial(arms_of):
    spec = _spec(b={"settings": {"random_page_costs": "1"}})
    arms = arms_of(spec)
    arms["A"].check(Needs.of(Design(spec)))
    with pytest.raises(StudyError, match=r'arms\.B: .*unrecognized configuration parameter "random_page_costs"'):
        arms["B"].check(Needs.of(Design(spec)))


@pytest.mark.server
def test_more_clients_than_connections_are_found_before_the_first_trial(arms_of):
    spec = _spec(load={"scale": 1, "clients": [1, 30]}, b={"settings": {"max_connections": 30}})
    with pytest.raises(StudyError, match=r"arms\.B: 30 clients need max_connections of at least 37 .* has 30"):
        arms_of(spec)["B"].check(Needs.of(Design(spec)))


@pytest.mark.server
def test_a_scale_that_does_not_fit_the_disk_is_found_before_loading(arms_of):
    spec = _spec(load={"scale": 1_000_000})
    with pytest.raises(StudyError, match=r"scale 1000000 does not fit on the disk: it needs about 3[0-9,]+ MB"):
        arms_of(spec)["A"].check(Needs.of(Design(spec)))


@pytest.mark.server
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


@pytest.mark.server
def test_a_wrong_initdb_option_names_the_arm(arms_of):
    spec = _spec(b={"initdb": ["--no-such-option"]})
    with pytest.raises(
        StudyError, match=r"arms\.B: initdb of PostgreSQL 18\S* with the options --no-such-option failed"
    ):
        arms_of(spec)["B"].check(Needs.of(Design(spec)))


@pytest.mark.server
def test_a_server_that_cannot_start_for_a_trial_leaves_no_data_of_it(arms_of, workspace, tmp_path, monkeypatch):
    arm = arms_of(_spec(a={"settings": {"shared_buffers": "900TB"}}))["A"]
    before = set(workspace.root.iterdir())
    with pytest.raises(ArmError, match="does not start"), arm.serve(NO_TABLES, tmp_path / "log", {}):
        pass
    left = [path for new in set(workspace.root.iterdir()) - before for path in new.rglob("*") if path.is_file()]
    assert all(path.stat().st_size < 1024 * 1024 for path in left), "the next trial uses only small files again"
    assert not [path for path in left if path.name in ("pgtrial.conf", "postmaster.pid")]


@pytest.mark.server
def test_an_arm_with_storage_is_served_from_filesystems_of_its_own(arms_of, tmp_path):
    require_root()
    require_engine()
    storage = {"fs": "ext4", "size": "512MB", "mount": ["noatime"], "wal": {"fs": "tmpfs", "size": "256MB"}}
    spec = _spec(a={"storage": storage})
    arm = arms_of(spec)["A"]
    arm.check(Needs.of(Design(spec)))
    arm.prepare(PgbenchTables(1), _silent)
    for _ in range(2):
        with arm.serve(PgbenchTables(1), tmp_path / "server.log", {}) as target, target.connect_as_user() as connection:
            data = arm.data_directory
            assert data is not None
            mounted = [mount_of(path.resolve(), mountinfo(LOCAL)) for path in (data, data / "pg_wal")]
            kinds = [found.filesystem for found in mounted if found is not None]
            assert kinds == ["ext4", "tmpfs"]
            assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (100000,)
            connection.execute("CREATE TABLE t AS SELECT 1")
        assert not data.exists()


@pytest.mark.server
def test_the_host_is_as_the_arm_asks_for_during_a_trial_and_as_before_after_it(arms_of, tmp_path, monkeypatch):
    require_root()
    require_engine()
    require((Path("/sys/kernel/mm/hugepages") / "hugepages-2048kB").is_dir(), "huge pages of 2 MB")
    watched = [
        Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"),
        Path("/sys/kernel/mm/transparent_hugepage/enabled"),
        Path("/proc/sys/vm/swappiness"),
    ]
    before = [path.read_text() for path in watched]
    cpu = min(os.sched_getaffinity(0))
    spec = _spec(
        a={
            "huge_pages": "2MB",
            "thp": "never",
            "sysctl": {"vm.swappiness": 7},
            "cpus": str(cpu),
            "environment": {"CHOSEN_BY_STUDY": "yes"},
            # less than any server of a test in another process, which would take the reserved pages if it could
            "settings": {"shared_buffers": "1MB"},
        },
        b={"huge_pages": "off"},
    )
    arms = arms_of(spec)
    for arm in arms.values():
        arm.check(Needs.of(Design(spec)))
    arms["A"].prepare(PgbenchTables(1), _silent)
    with (
        arms["A"].serve(PgbenchTables(1), tmp_path / "server.log", {}) as target,
        target.connect_as_user() as connection,
    ):
        pages, thp, swappiness = (path.read_text() for path in watched)
        assert int(pages) > int(before[0])
        assert "[never]" in thp
        assert swappiness.strip() == "7"
        assert connection.execute("SHOW huge_pages_status").fetchone() == ("on",)
        assert connection.execute("SHOW huge_page_size").fetchone() == ("2MB",)
        (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        assert psutil.Process(backend).cpu_affinity() == [cpu]
        connection.execute("CREATE TEMP TABLE seen(value text)")
        connection.execute("COPY seen FROM PROGRAM 'echo $CHOSEN_BY_STUDY'")
        assert connection.execute("SELECT value FROM seen").fetchone() == ("yes",)
    seen = arms["A"].host_seen
    assert seen["before"]["2MB_total"] == seen["after"]["2MB_total"] < seen["during"]["2MB_total"]
    with (
        arms["B"].serve(PgbenchTables(1), tmp_path / "server.log", {}) as target,
        target.connect_as_user() as connection,
    ):
        assert connection.execute("SHOW huge_pages_status").fetchone() == ("off",)
    # as if somebody had taken all but one since they were reserved
    monkeypatch.setattr(Cluster, "huge_pages_needed", lambda self: 1)
    with pytest.raises(StartError, match="huge pages"), arms["A"].serve(PgbenchTables(1), tmp_path / "server.log", {}):
        pass
    assert [path.read_text() for path in watched] == before


@pytest.mark.server
def test_a_server_takes_its_memory_from_the_nodes_that_its_arm_names(arms_of, tmp_path):
    require_engine()
    require(Path("/proc/self/numa_maps").exists(), "a kernel that tells where memory is")
    require(shutil.which("numactl") is not None, "numactl")
    cpu = min(os.sched_getaffinity(0))
    spec = _spec(a={"numa": "0", "cpus": str(cpu), "environment": {"CHOSEN_BY_STUDY": "yes"}})
    arm = arms_of(spec)["A"]
    arm.check(Needs.of(Design(spec)))
    arm.prepare(PgbenchTables(1), _silent)
    with arm.serve(PgbenchTables(1), tmp_path / "server.log", {}) as target, target.connect_as_user() as connection:
        (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        kinds = {line.split()[1] for line in Path(f"/proc/{backend}/numa_maps").read_text().splitlines()}
        assert "bind:0" in kinds
        assert "default" not in kinds
        assert psutil.Process(backend).cpu_affinity() == [cpu]
        facts = collect("A", target, arm.data_directory, account=arm.account).facts
    assert facts["server"]["numa"] == "0"
    assert facts["cpu"]["cpus"] == (None if os.cpu_count() == 1 else str(cpu))
    assert "CHOSEN_BY_STUDY" in facts["server"]["environment"]


@pytest.mark.server
@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"sysctl": {"vm.nonsense": 1}}, "this kernel has no vm.nonsense"),
        ({"cpus": "0-99999"}, "are not usable here"),
        ({"cpus": "first"}, "is no list of CPUs"),
        ({"numa": "0-99"}, "of the NUMA nodes 0-99 these are not usable here: "),
        ({"numa": "all"}, "'all' is no list of NUMA nodes"),
        ({"huge_pages": "2MB", "settings": {"shared_buffers": "7000GB"}}, "but only .* GB of memory are free"),
        (
            {"huge_pages": "2MB", "settings": {"huge_pages": "try"}},
            "pgtrial sets huge_pages itself because of huge_pages = '2MB'",
        ),
        ({"governor": "performance"}, "governor|does not govern the CPU frequency"),
    ],
)
def test_a_host_that_cannot_be_as_asked_for_is_refused_before_the_first_trial(arms_of, asked, sentence):
    require_root()
    spec = _spec(a=asked)
    with pytest.raises(StudyError, match=sentence):
        arms_of(spec)["A"].check(Needs.of(Design(spec)))
