"""`pgtrial plan` says who would run where and for how long, and connects to nothing."""

from __future__ import annotations

import json
import platform
import socket

import pytest

from pgtrial.cli import main
from pgtrial.cli.plan import plan_command
from pgtrial.conduct import study_directory
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.store.study_file import build_study, read_study

GIVEN = """
[arms.here]
[arms.there]
dsn = "postgresql://bench:topsecret@db.example:6543/bench"
ssh = "me@db.example"
[verdict]
blocks = 8
"""

DEPLOYED = """
[arms.a]
dsn = ["service=a1", "service=a2", "service=a3", "service=a4"]
[arms.b]
dsn = ["service=b1", "service=b2", "service=b3", "service=b4"]
[verdict]
blocks = 12
"""

PLACES = """
[server]
storage = { fs = "ext4", on = ["/d1", "/d2"] }
[arms.a]
[arms.b]
settings = { jit = "off" }
[verdict]
blocks = 8
"""

FLEET = """
[fleet]
address = "ray://head:10001"
machines = 4
on_machine_loss = "wait 2min"
"""


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys):
    """Returns a function that returns the lines of a plan without their padding, or the plan as JSON. It fails if the
    plan looks up an address or connects to one.
    """

    def refuse(*address):
        raise AssertionError(f"a plan connects to nothing: {address}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)

    def run(study, *options):
        if not study.startswith("@"):
            (tmp_path / "s.toml").write_text(study)
            study = "s.toml"
        with pytest.raises(SystemExit) as ended:
            main(["plan", study, *options])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        return json.loads(out) if "--json" in options else [" ".join(line.split()) for line in out.splitlines()]

    return run


def test_a_server_that_is_not_here_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('[arms.a]\npostgres = "/nowhere/bin"\n[arms.b]\n')
    with pytest.raises(SystemExit) as ended:
        main(["plan", "s.toml"])
    assert ended.value.code == 0
    assert "arms.a: on this machine the study would fail at its start: " in capsys.readouterr().err


def test_the_published_comparison_of_systems_is_planned_on_hosts_that_do_not_exist(planned):
    lines = planned("@os-comparison", "--profile", "full")
    assert "hosts CentOS: postgres@centos by ssh, data in /var/lib/pgsql/pgtrial" in lines
    assert "FreeBSD: postgres@freebsd by ssh, data in /var/db/postgres/pgtrial" in lines
    assert "load from this machine" in lines
    assert (
        "scope these 5 hosts (centos, debian, freebsd, opensuse, ubuntu), a fresh copy of the data for every trial, "
        "planner statistics drawn for each copy, each arm with its own host"
    ) in lines
    assert "interleaved all servers are up at once, and the load alternates between them every 250 ms" in lines
    assert "time about 37d 10h, less if an earlier look at the verdict decides; loading comes on top" in lines


def test_a_plan_tells_where_given_servers_are_without_their_passwords(planned):
    lines = planned(GIVEN)
    assert "hosts here: this machine" in lines
    assert "there: db.example by dsn, looked at by ssh as me@db.example" in lines
    assert "topsecret" not in "".join(lines)
    assert "topsecret" not in json.dumps(planned(GIVEN, "--json"))


def test_a_plan_tells_which_settings_of_a_given_server_are_changed(planned):
    study = """
[load]
INTERLEAVE
[server]
dsn = "service=prod-copy"
settings = { max_wal_size = "2GB" }
[arms.a]
settings = { work_mem = "8MB" }
[arms.b]
settings = { work_mem = "16MB" }
[verdict]
blocks = 8
"""
    changed = "by ALTER SYSTEM for each trial, put back after it"
    lines = planned(study.replace("INTERLEAVE", ""))
    assert f"settings a: max_wal_size {changed}" in lines
    assert not any(line.startswith("b: max_wal_size") for line in lines)
    lines = planned(study.replace("INTERLEAVE", "share_server = false"))
    assert f"settings a: max_wal_size, work_mem {changed}" in lines
    assert f"b: max_wal_size, work_mem {changed}" in lines


def test_a_plan_tells_how_blocks_are_shared_out_over_deployments(planned):
    lines = planned(DEPLOYED)
    assert (
        "deployments 4 of each arm; each block measures one of each arm, so that each deployment takes part in 3 "
        "of the 12 blocks"
    ) in lines
    assert "hosts a: service a1 by dsn, service a2 by dsn, service a3 by dsn, service a4 by dsn" in lines


def test_a_plan_tells_on_which_places_the_arms_take_turns(planned):
    lines = planned(PLACES)
    assert "places a and b take turns on /d1 and /d2" in lines
    assert "its place swapped at random between /d1 and /d2" in "".join(lines)
    assert planned(PLACES, "--json")["places"] == [{"arms": ["a", "b"], "places": ["/d1", "/d2"]}]


def test_a_plan_tells_of_the_fleet(planned):
    study = GIVEN + FLEET
    told = "4 machines of the Ray cluster ray://head:10001; when one is lost: wait 120s"
    assert f"load from {told}" in planned(study)
    assert planned(study, "--json")["fleet"]["machines"] == 4


@pytest.mark.parametrize(
    ("study", "options", "told"),
    [
        (GIVEN, ["--fleet", "auto"], "all machines of the Ray cluster auto; when one is lost: continue"),
        (
            GIVEN + FLEET,
            ["--machines", "7"],
            "7 machines of the Ray cluster ray://head:10001; when one is lost: wait 120s",
        ),
        (
            GIVEN,
            ["--fleet", "local", "--machines", "2", "--share-machines"],
            "this machine, by 2 engines of a Ray cluster that is",
        ),
    ],
)
def test_a_plan_takes_the_fleet_that_a_run_would_be_given(planned, study, options, told):
    (line,) = [line for line in planned(study, *options) if line.startswith("load from")]
    assert line.startswith(f"load from {told}")


LIKE_IT = """
[load]
workload = "select-only"
scale = 10
clients = 4
warmup = "2s"
duration = "6s"
interleave = "off"
[arms.a]
[arms.b]
settings = { jit = "off" }
[verdict]
blocks = 12
margin = "MARGIN"
"""


@pytest.fixture
def noise(tmp_path, monkeypatch):
    """Writes noise.json, in which a study like LIKE_IT ran on this machine with 5% of noise, and returns its path."""
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path))
    conditions = {
        "lab_host": platform.node(),
        "servers": [],
        "load_points": ["select-only, scale 10, 4 clients, prepared"],
        "arms": 2,
        "duration_s": 6.0,
    }
    known = {"study": "jit", "created": "2026-11-20T14:12:00+00:00", "blocks": 12, "spread": 0.05}
    record = tmp_path / "noise.json"
    record.write_text(json.dumps({"format": 1, "studies": [{**known, "conditions": conditions}]}))
    return record


def test_a_plan_tells_what_it_can_find_from_studies_of_this_machine(planned, noise):
    study = LIKE_IT.replace("MARGIN", "8%")
    (line,) = [line for line in planned(study) if line.startswith("precision ")]
    assert line == (
        "precision finds a difference of 6.4% (80% power) and establishes a margin of 6.7% within 12 blocks, 4min 19s; "
        "from 12 blocks of study jit (2026-11-20) on this machine"
    )
    told = planned(study, "--json")
    assert told["precision"]["margin"] == pytest.approx(0.067, abs=0.0005)
    assert told["noise"]["spread"] == 0.05
    assert told["warnings"] == []


def test_a_margin_out_of_reach_is_told_with_the_blocks_that_it_takes_and_the_feasible_one(planned, noise):
    (warning,) = planned(LIKE_IT.replace("MARGIN", "1%"), "--json")["warnings"]
    assert warning == (
        "the 12 planned blocks can find a difference, but are too few to establish that there is none beyond the "
        "margin of 1%: that would take about 390 blocks (2h 20min) if the noise is as in 12 blocks of study jit "
        '(2026-11-20) on this machine; [verdict] margin = "6.7%" is within reach'
    )


def test_without_such_a_study_the_plan_says_that_the_noise_is_not_known(planned, noise):
    study = LIKE_IT.replace("MARGIN", "1%").replace("clients = 4", "clients = 8")
    told = "no study like this one ran on this machine; the progress shows it from the fourth block on"
    assert f"precision not known: {told}" in planned(study)
    assert [planned(study, "--json")[key] for key in ("precision", "noise", "blocks_for_margin")] == [None] * 3


def test_a_damaged_record_of_noise_is_a_warning(planned, noise):
    noise.write_text("{")
    (warning,) = planned(LIKE_IT.replace("MARGIN", "1%"), "--json")["warnings"]
    assert "noise.json is ignored: it is damaged" in warning


SWEEPS = """
[load]
workload = "select-only"
clients = CLIENTS
scale = SCALES
duration = "1s"
warmup = "1s"
[arms.a]
[arms.b]
settings = { jit = "off" }
[verdict]
blocks = 8
"""


def test_a_plan_says_which_curves_it_will_have(planned):
    def curves(clients, scales):
        lines = planned(SWEEPS.replace("CLIENTS", str(clients)).replace("SCALES", str(scales)))
        return [line for line in lines if "each arm over" in line]

    assert curves([1, 2, 4, 8, 16], [1, 2, 3]) == []
    assert curves([1, 2, 4, 8, 16, 32], [1]) == [
        "curves a scalability law of each arm over 6 numbers of clients, from block 4 on (select-only, scale 1)"
    ]
    assert curves([8], [1, 2, 4, 8, 16, 32, 64]) == [
        "curves cliffs of each arm over 7 scales; reads cannot confirm them, for all arms are sessions of one server"
    ]


def test_a_plan_names_host_port_database_and_role_of_given_servers(planned):
    two = "".join(
        f'[arms.{arm}]\ndsn = "host=db port=5433 user=me dbname=shop"\nsettings = {{ jit = "{jit}" }}\n'
        for arm, jit in (("a", "on"), ("b", "off"))
    )
    assert "servers a and b: db:5433, database shop, role me" in planned(two + "[verdict]\nblocks = 8\n")


def test_a_plan_names_what_the_environment_adds_to_a_connection_string(planned, monkeypatch):
    for name, value in {"PGHOST": "/run/other", "PGPORT": "6432", "PGUSER": "bench", "PGDATABASE": "shop"}.items():
        monkeypatch.setenv(name, value)
    arms = "".join(f'[arms.{arm}]\nsettings = {{ jit = "{arm}" }}\n' for arm in ("on", "off"))
    lines = planned(f'[server]\ndsn = "dbname=bench"\n{arms}[verdict]\nblocks = 8\nmargin = "2%"\n')
    assert "servers on and off: /run/other:6432, database bench, role bench" in lines
    assert not [line for line in lines if line.startswith("hosts ")], "nothing is known of them but the servers"
    assert any(line.startswith("looks ") and line.endswith("; margin 2%") for line in lines)


def test_what_an_earlier_study_took_beside_its_loads_refuses_no_plan(monkeypatch):
    def study(budget: str):
        return build_study({"arms": {"a": {}, "b": {}}, "verdict": {"budget": budget}}, "s")

    usual = study_directory.plan_now(study("3min")).max_blocks
    monkeypatch.setattr(study_directory, "overhead_for", lambda *_: 500.0)
    assert study_directory.plan_now(study("3min")).max_blocks == usual, (
        "the preliminary block of the run measures it anew"
    )
    with pytest.raises(BudgetError, match=r"a verdict needs at least 6 blocks of about 10\.6s "):
        study_directory.plan_now(study("1min"))


def test_the_directory_of_a_study_shows_its_plan(planned, tmp_path, capsys):
    (tmp_path / "s.toml").write_text("[study]\nseed = 7\n[arms.a]\n[arms.b]\n[verdict]\nblocks = 8\n")
    study, _ = study_directory.find_or_create(read_study(tmp_path / "s.toml"), tmp_path / "there", anew=False)
    assert plan_command(str(study.path)) == 0
    assert " ".join(capsys.readouterr().out.split()).count("order block 1") == 1
    with pytest.raises(StudyError, match="is the directory of a study, whose plan is fixed"):
        plan_command(str(study.path), seed=1)
    with pytest.raises(StudyError, match=r"is the directory of a study.*name .*there/study\.toml"):
        read_study(study.path)


@pytest.mark.server
def test_a_budget_that_is_too_short_is_told_after_what_the_rehearsal_finds(clusters, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cluster = clusters(18)
    where = f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=postgres"
    server = f'dsn = "{where}"\n'
    arms = "".join(f'[arms.{arm}]\nsettings = {{ jit = "{arm}" }}\n' for arm in ("on", "off"))
    load = '[load]\nquery = "SELECT wrong"\nclients = 1\n'
    (tmp_path / "s.toml").write_text(f'{load}[server]\n{server}{arms}[verdict]\nbudget = "1min"\n')
    with pytest.raises(StudyError, match=r'column "wrong" does not exist'):
        plan_command("s.toml", rehearse=True)
    with pytest.raises(
        StudyError, match=r"a verdict needs at least 6 blocks .*; set \[verdict\] budget to 2min or more"
    ):
        plan_command("s.toml")


@pytest.mark.server
def test_with_a_rehearsal_given_servers_tell_their_version(clusters, tmp_path, monkeypatch, capsys):
    cluster = clusters(18)
    where = f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=postgres"
    arms = "".join(f'[arms.{arm}]\ndsn = "{where}"\nsettings = {{ jit = "{arm}" }}\n' for arm in ("on", "off"))
    (tmp_path / "s.toml").write_text(f"[load]\nworkload = 'select-only'\nscale = 1\n{arms}[verdict]\nblocks = 8\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "s.toml", "--rehearse"])
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    text = " ".join(out.split())
    assert "servers on and off: PostgreSQL 18." in text
    assert f"{cluster.port}, database postgres, role postgres" in text
