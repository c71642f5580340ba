"""Arguments and variables are bytes: what is not UTF-8 reaches files, servers and the terminal as it is."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from pgtrial.loads.target import Target
from tests.engine.programs import settled

pytestmark = pytest.mark.server


ODD = os.fsdecode(b"d\xe9")
"""A file name in Latin-1. Python represents its byte that is not UTF-8 as a surrogate."""

PLAIN = "SELECT 1;\n"
LINE = ("-n", "-t", "1", "-f")


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.sql"
    file.write_text(PLAIN)
    return str(file)


@pytest.fixture
def said(peers, loaded):
    """Returns a function that runs both programs and returns status, stdout and stderr, which must be equal."""

    def run(*args, target: Target | None = None, **env: str):
        results = []
        for program in peers:
            done = settled(program.run(target or loaded(18), *args, **env))
            results.append((done.status, done.stdout, done.stderr))
        assert results[1] == results[0]
        return results[1]

    return run


@pytest.mark.parametrize("variable", ["PGUSER", "PGDATABASE"])
def test_names_of_variables_are_the_users_and_not_another_ones(said, script, variable):
    status, _, stderr = said(*LINE, script, **{variable: ODD})
    assert status == 1
    assert f'"{ODD}" does not exist' in stderr


@pytest.mark.parametrize("words", [("-U", ODD), (ODD,), ("-d", ODD), (f"dbname={ODD}",), (f"user={ODD}",)])
def test_names_of_arguments(said, script, words):
    status, _, stderr = said(*LINE, script, *words)
    assert status == 1
    assert f'"{ODD}" does not exist' in stderr


@pytest.mark.parametrize("uri", ["postgresql://%E9@/", "postgresql:///%e9%FF", "postgresql:///x?application_name=%E9"])
def test_bytes_of_uris(said, script, uri):
    assert said(*LINE, script, uri)[0] == 1


def test_the_application_name_and_the_options_reach_the_server(said, tmp_path):
    show = tmp_path / "show.sql"
    show.write_text("SELECT length(current_setting('application_name')) AS a \\gset\n\\set x debug(:a)\n")
    assert "int 6" in said(*LINE, str(show), PGAPPNAME=f"a{ODD}")[2]
    assert said(*LINE, str(show), PGOPTIONS=f"-c search_path={ODD}")[0] in (0, 1)


def test_a_host_is_a_directory_of_any_name(said, script, loaded, tmp_path):
    directory = tmp_path / ODD
    directory.mkdir()
    target = loaded(18)
    os.symlink(f"{target.host}/.s.PGSQL.{target.port}", directory / f".s.PGSQL.{target.port}")
    short = f"/tmp/{ODD}-{os.getpid()}"
    os.symlink(directory, short)
    try:
        for env in ({"PGHOST": short}, {}):
            words = () if env else ("-h", short)
            assert said(*LINE, script, *words, target=replace(target, host=short), **env)[0] == 0
    finally:
        os.unlink(short)
    assert said(*LINE, script, "-h", f"/nosuch/{ODD}")[0] == 1


def test_a_script_of_any_name(said, tmp_path):
    odd = tmp_path / f"{ODD}.sql"
    odd.write_text(PLAIN)
    status, stdout, _ = said(*LINE, str(odd), PGTZ="UTC")
    assert status == 0
    assert f"transaction type: {odd}" in stdout
    missing = said(*LINE, str(tmp_path / f"no-{ODD}.sql"))
    assert missing[0] == 1
    assert f'no-{ODD}.sql": No such file or directory' in missing[2]


def test_a_log_of_any_name(peers, loaded, script, tmp_path):
    names = []
    for program in peers:
        directory = tmp_path / program.name
        directory.mkdir()
        done = program.run(loaded(18), *LINE, script, "-l", f"--log-prefix={ODD}", directory=directory)
        assert done.status == 0, done.stderr
        names.append([os.fsencode(name).split(b".")[0] for name in os.listdir(directory)])
    assert names == [[b"d\xe9"], [b"d\xe9"]]


def test_values_and_names_of_variables(said, tmp_path):
    text = tmp_path / "text.sql"
    text.write_text("SELECT ':a';\n")
    assert "invalid byte sequence" in said(*LINE, str(text), "-D", f"a={ODD}")[2]
    text.write_text("SELECT :a::text;\n")
    for mode in ("extended", "prepared"):
        assert "invalid byte sequence" in said(*LINE, str(text), "-D", f"a={ODD}", "-M", mode)[2]
    named = tmp_path / "named.sql"
    named.write_bytes(b"\\set x debug(:d\xe9)\n\\set \xe9 3\n\\set y debug(:\xe9)\n\\set z :\xe8 + 1\n")
    stderr = said(*LINE, str(named), "-D", f"{ODD}=7")[2]
    assert "int 7" in stderr
    assert "int 3" in stderr
    assert os.fsdecode(b"\xe8") in stderr


def test_texts_of_scripts_in_errors(said, tmp_path):
    for number, text in enumerate((b"\\set x 1 + caf\xe9\n", b"\\caf\xe9\n", b"\\sleep 1 caf\xe9\n")):
        file = tmp_path / f"{number}.sql"
        file.write_bytes(text)
        assert os.fsdecode(b"caf\xe9") in said(*LINE, str(file))[2]


def test_options_that_are_not_known(said):
    assert ODD in said(f"--{ODD}")[2]


def test_names_of_tablespaces(peers, loaded):
    """The original says `tablespace (null)`: it goes on where the name could not be quoted."""
    done = peers[1].run(loaded(18), "-i", "-q", f"--tablespace={ODD}", "-I", "t")
    assert done.status == 1
    assert f'tablespace "{ODD}"' in done.stderr


def test_events_are_utf8(peers, loaded, tmp_path):
    file = tmp_path / f"{ODD}.sql"
    file.write_text(PLAIN)
    done = peers[1].run(loaded(18), *LINE, str(file), "--events=-")
    assert done.status == 0, done.stderr
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()][-1] == "done"
    assert "d\ufffd.sql" in done.stdout
