"""Arms with scripts or queries of their own: how they are read, kept with the study, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.preparation.own_scripts import check_scripts
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.store.comparison import comparison, name_arms, with_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study, read_study

IN = "select id from a where b in (select b from c where d = 1, 2)"
EXISTS = "select id from a where exists (select from c where c.b = a.b)"
QUERIES = {"in": {"query": IN}, "exists": {"query": EXISTS}}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"old/x.sql": "select 1;\n", "new/x.sql": "select 2;\n", "y.sql": "select 3;\n"}.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)


def study(arms, load=None, server=None) -> StudySpec:
    return build_study({"study": {"name": "s"}, "load": load or {}, "arms": arms, "server": server or {}}, "test")


def test_a_query_of_the_command_line_is_all_that_follows_its_key():
    query = "select a, b from c where d = 'x, y=2' and command = 3, query=4"
    assert name_arms([f"in=query={query}", f"jit=on,query={query}", f"query={query}"]) == {
        "in": {"query": query},
        f"jit=on,query={query}"[:56]: {"query": query, "settings": {"jit": "on"}},
        f"query={query}"[:56]: {"query": query},
    }
    assert name_arms(["old=workload=old.sql", "new=workload=new.sql,jit=off"]) == {
        "old": {"workload": "old.sql"},
        "new": {"workload": "new.sql", "settings": {"jit": "off"}},
    }
    program = "command=node a.js query=b"
    assert name_arms([program]) == {program: {"command": "node a.js query=b"}}


def test_a_byte_order_mark_is_no_part_of_a_script():
    Path("y.sql").write_bytes(b"\xef\xbb\xbfselect 3;\r\n")
    Path("suite").mkdir()
    Path("suite/q.sql").write_bytes(b"\xef\xbb\xbfselect 4;\n")
    arms = {"x": {"workload": "old/x.sql"}, "y": {"workload": "y.sql"}}
    assert study(arms).scripts["y.sql"] == "select 3;\r\n"
    assert list(study({"a": {}, "b": {}}, {"workload": "suite:./suite"}).scripts.values()) == ["select 4;\n"]


@pytest.mark.parametrize("workload", ["select-only", "oltp_point_select"])
def test_values_of_an_arm_are_refused_where_those_of_the_load_are(workload):
    told = (
        rf"test: \[arms\.b\] values are only for queries and pgbench scripts \(\.sql\), but the workload is {workload}"
    )
    with pytest.raises(StudyError, match=told):
        study({"a": {}, "b": {"values": {"id": "t.x"}}}, {"workload": workload})


def test_arms_that_differ_in_their_queries_are_sessions_of_one_server_at_one_load_point():
    spec = comparison([f"in=query={IN}", f"exists=query={EXISTS}"], "test", None, 3, {})
    assert spec.scripts == {"in.query.sql": f"{IN};\n", "exists.query.sql": f"{EXISTS};\n"}
    [point] = load_points(spec)
    assert (point.label, point.slug) == ("own scripts, 8 clients", "own-scripts-no-tables-c8")
    assert point.of_arms == {"in": "in.query.sql", "exists": "exists.query.sql"}
    assert point.for_arm("exists").workload == "exists.query.sql"
    assert Design(spec).possible_sessions == {"in": {}, "exists": {}}
    interleaving = interleaved(Design(spec)).interleaving
    assert interleaving is not None
    assert interleaving.shared_server
    plan = make_plan(spec, 3, "2026-11-29T00:00:00+00:00")
    assert plan.declared == {"in": [], "exists": ["load.script"]}
    assert plan.scripts.keys() == spec.scripts.keys()
    seeds = {(trial.block, trial.seed) for trial in plan.trials}
    assert len(seeds) == plan.max_blocks, "all arms draw the same values in a block"


def test_a_given_server_is_shared_too():
    spec = comparison(
        ["old=workload=old/x.sql", "new=workload=new/x.sql"], "test", None, 3, {"server": {"dsn": "service=replica"}}
    )
    assert Design(spec).possible_sessions == {"old": {}, "new": {}}
    assert spec.scripts == {"x.sql": "select 1;\n", "new-x.sql": "select 2;\n"}


def test_settings_of_the_server_give_each_arm_a_server_of_its_own():
    arms = {"in": {"query": IN}, "exists": {"query": EXISTS, "settings": {"shared_buffers": "1GB"}}}
    assert Design(study(arms)).possible_sessions == {}


def test_an_arm_without_a_query_runs_the_common_one():
    for load in ({"query": IN}, {"workload": "y.sql"}):
        for arms in ({"a": {}, "b": {"query": EXISTS}}, {"b": {"workload": "old/x.sql"}, "a": {}}):
            [point] = load_points(study(arms, load))
            assert point.of_arms["a"] == ("query.sql" if "query" in load else "y.sql")


@pytest.mark.parametrize(
    ("arms", "load"),
    [
        (QUERIES, {}),
        ({"old": {"workload": "old/x.sql"}, "new": {"workload": "new/x.sql"}}, {}),
        ({"a": {}, "b": {"query": EXISTS}}, {"query": IN, "answers": "may differ"}),
        ({"b": {"workload": "old/x.sql"}, "a": {}}, {"workload": "y.sql"}),
        ({"a b": {"query": "select 1"}, "a-b": {"query": "select 2"}}, {}),
        ({"old": {"workload": "job:old/x.sql"}, "new": {"workload": "job:new/x.sql"}}, {"job": {"limit": 60.0}}),
        ({"a": {}, "b": {"workload": "job:new/x.sql"}}, {"workload": "job:y.sql"}),
    ],
)
def test_a_frozen_study_is_the_same_study(arms, load):
    spec = study(arms, load)
    again = thaw(freeze(spec)).with_scripts(spec.scripts)
    assert (again, again.scripts) == (spec, spec.scripts)
    assert load_points(again) == load_points(spec)
    directory = StudyDirectory.create(Path("kept"), spec, make_plan(spec, 3, "2026-11-29T00:00:00+00:00"))
    read = read_study(Path("kept/study.toml"))
    assert freeze(read) == freeze(spec)
    assert read.scripts == spec.scripts == StudyDirectory.open(directory.path).spec.scripts
    for arm, script in load_points(spec)[0].of_arms.items():
        path = directory.script(load_points(spec)[0].for_arm(arm))
        assert path is not None
        assert path.read_text() == spec.scripts[script]


@pytest.mark.parametrize(
    ("arms", "load", "words"),
    [
        ({"a": {"query": IN}, "b": {}}, {}, r"the arm b has no query and no workload, but a has one"),
        (
            QUERIES,
            {"workload": "suite:tpch"},
            r'\[arms\.in\] query: arms cannot have scripts of their own together with .* "suite:tpch"',
        ),
        (QUERIES, {"workload": "job:y.sql"}, r'together with \[load\] workload = "job:y\.sql"'),
        (QUERIES, {"workload": "oltp_read_only"}, r'together with \[load\] workload = "oltp_read_only"'),
        (
            QUERIES,
            {"workload": ["y.sql", "old/x.sql=2"]},
            r'together with \[load\] workload = \["y\.sql", "old/x\.sql=2"\]',
        ),
        (QUERIES, {"workload": "select-only"}, r'together with \[load\] workload = "select-only"'),
        (QUERIES, {"workload": "y.sql"}, r"\[load\] workload is not run by any arm"),
        (QUERIES, {"query": IN}, r"\[load\] query is not run by any arm"),
        ({"a": {"query": IN, "workload": "y.sql"}, "b": {"query": IN}}, {}, r"\[arms\.a\] has both query and workload"),
        ({"a": {"query": " ; "}, "b": {"query": IN}}, {}, r"\[arms\.a\] query: the query is empty"),
        ({"a": {"query": "-- no"}, "b": {"query": IN}}, {}, r"\[arms\.a\] query: the query is empty"),
        (
            {"a": {"workload": "y.lua"}, "b": {"query": IN}},
            {},
            r"\[arms\.a\] workload: 'y\.lua' is not a pgbench script",
        ),
        ({"a": {"workload": "select-only"}, "b": {"query": IN}}, {}, r"'select-only' is not a pgbench script"),
        ({"a": {"workload": "./old"}, "b": {"query": IN}}, {}, r"old is a folder; .* name a \.sql file"),
        ({"a": {"workload": "no.sql"}, "b": {"query": IN}}, {}, r"cannot read the script no\.sql"),
        (
            {"a": {"query": IN, "command": "true"}, "b": {"command": "true"}},
            {},
            r"arms cannot have scripts of their own together with",
        ),
        (
            {"a": {"workload": "job:y.sql"}, "b": {"query": IN}},
            {},
            r"workload is a job, .* but b has a script or a query",
        ),
        ({"a": {"workload": "job:y.sql"}, "b": {}}, {}, r"the arm b has no query and no workload, but a has one"),
        ({"a": {"workload": "job:y.sql"}, "b": {}}, {"query": IN}, r"\[load\] query is not a job; remove"),
        (
            {"a": {"workload": "job:y.sql"}, "b": {}},
            {"workload": "y.sql"},
            r"a job, but \[load\] workload is not a job",
        ),
        ({"a": {"workload": "job:"}, "b": {}}, {}, r"'job:' names no SQL file; an arm's job is job:FILE\.sql"),
        ({"a": {}, "b": {}}, {"answers": "may differ"}, r"\[load\] answers is for arms with scripts"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(arms, load, words):
    with pytest.raises(StudyError, match=words) as refused:
        check_scripts(Design(study(arms, load)))
    assert "\n" not in str(refused.value)


JOBS = {"old": {"workload": "job:old/x.sql"}, "new": {"workload": "job:new/x.sql"}}


def test_arms_may_have_a_job_each(tmp_path):
    assert name_arms(["job:a.sql", "b=job:b.sql", "c=jit=off,workload=job:c.sql"]) == {
        "job:a.sql": {"workload": "job:a.sql"},
        "b": {"workload": "job:b.sql"},
        "c": {"workload": "job:c.sql", "settings": {"jit": "off"}},
    }
    for load in ({}, {"workload": "job:old/x.sql"}):
        spec = study(JOBS, load)
        [point] = load_points(spec)
        assert (point.label, point.of_arms) == ("job of each arm, scale 10", {"old": "x.sql", "new": "new-x.sql"})
        assert point.job is not None
        assert point.for_arm("new").label == "job new-x.sql, scale 10"
        assert Design(spec).load.kind.scripts_run_once(spec) == ["new-x.sql", "x.sql"]
        assert interleaved(Design(spec)).interleaving is None
        assert make_plan(spec, 3, "2026-11-29T00:00:00+00:00").declared == {"old": [], "new": ["load.script"]}
    [point] = load_points(study({"a": {}, "b": JOBS["new"]}, {"workload": "job:y.sql", "job": {"limit": "1min"}}))
    assert point.of_arms == {"a": "y.sql", "b": "x.sql"}
    Path("s.toml").write_text('[arms.a]\nworkload = "job:y.sql"\n[arms.b]\nworkload = "job:old/x.sql"\n')
    spec = read_study(Path("s.toml"), change=with_arms(["a", "other=job:new/x.sql"]))
    assert spec.scripts == {"y.sql": "select 3;\n", "x.sql": "select 2;\n"}
    files = {effect.text for effect in effects_of(spec) if effect.kind == "files"}
    assert files == set(), "their texts are told in place of their paths"


def test_a_query_of_all_arms_belongs_in_the_load():
    with pytest.raises(StudyError, match="would be the same for all arms") as refused:
        study(QUERIES, server={"query": IN})
    assert refused.value.keys == ("server.query", "load.query")


def test_a_script_of_an_arm_of_the_command_line_is_found_from_the_current_directory(tmp_path):
    Path("studies").mkdir()
    Path("studies/s.toml").write_text('[arms.a]\nquery = "select 1"\n[arms.b]\nquery = "select 2"\n')
    spec = read_study(Path("studies/s.toml"), change=with_arms(["a", "other=workload=y.sql"]))
    assert spec.scripts == {"a.query.sql": "select 1;\n", "y.sql": "select 3;\n"}
    assert effects_of(spec), "its scripts are told before the study of a stranger runs"
    assert {effect.text for effect in effects_of(spec)} == {"a.query.sql:\nselect 1;", "y.sql:\nselect 3;"}


def test_arms_in_the_place_of_arms_with_queries_do_not_get_another_load_without_a_word():
    text = '[arms.a]\nquery = "select 1"\n[arms.b]\nquery = "select 2"\n'
    Path("s.toml").write_text(text)
    with pytest.raises(StudyError, match="each arm of the study has a query or a script of its own, but the arms that"):
        read_study(Path("s.toml"), change=with_arms(["jit=on", "jit=off"]))
    Path("s.toml").write_text(f'[load]\nquery = "select 3"\n{text}')
    spec = read_study(Path("s.toml"), change=with_arms(["jit=on", "jit=off"]))
    assert spec.scripts == {"query.sql": "select 3;\n"}
