"""Names of prepared statements differ between sessions: behind a pooler these may share a session of the server."""

from __future__ import annotations

import pytest

from tests.engine.sysbench.sides import ours
from tests.poolers import pooled

pytestmark = pytest.mark.server

SIZES = ("--tables=2", "--table-size=100")
SHOW_NAMES = """
function thread_init()
   con = sysbench.sql.driver():connect()
   kept = {con:prepare("SELECT 1"), con:prepare("SELECT 2")}
   local rows = con:query("SELECT name FROM pg_prepared_statements")
   for _ = 1, rows.nrows do print("name " .. rows:fetch_row()[1]) end
end
function event() kept[1]:execute() end
"""


def test_no_name_is_used_in_two_sessions(databases, tmp_path):
    (tmp_path / "names.lua").write_text(SHOW_NAMES)
    done = ours().run(databases[1], "names.lua", "--threads=3", "--events=9", "run", directory=tmp_path)
    assert done.status == 0, done.stdout
    names = [line for line in done.stdout.splitlines() if line.startswith("name ")]
    assert len(names) == len(set(names)) == 6


@pytest.mark.parametrize("test", ["oltp_read_write", "select_random_points"])
def test_sessions_share_one_of_the_server_behind_a_pooler(server, databases, tmp_path, test):
    assert ours().run(databases[1], "oltp_read_write", *SIZES, "prepare", directory=tmp_path).status == 0
    with pooled(server, "transaction", size=1, dbname=databases[1].dbname) as pool:
        done = ours().run(pool, test, *SIZES, "--threads=4", "--events=50", "run", directory=tmp_path)
    assert done.status == 0, done.stdout
    assert "    transactions:                        50 " in done.stdout
