"""Order entry against a real server: contents of the tables, the load, and the consistency conditions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import require_engine
from tests.engine.events import assert_consistent, check_latencies, done_of, has_counted, run_with_events, wait_for
from tests.engine.programs import Program, ended
from tests.engine.sessions import wait_until_left

WAREHOUSES = 2
DISTRICTS = 10 * WAREHOUSES
KINDS = ["new-order", "payment", "order-status", "delivery", "stock-level", "new-order, rolled back"]


@pytest.fixture(scope="module")
def order_entry() -> Program:
    """The front end."""
    return Program("order-entry", (str(require_engine()), "order-entry"))


@pytest.fixture(scope="module")
def _loaded(order_entry: Program, clusters: Callable[[int], Cluster]) -> Iterator[dict[int, Target]]:
    """By their number of warehouses, databases that are only copied."""
    server = replace(clusters(18).target, dbname="postgres")
    made = {}
    for warehouses in (1, WAREHOUSES):
        made[warehouses] = replace(server, dbname=f"orders{warehouses}")
        with server.connect() as connection:
            connection.execute(f"CREATE DATABASE orders{warehouses}")
        done = order_entry.run(made[warehouses], "load", "-w", str(warehouses), "-j", "3")
        assert (done.status, done.stdout) == (0, ""), done.stderr
        counted = "1 warehouse" if warehouses == 1 else f"{warehouses} warehouses"
        assert re.search(rf"{counted} loaded in \d+\.\d\d s\n$", done.stderr)
        wait_until_left(made[warehouses])
    yield made
    for target in made.values():
        with server.connect() as connection:
            connection.execute(f"DROP DATABASE {target.dbname} WITH (FORCE)")


@pytest.fixture
def copy(_loaded: dict[int, Target]) -> Iterator[Callable[..., Target]]:
    """A freshly loaded database of one test's own: `copy()`, or `copy(1)` for one warehouse."""
    server = replace(_loaded[1], dbname="postgres")
    numbers = itertools.count()
    copies: list[str] = []

    def make(warehouses: int = WAREHOUSES) -> Target:
        copies.append(f"order_copy{next(numbers)}")
        with server.connect() as connection:
            connection.execute(f"CREATE DATABASE {copies[-1]} TEMPLATE orders{warehouses}")
        return replace(server, dbname=copies[-1])

    yield make
    for name in copies:
        with server.connect() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def violated(order_entry: Program, target: Target) -> set[int]:
    """The numbers of the conditions that do not hold."""
    done = order_entry.run(target, "check")
    held = {int(number) for number in re.findall(r"^condition (\d+): holds \(.+\)$", done.stdout, re.MULTILINE)}
    broken = {int(number) for number in re.findall(r"error: condition (\d+) does not hold for ", done.stderr)}
    assert held | broken == set(range(1, 13)), done
    assert not held & broken, done
    assert done.status == (2 if broken else 0), done
    return broken


def number(target: Target, query: str) -> float:
    with target.connect() as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return float(row[0])


COUNTS = {
    "item": 100_000,
    "warehouse": WAREHOUSES,
    "stock": 100_000 * WAREHOUSES,
    "district": DISTRICTS,
    "customer": 3000 * DISTRICTS,
    "history": 3000 * DISTRICTS,
    "orders": 3000 * DISTRICTS,
    "new_order": 900 * DISTRICTS,
}

# clause 4.3.3.1: what no row may be
NEVER = {
    "items": "SELECT count(*) FROM item WHERE i_id NOT BETWEEN 1 AND 100000 OR i_im_id NOT BETWEEN 1 AND 10000 "
    "OR i_price NOT BETWEEN 1 AND 100 OR i_name !~ '^[A-Za-z0-9]{14,24}$' OR i_data !~ '^[A-Za-z0-9]{26,50}$'",
    "warehouses": "SELECT count(*) FROM warehouse WHERE w_ytd <> 300000 OR w_tax NOT BETWEEN 0 AND 0.2 "
    "OR w_name !~ '^[A-Za-z0-9]{6,10}$' OR w_zip !~ '^[0-9]{4}11111$' OR w_state !~ '^[A-Za-z0-9]{2}$'",
    "districts": "SELECT count(*) FROM district WHERE d_ytd <> 30000 OR d_tax NOT BETWEEN 0 AND 0.2 "
    "OR d_next_o_id <> 3001 OR d_city !~ '^[A-Za-z0-9]{10,20}$'",
    "stock": "SELECT count(*) FROM stock WHERE s_quantity NOT BETWEEN 10 AND 100 OR s_ytd <> 0 OR s_order_cnt <> 0 "
    "OR s_remote_cnt <> 0 OR s_data !~ '^[A-Za-z0-9]{26,50}$' OR s_dist_01 !~ '^[A-Za-z0-9]{24}$' "
    "OR s_dist_10 !~ '^[A-Za-z0-9]{24}$'",
    "customers": "SELECT count(*) FROM customer WHERE c_balance <> -10 OR c_ytd_payment <> 10 OR c_payment_cnt <> 1 "
    "OR c_delivery_cnt <> 0 OR c_credit_lim <> 50000 OR c_middle <> 'OE' OR c_credit NOT IN ('GC', 'BC') "
    "OR c_discount NOT BETWEEN 0 AND 0.5 OR c_phone !~ '^[0-9]{16}$' "
    "OR c_data !~ '^[A-Za-z0-9]+$' OR length(c_data) NOT BETWEEN 300 AND 500",
    "history": "SELECT count(*) FROM history WHERE h_amount <> 10 OR h_d_id <> h_c_d_id OR h_w_id <> h_c_w_id",
    "orders": "SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <> (o_id >= 2101) "
    "OR o_carrier_id NOT BETWEEN 1 AND 10 OR o_ol_cnt NOT BETWEEN 5 AND 15 OR o_all_local <> 1",
    "lines": "SELECT count(*) FROM order_line WHERE (ol_delivery_d IS NULL) <> (ol_o_id >= 2101) OR ol_quantity <> 5 "
    "OR (ol_o_id < 2101 AND ol_amount <> 0) OR (ol_o_id >= 2101 AND ol_amount NOT BETWEEN 0.01 AND 9999.99) "
    "OR ol_supply_w_id <> ol_w_id OR ol_i_id NOT BETWEEN 1 AND 100000",
    "new orders": "SELECT count(*) FROM new_order WHERE no_o_id NOT BETWEEN 2101 AND 3000",
    # each customer of a district has one order, and its first thousand have all last names
    "customers with another number of orders": "SELECT count(*) FROM (SELECT o_w_id, o_d_id, "
    "count(DISTINCT o_c_id) AS n FROM orders GROUP BY 1, 2) AS o WHERE n <> 3000",
    "districts without all last names": "SELECT count(*) FROM (SELECT c_w_id, c_d_id, count(DISTINCT c_last) AS n "
    "FROM customer WHERE c_id <= 1000 GROUP BY 1, 2) AS c WHERE n <> 1000",
}

# share of the rows, and how many rows there are
SHARES = {
    "bad credit": ("SELECT avg((c_credit = 'BC')::int) FROM customer", 0.1, 3000 * DISTRICTS),
    "original items": ("SELECT avg((i_data LIKE '%ORIGINAL%')::int) FROM item", 0.1, 100_000),
    "original stock": ("SELECT avg((s_data LIKE '%ORIGINAL%')::int) FROM stock", 0.1, 100_000 * WAREHOUSES),
    "a carrier": ("SELECT avg((o_carrier_id = 7)::int) FROM orders WHERE o_id < 2101", 0.1, 2100 * DISTRICTS),
    "a size": ("SELECT avg((o_ol_cnt = 5)::int) FROM orders", 1 / 11, 3000 * DISTRICTS),
}


def test_the_tables_have_the_rows_of_the_specification(order_entry, copy):
    target = copy()
    assert {table: number(target, f"SELECT count(*) FROM {table}") for table in COUNTS} == COUNTS
    assert {name: number(target, query) for name, query in NEVER.items()} == dict.fromkeys(NEVER, 0)
    for name, (query, share, rows) in SHARES.items():
        found = number(target, query)
        assert abs(found - share) <= 5 * (share * (1 - share) / rows) ** 0.5, (name, found)
    # the more frequent of the last names that NURand draws
    most = number(
        target, "SELECT max(n) FROM (SELECT count(*) AS n FROM customer WHERE c_id > 1000 GROUP BY c_last) AS c"
    )
    assert most > 4 * 2000 * DISTRICTS / 1000
    assert violated(order_entry, target) == set()


def test_two_loads_have_the_same_rows_but_for_the_time(order_entry, copy):
    target = copy(1)
    checksum = (
        "SELECT sum(hashtext(c_first || c_last || c_data || c_discount)) + (SELECT sum(hashtext(s_data || s_dist_05)) "
        "FROM stock) + (SELECT sum(ol_i_id * ol_amount) FROM order_line) FROM customer"
    )
    before = number(target, checksum)
    assert order_entry.run(target, "load", "-j", "1", "-F", "80", "--foreign-keys").status == 0
    assert number(target, checksum) == before
    assert number(target, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'") == 10
    assert number(target, "SELECT count(*) FROM pg_class WHERE reloptions @> ARRAY['fillfactor=80']") == 9
    assert order_entry.run(target, "run", "-c", "2", "-t", "50").status == 0, "the load keeps the foreign keys"
    assert order_entry.run(target, "load", "--random-seed", "5").status == 0
    assert number(target, checksum) != before


def test_a_run_counts_each_transaction_and_leaves_the_conditions_true(order_entry, copy, tmp_path):
    target = copy()
    done, events = run_with_events(
        order_entry, target, tmp_path / "events", "run", "-c", "8", "-j", "2", "-T", "4", "--max-tries", "0"
    )
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
    assert sum(script["transactions"] for script in scripts) == total > 100
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


def test_the_conditions_survive_killed_backends_and_a_killed_engine(order_entry, copy, tmp_path):
    target, path = copy(), tmp_path / "events"
    args = ["run", "-c", "16", "-T", "600", "--wait-for-server=60", "--continue-on-error", "--events", str(path)]
    with order_entry.start(target, args) as process:
        try:
            wait_for(path, has_counted)
            with target.connect() as connection:
                killed = connection.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity "
                    "WHERE application_name = 'pgtrial order-entry' LIMIT 5) AS clients"
                ).fetchone()
            assert killed == (5,)
            seconds = len(path.read_text().splitlines()) + 3
            wait_for(path, lambda events: len(events) >= seconds)
        finally:
            process.kill()
        ended(process)
    wait_until_left(target)
    assert number(target, "SELECT count(*) FROM orders") > 3000 * DISTRICTS
    assert violated(order_entry, target) == set()


BROKEN = {
    "the warehouse's sum": ("UPDATE warehouse SET w_ytd = w_ytd + 10 WHERE w_id = 1", {1, 8}),
    "the next number": ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3", {2}),
    "a new order": ("DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500", {3, 5, 11}),
    "a line": ("DELETE FROM order_line WHERE ol_d_id = 4 AND ol_o_id = 5 AND ol_number = 1", {4, 6}),
    "a date": (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 5 AND ol_number = 1",
        {7},
    ),
    "a balance": ("UPDATE customer SET c_balance = c_balance + 5 WHERE c_d_id = 4 AND c_id = 7", {10, 12}),
    "a payment": ("DELETE FROM history WHERE h_d_id = 4 AND h_c_id = 7", {8, 9, 10}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_row_is_caught_by_the_conditions_it_breaks(order_entry, copy, what):
    statement, conditions = BROKEN[what]
    target = copy(1)
    with target.connect() as connection:
        assert connection.execute(statement.encode()).rowcount == 1
    assert violated(order_entry, target) == conditions


def test_a_violation_is_told_with_its_place_and_both_sums(order_entry, copy):
    target = copy(1)
    with target.connect() as connection:
        connection.execute("UPDATE district SET d_ytd = d_ytd + 10 WHERE d_id = 3")
    done = order_entry.run(target, "check")
    assert (
        "pgtrial-engine order-entry: error: condition 1 does not hold for warehouse 1: W_YTD = sum(D_YTD), but "
        "300000.00 is not 300010.00 (places: 1)\n"
    ) in done.stderr
    assert "condition 9 does not hold for warehouse 1, district 3: D_YTD = sum(H_AMOUNT), but 30010.00" in done.stderr


def test_a_statement_that_does_not_do_its_work_is_caught(order_entry, copy):
    """A trigger that keeps a column as it was does what a broken UPDATE of the district would."""
    target = copy(1)
    with target.connect() as connection:
        connection.execute(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN new.d_ytd = old.d_ytd; RETURN new; END $$"
        )
        connection.execute("CREATE TRIGGER keep BEFORE UPDATE ON district FOR EACH ROW EXECUTE FUNCTION keep()")
    assert order_entry.run(target, "run", "-c", "2", "-t", "20", "--mix", "0,1,0,0,0").status == 0
    assert violated(order_entry, target) == {1, 9}


def test_terminals_wait_around_their_transactions(order_entry, copy, tmp_path):
    args = ("run", "-c", "3", "-T", "5", "--think-times", "--mix", "0,0,0,0,1")
    done, events = run_with_events(order_entry, copy(1), tmp_path / "events", *args)
    assert done.status == 0, done.stderr
    # two seconds of keying before each of them
    assert 3 <= done_of(events)["measure"]["transactions"] <= 6
    assert "limit by keying and think times, with ten clients a warehouse: 12.9 new-orders per minute" in done.stdout


def test_shards_of_a_run_have_its_clients(order_entry, copy, tmp_path):
    target = copy()
    args = ("run", "-c", "3", "-t", "10", "--random-seed", "5", "--max-tries", "99")
    parts = [
        run_with_events(order_entry, target, tmp_path / f"events-{index}", *args, "--shard", f"{index}/2")[1]
        for index in (1, 2)
    ]
    assert [done_of(events)["measure"] is not None for events in parts] == [True, True]
    assert [events[0]["plan"]["clients"] for events in parts] == [2, 1]


def test_tables_of_others_and_incomplete_ones_are_refused(order_entry, copy, fresh):
    target = fresh(18, empty=True)
    for command in ("run", "check"):
        missing = order_entry.run(target, command)
        assert (missing.status, missing.stderr) == (
            1,
            f'pgtrial-engine order-entry: error: there are no tables of order entry in database "{target.dbname}"; '
            'make them with "pgtrial-engine order-entry load"\n',
        )
    with target.connect() as connection:
        connection.execute("CREATE TABLE customer (name text)")
    foreign = order_entry.run(target, "load")
    assert (foreign.status, foreign.stderr) == (
        1,
        f'pgtrial-engine order-entry: error: database "{target.dbname}" has a table customer that was not made by '
        "pgtrial-engine order-entry; rename it, or name another database\n",
    )
    incomplete = copy(1)
    with incomplete.connect() as connection:
        connection.execute("COMMENT ON TABLE warehouse IS 'pgtrial order entry'")
    refused = order_entry.run(incomplete, "run")
    assert refused.status == 1
    assert "are not complete; make them with" in refused.stderr
    assert order_entry.run(incomplete, "load").status == 0, "what is ours is replaced"


def test_what_the_server_refuses_is_one_sentence(order_entry, copy):
    target = copy(1)
    locked = order_entry.run(target, "run", PGOPTIONS="-c default_transaction_read_only=on")
    assert locked.status == 1
    assert locked.stderr.count("\n") == 1
    assert "and order entry writes to its tables" in locked.stderr
    gone = order_entry.run(replace(target, dbname="nowhere"), "check")
    assert gone.status == 1
    assert 'database "nowhere" does not exist' in gone.stderr
    with target.connect() as connection:
        connection.execute("ALTER TABLE stock RENAME s_quantity TO s_amount")
    failed = order_entry.run(target, "run", "-c", "2", "-t", "5", "--mix", "1,0,0,0,0", "--random-seed", "1")
    assert failed.status == 2
    assert 'client 0 was given up in new-order: ERROR:  column "s_quantity" does not exist\n' in failed.stderr


def test_progress_is_shown_every_second(order_entry, copy):
    done = order_entry.run(copy(1), "run", "-c", "2", "-T", "2", "-P", "1", "--warmup", "1")
    assert done.status == 0
    assert re.search(
        r"^progress: 1\.0 s, [\d.]+ tps, lat [\d.]+ ms, p90 [\d.]+ ms, 0 failed$", done.stderr, re.MULTILINE
    )
    assert re.search(r"warm-up: 1\.0 s, \d+ transactions, not in these results", done.stdout)
