"""Tests of sysbench as workloads: their load points, what they share, and what is refused at planning."""

from __future__ import annotations

import pytest

from pgtrial.loads.command_lines.sysbench import check_sysbench
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import load_points
from pgtrial.servers.arm import Needs
from pgtrial.servers.templates import TemplateKey
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine

ARMS = {"a": {}, "b": {"settings": {"jit": "off"}}}


def _spec(workload, folder=None, sysbench=None, **load):
    data = {"load": {"workload": workload, "sysbench": sysbench or {}, "warmup": 1, **load}, "arms": ARMS}
    return build_study(data, "test", *([folder] if folder else []))


def test_they_are_crossed_with_clients_and_not_with_scales():
    spec = _spec(
        ["oltp_write_only", "select-only"],
        sysbench={"tables": 250, "table_size": 450_000},
        scale=[10, 20],
        clients=[1, 64],
    )
    points = load_points(spec)
    assert [point.label for point in points] == [
        "oltp_write_only, 250 x 450,000 rows, 1 client",
        "oltp_write_only, 250 x 450,000 rows, 64 clients",
        "select-only, scale 10, 1 client",
        "select-only, scale 10, 64 clients",
        "select-only, scale 20, 1 client",
        "select-only, scale 20, 64 clients",
    ]
    assert points[1].slug == "oltp_write_only-t250x450000-c64"


def test_the_defaults_of_its_own_tests_are_written_out_and_a_script_has_its_own(tmp_path):
    (tmp_path / "mine.lua").write_text("function event() end")
    points = load_points(_spec(["oltp_read_only", "mine.lua"], tmp_path))
    assert [point.label for point in points] == ["oltp_read_only, 1 x 10,000 rows, 8 clients", "mine.lua, 8 clients"]


def test_tests_that_need_the_same_tables_share_them():
    options = {"rand-type": "uniform", "point-selects": 0}
    spec = _spec(
        ["oltp_write_only", "oltp_point_select", "select-only", "bulk_insert"],
        sysbench={"tables": 3, "table_size": 100, "options": options},
        clients=[2, 4],
    )
    needs = Needs.of(Design(spec))
    assert [data.scale for data in needs.data if isinstance(data, PgbenchTables)] == [10]
    prepared = [data for data in needs.data if isinstance(data, SysbenchTables)]
    assert [(data.test, data.options) for data in prepared] == [
        ("oltp_read_write", ("--tables=3", "--table-size=100", "--rand-type=uniform")),
        ("bulk_insert", ("--rand-type=uniform",)),
        ("bulk_insert", ("--rand-type=uniform",)),
    ]
    assert [data.threads for data in prepared[1:]] == [2, 4]


def test_what_is_prepared_names_the_template():
    def name(**sysbench):
        data = Needs.of(Design(_spec("oltp_write_only", sysbench=sysbench))).data[0]
        return TemplateKey("kind", "18.6", **data.key).name

    assert name(tables=2) == name(tables=2, options={"point-selects": 0})
    assert len({name(tables=2), name(tables=3), name(tables=2, options={"create-secondary": False})}) == 3


def test_the_size_of_its_tables_is_known_before_they_are_made():
    data = Needs.of(Design(_spec("oltp_write_only", sysbench={"tables": 250, "table_size": 450_000}))).largest
    assert 25_000 < data.mb < 40_000


def test_a_script_is_kept_with_the_modules_beside_it(tmp_path):
    (tmp_path / "mine.lua").write_text('require("first")\nlocal x = require "elsewhere"')
    (tmp_path / "first.lua").write_text("require('second')")
    (tmp_path / "second.lua").write_text("require('first')")
    spec = _spec("mine.lua", tmp_path)
    assert set(spec.scripts) == {"mine.lua", "first.lua", "second.lua"}
    data = data_of(spec, load_points(spec)[0])
    assert isinstance(data, SysbenchTables)
    assert [name for name, _ in data.scripts] == ["first.lua", "mine.lua", "second.lua"]


def test_a_frozen_study_has_its_options():
    spec = _spec("oltp_delete", sysbench={"tables": 2, "options": {"rand-type": "pareto", "auto-inc": False}})
    assert thaw(freeze(spec)) == spec


WRONG = {
    "misspelt": ({"workload": "oltp_write_onl"}, "did you mean oltp_write_only"),
    "protocol": ({"workload": "oltp_delete", "protocol": "extended"}, "know the protocols prepared and simple"),
    "fraction of a second": ({"workload": "oltp_delete", "warmup": 0.5}, "has to be whole seconds"),
    "fraction of a rate": ({"workload": "oltp_delete", "rate": 2.5}, "whole numbers of transactions per second"),
    "tries": ({"workload": "oltp_delete", "max_tries": 3}, "max_tries is for pgbench's workloads"),
    "not for pgbench": ({"sysbench": {"tables": 3}}, "no workload of this study is one; remove it"),
    "a key stands for it": (
        {"workload": "oltp_delete", "sysbench": {"options": {"threads": 3}}},
        "use the key clients",
    ),
    "address": ({"workload": "oltp_delete", "sysbench": {"options": {"pgsql-host": "x"}}}, "use the arm's dsn"),
    "not its to say": (
        {"workload": "oltp_delete", "sysbench": {"options": {"rand-seed": 3}}},
        "pgtrial itself sets the option",
    ),
    "no name": ({"workload": "oltp_delete", "sysbench": {"options": {"--x=y": 3}}}, "not the name of an option"),
}


@pytest.mark.parametrize(("load", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_sysbench_cannot_do_is_refused(load, words):
    with pytest.raises(StudyError, match=words):
        build_study({"load": load, "arms": ARMS}, "test")


def test_storage_limit_is_refused_for_a_server_that_pgtrial_makes():
    with pytest.raises(StudyError, match="storage_limit, which is for given servers"):
        build_study({"arms": {"a": {"storage_limit": "20GB"}, "b": {}}}, "test")


def test_an_empty_dsn_is_no_server_that_pgtrial_makes_but_refused():
    with pytest.raises(StudyError, match='write dsn = "env"'):
        build_study({"arms": {"a": {"dsn": ""}, "b": {}}}, "test")


UNKNOWN = {
    "option": ("oltp_delete", {"options": {"foo": 1}}, "invalid option: --foo=1"),
    "option of a test that only warns": ("bulk_insert", {"options": {"foo": 1}}, "has no option --foo=1"),
    "value": ("oltp_delete", {"options": {"rand-type": "foo"}}, "Invalid random numbers distribution: foo"),
    "option of a script": ("mine.lua", {"tables": 3}, "invalid option: --tables=3"),
    "script": ("broken.lua", {}, "broken.lua:1: "),
}


@pytest.mark.parametrize(("workload", "sysbench", "words"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_the_engine_does_not_take_is_refused_in_its_words(tmp_path, workload, sysbench, words):
    require_engine()
    (tmp_path / "mine.lua").write_text('sysbench.cmdline.options = { size = {"Rows", 100} }')
    (tmp_path / "broken.lua").write_text("this is no Lua")
    with pytest.raises(StudyError, match=words):
        check_sysbench(_spec(workload, tmp_path, sysbench))


def test_what_the_engine_takes_passes(tmp_path):
    require_engine()
    (tmp_path / "mine.lua").write_text('require("helper")\nsysbench.cmdline.options = { tables = {"Tables", 1} }')
    (tmp_path / "helper.lua").write_text("return {}")
    taken = ["oltp_write_only", "mine.lua", "select-only"]
    check_sysbench(_spec(taken, tmp_path, {"tables": 3}))
    (tmp_path / "helper.lua").unlink()
    with pytest.raises(StudyError, match="helper"):  # so the script was run, with the file that it requires
        check_sysbench(_spec(taken, tmp_path, {"tables": 3}))
