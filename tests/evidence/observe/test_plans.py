"""The plans of statements on real servers: for the values of the load, and as the server chooses them."""

from __future__ import annotations

import pytest

from pgtrial.evidence.observe.plans import SentStatement, planned
from pgtrial.loads.target import Target
from tests.conftest import require_server

pytestmark = pytest.mark.server

TABLES = """CREATE TABLE reading (day int NOT NULL, device int NOT NULL) PARTITION BY RANGE (day);
CREATE TABLE reading_0 PARTITION OF reading FOR VALUES FROM (0) TO (1);
CREATE TABLE reading_1 PARTITION OF reading FOR VALUES FROM (1) TO (2);
CREATE TABLE reading_2 PARTITION OF reading FOR VALUES FROM (2) TO (3);
INSERT INTO reading SELECT i % 3, i % 50 FROM generate_series(1, 3000) i;
ANALYZE reading"""
TEXT = "SELECT count(*) FROM reading WHERE day = $1 AND device = $2"
VALUES = [["2", "7"], ["0", "9"], ["1", "7"]]


@pytest.fixture(params=[15, 18])
def asked(request, start_cluster):
    """Yields a function that plans a statement with this plan_cache_mode, on a server with partitioned tables. The
    tests run once for each of several versions.
    """
    require_server(request.param)
    cluster = start_cluster(request.param)
    target = Target(cluster.socket_directory, cluster.port, "postgres", "postgres")
    with target.connect_as_user() as session:
        session.execute(TABLES)

        def plan(statement: SentStatement, mode: str = "auto"):
            session.execute(f"SET plan_cache_mode = {mode}".encode())
            return planned(session, statement)

        yield plan
        assert session.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert session.execute("SELECT count(*) FROM reading").fetchone() == (3000,)


def prepared(**others) -> SentStatement:
    return SentStatement(TEXT, "prepared", VALUES, **others)


def test_a_plan_of_a_partitioned_table_is_that_of_the_values_and_never_an_empty_one(asked):
    found = asked(prepared(), "force_custom_plan")
    assert found.chosen == "custom"
    assert [line.strip() for line in found.plan if "Seq Scan" in line] == ["->  Seq Scan on reading_1 reading"]
    assert any("device = 7" in line for line in found.plan)
    assert found.planning_ms is not None
    assert found.planning_ms > 0


def test_both_kinds_are_taken_and_the_mode_decides_which_is_used(asked):
    found = asked(prepared(), "force_generic_plan")
    assert found.chosen == "generic"
    assert any("Subplans Removed: 2" in line for line in found.plan)
    assert any("device = $2" in line for line in found.plan)
    assert any("device = 7" in line for line in found.not_chosen)
    assert not any("Subplans" in line for line in found.not_chosen)


def test_the_server_itself_chooses_by_cost_as_it_does_in_the_sixth_execution(asked):
    assert asked(prepared()).chosen == "custom"  # the generic plan costs all three partitions
    alike = SentStatement("SELECT count(*) FROM reading WHERE device = $1", "prepared", [["7"]])
    assert asked(alike).chosen == "generic"
    assert asked(SentStatement(alike.text, "extended", [["7"]])).chosen == "custom"


def test_the_simple_protocol_has_the_plan_of_its_literals(asked):
    sent = TEXT.replace("$1", "2").replace("$2", "9")
    found = asked(SentStatement(TEXT, "simple", VALUES, sent), "force_generic_plan")
    assert (found.chosen, found.text, found.not_chosen, found.planning_ms) == ("literals", TEXT, [], None)
    assert any("Seq Scan on reading_2 reading" in line for line in found.plan)


def test_without_values_no_plan_is_one_that_nulls_have_pruned(asked):
    found = asked(SentStatement(TEXT, "prepared"))
    assert found.chosen == "unknown"
    assert not any("Subplans Removed" in line for line in found.plan)
    assert not found.plan or sum("Seq Scan" in line for line in found.plan) == 3


def test_values_of_the_users_data_are_not_in_a_plan(asked):
    found = asked(prepared(hides_values=True), "force_custom_plan")
    assert any("device = ?" in line for line in found.plan)
    assert any("reading_1" in line for line in found.plan)


def test_statements_that_functions_and_triggers_run_are_not_shown(start_cluster):
    require_server(18)
    cluster = start_cluster(18)
    with Target(cluster.socket_directory, cluster.port, "postgres", "postgres").connect_as_user() as session:
        session.execute("CREATE TABLE t AS SELECT generate_series(1, 9) AS a")
        session.execute("CREATE FUNCTION sum_of(int) RETURNS bigint LANGUAGE SQL AS 'SELECT sum(a) FROM t'")

        def hidden(text):
            return planned(session, SentStatement(text)).hides_statements

        assert hidden("SELECT Sum_Of(a) FROM t")
        assert not hidden("SELECT sum(a) FROM t")
        assert not hidden("UPDATE t SET a = 1")
        session.execute("CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
        session.execute("CREATE TRIGGER fires BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fired()")
        assert hidden("UPDATE t SET a = 1")
        assert not hidden("SELECT sum(a) FROM t")


def test_what_the_server_refuses_has_no_plan_and_leaves_nothing_prepared(asked):
    for text in ("SELECT nothing FROM reading WHERE day = $1", "UPDATE nowhere SET a = $1"):
        found = asked(SentStatement(text, "prepared", [["1"]]))
        assert (found.plan, found.chosen) == ([], None)
    assert asked(prepared(), "force_custom_plan").plan
    changed = asked(SentStatement("UPDATE reading SET device = $1", "prepared", [["1"]]))
    assert any(line.startswith("Update on reading") for line in changed.plan)
