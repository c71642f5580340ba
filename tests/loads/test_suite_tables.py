"""The tables of suites on a real server."""

from __future__ import annotations

import pytest

from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.suite_tables import GENERATORS as MADE
from pgtrial.loads.data.suite_tables import SuiteTables
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import load_points
from pgtrial.model.study.suites import GENERATORS
from pgtrial.store.study_file import build_study
from pgtrial.store.suites import described_suites
from tests.conftest import require_engine


def test_every_generator_that_a_suite_can_name_has_its_tables():
    assert tuple(sorted(MADE)) == GENERATORS
    assert {name: suite.data for name, suite in described_suites().items()} == {"joins": "joins", "reports": "reports"}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_suite_that_comes_along_has_its_data_at_scale_1_unless_the_study_says_otherwise(name, tmp_path):
    def data(**load):
        spec = build_study({"load": {"workload": f"suite:{name}", **load}, "arms": {"A": {}, "B": {}}}, "t", tmp_path)
        return data_of(spec, load_points(spec)[0])

    assert data() == SuiteTables(name, 1)
    assert data(scale=20) == SuiteTables(name, 20)
    assert data().digest != data(scale=20).digest
    assert data().short_name == f"{name}-s1"


@pytest.mark.server
@pytest.mark.parametrize(("name", "scale"), [("reports", 0.04), ("joins", 0.1)])
def test_what_was_made_is_found_again_and_replaced_by_another_size(start_cluster, name, scale):
    require_engine()
    server, tables, lines = start_cluster().target, SuiteTables(name, scale), list[str]()
    with server.connect_as_user() as connection:
        assert not tables.find(connection)
    SuiteTables(name, 0.01).make(server, lines.append)
    assert lines[-1].startswith(f"the tables of {name} at scale 0.01 made in ")
    tables.make(server, lines.append)
    with server.connect_as_user() as connection:
        assert tables.find(connection)
        assert not SuiteTables(name, 0.01).find(connection)
        assert ", ".join(tables.table_names(connection)).replace("public.", "") == tables.relations_made
        megabytes = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) / 1e6 FROM pg_class c WHERE c.relkind = 'r' AND "
            + tables.relations(connection)
        ).fetchone()
        assert megabytes is not None
        assert float(megabytes[0]) == pytest.approx(tables.mb, rel=0.15)
        connection.execute(f"COMMENT ON TABLE {MADE[name].tables[0]} IS 'pgtrial {name}'")
        assert not tables.find(connection), "it was not finished"
        connection.execute(f"COMMENT ON TABLE {MADE[name].tables[1]} IS 'mine'")
        with pytest.raises(StudyError, match=f"holds a table {MADE[name].tables[1]} that pgtrial did not make"):
            tables.find(connection)
