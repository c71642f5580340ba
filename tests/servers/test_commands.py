"""The commands list, facts and cleanup."""

from __future__ import annotations

import json
import os
import signal

import pytest

from pgtrial.cli import main
from pgtrial.servers.leftovers import leftovers
from pgtrial.servers.workspace import Workspace
from tests.conftest import require_server

pytestmark = pytest.mark.server


def _run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


def test_list_names_servers_workloads_and_studies(capsys):
    server = require_server(18)
    assert _run("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"version": server.version, "postgres": "18", "bin": str(server.bin), "origin": server.origin} in listed[
        "servers"
    ]
    assert "select-only" in listed["workloads"]
    assert _run("list") == 0
    assert server.version in capsys.readouterr().out


def test_facts_of_this_machine(capsys):
    assert _run("facts", "--json") == 0
    facts = json.loads(capsys.readouterr().out)["facts"]["this machine"]["facts"]
    assert facts["cpu"]["logical"] == os.cpu_count()
    assert _run("facts") == 0
    assert "cpu.model" in capsys.readouterr().out


def test_facts_of_a_study_come_with_the_audit(tmp_path, capsys):
    require_server(18)
    study = tmp_path / "study.toml"
    study.write_text('[arms.A]\n[arms.B]\nsettings = { fsync = "off" }\n')
    assert _run("facts", str(study), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["facts"]["B"]["facts"]["settings"]["fsync"] == "off"
    assert [finding["severity"] for finding in shown["audit"]["findings"] if finding["rule"] == "durability"] == [
        "warning"
    ]


def test_facts_that_are_ended_by_a_signal_stop_their_servers_and_leave_nothing(
    tmp_path, fresh_state, monkeypatch, capsys
):
    require_server(18)
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    monkeypatch.setattr("pgtrial.cli.facts.facts_of_server", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    study = tmp_path / "study.toml"
    study.write_text("[arms.A]\n[arms.B]\n")
    assert _run("facts", str(study)) == 128 + signal.SIGTERM
    assert "stopped by SIGTERM" in capsys.readouterr().err
    assert leftovers() == []


def test_cleanup_says_what_it_would_do_and_does_it(fresh_state, monkeypatch, capsys):
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    with Workspace(fresh_state):
        pass
    abandoned = fresh_state / "runs" / "1-dead"
    abandoned.mkdir()
    assert _run("cleanup", "--dry-run") == 0
    assert f"would remove {abandoned}: " in capsys.readouterr().out
    assert abandoned.exists()
    assert _run("cleanup") == 0
    assert str(abandoned) in capsys.readouterr().out
    assert not abandoned.exists()
    (abandoned / "changes").mkdir(parents=True)
    unknown = abandoned / "changes/000001.json"
    unknown.write_text("{}")
    assert _run("cleanup") == 3
    assert f"{unknown} is no record of a change" in capsys.readouterr().out
    unknown.unlink()
    assert _run("cleanup") == 0
    capsys.readouterr()
    assert _run("cleanup") == 0
    assert "Nothing was left behind" in capsys.readouterr().out
