"""Creates the planner's statistics by ANALYZE, and copies them from one server to another.

ANALYZE reads a random sample of each table. Two runs on the same rows create different statistics, and sometimes lead
to different plans. PostgreSQL 18 and later can import statistics of another server.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.loads.target import Session, value
from pgtrial.model import marks
from pgtrial.model.errors import ArmError

_OF_USERS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"

_TABLES = f"""SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'm') AND {_OF_USERS} AND pg_has_role(c.relowner, 'USAGE')
        AND NOT coalesce((to_jsonb(c) ->> 'relispartition')::bool, false)
    ORDER BY n.nspname, c.relname"""
"""SQL that lists the tables on which ANALYZE is run. ANALYZE of a partitioned table includes its partitions. PostgreSQL
9.6 has no column relispartition, so the column is read from JSON."""

_OF_RELATIONS = f"""SELECT format('SELECT pg_restore_relation_stats(''schemaname'', %L, ''relname'', %L,
    ''relpages'', %s::int, ''reltuples'', %L::real, ''relallvisible'', %s::int, ''relallfrozen'', %s::int)',
    n.nspname, c.relname, c.relpages, c.reltuples, c.relallvisible, c.relallfrozen)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'm', 'i', 'I') AND {_OF_USERS} ORDER BY n.nspname, c.relname"""

_OF_COLUMNS = f"""SELECT format('SELECT pg_restore_attribute_stats(''schemaname'', %L, ''relname'', %L,
    ''attname'', %L, ''inherited'', %L::bool, ''null_frac'', %L::real, ''avg_width'', %L::int,
    ''n_distinct'', %L::real, ''most_common_vals'', %L::text, ''most_common_freqs'', %L::real[],
    ''histogram_bounds'', %L::text, ''correlation'', %L::real, ''most_common_elems'', %L::text,
    ''most_common_elem_freqs'', %L::real[], ''elem_count_histogram'', %L::real[],
    ''range_length_histogram'', %L::text, ''range_empty_frac'', %L::real, ''range_bounds_histogram'', %L::text)',
    s.schemaname, s.tablename, s.attname, s.inherited, s.null_frac, s.avg_width, s.n_distinct,
    s.most_common_vals, s.most_common_freqs, s.histogram_bounds, s.correlation, s.most_common_elems,
    s.most_common_elem_freqs, s.elem_count_histogram, s.range_length_histogram, s.range_empty_frac,
    s.range_bounds_histogram)
    FROM pg_stats s WHERE {_OF_USERS.replace("n.nspname", "s.schemaname")}
    ORDER BY s.schemaname, s.tablename, s.attname, s.inherited"""

_EXTENDED = "SELECT format('%I.%I', stxnamespace::regnamespace, stxname) FROM pg_statistic_ext LIMIT 1"


def draw_anew(session: Session) -> None:
    """Runs ANALYZE on all tables of the database that the session's role owns, in the order of their names.

    Raises psycopg.Error if an ANALYZE fails.
    """
    for (table,) in session.execute(_TABLES.encode()).fetchall():
        session.execute(f"ANALYZE {table}".encode())


def read_statistics(session: Session) -> list[str]:
    """Reads the planner's statistics of the session's server, which must be PostgreSQL 18 or later, and returns the
    statements with which another server imports them.

    Raises ArmError if there are extended statistics (CREATE STATISTICS), which cannot be imported, and psycopg.Error if
    a query fails.
    """
    if (extended := value(session, _EXTENDED)) is not None:
        raise ArmError(
            f"{marks.key('load', 'statistics', 'same')}: the data have extended statistics ({extended}), which "
            "PostgreSQL cannot import from another server; drop them, or remove the key"
        )
    return [str(text) for query in (_OF_RELATIONS, _OF_COLUMNS) for (text,) in session.execute(query.encode())]


def take_statistics(session: Session, statements: Sequence[str]) -> None:
    """Imports the statistics of another server by the statements of `read_statistics`. Raises ArmError if PostgreSQL
    does not import the statistics of a table, and psycopg.Error if a statement fails."""
    for statement in statements:
        if not value(session, statement):
            raise ArmError(
                f"{marks.key('load', 'statistics', 'same')}: PostgreSQL did not import statistics of the first arm "
                f"({' '.join(statement.split())[:120]}); remove the key, so that each arm has statistics of its own"
            )
