"""Tests of the search for scripts that use pgbench's tables; for such scripts pgtrial makes these tables on a given
server.
"""

from __future__ import annotations

import pytest

from pgtrial.loads.data.kinds import NO_TABLES, data_of
from pgtrial.loads.data.pgbench_names import names_tables
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec, load_points

NAMING = [
    "SELECT abalance FROM pgbench_accounts WHERE aid = 1;",
    "select * from PGBENCH_Branches",
    'UPDATE "pgbench_tellers" SET tbalance = 0;',
    "INSERT INTO public.pgbench_history(tid) VALUES (1);",
    "SELECT '--' FROM pgbench_accounts;",
    "\\set aid random(1, 10)\nSELECT /* which */ 1 FROM pgbench_accounts\n WHERE aid = :aid;",
    "DO $$ BEGIN UPDATE pgbench_accounts SET abalance = 0; END $$;",
    "DO 'BEGIN PERFORM 1 FROM pgbench_accounts; END';",
    "SELECT 1 FROM pgbench_accounts \\gset",
]
OTHERS = [
    "SELECT * FROM orders;",
    "-- like pgbench_accounts\nSELECT 1;",
    "/* pgbench_accounts /* pgbench_tellers */ pgbench_history */ SELECT 1;",
    "SELECT 'pgbench_accounts';",
    "SELECT $$pgbench_accounts$$, $x$ pgbench_history $x$;",
    "SELECT E'\\' pgbench_accounts';",
    "SELECT 1 FROM my_pgbench_accounts, pgbench_accounts_archive;",
    'SELECT 1 FROM "PGBENCH_ACCOUNTS";',
    "\\set x :pgbench_accounts + 1\nSELECT :pgbench_accounts;",
    "\\set x 1 + \\\n  pgbench_accounts\nSELECT 1;",
    "",
]


@pytest.mark.parametrize("script", NAMING)
def test_a_script_names_a_table(script):
    assert names_tables(script)


@pytest.mark.parametrize("script", OTHERS)
def test_a_script_names_none_of_the_tables(script):
    assert not names_tables(script)


def _spec(script, server, **load):
    spec = StudySpec.model_validate(
        {"load": {"workload": ["orders.sql"], **load}, "server": server, "arms": {"A": {}, "B": {}}}
    )
    return spec.with_scripts({"orders.sql": script})


@pytest.mark.parametrize(
    ("script", "server", "load", "tables"),
    [
        (OTHERS[0], {"dsn": "host=db1"}, {}, NO_TABLES),
        (NAMING[0], {"dsn": "host=db1"}, {}, PgbenchTables(10)),
        (OTHERS[0], {"dsn": "host=db1"}, {"scale": 10}, PgbenchTables(10)),
        (OTHERS[0], {}, {}, NO_TABLES),
        (NAMING[0], {}, {}, PgbenchTables(10)),
        (OTHERS[0], {}, {"scale": 10}, PgbenchTables(10)),
    ],
)
def test_a_script_gets_the_tables_if_it_names_them_or_the_study_sets_the_scale(script, server, load, tables):
    spec = _spec(script, server, **load)
    again = thaw(freeze(spec)).with_scripts(spec.scripts)
    for study in (spec, again):
        assert [data_of(study, point) for point in load_points(study)] == [tables]
