"""Studies whose load is made by the two nodes of a Ray cluster, here on one machine and on one real server."""

from __future__ import annotations

import collections
import json
import os
import re
import time
from math import log
from statistics import median

import psutil
import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, Second
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.fleet import fleet as fleet_module
from pgtrial.loads.fleet.fleet import load_maker
from pgtrial.loads.fleet.run import FleetRun
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import each_once, once, small_study, windows
from tests.conftest import require_engine
from tests.loads.fleet.rays import PATIENCE_S, cluster_of_two_nodes, remove_sessions

pytestmark = pytest.mark.server


SCRIPT = "\\sleep 2 ms\nSELECT 1 / (nextval('turns') % 5);\n"
"""Each fifth of its transactions on a server fails, with SQLSTATE 22012."""

MARK = "FLEET_OF_TESTS"
"""A variable that all processes of the cluster have inherited."""


@pytest.fixture(scope="module")
def nodes():
    require_engine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(os.getpid()))
        patch.setattr(fleet_module, "GATHERING_S", PATIENCE_S)
        cluster = cluster_of_two_nodes()
        yield cluster
        cluster.shutdown()
        remove_sessions()


@pytest.fixture
def said(monkeypatch):
    """Returns the events that the machines report of each trial, by machine, before they are merged."""
    heard: dict[FleetRun, dict[str, list]] = {}
    feed = FleetRun.feed

    def feeding(run, text):
        by_machine = heard.setdefault(run, collections.defaultdict(list))
        for line in text.splitlines():
            index, _, event = line.partition("\t")
            if event:
                by_machine[index].append(json.loads(event))
        feed(run, text)

    monkeypatch.setattr(FleetRun, "feed", feeding)
    return heard.values()


def engines():
    """Returns the engines that the nodes of this cluster, or this lab, have started."""
    every = [process for process in psutil.process_iter(["name"]) if process.info["name"] == "pgtrial-engine"]
    return [process for process in every if environment_of(process).get(MARK) == str(os.getpid())]


def environment_of(process):
    try:
        return process.environ()
    except psutil.Error:
        return {}


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fleet(nodes, **keys):
    return {"address": nodes.address, **keys}


def notes_on_fleet(trial):
    """Others are about a machine that was slow: a checkpoint that ended late, a sampler that was held up."""
    return [note for note in trial.notes if "of the fleet" in note]


def measured(events):
    return [event for event in events if event["event"] == "tick" and event["phase"] == "measure"]


def test_a_trial_is_the_sum_of_what_the_machines_did(nodes, said, tmp_path):
    (tmp_path / "divide.sql").write_text(SCRIPT)
    load = {"workload": "divide.sql", "clients": 3, "on_server_loss": "wait 1s"}
    sections = {"server": {"setup_sql": "CREATE SEQUENCE turns"}, "fleet": fleet(nodes, machines=2)}
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=load, **sections)
    run_study(study, lambda event: None)
    assert each_once(study)
    for trial, machines in zip(StudyDirectory.open(study.path).trials(), said, strict=True):
        assert (trial.status, trial.reason, notes_on_fleet(trial)) == ("completed", None, [])
        assert trial.measured is not None
        ticks = [tick for events in machines.values() for tick in measured(events)]
        assert trial.measured.transactions == sum(tick["transactions"] for tick in ticks) > 0
        failures = collections.Counter()
        for tick in ticks:
            failures.update(tick["failures"])
        assert trial.measured.failures == failures
        assert failures["22012"] > 0
        whole, parts = HdrHistogram(1, 3_600_000_000_000, 3), HdrHistogram(1, 3_600_000_000_000, 3)
        whole.decode_and_add((study.trial_path(trial) / "latency.hdr").read_text().strip())
        for tick in ticks:
            if tick["histogram"]:
                parts.decode_and_add(tick["histogram"])
        assert whole.encode() == parts.encode()
        one, other = trial.machines
        assert [(share.clients, share.status) for share in trial.machines] == [(2, 0), (1, 0)]
        assert one.machine != other.machine
        assert all((share.with_lab, share.round_trip_us) == (True, None) for share in trial.machines)
        assert (one.transactions or 0) + (other.transactions or 0) == trial.measured.transactions
        for share in trial.machines:
            assert share.start_skew_us is not None
            assert share.start_skew_us > -share.offset_error_us - 1000
            assert abs(share.clock_offset_us) <= share.offset_error_us + 1000
    assert not engines()


@pytest.mark.parametrize("rate", [[], [100.0]], ids=["closed", "at a rate"])
def test_the_loads_of_two_arms_that_the_machines_share_alternate_in_slices(nodes, tmp_path, rate):
    load = {"interleave": "auto", "share_server": False, "clients": 3, "duration": "2s", "rate": rate}
    study = small_study(tmp_path / "s", blocks=1, load=load, fleet=fleet(nodes, machines=2))
    run_study(study, lambda event: None)
    assert each_once(study)
    slices = windows(study)
    assert [begin for begin, _, _ in slices] == pytest.approx([0.25 * number for number in range(len(slices))])
    assert all({arm for _, _, arm in slices[at : at + 2]} == set(study.plan.arms) for at in range(0, len(slices), 2))
    for trial in study.trials():
        assert (trial.status, trial.reason, notes_on_fleet(trial)) == ("completed", None, [])
        own = study.slices(trial).filter(phase="measure")
        assert len(own) == 8
        assert own["transactions"].sum() == trial.measured.transactions > 0
        assert [share.clients for share in trial.machines] == [2, 1]
        assert sum(share.transactions for share in trial.machines) == trial.measured.transactions
        assert all(share.status == 0 and share.start_skew_us is not None for share in trial.machines)
        # with a rate the time of a slice is its planned one
        assert not rate or trial.measured.duration_s <= 2.0 + 1e-9
    assert not engines()


TASKS = {"apps": 1, "tasks": 24, "pool": 4, "threads_in_table": 60, "rows": 6000}
SLOW = "-c enable_indexscan=off -c enable_bitmapscan=off"
"""A statement has to read the whole table, sixty times as much."""


def test_the_result_is_that_of_the_same_study_without_the_fleet(nodes, start_cluster, tmp_path):
    cluster = start_cluster(settings={"fsync": "off", "autovacuum": "off"})
    server = f"host={cluster.socket_directory} port={cluster.port} user={cluster.target.user} dbname=postgres"
    sections = {
        "load": {"workload": "app-tasks", "tasks": TASKS, "observe": False},
        "arms": {"by index": {"dsn": server}, "whole table": {"dsn": f"{server} options='{SLOW}'"}},
        "verdict": {"blocks": 8},
    }

    told: list[str] = []

    def on_event(event):
        if isinstance(event, Preparing):
            told.append(event.text)

    def claim_of(name, **more):
        spec = build_study({**sections, **more}, "test")
        study = StudyDirectory.create(tmp_path / name, spec, make_plan(spec, 11, "2026-11-20T14:12:00+00:00"))
        run_study(study, on_event)
        assert [(trial.status, trial.reason) for trial in study.trials()] == [("completed", None)] * 16
        assert [len(trial.machines) for trial in study.trials()] == [2 * bool(more)] * 16
        (claim,) = read_data(study).result.primary
        return claim

    shared, alone = claim_of("shared", fleet=fleet(nodes, machines=2)), claim_of("alone")
    half = [line.partition(": ")[0] for line in told if "180000 of 180000 rows of table_a made" in line]
    assert len(set(half)) == len(half) == 2, "each machine made half of the table, once for both arms"
    # the verdict takes that all eight blocks agree, which a trial of a tenth of a second does not do when the machine
    # stands still for one; the median bears three such blocks
    for claim in (shared, alone):
        assert median(block.log_ratio for block in claim.ratios) < log(0.5), "mostly it is a tenth"
        assert claim.verdict in ("worse", "undecided")


SCRIPT_IN_PARALLEL = """
function prepare()
   sysbench.sql.driver():connect():query("CREATE TABLE own" .. sysbench.tid .. " ()")
end
sysbench.cmdline.commands = { prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND} }
"""


def test_the_nodes_load_the_tables_of_pgbench_and_a_script_together(nodes, start_cluster):
    target = start_cluster().target
    spec = build_study({"arms": {"A": {}, "B": {}}, "fleet": fleet(nodes, machines=2)}, "test")
    said: list[str] = []
    with load_maker(spec, lambda text: None) as maker:
        PgbenchTables(2, 100, False).make(target, said.append, maker)
        data = SysbenchTables("own.lua", (), 2, scripts=(("own.lua", SCRIPT_IN_PARALLEL),))
        data.make(target, said.append, maker)
    made = [line.partition(": ")[0] for line in said if "100000 of 100000 tuples (100%) of pgbench_accounts" in line]
    assert len(set(made)) == len(made) == 2
    with target.connect_as_user() as connection:
        rows = connection.execute("SELECT count(*), count(DISTINCT aid), min(aid), max(aid) FROM pgbench_accounts")
        assert rows.fetchone() == (200_000, 200_000, 1, 200_000)
        assert data.find(connection)
        assert connection.execute("SELECT to_regclass('own0') <> to_regclass('own1')").fetchone() == (True,)
    assert not engines()


def test_a_node_that_is_removed_in_mid_trial_fails_that_trial_and_the_study_completes(nodes, tmp_path):
    # seconds are left from the tick to the end of the load: the engine has to be found and stopped before that
    study = small_study(tmp_path / "s", blocks=1, load={"duration": "8s"}, fleet=fleet(nodes, machines=2))

    def remove():
        (node,) = nodes.worker_nodes
        (raylet,) = node.all_processes["raylet"]
        (engine,) = [each for each in engines() if raylet.process.pid in [parent.pid for parent in each.parents()]]
        # else it might end its load before its node has gone
        engine.suspend()
        nodes.remove_node(node, allow_graceful=False)

    run_study(study, once(lambda event: isinstance(event, Second) and event.phase == "measure", remove))
    assert each_once(study)
    first, second = StudyDirectory.open(study.path).trials()
    assert first.status == "failed"
    # which of Ray's words comes first is open, and whether one comes before the lab's patience is at its end
    rays = "its node has left the Ray cluster|its connection broke|Ray's process on it ended"
    why = rf"({rays}|it has not answered for \d+s)"
    told = re.fullmatch(rf"the machine (\S+) was lost \d+s into the load: {why}", first.reason or "")
    assert told, first.reason
    lost = told[1]
    assert [share.machine for share in first.machines if share.status is None] == [lost]
    assert (second.status, second.reason) == ("completed", None)
    assert [share.machine for share in second.machines] != [lost]
    (note,) = notes_on_fleet(second)
    assert note.startswith(f"this load was made by 1 of 2 machines of the fleet: {lost} was lost")
    # that of the lost machine is ended there, which nobody waits for
    until(lambda: not engines())
