"""The journal of undo: one way to write, list, undo and forget what pgtrial has changed, for every kind of record."""

from __future__ import annotations

import json
import os

import pytest

from pgtrial.cli.here import cleanup_command
from pgtrial.loads.target import Target
from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.volumes import MountPoint
from pgtrial.model.errors import ArmError
from pgtrial.servers import undo
from pgtrial.servers.leftovers import clean
from pgtrial.servers.server_record import write_down
from pgtrial.servers.settings_record import SettingsRecord
from pgtrial.servers.workspace import Workspace
from tests.machines.test_volumes import require_filesystem

_TARGET = {
    "host": "127.0.0.1",
    "port": 5432,
    "user": "bob",
    "dbname": "shop",
    "name": "db.example",
    "extra": {"sslmode": "prefer"},
}
_OF_RUNS = {
    "rooms/pgtrial-0.json": {
        "ssh": "root@h",
        "sudo": True,
        "data": "/data",
        "root": "/data/pgtrial-0",
        "folder_made": True,
    },
    "given-settings-41.json": {
        "arm": "A",
        "target": _TARGET,
        "former": {"work_mem": "3MB", "jit": None},
        "written": {"work_mem": "21MB", "jit": "off"},
        "order": ["work_mem"],
        "maker": {"pid": "7", "start": "1.5", "system": "70"},
    },
    "job-undo-41.json": {
        "arm": "A",
        "target": _TARGET,
        "statements": ["DROP TABLE made"],
        "sessions": "pgtrial job 1-x",
        "names": [["table", "made", ""]],
        "study": "/s",
        "place": "1/2",
        "transactions": ["17"],
    },
    "changes/000001.json": {"kind": "MountPoint", "boot": "the boot", "change": {"path": "RUN/volume"}},
}
"""The records of a run of pgtrial 0.2, in the order in which they are undone."""
_OF_STATE = {
    "given-data/551aec45de486bf7.json": {
        "target": _TARGET,
        "made": {"pgbench_accounts, pgbench_branches": ["loaded by pgtrial: ", "being loaded by pgtrial: "]},
    }
}
"""The record that pgtrial 0.2 wrote of the tables that it made in a database."""


def written(folder, records):
    """Writes records as pgtrial 0.2 did, and returns their files."""
    paths = []
    for name, content in records.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(json.dumps(content).replace("RUN", str(folder)))
        paths.append(path)
    return paths


@pytest.fixture
def run(fresh_state):
    """Returns the directory of a run whose lab was killed."""
    with Workspace(fresh_state):
        pass
    path = fresh_state / "runs" / "1-dead"
    path.mkdir(mode=0o711)
    return path


def test_records_of_a_former_version_are_read_and_written_as_they_were(run, fresh_state):
    paths = [*written(run, _OF_RUNS), *written(fresh_state, _OF_STATE)]
    journals = (undo.of_run(run), undo.of_state(fresh_state))
    assert [path for journal in journals for path in journal.files()] == paths
    assert [what for journal in journals for what in journal.pending()] == [
        "/data/pgtrial-0 on root@h, with servers and changes of that host",
        "settings work_mem, jit of bob@127.0.0.1:5432/shop",
        "job on bob@127.0.0.1:5432/shop, to be undone by: DROP TABLE made",
        f"mount point {run}/volume",
        "pgbench_accounts, pgbench_branches in the database shop (bob@127.0.0.1:5432/shop)",
    ]
    for journal in journals:
        for path, record in zip(journal.files(), journal.records(), strict=True):
            assert record.content() == json.loads(path.read_text()), "a former version reads what this one writes"
            if path.parent.name != "changes":  # these have numbers
                assert record.file(journal.folder, LOCAL) == path


def test_a_job_that_an_older_version_wrote_down_is_read(run):
    content = {name: _OF_RUNS["job-undo-41.json"][name] for name in ("arm", "target", "statements", "sessions")}
    written(run, {"job-undo-41.json": content})
    [record] = undo.of_run(run).records()
    assert (record.names, record.study, record.database, record.transactions) == ((), "", "", ())


def test_every_kind_of_record_that_is_damaged_is_named_kept_and_can_be_forgotten(run, fresh_state, monkeypatch, capsys):
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    damaged = [
        *written(run, {name: {"x": 1} for name in _OF_RUNS}),
        *written(fresh_state, {name: [] for name in _OF_STATE}),
    ]
    assert cleanup_command() == 3
    told = capsys.readouterr().out
    for path in damaged:
        assert f"{path} is no record of " in told
        assert f"run pgtrial cleanup --forget {path}." in told
        assert path.exists()
    assert cleanup_command(forget=damaged) == 0
    assert not any(path.exists() for path in (*damaged, run))


def test_statements_that_a_person_has_edited_wrongly_are_refused(run):
    written(run, {"job-undo-41.json": {**_OF_RUNS["job-undo-41.json"], "statements": "DROP TABLE made"}})
    [failure] = undo.of_run(run).undo().failures
    assert "job-undo-41.json is no record of a job that this version of pgtrial can read" in failure


@pytest.mark.machine
def test_what_is_mounted_in_a_run_whose_records_were_forgotten_is_not_removed_with_it(run, fresh_state):
    require_filesystem("tmpfs")
    volume = run / "volume"
    volume.mkdir()
    LOCAL.tool(["mount", "-t", "tmpfs", "pgtrial-test", volume])
    try:
        (volume / "kept").write_text("")
        [told] = clean(fresh_state)
        assert told == f"{run} stays, since a file system is mounted at {volume}; umount it and run pgtrial cleanup."
        assert (volume / "kept").exists()
    finally:
        LOCAL.tool(["umount", volume])
    [told] = clean(fresh_state)
    assert told.startswith(f"Removed {run}, ")


def test_a_change_that_cannot_be_written_down_is_refused_in_a_sentence_that_names_the_arm(tmp_path):
    target = Target("127.0.0.1", 5432, "bob", "shop")
    record = SettingsRecord("A", target, {"work_mem": None}, {"work_mem": "21MB"}, [], {})
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ArmError, match=r"^arms\.A: .*/open can be written by other accounts"):
        write_down(record, tmp_path / "open")
    assert list((tmp_path / "open").iterdir()) == []


def test_a_record_is_private_whatever_the_umask_is(tmp_path):
    """If each user has a group of their own, files are often writable for the group. After a crash, pgtrial does not
    trust such a record."""
    before = os.umask(0o002)
    try:
        entry = HostJournal(tmp_path, LOCAL).make(MountPoint(path=tmp_path / "volume"))
    finally:
        os.umask(before)
    assert entry.stat().st_mode & 0o777 == 0o600
    HostJournal(tmp_path, LOCAL).undo(entry)
