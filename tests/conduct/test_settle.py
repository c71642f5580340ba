"""Tests that before the load every arm has the same pages in its buffers, whether or not its server has pg_prewarm."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.trial import ready
from pgtrial.conduct.trial.settle import run_setup_sql, warm_relations
from pgtrial.loads.data.data import Data
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.target import Target, value
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Server
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from tests.conduct.small import small_study
from tests.conftest import require_engine, require_server
from tests.engine.sessions import wait_until_alone

pytestmark = pytest.mark.server


READ_BLOCKS = "SELECT heap_blks_read + idx_blks_read FROM pg_statio_user_tables WHERE relname = 'pgbench_accounts'"
MAP_PAGES = 2  # of the visibility and free space maps, which neither way of warming reads; the table has 1,640
FLUSH = "SELECT pg_stat_force_next_flush()"


def _count(session: psycopg.Connection[tuple[int]]) -> int:
    row = session.execute(READ_BLOCKS).fetchone()
    assert row is not None
    return row[0]


def test_the_tables_of_each_trial_are_warmed_before_its_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_engine()
    warmed: list[tuple[str | None, bool]] = []
    study = small_study(tmp_path / "s", blocks=1)

    def warm(target: Target, server: Server, data: Data) -> str | None:
        with target.connect_as_user() as session:
            (began,) = session.execute("SELECT sum(n_tup_upd) > 0 FROM pg_stat_user_tables").fetchone() or (True,)
        warmed.append((server.settings.get("jit"), began))
        return warm_relations(target, server, data)

    monkeypatch.setattr(ready, "warm_relations", warm)
    run_study(study, lambda event: None)
    assert {trial.status for trial in study.trials()} == {"completed"}
    assert sorted(warmed, key=str) == [("off", False), (None, False)]


@pytest.mark.parametrize("major", [16, 18])
def test_after_warming_no_page_of_the_accounts_is_read_again(major: int, tmp_path: Path) -> None:
    require_engine()
    require_server(major)
    setup = {"postgres": str(major), "settings": {"shared_buffers": "128MB"}}
    spec = StudySpec.model_validate({"arms": {"one": setup, "two": setup}, "load": {"scale": 1}})
    with Workspace() as workspace:
        arm = make_arms(Design(spec), workspace)["one"]
        arm.prepare(PgbenchTables(1), lambda line: None)
        with arm.serve(PgbenchTables(1), tmp_path / "server.log", {}) as target, target.connect_as_user() as session:
            warm_relations(target, arm.setup, PgbenchTables(1))
            wait_until_alone(session, target.dbname)
            session.execute(FLUSH)
            before = _count(session)
            session.execute("SET enable_seqscan = off")
            session.execute("SELECT count(abalance) FROM pgbench_accounts WHERE aid > 0")
            session.execute(FLUSH)
            assert before > 1640
            assert _count(session) - before <= MAP_PAGES
        arm.close()


def test_sql_of_an_arm_that_fails_is_told_with_its_line_and_character(clusters) -> None:
    spec = StudySpec.model_validate({"arms": {"a": {"setup_sql": ["SELECT 1;\nSELECT wrong"]}, "b": {}}})
    told = r'failed at line 2, character 8: column "wrong" does not exist; correct the statement'
    with pytest.raises(StudyError, match=told):
        run_setup_sql(clusters(18).target, "a", spec.resolved("a"))


def test_sql_of_an_arm_may_have_statements_that_no_transaction_may_hold(clusters) -> None:
    text = "DROP TABLE IF EXISTS apart; CREATE TABLE apart AS SELECT 1 AS i;\nCREATE INDEX CONCURRENTLY ON apart (i);\n"
    server = StudySpec.model_validate({"arms": {"a": {"setup_sql": [f"{text}VACUUM apart"]}, "b": {}}}).resolved("a")
    run_setup_sql(clusters(18).target, "a", server)
    with clusters(18).target.connect() as session:
        assert value(session, "SELECT count(*) FROM pg_index WHERE indrelid = 'public.apart'::regclass") == 1
    wrong = server.model_copy(update={"setup_sql": [f"{text}SELECT\n wrong"]})
    with pytest.raises(StudyError, match='failed at line 4, character 2: column "wrong" does not exist'):
        run_setup_sql(clusters(18).target, "a", wrong)


def test_such_a_statement_needs_no_space_after_its_first_word(clusters) -> None:
    text = "DROP TABLE IF EXISTS cleaned; CREATE TABLE cleaned AS SELECT 1 AS i; VACUUM(ANALYZE) cleaned"
    spec = StudySpec.model_validate({"arms": {"a": {"setup_sql": [text]}, "b": {}}})
    run_setup_sql(clusters(18).target, "a", spec.resolved("a"))
    with clusters(18).target.connect() as session:
        assert value(session, "SELECT reltuples FROM pg_class WHERE oid = 'public.cleaned'::regclass") == 1


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT 1; COPY t FROM STDIN", r"COPY \.\.\. FROM STDIN gets no rows here; write INSERT"),
        ("COPY t TO STDOUT", r"pgtrial does not read the rows of COPY \.\.\. TO STDOUT"),
        ("\\timing", r"\\timing is a command of psql"),
    ],
)
def test_sql_of_an_arm_that_needs_psql_is_refused_and_its_session_goes_on(clusters, statement, words) -> None:
    spec = StudySpec.model_validate({"arms": {"a": {"setup_sql": [statement]}, "b": {}}})
    with pytest.raises(StudyError, match=rf"\[arms\.a\] setup_sql '.*' failed: {words}"):
        run_setup_sql(clusters(18).target, "a", spec.resolved("a"))


def test_the_sql_of_an_arm_runs_as_the_role_of_the_load_and_a_superuser_makes_extensions(tmp_path: Path) -> None:
    """Code that setup_sql calls, such as a trigger of the user's data, must not run with a superuser's rights."""
    require_engine()
    require_server(18)
    text = (
        "CREATE EXTENSION pageinspect; CREATE TABLE who AS SELECT current_user AS name, "
        "(SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_super"
    )
    setup = {"setup_sql": [text, "ALTER SYSTEM SET work_mem = '7MB'", "SELECT pg_reload_conf()"]}
    spec = StudySpec.model_validate({"arms": {"one": setup, "two": setup}, "load": {"scale": 1}})
    with Workspace() as workspace:
        arm = make_arms(Design(spec), workspace)["one"]
        with arm.serve(NO_TABLES, tmp_path / "server.log", {}) as target:
            run_setup_sql(target, "one", arm.setup)
            with target.connect_as_load() as session:
                assert session.execute("SELECT * FROM who").fetchone() == ("pgtrial", False)
            with target.connect_as_user() as session:
                assert value(session, "SELECT count(*) FROM pg_extension WHERE extname = 'pageinspect'") == 1
            refused = spec.resolved("two").model_copy(update={"setup_sql": ["COPY who FROM PROGRAM 'id'"]})
            with pytest.raises(StudyError, match="permission denied"):
                run_setup_sql(target, "one", refused)
        arm.close()
