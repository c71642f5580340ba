"""Histories among the pages of `pgtrial serve`: of folders and branches, with their data, and damaged ones."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pgtrial.cli.stored import serve_command
from pgtrial.model.errors import StudyError
from pgtrial.report.serve.server import serving
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.histories.directory import HistoryDirectory
from pgtrial.store.histories.stores import store_of
from tests.histories import entry, levels
from tests.repositories import IDENTITY, Repository

from .test_serve import Client

HOSTILE = "</svg><script>alert(1)</script>"


def client_of(address: str) -> Client:
    parts = urlsplit(address)
    return Client(parts.port or 0, parts.path.rstrip("/"))


def histories_of(client: Client) -> dict[str, str]:
    """Returns the addresses of the histories in the list, by name."""
    found = re.findall(r'href="[^"]+(/history/[^"/]+)">([^<]+)<', client.ask("/").text)
    return {name: address for address, name in found}


def test_histories_of_folders_and_branches_are_shown_with_their_data(tmp_path, monkeypatch, studies):
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    repository = Repository(tmp_path / "project")
    store_of(f"git:{repository.path}@speed").add("on-branch", levels(0.0, -0.05))
    other = [one.model_copy(update={"machine": "another", "commit": HOSTILE}) for one in levels(0.0)]
    study = StudyDirectory.open(shutil.copytree(studies("demo").path, tmp_path / "folder" / "demo"))
    known = entry(30, None, study=study.plan.identity)
    HistoryDirectory(tmp_path / "folder").add("in-folder", [*other, known])
    with serving([tmp_path / "folder", Path(f"git:{repository.path}@speed"), tmp_path / "absent"]) as server:
        client = client_of(server.address)
        addresses = histories_of(client)
        assert list(addresses) == ["in-folder", "on-branch"]
        page = client.ask(addresses["on-branch"]).text
        assert "it fell by 5" in page
        assert page.count("<circle") == 20
        (series,) = json.loads(client.ask(f"{addresses['on-branch']}/history.json").text)
        assert (series["history"], len(series["entries"]), series["changes"][0]["before"]) == (
            "on-branch",
            20,
            "commit 9",
        )
        page = client.ask(addresses["in-folder"]).text
        assert "<h3>another</h3>" in page
        assert "<script>alert" not in page
        assert len(re.findall(r'href="[^"]+/study/demo-[^"]+"', page)) == 1
        data = client.ask(f"{addresses['in-folder']}/history.json")
        assert [of["machine"] for of in json.loads(data.text)] == ["AMD EPYC, 2 CPUs, 8 GB", "another"]
        assert "in-folder-history.json" in data.headers["content-disposition"]
        store_of(f"git:{repository.path}@speed").add("on-branch", [entry(40, 0.1)])
        assert len(json.loads(client.ask(f"{addresses['on-branch']}/history.json").text)[0]["entries"]) == 21


def test_a_damaged_history_is_a_sentence_beside_the_others(tmp_path):
    HistoryDirectory(tmp_path).add("good", levels(0.0))
    (tmp_path / "bad.jsonl").write_text('{"format": 1}\n')
    with serving([tmp_path]) as server:
        client = client_of(server.address)
        text = client.ask("/").text
        assert "bad.jsonl, line 1 is damaged (study: Field required)" in text
        assert list(histories_of(client)) == ["good"]
        address = histories_of(client)["good"]
        (tmp_path / "good.jsonl").write_text("{")
        assert client.ask(address).status == 409
        assert "line 1 is damaged (it is not JSON)" in client.ask(address).text
        (tmp_path / "good.jsonl").unlink()
        assert (client.ask(address).status, client.ask(f"{address}/history.json").status) == (404, 404)


def test_a_branch_that_is_not_there_is_said_before_the_server_starts(tmp_path):
    repository = Repository(tmp_path / "project")
    with pytest.raises(StudyError, match="has no branch 'speed'"):
        serve_command([Path(f"git:{repository.path}@speed")], no_browser=True)
