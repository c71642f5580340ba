"""Tests that features that a server's build lacks are reported before anything is loaded, for all arms at once, and
that the message names a server that has them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.loads.data.restored_statements import DumpNeeds, Extension
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers.abilities import abilities_of, check_abilities
from pgtrial.servers.arm import Needs
from pgtrial.servers.installations import find_servers
from pgtrial.servers.run_directory import servers_account
from pgtrial.store.study_file import read_study
from tests.conftest import require_server

pytestmark = pytest.mark.server

SHOP = """CREATE EXTENSION pgcrypto;
CREATE EXTENSION "uuid-ossp" WITH SCHEMA public;
CREATE EXTENSION no_such_extension;
CREATE COLLATION german (provider = icu, locale = 'de-AT');
CREATE TABLE t (a text COMPRESSION lz4);
"""
STUDY = """[study]
question = "Is it faster?"
[load]
data = "shop.sql"
workload = "q.sql"
clients = 2
[arms.a]
postgres = "17"
[arms.b]
postgres = "18"
[verdict]
blocks = 8
"""


def test_a_server_says_the_same_of_its_extensions_as_its_files(cluster):
    found = abilities_of(LOCAL, servers_account(LOCAL), cluster.server.bin)
    with cluster.target.connect_as_user() as session:
        names = {str(name) for (name,) in session.execute("SELECT name FROM pg_available_extensions").fetchall()}
        icu = session.execute("SELECT count(*) > 0 FROM pg_collation WHERE collname = 'de-x-icu'").fetchone()
        try:
            session.execute("CREATE TEMP TABLE compressed (a text COMPRESSION lz4)")
            lz4 = True
        except Exception:  # noqa: BLE001 - older versions do not know the word either
            lz4 = False
    assert found.extensions == names
    assert (found.icu,) == icu
    assert found.lz4 == lz4 or cluster.server.major < 14


def test_all_that_arms_lack_is_told_at_once(tmp_path, monkeypatch):
    require_server(17)
    require_server(18)
    (tmp_path / "shop.sql").write_text(SHOP)
    (tmp_path / "q.sql").write_text("SELECT 1;\n")
    (tmp_path / "study.toml").write_text(STUDY)
    spec = read_study(tmp_path / "study.toml")
    with pytest.raises(StudyError) as refused:
        check_abilities(Design(spec), Needs.of(Design(spec)).data)
    words = str(refused.value)
    assert words.startswith("[load] data: shop.sql needs more than the servers have: arms.a: PostgreSQL 17")
    for arm, major in (("a", 17), ("b", 18)):
        [server] = [one for one in find_servers() if one.major == major][:1]
        can = abilities_of(LOCAL, servers_account(LOCAL), server.bin)
        said = words.partition(f"arms.{arm}: ")[2].partition(";")[0]
        assert "no_such_extension" in said
        assert ("pgcrypto" in said) != ("pgcrypto" in can.extensions)
        assert ("ICU (for collation german)" in said) != can.icu
    assert 'and name it, e.g. postgres = "/usr/lib/postgresql/18/bin"' in words


def test_nothing_is_told_of_what_a_build_has():
    can = abilities_of(LOCAL, servers_account(LOCAL), Path(require_server(15).bin))
    needs = DumpNeeds({"plpgsql": Extension("plpgsql")})
    assert can.lacks(needs) == []
