"""Tests that the settings of a study reach the engine as options of pgbench."""

from __future__ import annotations

from pathlib import Path

from pgtrial.loads.command_lines import engine_options, front_end
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.sysbench import SysbenchSection

POINT = LoadPoint(workload="tpcb-like", scale=50, clients=8, protocol="simple")


def test_a_built_in_workload_is_named():
    load = LoadSection(warmup=0.5, duration=3, threads=16)
    assert " ".join(engine_options(load, POINT, 42, None)) == (
        "-n -b tpcb-like --time-after-connecting -M simple -c 8 -j 8 -T 3 --warmup 0.5 --random-seed 42"
    )


def test_a_script_is_named_by_its_path_whatever_it_holds_and_told_the_scale():
    point = POINT.model_copy(update={"workload": "orders.sql"})
    options = engine_options(LoadSection(warmup=1, duration=2), point, 42, Path("results/a@5/scripts/orders.sql"))
    assert options[:5] == ["-n", "-f", "results/a@5/scripts/orders.sql@1", "-s", "50"]


def test_a_rate_is_the_load_points_own():
    options = engine_options(
        LoadSection(warmup=1, duration=2, rate=[1e6, 2.5]), POINT.model_copy(update={"rate": 1e6}), 42, None
    )
    assert options[-2:] == ["-R", "1000000"]


def test_tries_and_their_time_limit_are_passed_on_in_pgbenchs_units():
    options = engine_options(LoadSection(warmup=1, duration=2, max_tries=0, latency_limit="100ms"), POINT, 42, None)
    assert options[-4:] == ["--max-tries", "0", "-L", "100"]
    assert engine_options(LoadSection(warmup=1, duration=2, max_tries=3), POINT, 42, None)[-2:] == ["--max-tries", "3"]


def test_a_server_that_may_be_away_is_waited_for_and_errors_fail_their_transaction_alone():
    options = engine_options(LoadSection(warmup=1, duration=2, on_server_loss="wait 1min 30s"), POINT, 42, None)
    assert options[-3:] == ["--continue-on-error", "--wait-for-server", "90"]


def test_order_entry_is_run_in_its_own_front_end():
    point = LoadPoint(workload="order-entry", scale=10, clients=8, protocol="prepared", rate=50.0)
    load = LoadSection(workload="order-entry", warmup=0.5, duration=3, threads=2, max_tries=0)
    assert front_end(point) == "order-entry"
    assert " ".join(engine_options(load, point, 42, None)) == (
        "run -M prepared -c 8 -j 2 -T 3 --warmup 0.5 --random-seed 42 -R 50 --max-tries 0"
    )
    called = load.model_copy(update={"procedures": True})
    assert engine_options(called, point, 42, None) == [*engine_options(load, point, 42, None), "--procedures"]


def test_a_test_of_sysbench_is_run_in_its_own_options():
    point = LoadPoint(
        workload="oltp_write_only", scale=1, sysbench=True, tables=3, table_size=100, clients=8, protocol="prepared"
    )
    sizes = SysbenchSection(tables=3, table_size=100, options={"rand-type": "uniform"})
    load = LoadSection(workload=["oltp_write_only"], warmup=2, duration=3, threads=4, sysbench=sizes)
    assert " ".join(engine_options(load, point, 0, None)) == (
        "oltp_write_only --tables=3 --table-size=100 --rand-type=uniform --threads=8 --jobs=4 --time=3 --warmup-time=2 "
        "--db-ps-mode=auto --rand-seed=1"
    )
    paced = point.model_copy(update={"rate": 500.0, "protocol": "simple"})
    assert engine_options(load, paced, 7, Path("scripts/a.lua"))[-3:] == [
        "--db-ps-mode=disable",
        "--rand-seed=7",
        "--rate=500",
    ]
    assert engine_options(load, paced, 7, Path("scripts/a.lua"))[0] == "scripts/a.lua"
