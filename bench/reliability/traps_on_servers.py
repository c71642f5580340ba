"""Attacks by a role of a server: it owns the database, and waits for the rights of a superuser whose study comes by.

Also attacks by the text of a dump, which is restored on a server that pgtrial makes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from tests.servers import hostile

from bench.reliability.ground import SECRET, Ground, Trap, by_command
from pgtrial.loads.target import Target

_SHORT = ("--clients", 1, "--warmup", "1s", "--duration", "1s", "--blocks", 1)
_ARMS = ("jit=on", "jit=off")

_FUNCTIONS = """
CREATE SCHEMA app;
CREATE FUNCTION app.second() RETURNS int VOLATILE LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE 'COPY (SELECT 1) TO PROGRAM ''cat > {mark}''';
    END IF;
    RETURN 1;
END $$;
CREATE FUNCTION app.evil() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN app.second(); END';
CREATE FUNCTION app.evil(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN app.second() + $1; END';
CREATE FUNCTION app.touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM app.second(); RETURN NEW; END';
CREATE TABLE app.t (id int, k int);
INSERT INTO app.t SELECT i, i FROM generate_series(1, 100) i;
"""
"""The objects of the attacker in each database: functions that run a program if a superuser calls them."""


@dataclass(frozen=True)
class _Object:
    """The objects of the attacker, and what a careless superuser runs there: a query, or a load of pgtrial's own."""

    what: str
    sql: str
    query: str
    load: tuple[object, ...] = ()
    """The options of `pgtrial compare` that choose the load of the superuser's study; empty: the load is `query`."""
    least: int = 15


_PGBENCH = "CREATE TABLE public.pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84)); "
_UPDATE = "UPDATE public.pgbench_accounts SET abalance = 1"
_SBTEST = "CREATE TABLE public.sbtest1 (id int PRIMARY KEY, k int, c char(120), pad char(60)); "
_TPCB = ("--workload", "tpcb-like", "--scale", 1)

_OBJECTS = (
    _Object("a function that the query calls", "", "SELECT app.evil()"),
    _Object("a function of an index", "CREATE INDEX ON app.t (app.evil(id))", "INSERT INTO app.t VALUES (1)"),
    _Object("an index's condition", "CREATE INDEX ON app.t (k) WHERE app.evil(id) > 0", "INSERT INTO app.t VALUES (1)"),
    _Object(
        "a trigger",
        "CREATE TRIGGER x BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.touched()",
        "INSERT INTO app.t VALUES (1, 1)",
    ),
    _Object("a default", "ALTER TABLE app.t ADD d int DEFAULT app.second()", "INSERT INTO app.t VALUES (1, 1)"),
    _Object("a check", "ALTER TABLE app.t ADD CHECK (app.evil(id) > 0)", "INSERT INTO app.t VALUES (1, 1)"),
    _Object(
        "a generated column",
        "ALTER TABLE app.t ADD g int GENERATED ALWAYS AS (app.evil(id)) STORED",
        "INSERT INTO app.t VALUES (1, 1)",
    ),
    _Object("a view", "CREATE VIEW app.v AS SELECT id, app.second() FROM app.t", "SELECT * FROM app.v"),
    _Object("a view that values are drawn from", "CREATE VIEW app.v AS SELECT id + app.second() AS id FROM app.t",
            "SELECT id FROM app.v", ("--query", "SELECT :id", "--values", "id=app.v.id")),
    _Object(
        "a rule",
        "CREATE RULE r AS ON INSERT TO app.t DO ALSO SELECT app.second()",
        "INSERT INTO app.t VALUES (1, 1)",
    ),
    _Object("a domain", "CREATE DOMAIN app.d AS int CHECK (app.evil(VALUE) > 0)", "SELECT 1::app.d"),
    _Object(
        "a cast",
        "CREATE TYPE app.y AS (i int); CREATE FUNCTION app.c(int) RETURNS app.y LANGUAGE plpgsql AS "
        "'BEGIN PERFORM app.second(); RETURN ROW(1)::app.y; END'; CREATE CAST (int AS app.y) WITH FUNCTION app.c(int)",
        "SELECT 1::app.y",
    ),
    _Object(
        "an operator",
        "CREATE FUNCTION app.same(int, int8) RETURNS boolean LANGUAGE plpgsql AS "
        "'BEGIN PERFORM app.second(); RETURN true; END'; "
        "CREATE OPERATOR public.=== (LEFTARG = int, RIGHTARG = int8, PROCEDURE = app.same)",
        "SELECT 1::int === 1::int8",
    ),
    _Object(
        "an aggregate",
        "CREATE FUNCTION app.step(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN app.second(); END'; "
        "CREATE AGGREGATE public.total(int) (SFUNC = app.step, STYPE = int, INITCOND = '0')",
        "SELECT total(1)",
    ),
    _Object(
        "a partition",
        "CREATE TABLE app.p (id int) PARTITION BY RANGE (id); "
        "CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES FROM (0) TO (9); CREATE INDEX ON app.p1 (app.evil(id))",
        "INSERT INTO app.p VALUES (1)",
    ),
    _Object("a policy's own table", "CREATE POLICY y ON app.t USING (app.evil(id) > 0); "
            "ALTER TABLE app.t ENABLE ROW LEVEL SECURITY", "SELECT app.evil() FROM app.t"),
    _Object("the search path of the database", "CREATE FUNCTION app.lower(text) RETURNS text LANGUAGE plpgsql AS "
            "'BEGIN PERFORM app.second(); RETURN $1; END'; ALTER DATABASE shop SET search_path = app, pg_catalog",
            "SELECT lower('A'::text)"),
    _Object(
        "a trigger on a table with a name of pgbench",
        f"{_PGBENCH} INSERT INTO public.pgbench_accounts VALUES (1); CREATE TRIGGER x BEFORE UPDATE ON "
        "public.pgbench_accounts FOR EACH ROW EXECUTE FUNCTION app.touched()",
        _UPDATE,
        _TPCB,
    ),
    _Object(
        "an index on a table with a name of pgbench",
        f"{_PGBENCH} INSERT INTO public.pgbench_accounts VALUES (1, 1); "
        "CREATE INDEX ON public.pgbench_accounts (app.evil(bid))",
        f"{_UPDATE}, bid = 3",
        _TPCB,
    ),
    _Object(
        "an index on a table with a name of sysbench",
        f"{_SBTEST} CREATE INDEX ON public.sbtest1 (app.evil(k))",
        "INSERT INTO public.sbtest1 VALUES (1, 1)",
        ("--workload", "oltp_read_write"),
    ),
    _Object(
        "a child of a superuser's table",
        "GRANT USAGE, CREATE ON SCHEMA app TO PUBLIC; RESET ROLE; CREATE TABLE app.parent (id int); "
        "ALTER TABLE app.t ADD CHECK (app.evil(id) > 0); ALTER TABLE app.t INHERIT app.parent",
        "UPDATE app.parent SET id = id + 1",
    ),
    _Object(
        "the function of an event trigger",
        "CREATE FUNCTION app.ends() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM app.second(); END'; "
        "RESET ROLE; CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION app.ends()",
        "CREATE TEMPORARY TABLE x ()",
        _TPCB,
    ),
    _Object("a virtual column", "CREATE VIEW app.w AS SELECT app.second()", "TABLE app.w", least=18),
)  # fmt: skip


def objects(major: int) -> Iterator[Trap]:
    """Yields an attack for each kind of object that the load of a superuser may meet."""
    for one in _OBJECTS:
        if one.least <= major:
            yield Trap(f"on {major}, {one.what}", lambda ground, one=one: _met(ground, major, one))  # type: ignore[misc]


def _met(ground: Ground, major: int, one: _Object) -> Iterator[str]:
    """Runs a superuser's study on the attacker's objects. The same query by hand shows first that the objects would do
    their work."""
    target = _database(ground, major)
    _as_attacker(target, f"{_FUNCTIONS.format(mark=ground.mark)}; {one.sql}")
    with closing(_superuser(target)) as session:
        session.execute(one.query.encode())
    if not ground.mark.exists():
        yield "the trap does not work by hand, so that this attack shows nothing"
    ground.mark.unlink(missing_ok=True)
    load = one.load or ("--query", one.query)
    yield from ground.failures(ground.pgtrial("compare", *_ARMS, *load, *_SHORT, "--server", _dsn(target)))
    yield from _after(ground, target)


def overloads(major: int, path: str) -> Iterator[Trap]:
    """Yields an attack with overloads of all functions and operators that the lab calls. With overloads of operators
    the load must be refused; without them it must run."""
    what = f"on {major}, overloads of all functions and operators that the lab calls, search path {path}"
    yield Trap(what, lambda ground: _overloaded(ground, major, path))


def _overloaded(ground: Ground, major: int, path: str) -> Iterator[str]:
    cluster = ground.clusters(major)
    _remove(cluster.target, "shop")
    trap = hostile.lie_in_wait(cluster, path)
    target = replace(trap, user="dba")
    with closing(_superuser(trap)) as session:
        session.execute("CREATE ROLE dba SUPERUSER LOGIN")
        session.execute("SELECT to_json(d) FROM pg_catalog.pg_database d")
        session.execute(f"ALTER ROLE {hostile.OWNER} NOSUPERUSER".encode())
    before = hostile.fired(cluster)
    if not before:
        yield "the trap does not work by hand, so that this attack shows nothing"
    commands: tuple[tuple[object, ...], ...] = (
        ("compare", *_ARMS, *_TPCB, *_SHORT, "--server", _dsn(target)),
        ("compare", *_ARMS, "--query", "SELECT 1", *_SHORT, "--server", _dsn(target)),
        ("cleanup",),
    )
    for round_ in ("with operators", "without"):
        for words in commands:
            ended = ground.pgtrial(*words)
            yield from ground.failures(ended)
        if round_ == "without" and ended.status != 0:
            yield f"cleanup ended with {ended.status}: {ended.output[-200:]}"
        with closing(_superuser(trap)) as session:
            session.execute(_DROP_OPERATORS)
    ran = hostile.fired(cluster)[len(before) :]
    if ran or hostile.is_superuser(cluster):
        yield f"{len(ran)} overloads ran, in sessions of {', '.join(sorted(set(ran)))}"
    _remove(cluster.target, hostile.DATABASE)


_DROP_OPERATORS = """DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT oid FROM pg_catalog.pg_operator WHERE oprnamespace OPERATOR(pg_catalog.=) 2200::pg_catalog.oid
    LOOP
        EXECUTE pg_catalog.format('DROP OPERATOR %s', one.oid::pg_catalog.regoperator);
    END LOOP;
END $$"""


def sessions(major: int) -> Iterator[Trap]:
    """Yields traps in which other sessions are active while a superuser's study runs."""
    for what, statement in (
        ("statements of a session that the lab would explain", "SELECT app.evil()"),
        ("statements of a session whose text holds a secret", f"SELECT '{SECRET}', pg_sleep(0.05)"),
        ("statements of a session with sequences for terminals", "SELECT '\x1b]0;evil\x07\x1b[2J', pg_sleep(0.05)"),
    ):
        yield Trap(f"on {major}, {what}", lambda ground, text=statement: _beside(ground, major, text))  # type: ignore[misc]


def _beside(ground: Ground, major: int, statement: str) -> Iterator[str]:
    target = _database(ground, major)
    _as_attacker(target, _FUNCTIONS.format(mark=ground.mark))
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            with closing(_superuser(replace(target, user="mallory"))) as session:
                session.execute(statement.encode())

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        words = ("compare", *_ARMS, "--workload", "oltp_point_select", *_SHORT, "--server", _dsn(target))
        yield from ground.failures(ground.pgtrial(*words))
        yield from ground.failures(ground.pgtrial("compare", *_ARMS, "--query", "SELECT 1", *words[3:]))
    finally:
        ended.set()
        thread.join()
    yield from _after(ground, target)


def _database(ground: Ground, major: int) -> Target:
    """Makes the attacker, the superuser and an empty database; returns the address by which the superuser reaches
    it.
    """
    cluster = ground.clusters(major)
    _remove(cluster.target, "shop")
    with closing(_superuser(cluster.target)) as session:
        session.execute("CREATE ROLE mallory LOGIN")
        session.execute("CREATE ROLE dba SUPERUSER LOGIN")
        session.execute("CREATE DATABASE shop OWNER mallory")
    target = replace(cluster.target, user="dba", dbname="shop")
    with closing(_superuser(target)) as session:
        session.execute("GRANT CREATE ON SCHEMA public TO mallory")
    return target


def _remove(target: Target, database: str) -> None:
    """Remove the database and both roles, of which the superuser owns nothing else."""
    with closing(_superuser(target)) as session:
        session.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)".encode())
        for role in (hostile.OWNER, "dba"):
            session.execute(f"DROP ROLE IF EXISTS {role}".encode())


def _after(ground: Ground, target: Target) -> Iterator[str]:
    with closing(_superuser(replace(target, dbname="postgres"))) as session:
        row = session.execute("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'").fetchone()
    if row is None or row[0]:
        yield "the attacker is a superuser"
    yield from ground.failures(ground.pgtrial("cleanup"))


def _as_attacker(target: Target, text: str) -> None:
    with closing(_superuser(target)) as session:
        session.execute("SET ROLE mallory")
        session.execute(text.encode())


def _superuser(target: Target) -> psycopg.Connection[tuple[object, ...]]:
    """Returns a session of a superuser with the default search path, as a careless person opens it."""
    address = {"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname}
    return psycopg.connect(**address, autocommit=True)  # type: ignore[arg-type]


def _dsn(target: Target) -> str:
    return f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"


# ---- dumps

_RUN = "COPY (SELECT 1) TO PROGRAM 'cat > {mark}';"

_TEXTS = {
    "a program by COPY": _RUN,
    "COPY after RESET ROLE": f"RESET ROLE; {_RUN}",
    "COPY after SET SESSION AUTHORIZATION": f"SET SESSION AUTHORIZATION postgres; {_RUN}",
    "COPY after RESET SESSION AUTHORIZATION": f"RESET SESSION AUTHORIZATION; {_RUN}",
    "a role that makes itself a superuser": f"ALTER ROLE pgtrial SUPERUSER; {_RUN}",
    "a role of its own with superuser": f"CREATE ROLE strong SUPERUSER LOGIN; SET ROLE strong; {_RUN}",
    "the right to run programs": f"GRANT pg_execute_server_program TO pgtrial; {_RUN}",
    "a shell by psql": "\\! touch {mark}\n",
    "a shell by psql's backquotes": "\\set x `touch {mark}`\n",
    "a program by psql's copy": "CREATE TABLE t (n text);\n\\copy t from program 'touch {mark}'\n",
    "a file that psql writes": "\\o {mark}\nSELECT 1;\n",
    "a program that psql includes": "SELECT 1 \\g |touch {mark}\n",
    "a large object's export": "SELECT lo_export(lo_from_bytea(0, 'x'), '{mark}');",
    "a file of the server": f"CREATE TABLE t AS SELECT pg_read_file('{{secret}}') AS n; {_RUN}",
    "a function in C": "CREATE FUNCTION s(text) RETURNS int LANGUAGE c AS 'libc.so.6', 'system'; "
    "SELECT s('touch {mark}');",
    "an extension for other servers": "CREATE EXTENSION dblink; SELECT dblink_exec('user=postgres', $$"
    "COPY (SELECT 1) TO PROGRAM 'cat > {mark}'$$);",
    "a foreign table that is a program": "CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw; "
    "CREATE FOREIGN TABLE p (n text) SERVER f OPTIONS (program 'touch {mark}'); SELECT * FROM p;",
    "a setting that the server keeps": "ALTER SYSTEM SET archive_command = 'touch {mark}';",
    "an event trigger": "CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS "
    "$$BEGIN COPY (SELECT 1) TO PROGRAM 'cat > {mark}'; END$$; "
    "CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION e(); CREATE TABLE x ();",
    "functions in indexes, checks, triggers, defaults, domains and materialized views": _FUNCTIONS
    + "CREATE TABLE app.u (id int CHECK (app.evil(id) > 0), d int DEFAULT app.second(), "
    "g int GENERATED ALWAYS AS (app.evil(id)) STORED); CREATE TRIGGER x BEFORE INSERT ON app.u FOR EACH ROW "
    "EXECUTE FUNCTION app.touched(); INSERT INTO app.u VALUES (1); CREATE INDEX ON app.u (app.evil(id)); "
    "CREATE MATERIALIZED VIEW app.m AS SELECT app.second(); CREATE DOMAIN app.d AS int CHECK (app.evil(VALUE) > 0); "
    "CREATE TABLE app.w (y app.d); INSERT INTO app.w VALUES (1);",
}
"""Plain dumps. Each is tried alone, since the first refusal ends a restore."""


def dumps() -> Iterator[Trap]:
    """Yields an attack for each text of a dump, and for a whole database of the attacker's."""
    for what, text in _TEXTS.items():
        yield by_command(f"a dump with {what}", lambda ground, text=text: _restored(ground, text))  # type: ignore[misc]
    yield by_command("a database as data, whose objects' names hold commands of psql", _dumped)


_STUDY = """
[load]
workload = "q.sql"
data = ["{data}"]
clients = 1
warmup = "1s"
duration = "1s"
[arms.a]
settings = {{ jit = "on" }}
[arms.b]
settings = {{ jit = "off" }}
[verdict]
blocks = 1
"""


def _write_study(ground: Ground, data: str) -> Path:
    (ground.work / "q.sql").write_text("SELECT 1;\n")
    (ground.work / "s.toml").write_text(_STUDY.format(data=data))
    return ground.work / "s.toml"


def _restored(ground: Ground, text: str) -> Iterator[tuple[object, ...]]:
    filled = text.replace("{mark}", str(ground.mark)).replace("{secret}", str(ground.victim / "secret"))
    (ground.work / "d.sql").write_text(f"{filled}\n")
    yield "plan", _write_study(ground, "d.sql"), "--rehearse"


def _dumped(ground: Ground) -> Iterator[tuple[object, ...]]:
    target = _database(ground, 18)
    name = f'app."x\n\\! touch {ground.mark}\n--"'
    _as_attacker(target, f"{_FUNCTIONS.format(mark=ground.mark)}; CREATE TABLE {name} (id int DEFAULT app.second())")
    _as_attacker(
        target, f"CREATE INDEX ON app.t (app.evil(id)); COMMENT ON TABLE app.t IS 'x\n\\! touch {ground.mark}'"
    )
    ground.mark.unlink(missing_ok=True)
    yield "plan", _write_study(ground, _dsn(replace(target, user="mallory"))), "--rehearse"
