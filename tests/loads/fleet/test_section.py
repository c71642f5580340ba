"""Tests of the description of a fleet in a study file or on the command line."""

from __future__ import annotations

import os
import socket
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from pgtrial.cli import main
from pgtrial.loads.command_lines import engine_options
from pgtrial.loads.fleet.agent import identity
from pgtrial.loads.fleet.cluster import joined
from pgtrial.loads.fleet.joining import check_listens, connect
from pgtrial.loads.fleet.members import Member
from pgtrial.loads.fleet.run import engines_of
from pgtrial.loads.load_makers import Each
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.load_section import LoadSection
from pgtrial.store.study_file import build_study, with_fleet

ARMS = {"a": {}, "b": {"settings": {"jit": "off"}}}
STUDY = """
[arms.a]
[arms.b]
settings = { jit = "off" }
"""


def fleet_of(**keys):
    return build_study({"arms": ARMS, "fleet": keys}, "study.toml").fleet


def test_a_study_without_the_section_has_no_fleet_and_freezes_as_ever():
    spec = build_study({"arms": ARMS}, "study.toml")
    assert spec.fleet is None
    assert "fleet" not in freeze(spec)


def test_the_section_is_frozen_with_every_default():
    spec = build_study({"arms": ARMS, "fleet": {"address": "ray://head:10001", "machines": 4}}, "study.toml")
    assert thaw(freeze(spec)).fleet == spec.fleet
    assert 'on_machine_loss = "continue"' in freeze(spec)


@pytest.mark.parametrize("address", ["auto", "local", "ray://10.0.0.1:10001", "head.example:6379", "ray://[::1]:10001"])
def test_these_are_addresses(address):
    assert fleet_of(address=address).address == address


def test_the_wait_for_a_replacement_is_kept_in_seconds():
    fleet = fleet_of(on_machine_loss="wait 2min")
    assert (fleet.on_machine_loss, fleet.patience_s) == ("wait 120s", 120.0)
    assert fleet_of(on_machine_loss="stop").patience_s is None


WRONG = {
    "no address": ({"address": "ray://head"}, r"\[fleet\] address: 'ray://head' is not the address of a Ray cluster"),
    "more than there can be": (
        {"address": "local", "machines": 2},
        r'\[fleet\]: "local" is this machine alone, and machines = 2; write share_machines = true \(--share-machines\)',
    ),
    "no machines": ({"machines": 0}, r"\[fleet\] machines must be greater than or equal to 1"),
    "no policy": ({"on_machine_loss": "panic"}, 'is not a valid policy; write "continue", "stop"'),
    "no time": ({"on_machine_loss": "wait 30h"}, "out of range; write a time to wait from 1s to 24h"),
    "unknown key": ({"adress": "auto"}, r"unknown key 'adress' in \[fleet\]; did you mean 'address'\?"),
    "engine": ({"engine": "slurm"}, r"\[fleet\] engine must be 'ray'"),
}


@pytest.mark.parametrize(("keys", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_its_key(keys, said):
    with pytest.raises(StudyError, match=said):
        fleet_of(**keys)


def test_the_command_line_changes_the_fleet_of_the_file_key_by_key():
    spec = build_study({"arms": ARMS, "fleet": {"on_machine_loss": "stop", "machines": 3}}, "study.toml")
    changed = with_fleet(spec, address="ray://head:10001", machines=None).fleet
    assert changed == FleetSection(address="ray://head:10001", machines=3, on_machine_loss="stop")
    with pytest.raises(StudyError, match=r"\[fleet\] address: 'somewhere' is not the address"):
        with_fleet(spec, address="somewhere")


def run(arguments, capsys):
    with pytest.raises(SystemExit) as exited:
        main(["run", *arguments])
    return exited.value.code, capsys.readouterr().err


def test_without_ray_one_sentence_names_the_extra_and_no_study_is_left(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "s.toml").write_text(STUDY)
    status, said = run(["s.toml", "--fleet", "auto"], capsys)
    assert status == 3
    assert "a fleet needs ray, which is not installed; install it with: pip install 'pgtrial[ray]'" in said
    assert not list((tmp_path / "results").iterdir())


def test_where_nobody_listens_there_is_no_cluster_and_that_is_said_at_once(free_port):
    pytest.importorskip("ray")
    nobody = FleetSection(address=f"ray://127.0.0.1:{free_port}")
    with (
        pytest.raises(StudyError, match=r"no Ray cluster at ray://127.0.0.1:\d+: Connection refused; check"),
        joined(nobody),
    ):
        pass


def _hang_up(listening):
    listening.accept()[0].close()


def test_where_another_program_listens_that_is_said_without_waiting_for_ray():
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as answering:
        answering.submit(_hang_up, other)
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(
            StudyError, match=f"no Ray cluster at {address}: the program that listens there is not Ray; check"
        ):
            check_listens(address)


MISMATCH = """Version mismatch: The cluster was started with:
    Ray: {}
    Python: {}
This process on node 10.0.0.1 was started with:
    Ray: 2.60.0
    Python: 3.11.7
"""


WHY = {
    "another Ray": (
        RuntimeError(MISMATCH.format("2.59.1", "3.11.7")),
        "",
        "has Ray 2.59.1 and Python 3.11.7, but this machine has Ray 2.60.0 and Python 3.11.7; both need the same "
        "versions: pip install 'ray[client]==2.59.1'",
    ),
    "another Python": (
        RuntimeError(MISMATCH.format("2.60.0", "3.12.1")),
        "",
        "both need the same versions: pgtrial in a venv of Python 3.12.1",
    ),
    "no client": (
        ValueError("Ray Client requires pip package `ray[client]`. If"),
        "",
        "a cluster at ray:// needs Ray's client, which is not installed",
    ),
    "no token": (
        ConnectionError("Failed to connect"),
        "W 1 gcs_client.cc:210: Unauthenticated: RPC error",
        "asks for a token that pgtrial does not have",
    ),
    "a start that takes long": (
        Exception("The current node timed out during startup. This could happen because some of the raylet failed"),
        "",
        "there is no Ray cluster at a:1: The current node timed out during startup",
    ),
    "nothing known": (
        ConnectionError("Failed to connect"),
        "",
        "there is no Ray cluster at a:1: Failed to connect; check that the cluster runs",
    ),
}


@pytest.mark.parametrize(("error", "printed", "told"), WHY.values(), ids=WHY.keys())
def test_why_a_cluster_cannot_be_joined_is_one_sentence_with_a_cure(error, printed, told):
    def init(**options):
        assert options["address"] == "a:1"
        os.write(2, printed.encode())
        raise error

    exceptions = SimpleNamespace(RayError=OSError)
    ray = SimpleNamespace(init=init, exceptions=exceptions, _private=SimpleNamespace(worker=SimpleNamespace()))
    with pytest.raises(StudyError) as refused:
        connect(ray, FleetSection(address="a:1"), None)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_machine_that_belongs_to_no_cluster_is_told_what_to_do(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(StudyError, match="no Ray cluster runs on this machine; start one"), joined(FleetSection()):
        pass


def test_each_engine_has_threads_for_its_own_clients():
    point = LoadPoint(workload="tpcb-like", scale=1, clients=128, protocol="prepared")
    load = LoadSection(warmup=1, duration=2, clients=128)

    def threads(each, load=load):
        options = engine_options(load, point, 1, None, each)
        return options[options.index("-j") + 1]

    assert threads(Each(engines=2, cpus=64)) == "4"
    assert threads(Each(engines=2, cpus=3)) == "3"
    assert threads(Each(2, 3), load.model_copy(update={"threads": 200})) == "64"
    assert point.kind.most_engines(point.clients) == 128


def member(identity: str, cpus: int) -> Member:
    return Member(0, "10.0.0.1", "host", "Linux", identity, "", cpus, call=lambda *_: Future())


@pytest.mark.parametrize(
    ("machines", "cpus"),
    [
        (["a"], 8),
        (["a", "b"], 8),
        (["a", "a"], 4),
        (["a", "a", "b", "a"], 2),
        (["a"] * 20, 1),
    ],
)
def test_engines_on_one_machine_share_its_cpus(machines, cpus):
    assert engines_of([member(name, 8) for name in machines]) == Each(len(machines), cpus)


def test_engines_on_the_machine_of_the_lab_share_half_of_its_cpus():
    here = member(identity(), 1000)
    half = Each().cpus
    assert [engines_of([here] * number).cpus for number in (1, 2)] == [half, max(1, half // 2)]
