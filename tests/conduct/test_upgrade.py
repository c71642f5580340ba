"""The statements of a rehearsal of an upgrade, and the comparison of the rows that they return."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgtrial.conduct.upgrade.rehearse import Comparison, Servers
from pgtrial.conduct.upgrade.rows import other_rows
from pgtrial.conduct.upgrade.statement_server import Ran, StatementServer
from pgtrial.conduct.upgrade.statements import NamedStatement, Statements, capture_counted, capture_logs
from pgtrial.conduct.upgrade.times import UpgradeKeys, timed_parts
from pgtrial.loads.recorded_text import with_values
from pgtrial.model.errors import ArmError, BudgetError, StudyError
from pgtrial.model.records.trial import LoadStatement
from pgtrial.model.records.upgrade import NewError, OnNew, OtherPlan, OtherRows, RehearsedStatement
from tests.conftest import require_engine, running_clusters

LOG = """\
2026-11-30 10:00:00.000 UTC [7] app@shop LOG:  duration: 0.1 ms  statement: SELECT name FROM items WHERE id = 7
2026-11-30 10:00:00.100 UTC [7] app@shop LOG:  duration: 0.1 ms  execute <unnamed>: UPDATE items SET name = $1
2026-11-30 10:00:00.100 UTC [7] app@shop DETAIL:  parameters: $1 = 'it''s'
2026-11-30 10:00:00.200 UTC [7] app@shop LOG:  duration: 0.1 ms  statement: SELECT name FROM items WHERE id = 8
2026-11-30 10:00:00.300 UTC [8] app@other LOG:  duration: 0.1 ms  statement: SELECT 1
"""


@pytest.mark.parametrize(
    ("text", "values", "whole"),
    [
        ("SELECT $1, $2", ["7", None], "SELECT '7', NULL"),
        ("SELECT '$1', $1 -- $1", ["it's"], "SELECT '$1', 'it''s' -- $1"),
        ("SELECT $10, $$ $1 $$, $11", list("abcdefghij"), "SELECT 'j', $$ $1 $$, $11"),
    ],
)
def test_values_of_parameters_become_literals_outside_of_quotes_and_comments(text, values, whole):
    assert with_values(text, values) == whole


def test_each_kind_of_statement_of_a_log_is_taken_once_with_its_values(tmp_path):
    require_engine()
    log, capture = tmp_path / "postgresql.log", tmp_path / "capture"
    log.write_text(LOG)
    capture_logs([log], capture, "shop")
    statements = Statements()
    statements.add_capture(capture, "postgresql.log")
    assert [(one.text, one.executions) for one in statements.found] == [
        ("SELECT name FROM items WHERE id = 7;\n", 2),
        ("UPDATE items SET name = 'it''s';\n", 1),
    ]
    with pytest.raises(StudyError, match="--log: "):
        capture_logs([log], capture, None)


def test_statements_of_scripts_suites_and_queries_have_names_of_their_own(tmp_path, monkeypatch):
    require_engine()
    monkeypatch.chdir(tmp_path)
    Path("orders.sql").write_text("\\set id random(5, 5)\nBEGIN;\nSELECT :id;\nCOMMIT;\n")
    Path("queries").mkdir()
    Path("queries/q1.sql").write_text("SET jit = off;\nSELECT 1;\n")
    statements = Statements()
    statements.add("suite:queries")
    statements.add("orders.sql")
    statements.add_queries(["select 2;", "-- nothing"])
    assert {one.name: one.text for one in statements.found} == {
        "q1": "SET jit = off;\nSELECT 1;\n",
        "orders-3": "SELECT 5;\n",
        "q1-2": "select 2;\n",
    }
    assert statements.sources == ["suite:queries", "orders.sql", "--query"]
    with pytest.raises(StudyError, match="has no statements that could be rehearsed"):
        statements.add("tpcb-like")


def test_only_statements_that_change_data_begin_a_transaction_for_the_study_of_times():
    assert NamedStatement("a", "SELECT 1;\n").undone == "SELECT 1;\n"
    assert NamedStatement("a", "DELETE FROM t;\n").undone == "BEGIN;\nDELETE FROM t;\n"
    assert NamedStatement("a", "BEGIN;\nDELETE FROM t;\n").undone == "BEGIN;\nDELETE FROM t;\n"
    assert NamedStatement("a", "BEGIN;\nDELETE FROM t;\nCOMMIT;\n").undone == "BEGIN;\nDELETE FROM t;\n"
    assert NamedStatement("a", "DELETE FROM t;\nCOMMIT;\nSELECT 1;\n").undone == "BEGIN;\nDELETE FROM t;\nSELECT 1;\n"


def test_statements_with_passwords_are_left_out_and_counted():
    statements = Statements()
    statements.add_queries(
        [
            "ALTER ROLE app PASSWORD 'geheim'",
            "SELECT * FROM dblink('host=db1 password=geheim', 'SELECT 1') AS t (a int)",
            "SELECT password FROM accounts WHERE id = 1",
        ]
    )
    assert [one.text for one in statements.found] == ["SELECT password FROM accounts WHERE id = 1;\n"]
    assert statements.left_out == ["2 statements of --query with a password or a token, which pgtrial does not store"]


def of_error(error):
    """Returns an action of an arm that fails with this error."""

    def act(*_):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "is_raised"),
    [
        (ArmError("the disk is full: copying a to b failed with 0 MB free; free some space"), True),
        (StudyError("arms.18: could not extend file: No space left on device"), True),
        (StudyError("arms.18: type abstime does not exist"), False),
    ],
    ids=["copy", "server", "refused"],
)
def test_a_full_disk_of_this_machine_is_no_finding_about_the_new_version(tmp_path, error, is_raised):
    arm = SimpleNamespace(name="18")
    with ExitStack() as stack:
        servers = Servers(arm, arm, None, tmp_path, stack, 20, lambda event: None)
        with pytest.raises(type(error)) if is_raised else nullcontext():
            servers.restore(of_error(error))
        upgraded = SimpleNamespace(analyze=of_error(error))
        with pytest.raises(type(error)) if is_raised else nullcontext():
            assert not servers.analyze(upgraded)
    arms = [] if is_raised else ["restored", "pg_upgraded, analysed"]
    assert [(arm.name, arm.failure) for arm in servers.arms] == [(name, "type abstime does not exist") for name in arms]


@dataclass
class Answering:
    """A server whose executions end as given, one after the other."""

    ends: list[Ran]

    def run(self, parts):
        return self.ends.pop(0)

    def plan(self, parts):
        return LoadStatement(text=parts[0])


ENDED = Ran()
OVER = Ran(over_limit=True)
OUTSIDE = Ran(error=NewError(sqlstate="25001", message="no block"), why_not="it cannot run in a transaction")


def test_a_statement_over_the_limit_runs_again_after_analyze():
    base = Answering([ENDED] * 4)
    upgraded = Answering([OVER, OVER, ENDED, OVER])
    comparison = Comparison(base, {"pg_upgraded": upgraded})
    for name in ("a", "b"):
        comparison.add(NamedStatement(name, "SELECT 1;\n"))
    comparison.compare_again("pg_upgraded, analysed", upgraded)
    exceeded = [{arm: on_new.over_limit for arm, on_new in one.on.items()} for one in comparison.found]
    assert exceeded == [
        {"pg_upgraded": True, "pg_upgraded, analysed": False},
        {"pg_upgraded": True, "pg_upgraded, analysed": True},
    ]


def test_a_statement_that_only_the_new_version_does_not_run_in_a_transaction_breaks():
    comparison = Comparison(Answering([ENDED, OUTSIDE]), {"restored": Answering([OUTSIDE])})
    comparison.add(NamedStatement("new", "SELECT 1;\n"))
    comparison.add(NamedStatement("both", "VACUUM;\n"))
    new, both = comparison.found
    assert new.on["restored"].error == OUTSIDE.error
    assert both.not_compared == "it cannot run in a transaction"


def test_statements_with_other_plans_are_measured_first_in_a_study_of_their_own(tmp_path):
    require_engine()
    data = tmp_path / "shop.sql"
    data.write_text("CREATE TABLE t (a int);\n")
    plan = OtherPlan(at_old="Sort", at_new="Limit", old=["Sort"], new=["Limit"])
    found = {
        "same": OnNew(),
        "moved": OnNew(plan=plan),
        "changed": OnNew(plan=plan, rows=OtherRows(old_rows=1, new_rows=2)),
        "write": OnNew(),
        "fails": OnNew(error=NewError(sqlstate="42883", message="no function")),
        "slow": OnNew(over_limit=True),
    }
    texts = {"write": "DELETE FROM t;\n"}
    statements = [
        RehearsedStatement(name=name, text=texts.get(name, "SELECT * FROM t;\n"), on={"restored": on_new})
        for name, on_new in found.items()
    ]
    statements.append(RehearsedStatement(name="never", text="SELECT 1;\n", not_compared="it has COPY"))
    keys = UpgradeKeys({"15": {"postgres": "15"}, "18": {"postgres": "18"}}, {}, 20, 7, "5%")
    first, second = timed_parts(keys, statements, [str(data)], tmp_path / "suites", 1200)
    assert (first.directory, second.directory) == ("1-other-plans", "2-same-plans")
    assert sorted(first.spec.scripts) == ["other-plans/changed.sql", "other-plans/moved.sql"]
    assert first.spec.load.suite.unchecked == ["changed"]
    assert second.spec.scripts == {
        "same-plans/same.sql": "SELECT * FROM t;\n",
        "same-plans/write.sql": "BEGIN;\nDELETE FROM t;\n",
    }
    assert [part.spec.study.seed for part in (first, second)] == [7, 8]
    assert [(part.spec.verdict.studies, part.spec.verdict.margin) for part in (first, second)] == [(2, 0.05)] * 2
    assert first.share_s + second.share_s == 1200
    with pytest.raises(BudgetError):
        timed_parts(keys, statements, [str(data)], tmp_path / "suites", 0.5)


@pytest.fixture(scope="module")
def server(clusters):
    opened = StatementServer("18", clusters(18).target, 20)
    yield opened
    opened.close()


ROWS = "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, 'b')) AS t (id, name)"


@pytest.mark.server
@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (ROWS, f"{ROWS} ORDER BY id DESC", None),
        ("SELECT 0.1::float8 + 0.2", 'SELECT 0.3::float8 AS "?column?"', None),
        (ROWS, f"{ROWS} LIMIT 2", OtherRows(old_rows=3, new_rows=2, row="2, b")),
        (
            ROWS,
            "SELECT * FROM (VALUES (2, 'b'), (1, 'A'), (2, 'b')) AS t (id, name)",
            OtherRows(old_rows=3, new_rows=3, column="name", old_value="a", new_value="A"),
        ),
        ("SELECT 1 AS a", "SELECT 1 AS b", OtherRows(old_rows=1, new_rows=1, old_columns=["a"], new_columns=["b"])),
        ("SELECT NULL AS a", "SELECT 1 AS a", OtherRows(old_rows=1, new_rows=1, column="a", new_value="1")),
        ("SELECT 1::float8 AS a", "SELECT 1::numeric AS a", None),
    ],
    ids=["order", "last digits", "a row less", "a value", "columns", "null", "type"],
)
def test_rows_are_compared_in_any_order_and_the_first_difference_is_named(server, old, new, found):
    assert other_rows(server.run([old]).results, server.run([new]).results) == found


@pytest.mark.server
def test_a_statement_is_undone_cancelled_at_the_limit_and_never_ends_the_rehearsal(server, clusters):
    assert (
        server.run(["CREATE TABLE made_by_statement (a int)", "INSERT INTO made_by_statement VALUES (1)"]).error is None
    )
    gone = NewError(sqlstate="42P01", message='relation "made_by_statement" does not exist')
    assert server.run(["SELECT * FROM made_by_statement"]).error == gone
    assert server.run(["VACUUM"]).why_not is not None
    assert server.run(["COPY pg_class TO STDOUT"]).why_not == "it has COPY"
    lost = server.run(["SELECT pg_terminate_backend(pg_backend_pid())"]).error
    assert lost is not None
    assert lost.message.startswith("the server ended the connection: ")
    assert server.run(["SELECT 1"]).error is None
    assert StatementServer("18", clusters(18).target, 0.1).run(["SELECT pg_sleep(20)"]).over_limit


@pytest.mark.server
def test_counted_statements_are_read_from_the_view_of_the_extension_alone(workspace, tmp_path):
    require_engine()
    with running_clusters(workspace, {"shared_preload_libraries": "pg_stat_statements"}) as running:
        target = running(18).target
        dsn = f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
        with target.connect_as_user() as session:
            session.execute("CREATE TABLE public.trace (a int)")
            session.execute(
                "CREATE FUNCTION public.spy() RETURNS bigint LANGUAGE sql AS 'INSERT INTO trace VALUES (1) RETURNING 1'"
            )
            columns = "'x' AS query, spy() AS calls, 1 AS rows, 1.0 AS mean_exec_time, true AS toplevel, oid AS dbid"
            session.execute(f"CREATE VIEW public.pg_stat_statements AS SELECT {columns} FROM pg_database".encode())
            with pytest.raises(StudyError, match="has no extension pg_stat_statements"):
                capture_counted(dsn, tmp_path / "none")
            session.execute('CREATE SCHEMA "Counted"')
            session.execute('CREATE EXTENSION pg_stat_statements SCHEMA "Counted"')
            session.execute("TABLE public.trace")
            capture_counted(dsn, tmp_path / "counted")
            assert session.execute("SELECT count(*) FROM public.trace").fetchone() == (0,)
    statements = Statements()
    statements.add_capture(tmp_path / "counted", "the server")
    assert "TABLE public.trace;\n" in {one.text for one in statements.found}


@pytest.mark.server
def test_an_analyze_that_fails_is_told_with_the_words_of_the_server(server):
    with server.target.connect_as_load() as session:
        session.execute("CREATE TABLE base AS SELECT 1 AS a")
        session.execute("CREATE TABLE indexed (a int)")
        session.execute(
            "CREATE FUNCTION above(int) RETURNS int IMMUTABLE LANGUAGE plpgsql "
            "AS 'BEGIN RETURN $1 + (SELECT max(a) FROM base); END'"
        )
        session.execute("CREATE INDEX ON indexed (above(a))")
        session.execute("INSERT INTO indexed VALUES (1)")
        # from 17 on, ANALYZE runs functions of indexes without the search path of the session
        with pytest.raises(StudyError, match=r'arms\.18: ANALYZE failed: relation "base" does not exist'):
            server.analyze()
        session.execute("DROP TABLE indexed, base; DROP FUNCTION above(int)")


@pytest.mark.server
def test_settings_before_a_query_are_in_force_when_it_is_explained(server):
    plan = server.plan(["SET enable_seqscan = off", "SELECT relname FROM pg_class WHERE oid = 1259"]).plan
    assert plan[0].startswith("Index Scan")
