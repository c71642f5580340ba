"""Roles that may change settings of a given server, and see more or less of its files."""

from __future__ import annotations

import pytest

from pgtrial.model.errors import ArmError, StudyError
from tests.servers.given import GRANTS, HEAD, LOOK, automatic, checked, dsn_of, execute, served, show, spec_of

pytestmark = pytest.mark.server


@pytest.mark.parametrize("how", ["file", "rows"])
def test_a_role_that_may_look_at_the_file_puts_the_value_back(given, workspace, tmp_path, how):
    look = LOOK if how == "rows" else ("GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO bob",)
    execute(given, *GRANTS, *look, "ALTER SYSTEM SET jit = off", "ALTER SYSTEM SET work_mem = '3MB'")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
    assert served(arm, tmp_path, show("work_mem")) == ["8MB"]
    assert automatic(given).read_bytes() == before


def test_a_comment_shows_in_the_rows_of_the_file(given, workspace):
    execute(given, *GRANTS, *LOOK)
    automatic(given).write_text(f"{HEAD}# ours\nwork_mem = '3MB'\n")
    with pytest.raises(StudyError, match="has comments"):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)


def test_what_the_file_includes_shows_in_the_rows_of_the_files(given, workspace):
    execute(given, *GRANTS, *LOOK)
    (given.data_directory / "more.conf").write_text("jit = off\n")
    content = f"{HEAD}work_mem = '3MB'\ninclude = 'more.conf'\n"
    automatic(given).write_text(content)
    with pytest.raises(StudyError, match="includes other files"):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_text() == content


def test_bytes_that_are_no_text_show_in_the_rows_of_the_files(given, workspace):
    execute(given, *GRANTS, *LOOK)
    content = HEAD.encode() + b"log_line_prefix = '\xe9'\n"
    automatic(given).write_bytes(content)
    with pytest.raises(StudyError, match="has bytes that are not valid text in this database's encoding"):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == content


def test_a_role_that_cannot_see_the_file_changes_only_what_was_provably_not_in_it(given, workspace, tmp_path):
    execute(given, *GRANTS)
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
    assert served(arm, tmp_path, show("work_mem")) == ["8MB"]
    assert automatic(given).read_bytes() == before
    # not loaded yet: found out when the server has read its files, before the file is written
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'")
    before = automatic(given).read_bytes()
    with pytest.raises(
        ArmError, match=r"the role bob cannot see how postgresql\.auto\.conf of the server sets work_mem"
    ):
        served(arm, tmp_path)
    with pytest.raises(StudyError, match="the role bob cannot see how"):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == before


def test_a_role_that_may_not_reload_changes_nothing(given, workspace):
    execute(given, *GRANTS, *LOOK, "REVOKE EXECUTE ON FUNCTION pg_reload_conf() FROM bob")
    with pytest.raises(StudyError, match=r"the role bob may not make the server reload .*GRANT EXECUTE ON FUNCTION"):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)
