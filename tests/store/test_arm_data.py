"""Data and values of arms: how they are read, kept with the study, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.planning.scope import scope_of
from pgtrial.loads.data.kinds import data_of
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.servers.arm import Needs
from pgtrial.store.comparison import comparison, name_arms, with_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.own_data import check_data_unchanged
from pgtrial.store.study_file import build_study, read_study

TWO = {"v4": {"data": "v4.sql"}, "v7": {"data": ["s.sql", "v7.sql"]}}
LOAD = {"workload": "insert.sql"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("v4", "v7", "s"):
        Path(f"{name}.sql").write_text(f"create table {name} (id int);\n")
    Path("insert.sql").write_text("insert into events values (1);\n")


def study(arms, load=None, server=None) -> StudySpec:
    keys = {"study": {"name": "s"}, "load": LOAD if load is None else load, "arms": arms, "server": server or {}}
    return build_study(keys, "test")


def test_a_set_up_of_the_command_line_may_have_data_and_values():
    assert name_arms(["v4=data=v4.sql,values=id=e.id,values=n=e.n", "v7=jit=off,data=v7.sql"]) == {
        "v4": {"data": ["v4.sql"], "values": {"id": "e.id", "n": "e.n"}},
        "v7": {"data": ["v7.sql"], "settings": {"jit": "off"}},
    }
    with pytest.raises(StudyError, match="values=id does not name a variable and a column"):
        name_arms(["a=values=id", "b=values=id=t.id"])


def test_arms_with_data_of_their_own_have_a_server_each_at_one_load_point(tmp_path):
    spec = comparison(["v4=data=v4.sql", "v7=data=v7.sql"], "test", None, 3, {"load": LOAD})
    [point] = load_points(spec)
    assert point.label == "insert.sql on v4.sql or v7.sql, 8 clients"
    design = Design(spec)
    assert design.possible_sessions == {}
    data = [data_of(spec, point, arm) for arm in spec.arms]
    assert [one.label for one in data] == ["v4.sql", "v7.sql"]
    assert data[0] != data[1]
    needs = Needs.of(design)
    assert needs.data == data
    assert [needs.of_arm(arm) for arm in spec.arms] == [[data[0]], [data[1]]]
    plan = make_plan(spec, 3, "2026-11-29T00:00:00+00:00")
    assert plan.declared == {"v4": [], "v7": ["load.data"]}
    assert "each arm with its own loaded data" in scope_of(design, 8)
    files = {effect.text for effect in effects_of(spec) if effect.kind == "files"}
    assert {f"v4: reads {tmp_path}/v4.sql", f"v7: reads {tmp_path}/v7.sql"} <= files


def test_an_arm_without_data_has_those_of_the_load():
    spec = study({"own": {"data": "v7.sql"}, "plain": {}}, {**LOAD, "data": "v4.sql"})
    [point] = load_points(spec)
    assert [data_of(spec, point, arm).label for arm in spec.arms] == ["v7.sql", "v4.sql"]
    assert Design(study({"a": {"data": "s.sql"}, "b": {}}, {**LOAD, "data": "s.sql"})).possible_sessions == {}


@pytest.mark.parametrize(
    ("arms", "load"),
    [
        (TWO, LOAD),
        ({"own": {"data": "v7.sql"}, "plain": {}}, {**LOAD, "data": "v4.sql"}),
        ({"a": {"data": "v7.sql", "values": {"id": "v7.id"}}, "b": {}}, {**LOAD, "data": "v4.sql"}),
        ({"a": {"data": "v7.sql"}, "b": {"data": "v4.sql"}}, {**LOAD, "answers": "may differ"}),
    ],
)
def test_a_frozen_study_is_the_same_study(arms, load):
    spec = study(arms, load)
    assert thaw(freeze(spec)).with_scripts(spec.scripts) == spec
    directory = StudyDirectory.create(Path("kept"), spec, make_plan(spec, 3, "2026-11-29T00:00:00+00:00"))
    read = read_study(Path("kept/study.toml"))
    assert freeze(read) == freeze(spec) == freeze(StudyDirectory.open(directory.path).spec)
    check_data_unchanged(read)
    Path("v7.sql").write_text("create table other (id int);\n")
    with pytest.raises(StudyError, match=r"v7\.sql has changed since the study was planned"):
        check_data_unchanged(read)
    Path("v7.sql").unlink()
    with pytest.raises(StudyError, match=r"v7\.sql, which the study needs, does not exist on this machine"):
        check_data_unchanged(read)


def test_values_of_an_arm_are_those_of_clients_on_one_server():
    spec = study({"a": {}, "b": {"values": {"id": "old.id"}}}, {**LOAD, "values": {"id": "t.id", "n": "t.n"}})
    assert Design(spec).possible_sessions == {"a": {}, "b": {}}
    assert spec.values_of("b") == {"id": "old.id", "n": "t.n"}
    assert make_plan(spec, 3, "2026-11-29T00:00:00+00:00").declared == {"a": [], "b": ["load.values"]}


@pytest.mark.parametrize(
    ("arms", "load", "words"),
    [
        (
            {"a": {"data": "v4.sql"}, "b": {}},
            LOAD,
            "the arm b has no data, but a has data of its own; give every arm its data",
        ),
        (TWO, {**LOAD, "data": "s.sql"}, r"\[load\] data is not loaded by any arm, because each has data of its own"),
        ({"a": {"data": "no.sql"}, "b": {"data": "s.sql"}}, LOAD, r"\[arms\.a\] data: cannot read .*no\.sql: No such"),
        (
            {"a": {"data": "host=db1"}, "b": {"data": "s.sql"}},
            LOAD,
            r"\[arms\.a\] data is a database, .* dump the database with",
        ),
        ({"a": {"data": "s.sql"}, "b": {}}, {**LOAD, "data": "dbname=x"}, r"\[load\] data is a database"),
        ({"a": {"data": "s.sql"}, "b": {"dsn": "host=x"}}, LOAD, "on this machine, and b is another server"),
        ({"a": {"data": "s.sql", "dsn": "host=x"}, "b": {}}, LOAD, "has data, and its server is a given one"),
        (TWO, {**LOAD, "statistics": "same"}, "different data have different planner statistics"),
        (TWO, {"workload": "order-entry"}, r"\[arms\.v4\] data: order-entry has tables of its own"),
        (TWO, {**LOAD, "scale": 5}, r"\[arms\.v4\] data: scale is not for data of your own"),
        ({"a": {"data": ["s.sql", ""]}, "b": {}}, LOAD, r"\[arms\.a\] data: a path in the list is empty"),
        ({"a": {"data": []}, "b": {}}, LOAD, r"\[arms\.a\] data: it has 0 items and must have at least 1 item"),
        ({"a": {"values": {"id": "nothing"}}, "b": {}}, LOAD, "'nothing' is not a column"),
        ({"a": {"values": {"id": "t.id"}}, "b": {}}, {"workload": "job:s.sql"}, r"\[arms\.a\] values: values is not"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(arms, load, words):
    with pytest.raises(StudyError, match=words) as refused:
        study(arms, load)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (
            {"data": "s.sql"},
            r"\[server\] data is a folder on a host that pgtrial reaches by ssh, and a is not on such a host",
        ),
        ({"values": {"id": "t.id"}}, r"\[server\] values would be the same for all arms; write \[load\] values"),
    ],
)
def test_what_all_arms_share_belongs_in_the_load(server, words):
    with pytest.raises(StudyError, match=words):
        study({"a": {}, "b": {}}, server=server)


def test_data_of_an_arm_of_the_command_line_are_found_from_the_current_directory(tmp_path):
    Path("studies").mkdir()
    Path("studies/s.toml").write_text('[load]\nworkload = "../insert.sql"\n[arms.a]\ndata = "../s.sql"\n[arms.b]\n')
    spec = read_study(Path("studies/s.toml"), change=with_arms(["a", "other=data=v4.sql"]))
    assert {arm: keys.data for arm, keys in spec.arms.items()} == {
        "a": [f"{tmp_path}/studies/../s.sql"],
        "other": [f"{tmp_path}/v4.sql"],
    }
