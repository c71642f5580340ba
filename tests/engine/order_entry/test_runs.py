"""Runs of order entry on a real server."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from tests.engine.events import assert_consistent, check_latencies, done_of, events_of, of_kind, run_with_events
from tests.engine.order_entry.looks import DISTRICTS, KINDS, WAITING, number, violated

pytestmark = pytest.mark.server


def test_a_run_counts_each_transaction_and_leaves_the_conditions_true(order_entry, copy, tmp_path):
    target = copy()
    args = ("run", "-c", "8", "-j", "2", "-T", "4", "--max-tries", "0")
    done, events = run_with_events(order_entry, target, tmp_path / "events", *args, **WAITING)
    assert (done.status, done.stderr) == (0, "")
    assert_consistent(events)
    assert (events[0]["frontend"], events[0]["plan"]["scripts"], events[0]["plan"]["scale"]) == (
        "order-entry",
        KINDS,
        2,
    )
    end = done_of(events)
    scripts = end["scripts"]
    total = end["measure"]["transactions"] + end["drain"]["transactions"]
    assert sum(script["transactions"] for script in scripts) == total > 20
    for script in scripts:
        check_latencies(script, [script["histogram"]])
    # what the server has is what was counted
    new_orders = number(target, "SELECT count(*) FROM orders") - 3000 * DISTRICTS
    assert new_orders == scripts[0]["transactions"]
    payments = number(target, "SELECT count(*) FROM history") - 3000 * DISTRICTS
    assert payments == scripts[1]["transactions"]
    deliveries = number(target, "SELECT sum(c_delivery_cnt) FROM customer")
    assert deliveries == 10 * scripts[3]["transactions"]
    assert number(target, "SELECT sum(d_next_o_id - 3001) FROM district") == new_orders, (
        "what is rolled back leaves none"
    )
    assert violated(order_entry, target) == set()
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert [kind for kind in KINDS if kind in lines] == KINDS
    speed = float(re.search(r"^new-order transactions per minute: (.+)$", done.stdout, re.MULTILINE)[1])
    assert speed > 0
    rolled_back = re.search(r"rolled back, as specified: (\d+) of (\d+) \(", done.stdout)
    assert int(rolled_back[1]) == scripts[5]["transactions"]
    assert int(rolled_back[2]) == scripts[0]["transactions"] + scripts[5]["transactions"]
    assert re.search(
        r"^disk space: 0\.\d\d GB now, .+ GB after 60 days of 8 hours at this rate$", done.stdout, re.MULTILINE
    )


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_each_protocol_does_the_same(order_entry, copy, tmp_path, protocol):
    target = copy(1)
    args = (
        "run",
        "-c",
        "2",
        "-t",
        "60",
        "-M",
        protocol,
        "--random-seed",
        "3",
        "--mix",
        "2,2,1,1,1",
        "--max-tries",
        "99",
    )
    done, events = run_with_events(order_entry, target, tmp_path / "events", *args)
    assert (done.status, done.stderr) == (0, "")
    assert sum(script["transactions"] for script in done_of(events)["scripts"]) == 120
    assert violated(order_entry, target) == set()


def test_what_fails_to_serialize_is_tried_again(order_entry, copy, tmp_path):
    target = copy(1)
    args = ("run", "-c", "6", "-t", "40", "--mix", "1,1,0,1,0", "--max-tries", "0", "-L", "100000")
    isolation = {"PGOPTIONS": "-c default_transaction_isolation=repeatable\\ read"}
    done, events = run_with_events(order_entry, target, tmp_path / "events", *args, **isolation)
    assert done.status == 0, done.stderr
    measure = done_of(events)["measure"]
    assert measure["failures"] == {}
    assert measure["retried"] > 0
    assert "transactions tried again: " in done.stdout
    assert violated(order_entry, target) == set()


def test_terminals_wait_around_their_transactions(order_entry, copy, tmp_path):
    # with this seed each terminal thinks for more than six seconds after its first transaction
    args = ("run", "-c", "3", "-T", "8", "--think-times", "--mix", "0,0,0,0,1", "--random-seed", "5")
    done, events = run_with_events(order_entry, copy(1), tmp_path / "events", *args)
    assert done.status == 0, done.stderr
    # two seconds of keying before it
    assert [tick["transactions"] for tick in of_kind(events, "tick")[:2]] == [0, 0]
    assert done_of(events)["measure"]["transactions"] == 3
    limit = "upper limit that keying and think times set for ten clients per warehouse: 12.9 new-orders per minute"
    assert limit in done.stdout


def test_shards_of_a_run_have_its_clients(order_entry, copy, tmp_path):
    target = copy()
    args = ("run", "-c", "3", "-t", "10", "--random-seed", "5", "--max-tries", "99")
    parts = [
        run_with_events(order_entry, target, tmp_path / f"events-{index}", *args, "--shard", f"{index}/2")[1]
        for index in (1, 2)
    ]
    assert [done_of(events)["measure"] is not None for events in parts] == [True, True]
    assert [events[0]["plan"]["clients"] for events in parts] == [2, 1]
    merged = subprocess.run(
        [order_entry.command[0], "merge", *(tmp_path / f"events-{index}" for index in (1, 2))],
        capture_output=True,
        text=True,
        check=True,
    )
    whole = events_of(merged.stdout)
    assert (whole[0]["frontend"], whole[0]["plan"]["clients"], whole[0]["plan"]["scripts"]) == ("order-entry", 3, KINDS)
    scripts = done_of(whole)["scripts"]
    for index, script in enumerate(scripts):
        assert script["transactions"] == sum(done_of(events)["scripts"][index]["transactions"] for events in parts)


def test_tables_of_others_and_incomplete_ones_are_refused(order_entry, fresh):
    target = fresh(18, empty=True)
    for command in ("run", "check"):
        missing = order_entry.run(target, command)
        assert (missing.status, missing.stderr) == (
            3,
            f'pgtrial-engine order-entry: error: there are no tables of order entry in database "{target.dbname}"; '
            'make them with "pgtrial-engine order-entry load"\n',
        )
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE customer (name text)")
    foreign = order_entry.run(target, "load")
    assert (foreign.status, foreign.stderr) == (
        3,
        f'pgtrial-engine order-entry: error: database "{target.dbname}" has a table customer that was not made by '
        "pgtrial-engine order-entry; rename it, or name another database\n",
    )
    with target.connect_as_user() as connection:
        connection.execute("DROP TABLE customer")
    assert order_entry.run(target, "load").status == 0
    with target.connect_as_user() as connection:
        connection.execute("COMMENT ON TABLE warehouse IS 'pgtrial order entry'")
    refused = order_entry.run(target, "run")
    assert refused.status == 3
    assert "are not complete; make them again with" in refused.stderr
    assert order_entry.run(target, "load").status == 0, "what is ours is replaced"


def test_a_copy_serves_a_run_and_is_never_replaced(order_entry, copy):
    target = copy(1)
    refused = order_entry.run(target, "load")
    assert (refused.status, refused.stderr) == (
        3,
        f'pgtrial-engine order-entry: error: database "{target.dbname}" has a table customer that is a copy of one '
        "that pgtrial-engine order-entry made; drop or rename it, or name another database\n",
    )
    assert order_entry.run(target, "run", "-t", "5").status == 0
    assert order_entry.run(target, "check").status == 0


def test_what_the_server_refuses_is_one_sentence(order_entry, copy):
    target = copy(1)
    locked = order_entry.run(target, "run", PGOPTIONS="-c default_transaction_read_only=on")
    assert locked.status == 3
    assert locked.stderr.count("\n") == 1
    assert "and order entry writes to its tables" in locked.stderr
    gone = order_entry.run(replace(target, dbname="nowhere"), "check")
    assert gone.status == 3
    assert 'database "nowhere" does not exist' in gone.stderr
    with target.connect_as_user() as connection:
        connection.execute("ALTER TABLE stock RENAME s_quantity TO s_amount")
    failed = order_entry.run(target, "run", "-c", "2", "-t", "5", "--mix", "1,0,0,0,0", "--random-seed", "1")
    assert failed.status == 2
    assert 'client 0 was aborted in new-order: ERROR:  column "s_quantity" does not exist\n' in failed.stderr


def test_progress_is_shown_every_second(order_entry, copy):
    line = ("run", "-c", "2", "-T", "2", "-P", "1", "--warmup", "1")
    done = order_entry.run(copy(1), *line, **WAITING)
    assert done.status == 0
    assert re.search(
        r"^progress: 1\.0 s, [\d.]+ tps, lat [\d.]+ ms, p90 [\d.]+ ms, 0 failed$", done.stderr, re.MULTILINE
    )
    assert re.search(r"warm-up: 1\.0 s, \d+ transactions, not in these results", done.stdout)
