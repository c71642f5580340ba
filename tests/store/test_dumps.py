"""Tests that a file that is no dump is refused with a message that names the kind of file to use instead."""

from __future__ import annotations

import os

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.store.dumps import kind_of_dump
from pgtrial.store.own_data import files_of


def test_a_folder_of_migrations_is_to_be_named_file_by_file(tmp_path):
    folder = tmp_path / "migrations"
    folder.mkdir()
    for name in ("002_b.sql", "001_a.sql", "003_c.sql", "004_d.sql"):
        (folder / name).write_text("SELECT 1;\n")
    with pytest.raises(StudyError) as refused:
        kind_of_dump(folder)
    named = 'data = ["migrations/001_a.sql", "migrations/002_b.sql", "migrations/003_c.sql", ...]'
    assert str(refused.value).endswith(named)


@pytest.mark.parametrize("name", ["orders.csv", "orders.TSV"])
def test_rows_without_sql_are_to_stand_behind_a_copy(tmp_path, name):
    (tmp_path / name).write_text("id,total\n1,2\n")
    with pytest.raises(StudyError, match="rows of a table and no SQL; name a file of SQL that creates the table"):
        kind_of_dump(tmp_path / name)


@pytest.fixture
def dump(disk_path):
    """Returns a dump in directory format, as far as its files are concerned."""
    folder = disk_path / "shop.dump"
    folder.mkdir()
    for name in ("toc.dat", "4711.dat"):
        (folder / name).write_text("PGDMP")
    return folder


def test_a_folder_of_a_dump_that_cannot_be_listed_is_refused_and_not_left_out(dump):
    (dump / "blobs").mkdir(mode=0o000)
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)  # root may list every directory
    try:
        with pytest.raises(StudyError, match=r"^data: cannot read .*/shop\.dump/blobs: Permission denied$"):
            files_of([str(dump)], "data")
    finally:
        if as_root:
            os.seteuid(0)


def test_a_pipe_in_a_dump_is_refused_and_not_waited_for(dump):
    os.mkfifo(dump / "4712.dat")
    with pytest.raises(StudyError, match=r"^data: cannot read .*/4712\.dat: it is not a regular file$"):
        files_of([str(dump)], "data")
