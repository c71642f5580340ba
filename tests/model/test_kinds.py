"""Tests of the kinds of load: how each kind names its load points, and which of its properties stored studies
rely on.
"""

from __future__ import annotations

import pytest

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.kinds import KINDS, kind_of
from pgtrial.model.study.load_keys import LoadKeys

TASKS = {
    "apps": 3,
    "tasks": 5000,
    "arrival": "at-once",
    "pool": 100,
    "pool_timeout_s": 15,
    "threads_in_table": 10,
    "rows": 100_000,
}
REPLAY = {
    "capture": "shop",
    "data": "shop.sql",
    "capture_sha256": "1",
    "data_sha256": "2",
    "sessions": 412,
    "statements": 3000,
    "speed": 4.0,
    "sample": 0.5,
    "copies": 2,
}
SUITE = {
    "name": "joins",
    "queries": ["q01", "q02"],
    "runs": 2,
    "limit_s": 60,
    "cache": "warm",
    "data": "joins",
    "unchecked": [],
}
BESIDE = {"script": "orders.sql", "clients": 8, "rate": 200, "protocol": "prepared"}
PROMISE = {"percentile": "p99", "limit_s": 0.02, "failures": 0.001, "at_most": 500}

POINTS = [
    (
        {"workload": "tpcb-like", "clients": 2000},
        ("tpcb-like, scale 10, 2000 clients", "tpcb-like-s10-c2000", "transactions", "goodput"),
    ),
    (
        {"workload": "tpcb-like", "clients": 1, "rate": 500},
        ("tpcb-like, scale 10, 1 client, 500/s", "tpcb-like-s10-c1-r500", "transactions", "mean response time"),
    ),
    (
        {"workload": "tpcb-like", "capacity": PROMISE},
        (
            "tpcb-like, scale 10, 8 clients, p99 within 20ms, at most 500/s",
            "tpcb-like-s10-c8",
            "capacity",
            "goodput",
        ),
    ),
    (
        {"workload": "a.sql", "data": "dump.sql"},
        ("a.sql on dump.sql, 8 clients", "a.sql-own-c8", "transactions", "goodput"),
    ),
    (
        {"workload": "a.sql", "without_tables": True},
        ("a.sql, 8 clients", "a.sql-no-tables-c8", "transactions", "goodput"),
    ),
    (
        {"workload": "oltp_read_write", "sysbench": True, "tables": 4, "table_size": 1000},
        ("oltp_read_write, 4 x 1,000 rows, 8 clients", "oltp_read_write-t4x1000-c8", "transactions", "goodput"),
    ),
    (
        {"workload": "oltp_read_write", "sysbench": True},
        ("oltp_read_write, 8 clients", "oltp_read_write-c8", "transactions", "goodput"),
    ),
    (
        {"workload": "app-tasks", "tasks": TASKS},
        (
            "app-tasks, 10 x 100,000 rows, 3 x 5,000 tasks at once on pools of 100",
            "app-tasks-3x5000-p100",
            "tasks",
            "mean response time of tasks",
        ),
    ),
    (
        {"workload": "replay:shop", "replay": REPLAY},
        (
            "replay of shop, a sample of 0.5 of 412 sessions x 2 at 4 times the recorded speed",
            "replay-shop",
            "replay",
            "mean response time",
        ),
    ),
    (
        {"workload": "replay:shop", "replay": {**REPLAY, "speed": None, "sample": 1, "copies": 1}},
        ("replay of shop, 412 sessions as fast as possible", "replay-shop", "replay", "goodput"),
    ),
    (
        {"workload": "suite:joins", "suite": SUITE, "scale": 0.5},
        (
            "suite:joins, scale 0.5, 2 queries, 2 runs of each, caches warm",
            "suite-joins-s0.5-warm",
            "suite",
            "geometric mean of query times",
        ),
    ),
    (
        {"workload": "suite:own", "suite": {**SUITE, "data": None}, "scale": 1},
        (
            "suite:own, 2 queries, 2 runs of each, caches warm",
            "suite-own-own-warm",
            "suite",
            "geometric mean of query times",
        ),
    ),
    (
        {"workload": "index.sql", "job": {"limit_s": 60, "beside": BESIDE}},
        (
            "job index.sql, scale 10 beside orders.sql, 8 clients, 200/s",
            "job-index.sql-s10-c8-r200",
            "job",
            "time of the job",
        ),
    ),
    (
        {"workload": "pg_dump", "job": {"limit_s": 60, "command": "pg_dump"}, "data": "dump.sql"},
        ("job pg_dump on dump.sql", "job-pg_dump-own", "job", "time of the job"),
    ),
    (
        {"workload": "client-programs", "programs": True, "clients": 1},
        ("client-programs, scale 10", "client-programs-s10", "programs", "goodput"),
    ),
]


@pytest.mark.parametrize(("fields", "answers"), POINTS, ids=[label for _, (label, *_) in POINTS])
def test_each_kind_names_its_load_points_and_says_what_claims_compare(fields, answers):
    point = LoadPoint.model_validate({"scale": 10, "clients": 8, "protocol": "prepared", **fields})
    assert (point.label, point.slug, point.kind.key, point.kind.measure) == answers


LOADS = {
    "tasks": {"workload": "app-tasks"},
    "replay": {"workload": "replay:shop"},
    "suite": {"workload": "suite:joins"},
    "job": {"workload": "job:index.sql"},
    "programs": {"workload": "client-programs"},
    "capacity": {"workload": "tpcb-like", "capacity": {"p99": "20ms"}},
    "transactions": {"workload": ["tpcb-like", "oltp_read_only", "order-entry", "a.sql"]},
}


@pytest.mark.parametrize(("key", "load"), LOADS.items(), ids=LOADS)
def test_a_study_file_names_the_kind_of_its_load(key, load):
    assert kind_of(LoadKeys.model_validate(load)).stored.key == key


def test_each_kind_of_a_study_file_is_stored_as_a_kind_of_its_own():
    keys = [kind.stored.key for kind in KINDS]
    assert sorted(keys) == sorted(LOADS)
    assert set(keys) == {key for _, (_, _, key, _) in POINTS}
