"""The rehearsal on real servers: what fails in a load is said before the first trial, with file, line and arms."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pgtrial.conduct.preparation import stage
from pgtrial.conduct.progress import Preparing, TrialBegins
from pgtrial.conduct.run_study import rehearse_alone, run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server

SCHEMA = """CREATE TABLE orders (id int PRIMARY KEY, note text);
INSERT INTO orders SELECT i, 'n' || i FROM generate_series(1, 50) i;
"""
SHARED = {"interleave": "250ms", "data": "schema.sql", "duration": "1s"}
ALONE = {"interleave": "off", "data": "schema.sql"}


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


@pytest.fixture
def study(tmp_path):
    """Returns a function that makes a study whose load is this script, on the data of orders."""

    def make(script: str, load=ALONE, **sections):
        (tmp_path / "schema.sql").write_text(SCHEMA)
        (tmp_path / "orders.sql").write_text(script)
        whole = {"workload": "orders.sql", "scale": 10 if "data" in load else 1, **load}
        return small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=whole, **sections)

    return make


def refusal(study) -> str:
    with pytest.raises(StudyError) as refused:
        run_study(study, lambda event: None)
    assert study.trials() == []
    return str(refused.value)


@pytest.mark.parametrize("load", [SHARED, ALONE], ids=["sessions", "servers"])
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_a_missing_table_is_named_with_its_place_and_the_arms(study, load, protocol):
    made = study("SELECT 1;\n\\set a 1\nSELECT *\n FROM nowhere WHERE id = :a;\n", {**load, "protocol": protocol})
    assert refusal(made) == (
        'orders.sql, line 3 (SELECT *): PostgreSQL says: relation "nowhere" does not exist, on all arms; '
        "correct the name, or add what is missing to the data"
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("SELECT 1;\nSELECT :unset::int;\n", 'orders.sql, line 2 (SELECT :unset::int;): the variable "unset" has no'),
        (
            "SELECT id FROM orders WHERE id < 0\n\\gset\n",
            "orders.sql, line 1 (SELECT id FROM orders WHERE id < 0): exp",
        ),
        ("\\set a 1/0\nSELECT :a;\n", "orders.sql, line 1 (\\set a 1/0): division by zero, on all arms"),
        ("SELEC 1;\n", 'orders.sql, line 1 (SELEC 1;): PostgreSQL says: syntax error at or near "SELEC", on all arms'),
        ("\\setshell x false\nSELECT :x;\n", "orders.sql, line 1 (\\setshell x false): "),
        (
            "SELECT 1;\n\nSELECT 1/(id-1) FROM orders;\n",
            "orders.sql, line 3 (SELECT 1/(id-1) FROM orders;): PostgreSQL ",
        ),
    ],
)
def test_whatever_ends_a_script_is_named(study, script, message):
    assert message in refusal(study(script))


def test_what_fails_on_one_arm_alone_is_said_of_that_arm(study):
    arms = {"base": {}, "other": {"settings": {"search_path": "nowhere"}}}
    message = refusal(study("SELECT * FROM orders;\n", arms=arms))
    assert 'PostgreSQL says: relation "orders" does not exist, on other alone; ' in message


MAKES_A_POINT = "SELECT pg_create_restore_point('x');\n"


def test_a_right_that_the_role_of_the_load_lacks_is_named_with_its_cure(study):
    assert refusal(study(MAKES_A_POINT)).endswith(
        "PostgreSQL says: permission denied for function pg_create_restore_point, on all arms; the load runs as "
        "pgtrial, which is not a superuser: GRANT the needed rights to this role in setup_sql of [server]"
    )


def test_setup_sql_grants_the_role_of_the_load_what_it_needs(study):
    grant = "GRANT EXECUTE ON FUNCTION pg_create_restore_point(text) TO pgtrial"
    granted = study(MAKES_A_POINT, server={"setup_sql": [grant]})
    run_study(granted, lambda event: None)
    assert [trial.status for trial in granted.trials()] == ["completed", "completed"]


def test_setup_sql_is_rehearsed(study):
    server = {"setup_sql": ["CREATE TABLE more (n int)", "CREATE TABLE more (n int)"]}
    assert "setup_sql 'CREATE TABLE more (n int)' failed: relation \"more\" already" in refusal(
        study("SELECT * FROM more;\n", server=server)
    )


@pytest.mark.parametrize("reset", ["copy", "none"])
def test_what_a_rehearsal_writes_is_in_no_trial(study, reset):
    script = "INSERT INTO orders SELECT coalesce(max(id), 0) + 1, 'new' FROM orders;\n"
    made = study(script, {**ALONE, "clients": 1}, server={"reset": reset})
    run_study(made, lambda event: None)
    first = made.trials()[0]
    assert first.relations_before["orders"]["live_tuples"] == 50


def test_a_rehearsal_that_never_ends_has_a_limit(study, monkeypatch):
    monkeypatch.setattr(stage, "SHORTEST_LIMIT_S", 1.0)
    message = refusal(study("SELECT 1;\nSELECT pg_sleep(1000);\n"))
    assert (
        "orders.sql: it was still running after 2s, the time limit of a rehearsal, on base; write a statement that"
        in message
    )


@pytest.mark.parametrize("slow_calls", [2, 3])
def test_a_script_that_ends_at_its_limit_by_chance_is_run_again(study, slow_calls):
    calls = "CREATE SEQUENCE calls"
    work = (
        "CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS "
        f"$$ BEGIN IF nextval('calls') <= {slow_calls} THEN PERFORM pg_sleep(4); END IF; END $$"
    )
    # no call that does not sleep comes near this limit on a busy machine
    arms = {"base": {"settings": {"statement_timeout": "2s"}}, "head": {}}
    made = study("SELECT work();\n", arms=arms, server={"setup_sql": [calls, work]})
    if slow_calls < 3:
        rehearse_alone(made.spec, made.plan, lambda event: None)
    else:
        with pytest.raises(StudyError, match="canceling statement due to statement timeout, on base alone"):
            rehearse_alone(made.spec, made.plan, lambda event: None)


def test_a_mix_is_rehearsed_without_scripts_of_the_weight_0(study, tmp_path):
    (tmp_path / "b.sql").write_text("SELECT nothing;\n")
    made = study("SELECT 1;\n", {**ALONE, "workload": ["orders.sql", "b.sql=0"]})
    run_study(made, lambda event: None)
    assert [trial.reason for trial in made.trials()] == [None, None]


def test_a_sysbench_script_on_own_data_is_rehearsed(study, tmp_path):
    (tmp_path / "t.lua").write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        'function event() con:query("SELECT wrong FROM orders") end\n'
    )
    message = refusal(study("SELECT 1;\n", {**ALONE, "workload": "t.lua", "scale": 10, "warmup": "1s"}))
    assert message.startswith("t.lua: ")
    assert 'column "wrong" does not exist' in message


def test_trials_that_fail_alike_in_the_first_block_end_the_study(study, tmp_path):
    # the rehearsal runs one client once; a second transaction of the same session fails
    made = study("CREATE TEMP TABLE once (n int);\n")
    with pytest.raises(ArmError, match=r"every trial of the first block failed, on all arms: .*already exists"):
        run_study(made, lambda event: None)
    assert len(made.trials()) == 2


def test_a_script_that_cannot_be_read_is_refused_at_planning(tmp_path):
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "slash.sql").write_text("SELECT 1;\n\\nonsense 3\n")
    spec = build_study({"load": {"workload": "my/slash.sql"}, "arms": {"a": {}, "b": {}}}, "test", tmp_path)
    with pytest.raises(
        StudyError, match=re.escape('[load] my/slash.sql:2: invalid command in command "nonsense"; cor')
    ):
        plan_now(spec)


def test_lengths_that_are_chosen_later_need_none_for_a_rehearsal(tmp_path):
    (tmp_path / "orders.sql").write_text("SELECT count(*) FROM nowhere;\n")
    load = {"workload": "orders.sql", "scale": 1}
    arms = {"a": {}, "b": {"settings": {"jit": "off"}}}
    spec = build_study({"load": load, "arms": arms, "verdict": {"budget": "10min"}}, "test", tmp_path)
    made = StudyDirectory.create(tmp_path / "s", spec, plan_now(spec))
    assert refusal(made) == (
        'orders.sql, line 1 (SELECT count(*) FROM nowhere;): PostgreSQL says: relation "nowhere" does not exist, '
        "on all arms; correct the name, or load what is missing by --data ([load] data)"
    )


@pytest.fixture
def bench(clusters):
    """Yields the connection string of a database with orders, on a server of somebody else."""
    cluster = clusters(18)
    with cluster.target.connect_as_user() as session:
        session.execute("DROP DATABASE IF EXISTS rehearsed")
        session.execute("CREATE DATABASE rehearsed")
    with replace(cluster.target, dbname="rehearsed").connect_as_user() as session:
        session.execute(SCHEMA)
        yield f"host={cluster.socket_directory} port={cluster.port} user=postgres dbname=rehearsed", session


GIVEN = {"interleave": "off", "protocol": "prepared"}
"""A load without data of its own, for studies of a given server."""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "INSERT INTO orders VALUES (1000);\n\nSELECT nothing FROM orders;\n",
            "orders.sql, line 3 (SELECT nothing FROM",
        ),
        (
            "\\set a 1\nUPDATE orders SET note = :a::text WHERE idd = :a;\n",
            "orders.sql, line 2 (UPDATE orders SET note",
        ),
        ("DELETE FROM order;\n", 'syntax error at or near "order", on all arms'),
    ],
)
def test_a_given_server_parses_and_executes_nothing(bench, study, script, message):
    dsn, session = bench
    arms = {"a": {"dsn": dsn}, "b": {"dsn": dsn}}
    made = study(script, GIVEN, arms=arms, server={"settings": {}})
    assert message in refusal(made)
    assert session.execute("SELECT count(*), max(id) FROM orders").fetchone() == (50, 50)


def test_a_given_server_parses_no_statement_after_one_that_makes_something(bench, study):
    dsn, _ = bench
    arms = {"a": {"dsn": dsn}, "b": {"dsn": dsn}}
    script = "CREATE TEMP TABLE IF NOT EXISTS mine (n int);\nSELECT count(*) FROM mine;\n"
    made = study(script, GIVEN, arms=arms, server={"settings": {}})
    run_study(made, lambda event: None)
    assert [trial.reason for trial in made.trials()] == [None, None]


@pytest.mark.parametrize(
    "query",
    ["update orders set note = ''", "with w as (delete from orders returning 1) select * from w", "select 1 into x"],
)
def test_a_query_that_changes_a_given_server_is_refused(bench, tmp_path, query):
    dsn, session = bench
    load = {"query": query, "clients": 1, "warmup": "0s", "duration": "1s"}
    spec = build_study({"load": load, "arms": {"a": {"dsn": dsn}, "b": {"dsn": dsn}}}, "test")
    made = StudyDirectory.create(tmp_path / "given", spec, plan_now(spec))
    assert "arms.a: the query changes data, and on a given server the changes stay" in refusal(made)
    assert session.execute("SELECT count(*), max(note) FROM orders").fetchone() == (50, "n9")


def test_a_rehearsal_alone_runs_no_trial(study):
    heard = []
    made = study("SELECT count(*) FROM orders;\n")
    rehearse_alone(made.spec, made.plan, heard.append)
    assert [event.text for event in heard][-2:] == ["base: rehearsing the load", "no jit: rehearsing the load"]


READS = """\\set id random(1, 50)
SELECT count(*) FROM orders WHERE id < :id;
UPDATE orders SET note = 'x' WHERE id = :id;
"""
COUNT, CHANGE = "SELECT count(*) FROM orders WHERE id < $1;", "UPDATE orders SET note = ? WHERE id = $1;"
PLANNER = {
    "base": {},
    "no jit": {"settings": {"jit": "off"}},
    "no scan": {"settings": {"enable_seqscan": "off"}},
}


@pytest.mark.parametrize("load", [SHARED, ALONE], ids=["sessions", "servers"])
def test_a_rehearsal_alone_compares_the_plans_and_says_what_the_load_never_uses(study, load):
    made = study(READS, load, arms=PLANNER)
    plans = rehearse_alone(made.spec, made.plan, lambda event: None)
    jit, scan = plans.compare(made.plan)
    assert (jit.arm, jit.statements, jit.differing) == ("no jit", 2, {})
    assert jit.unused is not None
    assert jit.unused.everything
    assert jit.unused.names == "jit (no plan of the statements that were seen has just-in-time compilation)"
    assert (scan.arm, scan.statements, scan.unused) == ("no scan", 2, None)
    base, other = scan.differing[CHANGE].plans
    assert base == ["Update on orders", "  ->  Seq Scan on orders", "        Filter: (id = $1)"]
    assert other[1:] == ["  ->  Index Scan using orders_pkey on orders", "        Index Cond: (id = $1)"]


def test_a_run_of_an_own_load_says_before_its_first_trial_what_it_never_uses(study):
    heard = []
    run_study(study(READS, {**ALONE, "clients": 1}, arms=PLANNER), heard.append)
    first = next(number for number, event in enumerate(heard) if isinstance(event, TrialBegins))
    assert [event.text for event in heard[:first] if isinstance(event, Preparing) and "never uses" in event.text] == [
        "this load never uses what differs between base and no jit: jit (no plan of the statements that were seen has "
        "just-in-time compilation); choose a load that uses it"
    ]


def test_a_rehearsal_alone_compares_the_plans_of_pgbenchs_own_scripts(study):
    arms = {"base": {}, "cheap": {"settings": {"random_page_cost": "1.1", "work_mem": "64MB"}}}
    made = study("", {"workload": ["select-only", "simple-update"], "scale": [1, 2], "interleave": "off"}, arms=arms)
    (cheap,) = rehearse_alone(made.spec, made.plan, lambda event: None).compare(made.plan)
    assert "select-only at scale 2: SELECT abalance FROM pgbench_accounts WHERE aid = $1;" in cheap.plans
    assert (cheap.statements, cheap.differing) == (8, {})
    assert cheap.unused is not None
    assert not cheap.unused.everything  # whether a sort in work_mem spills shows in a trial alone
    assert cheap.unused.names.startswith("random_page_cost (")


def test_a_given_server_explains_in_a_rehearsal_what_is_there(bench, tmp_path):
    dsn, session = bench
    (tmp_path / "reads.sql").write_text(READS)
    arms = {"a": {"dsn": dsn}, "b": {"dsn": dsn, "settings": {"enable_indexscan": "off"}}}
    spec = build_study({"load": {"workload": "reads.sql"}, "arms": arms}, "test", tmp_path)
    plan = plan_now(spec)
    (b,) = rehearse_alone(spec, plan, lambda event: None).compare(plan)
    assert CHANGE in b.differing
    assert session.execute("SELECT count(*) FROM orders WHERE note = 'x'").fetchone() == (0,)
