"""What a study asks for reaches the engine in pgbench's options."""

from __future__ import annotations

from pathlib import Path

from pgtrial.store.records import LoadPoint
from pgtrial.study.spec import LoadSection
from pgtrial.trial.engine_options import engine_options

POINT = LoadPoint(workload="tpcb-like", scale=50, clients=8, protocol="simple")


def test_a_built_in_workload_is_named():
    load = LoadSection(warmup=0.5, duration=3, jobs=16)
    assert " ".join(engine_options(load, POINT, 42, None)) == (
        "-n -b tpcb-like -M simple -c 8 -j 8 -T 3 --warmup 0.5 --random-seed 42"
    )


def test_a_script_is_named_by_its_path_whatever_it_holds_and_told_the_scale():
    point = POINT.model_copy(update={"workload": "orders.sql"})
    options = engine_options(LoadSection(), point, 42, Path("results/a@5/scripts/orders.sql"))
    assert options[:5] == ["-n", "-f", "results/a@5/scripts/orders.sql@1", "-s", "50"]


def test_a_rate_is_the_load_points_own():
    options = engine_options(LoadSection(rate=[1e6, 2.5]), POINT.model_copy(update={"rate": 1e6}), 42, None)
    assert options[-2:] == ["-R", "1000000"]


def test_tries_and_their_time_limit_are_passed_on_in_pgbenchs_units():
    options = engine_options(LoadSection(max_tries=0, latency_limit="100ms"), POINT, 42, None)
    assert options[-4:] == ["--max-tries", "0", "-L", "100"]
    assert engine_options(LoadSection(max_tries=3), POINT, 42, None)[-2:] == ["--max-tries", "3"]
