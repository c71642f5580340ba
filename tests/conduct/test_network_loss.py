"""A given server whose network is cut, falls silent or leads to another one, and statements that take too long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pgtrial.servers.cluster import Cluster
from pgtrial.servers.run_directory import copy_directory
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from tests.conduct.crowd import Crowd
from tests.conduct.proxy import Proxy
from tests.conduct.small import (
    committed_after_its_failures,
    measuring,
    once,
    one_arm,
    run_one,
    small_study,
)
from tests.conftest import require_engine
from tests.processes import until

pytestmark = pytest.mark.server


REFUSED = ("too many clients", "remaining connection slots")

SILENCE_S = 0.7

SLOW = r"""
\set n random(1, 10)
\if :n = 1
SET statement_timeout = '50ms';
SELECT pg_sleep(60);
\else
SET statement_timeout = 0;
\endif
"""
"""A script that sets statement_timeout only for the one statement that surely exceeds it. The random seed makes the
clients begin with different statements.
"""


@pytest.fixture(autouse=True)
def _engine() -> None:
    require_engine()


def test_where_the_study_does_not_wait_a_cut_network_fails_the_trial_and_keeps_what_was_measured(
    start_cluster, tmp_path: Path
) -> None:
    with Proxy(start_cluster()) as network:
        study = study_through(network, tmp_path, duration="20s", on_server_loss="fail")
        with one_arm(study) as arm:
            trial = run_one(study, study.plan.trials[0], arm, once(measuring, network.cut))
    assert trial.status == "failed"
    assert trial.reason is not None
    assert trial.reason.startswith("4 of 4 clients were cut off: ")
    assert trial.aborted_clients == 4
    assert trial.measured is not None
    assert 0 < trial.measured.duration_s < 20
    assert trial.measured.transactions > 0
    assert trial.measured.latency_us is not None
    assert trial.measured.failures == {"08006": 4}
    assert [(span.phase, span.kind, span.failures) for span in trial.failure_spans] == [("measure", "08006", 4)]
    assert study.latencies(trial)


def test_a_cut_network_and_then_a_full_server_are_waited_out(start_cluster, tmp_path: Path) -> None:
    cluster = start_cluster(settings={"max_connections": "10"})
    log = Path(f"{cluster.data_directory}.log")
    crowd = Crowd(cluster)

    def refusals() -> int:
        return sum(log.read_text().count(words) for words in REFUSED)

    with Proxy(cluster) as network:
        study = study_through(network, tmp_path, duration="15s", on_server_loss="wait 60s")

        def fill_for_a_while() -> None:
            network.cut()
            crowd.fill()
            own = refusals()
            network.lead_to(cluster)
            until(lambda: refusals() > own, "a client is refused")
            crowd.leave()

        with one_arm(study) as arm:
            trial = run_one(study, study.plan.trials[0], arm, once(measuring, fill_for_a_while))
    assert (trial.status, trial.reason, trial.aborted_clients) == ("completed", None, 0)
    assert trial.measured is not None
    assert trial.measured.duration_s == pytest.approx(15, abs=0.01)
    assert trial.measured.failures == {"08006": 4}
    assert [(span.kind, span.failures) for span in trial.failure_spans] == [("08006", 4)]
    assert committed_after_its_failures(study, trial) > 0
    assert any("the lab's own session was lost with the server" in note for note in trial.notes)


def test_a_network_that_falls_silent_costs_time_and_no_transaction(start_cluster, tmp_path: Path) -> None:
    def fall_silent() -> None:
        network.silence()
        # the sampler's session may be one of them, of the others one is a client's in mid-transaction
        until(lambda: network.kept_back > 1, "a client is kept waiting")
        time.sleep(SILENCE_S)
        network.resume()

    with Proxy(start_cluster()) as network:
        # long enough for a lab that hears of the first second late
        study = study_through(network, tmp_path, duration="8s", on_server_loss="fail")
        with one_arm(study) as arm:
            trial = run_one(study, study.plan.trials[0], arm, once(measuring, fall_silent))
    assert (trial.status, trial.reason) == ("completed", None)
    assert trial.measured is not None
    assert trial.measured.failures == {}
    assert trial.measured.latency_us is not None
    assert trial.measured.latency_us.max > 500_000


def test_a_failover_to_a_promoted_standby_is_waited_for(start_cluster, workspace: Workspace, tmp_path: Path) -> None:
    first = start_cluster()
    with Proxy(first) as network:
        study = study_through(network, tmp_path, duration="15s", on_server_loss="wait 60s")
        with one_arm(study) as arm:
            standby = standby_of(first, workspace, tmp_path)
            with standby.running(tmp_path / "standby.log", immediate=True):

                def fail_over() -> None:
                    network.cut()
                    first.stop(immediate=True)
                    with standby.target.connect_as_user() as connection:
                        connection.execute("SELECT pg_promote()")
                    network.lead_to(standby)

                trial = run_one(study, study.plan.trials[0], arm, once(measuring, fail_over))
                with standby.target.connect_as_user() as connection:
                    told = connection.execute("SELECT pg_is_in_recovery(), count(*) > 0 FROM pgbench_history")
                    assert told.fetchone() == (False, True)
    assert (trial.status, trial.reason, trial.aborted_clients) == ("completed", None, 0)
    assert trial.measured is not None
    assert trial.measured.failures == {"08006": 4}
    assert committed_after_its_failures(study, trial) > 0


@pytest.mark.parametrize("patience", ["wait 20s", "fail"])
def test_a_statement_that_takes_too_long_is_counted_by_its_sqlstate(tmp_path: Path, patience: str) -> None:
    (tmp_path / "slow.sql").write_text(SLOW)
    load = {"workload": "slow.sql", "warmup": "0s", "duration": "5s", "on_server_loss": patience}
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=load)
    with one_arm(study) as arm:
        trial = run_one(study, study.plan.trials[0], arm, lambda event: None)
    assert trial.measured is not None
    assert trial.measured.transactions > 0
    assert set(trial.measured.failures) == {"57014"} == {span.kind for span in trial.failure_spans}
    if patience == "fail":
        assert (trial.status, trial.measured.failures["57014"]) == ("failed", 2)
        assert trial.reason is not None
        assert "canceling statement due to statement timeout" in trial.reason
    else:
        assert (trial.status, trial.reason, trial.aborted_clients) == ("completed", None, 0)
        assert trial.measured.failures["57014"] > 2


def study_through(network: Proxy, folder: Path, duration: str, **load: str) -> StudyDirectory:
    """Returns a study of a given server that is reached through the proxy `network`, with four clients at 400/s."""
    dsn = f"host=127.0.0.1 port={network.port} user=postgres dbname=postgres"
    arms = {"A": {"dsn": dsn, "reset": "none"}, "B": {"dsn": dsn, "reset": "none"}}
    lengths = {"clients": 4, "rate": 400, "warmup": "0s", "duration": duration}
    return small_study(folder / "s", blocks=1, arms=arms, server={"settings": {}}, load={**lengths, **load})


def standby_of(cluster: Cluster, workspace: Workspace, folder: Path) -> Cluster:
    """Stops a cluster, makes a standby of it from a copy of its files, and starts it again; the standby will stream
    from it.
    """
    conninfo = f"host={cluster.socket_directory} port={cluster.port} user=postgres"
    data = workspace.directory("standby")
    cluster.stop()
    copy_directory(workspace, cluster.data_directory, data)
    signal = data / "standby.signal"
    signal.touch()
    cluster.run_directory.own(signal)
    cluster.start(folder / "primary.log")
    sockets = workspace.socket_directory()
    settings = {**cluster.settings, "primary_conninfo": conninfo}
    return Cluster(cluster.run_directory, cluster.server, data, sockets, settings)
