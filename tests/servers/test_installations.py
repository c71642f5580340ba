"""Tests of the search for installed servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError
from pgtrial.servers.installations import find_servers, program_digest, resolve
from tests.conftest import VERSIONS, require_server


def test_servers_are_listed_newest_first_and_each_directory_once():
    servers = find_servers()
    assert [server.major for server in servers] == sorted((server.major for server in servers), reverse=True)
    assert len({server.bin.resolve() for server in servers}) == len(servers)


@pytest.mark.parametrize("major", VERSIONS)
def test_a_version_resolves_to_a_server_of_that_version(major):
    expected = require_server(major)
    assert resolve(str(major)) == expected
    assert resolve(expected.version) == expected
    assert expected.version.startswith(f"{major}.")


def test_a_bin_directory_resolves_to_its_server():
    server = require_server(18)
    assert resolve(str(server.bin)).version == server.version


def test_a_missing_version_names_what_was_found_and_what_to_install():
    server = require_server(18)
    with pytest.raises(StudyError) as error:
        resolve("99")
    assert "no PostgreSQL 99 here" in str(error.value)
    assert str(server.bin) in str(error.value)
    assert "postgresql-99" in str(error.value)


@pytest.mark.parametrize("wanted", ["latest", "v18", ""])
def test_a_text_that_is_no_version_names_what_can_be_written_and_no_package(wanted):
    server = require_server(18)
    with pytest.raises(StudyError, match=f"^postgres = '{wanted}' is not a version; write a major version") as error:
        resolve(wanted)
    assert str(server.bin) in str(error.value)
    assert "install" not in str(error.value).partition("found:")[0]


def test_a_directory_without_the_programs_is_refused_by_name(tmp_path):
    with pytest.raises(StudyError, match="postgres and initdb not found there"):
        resolve(str(tmp_path))


def test_the_directory_above_bin_is_recognised():
    server = require_server(18)
    with pytest.raises(StudyError, match=f"did you mean {server.bin}"):
        resolve(str(server.bin.parent))


def test_a_program_that_does_not_tell_its_version_is_refused(tmp_path):
    for name in ("postgres", "initdb"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    with pytest.raises(StudyError, match="does not print its version"):
        resolve(str(tmp_path))


_OTHER_PROCESSOR = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xff\xfe" + bytes(44)
"""The head of a program for a kind of processor that there is not."""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (b"#!/nowhere/else\n", "not found"),
        (_OTHER_PROCESSOR, "Exec format error, since it is built for another processor or operating system"),
    ],
)
def test_why_a_program_does_not_run_is_said_in_the_systems_words(tmp_path, program, said):
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_bytes(program)
        (tmp_path / name).chmod(0o755)
    with pytest.raises(StudyError, match=rf"its version but: {said}; give an installation that runs on this machine"):
        resolve(str(tmp_path))


def test_a_version_older_than_10_is_left_to_the_user_to_start(tmp_path):
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.24'\n")
        (tmp_path / name).chmod(0o755)
    for wanted, version in ((str(tmp_path), "9.6.24"), ("9.6", "9.6")):
        with pytest.raises(StudyError) as error:
            resolve(wanted)
        assert str(error.value) == (
            f"postgres = {wanted!r}: pgtrial starts servers of PostgreSQL 10 and later; "
            f"start a server of {version} yourself and give its dsn, or choose a later version"
        )


def test_servers_on_path_are_found(tmp_path, monkeypatch):
    server = require_server(18)
    for name in ("postgres", "initdb"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec "{server.bin}/{name}" "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(tmp_path).resolve() in {found.bin.resolve() for found in find_servers()}


def test_two_builds_of_one_version_have_different_digests(tmp_path):
    server = require_server(18)
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{server.bin}/{name}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    other = resolve(str(tmp_path))
    assert other.version == server.version
    assert program_digest(LOCAL, other.bin) != program_digest(LOCAL, server.bin)
