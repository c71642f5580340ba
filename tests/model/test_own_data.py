"""Keys of the user's own data, query and values: what they mean, and what does not go together."""

from __future__ import annotations

import os

import pytest

from pgtrial.loads.data.kinds import NO_TABLES, data_of
from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import load_points
from pgtrial.store.comparison import comparison
from pgtrial.store.own_data import check_data_unchanged
from pgtrial.store.study_file import build_study


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Returns a folder with SQL files and scripts, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.sql").write_text("CREATE TABLE orders (id int);\n")
    (tmp_path / "data.sql").write_text("INSERT INTO orders VALUES (1);\n")
    for name in ("a.sql", "b.sql", "c.sql"):
        (tmp_path / name).write_text(f"SELECT 1; -- {name}\n")
    (tmp_path / "t.lua").write_text("function event() end\n")
    return tmp_path


def study(arms=("jit=on", "jit=off"), **load):
    return comparison(arms, "test", None, 1, {"load": load})


def test_data_is_a_file_or_files_and_one_size(shop):
    spec = study(data=["schema.sql", "data.sql"], workload=["a.sql", "b.sql"])
    assert spec.load.data == [str(shop / "schema.sql"), str(shop / "data.sql")]
    assert [point.label for point in load_points(spec)] == [
        "a.sql on schema.sql + data.sql, 8 clients",
        "b.sql on schema.sql + data.sql, 8 clients",
    ]
    assert len({point.slug for point in load_points(spec)}) == 2
    assert thaw(freeze(spec)).load == spec.load


def test_scripts_with_weights_are_one_load(shop):
    (point,) = load_points(study(data="schema.sql", workload=["a.sql", "b.sql=3", "c.sql=0"]))
    assert point.mix == {"a.sql": 1, "b.sql": 3, "c.sql": 0}
    assert point.label == "a.sql + b.sql=3 + c.sql=0 on schema.sql, 8 clients"
    assert {point: 1}[point.model_copy()] == 1


def test_a_mix_that_names_no_table_of_pgbench_gets_none_on_a_given_server(shop):
    servers = ("host=db1", "host=db2")
    mix = study(servers, workload=["a.sql", "b.sql=3"])
    assert [data_of(mix, point) for point in load_points(mix)] == [NO_TABLES]
    assert thaw(freeze(mix)).load.scale_is_set is False
    (shop / "b.sql").write_text("SELECT count(*) FROM pgbench_branches;\n")
    mix = study(servers, workload=["a.sql", "b.sql=3"])
    assert [data_of(mix, point).label for point in load_points(mix)] == ["scale 10"]


def test_scripts_that_name_no_table_of_pgbench_get_none_on_a_made_server_either(shop):
    (point,) = load_points(spec := study(query="select 1", clients=2))
    assert (data_of(spec, point), point.label) == (NO_TABLES, "query.sql, 2 clients")
    assert load_points(thaw(freeze(spec)).with_scripts(spec.scripts)) == [point]
    mix = study(workload=["a.sql", "b.sql=3"])
    assert [data_of(mix, point) for point in load_points(mix)] == [NO_TABLES]


@pytest.mark.parametrize(
    ("load", "setup_sql"),
    [
        ({"query": "select 1", "scale": 10}, []),
        ({"query": "select count(*) from PGBENCH_branches"}, []),
        ({"query": "select :scale"}, []),
        ({"query": "select * from q"}, ["CREATE VIEW q AS TABLE pgbench_tellers"]),
    ],
)
def test_scripts_have_the_tables_where_scale_is_set_or_anything_of_the_study_names_them(load, setup_sql):
    spec = build_study({"load": load, "arms": {"a": {}, "b": {"setup_sql": setup_sql}}}, "test")
    (point,) = load_points(spec)
    assert (data_of(spec, point).label, point.label) == ("scale 10", "query.sql, scale 10, 8 clients")
    assert load_points(thaw(freeze(spec)).with_scripts(spec.scripts)) == [point]


@pytest.mark.parametrize("query", ["select 1", "select 1;", " select 1 \n"])
def test_a_query_is_a_script(shop, query):
    spec = study(query=query)
    assert spec.scripts == {"query.sql": "select 1;\n"}
    assert spec.origin("query.sql") == "the query"
    assert [point.workload for point in load_points(spec)] == ["query.sql"]
    assert thaw(freeze(spec)).load == spec.load


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"data": "none.sql"}, r"\[load\] data: cannot read .*none.sql: No such file"),
        ({"data": []}, None),
        ({"data": ""}, "data: a path in the list is empty"),
        ({"data": ["schema.sql", "host=db"]}, "data: a connection string must be the only item"),
        ({"data": "host=db port='1"}, r"\[load\] data is not a connection string"),
        ({"data": "schema.sql", "scale": 5}, "scale is not for data of your own: it is the size of tables"),
        ({"data": "schema.sql", "fillfactor": 90}, "fillfactor is not for data of your own"),
        ({"data": "schema.sql", "workload": "order-entry"}, "order-entry has tables of its own; leave data out"),
        ({"data": "schema.sql", "workload": "pack:queue"}, "the pack queue makes tables of its own; remove"),
        ({"query": "select 1", "workload": "a.sql"}, "query stands in place of workload"),
        ({"workload": ["pack:queue", "b.sql=3"]}, "pack:queue cannot be mixed"),
        ({"workload": ["tpcb-like", "b.sql=3"]}, "tpcb-like cannot be mixed with scripts that have weights"),
        ({"workload": ["a.sql=0", "b.sql=0"]}, "every script has the weight 0"),
        ({"workload": "a.sql", "values": {"id": "id"}}, "'id' is not a column; write the table and the column"),
        ({"workload": "a.sql", "values": {"id": "a.b.c.d"}}, "'a.b.c.d' is not a column"),
        ({"workload": "a.sql", "values": {"id": "t.x; drop table t"}}, "is not a column"),
        ({"workload": "a.sql", "values": {"i d": "t.x"}}, "'i d' is not the name of a variable"),
        ({"values": {"id": "t.x"}}, "values are only for queries and pgbench scripts"),
        ({"workload": "t.lua", "values": {"id": "t.x"}}, "values are only for queries and pgbench scripts"),
    ],
)
def test_what_does_not_go_together_is_refused(shop, load, message):
    if message is None:
        assert study(**load).load.data == []
        return
    with pytest.raises(StudyError, match=message):
        study(**load)


@pytest.mark.parametrize("column", ["orders.id", "shop.orders.id", '"My shop"."order.s"."a ""b"', "größe.preis"])
def test_a_column_is_named_with_its_table(shop, column):
    assert study(query="select :x", values={"x": column}).load.values == {"x": column}


def test_an_empty_file_is_no_data(shop):
    (shop / "empty.sql").touch()
    with pytest.raises(StudyError, match=r"empty.sql is empty; name a dump, or a file of SQL"):
        study(data="empty.sql", workload="a.sql")


def test_a_given_server_has_its_data(shop):
    with pytest.raises(StudyError, match=r"\[arms.db1\] pgtrial loads data only into servers that it starts itself"):
        study(("host=db1", "host=db2"), data="schema.sql", workload="a.sql")


def test_data_that_changed_since_the_plan_is_refused(shop):
    spec = study(data=["schema.sql", "data.sql"], workload="a.sql")
    check_data_unchanged(spec)
    os.rename(shop / "data.sql", shop / "old.sql")
    (shop / "data.sql").write_text("INSERT INTO orders VALUES (2);\n")
    with pytest.raises(StudyError, match="has changed since the study was planned"):
        check_data_unchanged(spec)


def test_a_password_of_the_data_is_not_frozen(shop):
    frozen = freeze(study(data="postgresql://me:hunter2@db/shop", workload="a.sql"))
    assert "hunter2" not in frozen
    assert "dbname=shop" in frozen


def test_data_of_a_replay_is_its_dump(shop):
    spec = study(workload="replay:@shop", data="@shop")
    assert (spec.load.data, spec.load.replay.data) == ([], "@shop")
    with pytest.raises(StudyError, match="in one dump"):
        study(workload="replay:@shop", data="host=db1")
    with pytest.raises(StudyError, match=r"data and replay\.data both name the data of the replay"):
        study(workload="replay:@shop", data="@shop", replay={"data": "@shop"})
