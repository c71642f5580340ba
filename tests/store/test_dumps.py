"""Tests that a file that is no dump is refused with a message that names the kind of file to use instead."""

from __future__ import annotations

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.store.dumps import kind_of_dump


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
