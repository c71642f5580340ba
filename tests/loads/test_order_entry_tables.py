"""The tables of order entry on a real server."""

from __future__ import annotations

import pytest

from pgtrial.loads.data.order_entry_tables import OrderEntryTables, violated_condition
from pgtrial.model.errors import StudyError, TrialError
from tests.conftest import OLD_VERSIONS, require_engine

pytestmark = pytest.mark.server


@pytest.fixture
def server(start_cluster):
    return start_cluster().target


def test_what_was_loaded_is_found_again_and_replaced_by_another_size(server):
    require_engine()
    tables, lines = OrderEntryTables(1, 90, foreign_keys=True), list[str]()
    with server.connect_as_user() as connection:
        assert not tables.find(connection)
    tables.make(server, lines.append)
    assert lines[-1].startswith("1 warehouse loaded in ")
    with server.connect_as_user() as connection:
        assert tables.find(connection)
        assert not OrderEntryTables(1).find(connection)
        assert not OrderEntryTables(2, 90, foreign_keys=True).find(connection)
        assert tables.table_names(connection)[0] == "public.customer"
        connection.execute("COMMENT ON TABLE warehouse IS 'pgtrial order entry'")
        assert not tables.find(connection), "it was not finished"
    OrderEntryTables(1).make(server, lines.append)
    with server.connect_as_user() as connection:
        assert OrderEntryTables(1).find(connection)
        megabytes = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) / 1e6 FROM pg_class c WHERE c.relkind = 'r' AND "
            + OrderEntryTables(1).relations(connection)
        ).fetchone()
        assert megabytes is not None
        assert float(megabytes[0]) == pytest.approx(OrderEntryTables(1).mb, rel=0.2), (
            "with the items, of which there is one set"
        )


def test_procedures_need_a_server_that_has_them(clusters):
    for major in (OLD_VERSIONS[0], 18):
        with clusters(major).target.connect_as_user() as connection:
            objection = OrderEntryTables(1, procedures=True).objection(connection)
            assert OrderEntryTables(1).objection(connection) is None
        assert (objection is None) == (major >= 11), objection
        if objection is not None:
            assert f"order-entry need PostgreSQL 11 or later, and this server is PostgreSQL {major};" in objection


def test_a_table_of_others_is_not_replaced(server):
    with server.connect_as_user() as connection:
        connection.execute("CREATE TABLE orders (id int)")
        with pytest.raises(StudyError, match="already holds a table orders that pgtrial did not make"):
            OrderEntryTables(1).find(connection)


def test_conditions_that_cannot_be_checked_are_no_violation(server):
    require_engine()
    with pytest.raises(
        TrialError, match="the consistency conditions could not be checked: there are no tables of order"
    ):
        violated_condition(server)
