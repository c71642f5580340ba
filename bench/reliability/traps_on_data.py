"""Secrets that must not be told, and tables and indexes of bystanders that must stay."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
from tests.conduct.small import start_lab
from tests.processes import until

from bench.reliability.ground import SECRET, Ground, Trap
from bench.reliability.traps_in_studies import Study, stranger
from pgtrial.loads.target import Target

_ARMS = ("jit=on", "jit=off")
_SHORT = ("--clients", 1, "--warmup", "1s", "--duration", "1s", "--blocks", 1)
_ROWS = 777
_PATIENCE_S = 300.0

# ---- secrets

_WORDS: Mapping[str, tuple[object, ...]] = {
    "in a connection string": (*_ARMS, "--server", "host=127.0.0.1 port=1 user=x password={secret}"),
    "in a URI": (*_ARMS, "--server", "postgresql://x:{secret}@127.0.0.1:1/x"),
    "in a URI as data": (*_ARMS, "--query", "SELECT 1", "--data", "postgresql://x:{secret}@127.0.0.1:1/x"),
    "in a URI's option": (*_ARMS, "--server", "postgresql://x@127.0.0.1:1/x?password={secret}"),
    "in the URL of a repository": ("default", "postgres=git:https://x:{secret}@127.0.0.1:1/pg.git@main"),
    "as the user of a repository's URL": ("default", "postgres=git:https://{secret}@127.0.0.1:1/pg.git@main"),
}
"""Command lines with a secret that a user might type: the connection fails, and the message must not hold the secret.
"""

_SETTINGS: Mapping[str, str] = {
    "primary_conninfo": "host=127.0.0.1 port=1 user=r password={secret}",
    "restore_command": "cp -u token:{secret} %f %p",
    "archive_cleanup_command": "clean --password {secret}",
    "app.token": "{secret}",
}
"""The settings of a given server, which is not one of the victim's own."""


def secrets(*majors: int) -> Iterator[Trap]:
    """Yields an attack for each place in which a secret may stand."""
    for what, words in _WORDS.items():
        yield Trap(f"a password {what}", lambda ground, words=words: _typed(ground, words))  # type: ignore[misc]
    for major in majors:
        for name, text in _SETTINGS.items():
            yield Trap(
                f"on {major}, a password in the setting {name}",
                lambda ground, major=major, name=name, text=text: _set(ground, major, name, text),  # type: ignore[misc]
            )
    yield Trap("a token in the environment of a server that pgtrial makes", _inherited)


def _typed(ground: Ground, words: tuple[object, ...]) -> Iterator[str]:
    given = [str(word).replace("{secret}", SECRET) for word in words]
    yield from ground.failures(ground.pgtrial("compare", *given, *_SHORT, PGPASSWORD=""))
    (ground.work / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    arms = (given[-1], "jit=off")
    gate = ("gate", *arms, "--study", "s.toml", "--budget", "1s", "--summary", "summary.md", "--junit", "junit.xml")
    yield from ground.failures(ground.pgtrial(*gate, PGPASSWORD=""))


def _set(ground: Ground, major: int, name: str, text: str) -> Iterator[str]:
    """Sets a setting of the server to a value with a secret. The facts, the report and the bundle of a study on the
    server must not contain the secret."""
    target = _database(ground, major)
    with closing(_session(target)) as session:
        where = "DATABASE shop" if "." in name else "SYSTEM"  # before 16 a server has no names of others' settings
        session.execute(f"ALTER {where} SET {name} = '{text.replace('{secret}', SECRET)}'".encode())
        session.execute("SELECT pg_reload_conf()")
    try:
        server = ("--server", _dsn(target))
        yield from ground.failures(ground.pgtrial("compare", *_ARMS, "--query", "SELECT 1", *_SHORT, *server))
        (ground.work / "s.toml").write_text(
            f'[server]\ndsn = "{_dsn(target)}"\n[arms.a]\n[arms.b]\nsettings = {{ jit = "off" }}\n'
        )
        yield from ground.failures(ground.pgtrial("facts", "s.toml", "--json"))
        for study in (ground.work / "results").glob("*"):
            yield from ground.failures(ground.pgtrial("bundle", study, "-o", "b.tar.xz"))
            subprocess.run(["tar", "-xf", "b.tar.xz"], cwd=ground.work, check=True)
    finally:
        with closing(_session(target)) as session:
            session.execute(f"ALTER {where} RESET {name}".encode())
            session.execute("SELECT pg_reload_conf()")


def _inherited(ground: Ground) -> Iterator[str]:
    """Yields a sentence if a process of a server that pgtrial started has the secret in its environment, or if no
    server was seen."""
    environment = {**os.environ, "PGPASSWORD": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "GH_TOKEN": SECRET}
    words = ["compare", *_ARMS, "--workload", "select-only", "--scale", "1", *map(str, _SHORT)]
    seen: set[str] = set()
    servers = 0
    with subprocess.Popen(
        [ground.commands.folder / "pgtrial", *words],
        cwd=ground.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as lab:
        while lab.poll() is None:
            for process in psutil.process_iter(["name"]):
                with suppress(psutil.Error):
                    if process.info["name"] == "postgres" and str(ground.campaign.state) in " ".join(process.cmdline()):
                        variables = process.environ()
                        servers += 1
                        words_of = " ".join(process.cmdline()[:3])
                        seen |= {f"{name} in {words_of}" for name, text in variables.items() if SECRET in text}
    if seen:
        yield f"these have it: {'; '.join(sorted(seen))}"
    if not servers:
        yield "no server was seen, so that this attack shows nothing"


# ---- bystanders

_TABLES: Mapping[str, tuple[str, str, str]] = {
    "pgbench's": ('workload = "tpcb-like"\nscale = 5\nclients = 1', "pgbench_accounts", "tpcb-like"),
    "sysbench's": (
        'workload = "oltp_read_only"\nsysbench = { tables = 2, table_size = 200000 }\nclients = 1',
        "sbtest1",
        "oltp_read_only",
    ),
}
_STUDY = """
[load]
{load}
warmup = "1s"
duration = "1s"
[server]
dsn = "{dsn}"
[arms.a]
[arms.b]
settings = {{ jit = "off" }}
[verdict]
blocks = 1
"""
_JOB = """
[load]
workload = "job:job.sql"
[load.job]
undo = "DROP INDEX IF EXISTS app.big_k"
[server]
dsn = "{dsn}"
[arms.small]
settings = {{ maintenance_work_mem = "4MB" }}
[arms.large]
settings = {{ maintenance_work_mem = "64MB" }}
[verdict]
blocks = 1
"""


def bystanders(major: int) -> Iterator[Trap]:
    """Yields traps in which others make tables and indexes beside a study, or after the lab was killed; these must
    stay.
    """
    for whose in _TABLES:
        for moment in ("before the study", "after the lab was killed"):
            yield Trap(
                f"on {major}, a bystander makes {whose} table {moment}",
                lambda ground, whose=whose, moment=moment: _table(ground, major, whose, moment),  # type: ignore[misc]
            )
    yield Trap(f"on {major}, a bystander makes the index of a killed job", lambda ground: _index(ground, major))
    yield Trap(f"on {major}, a job whose index was there before", lambda ground: _index_before(ground, major))


def files() -> Iterator[Trap]:
    """Files of somebody else's where results go."""
    yield Trap("files of somebody else's where a page, a summary and a bundle go", _files)


def _table(ground: Ground, major: int, whose: str, moment: str) -> Iterator[str]:
    load, table, workload = _TABLES[whose]
    target = _database(ground, major)
    study = _STUDY.format(load=load, dsn=_dsn(target))
    if moment == "after the lab was killed":
        _kill(ground, study, lambda session: session.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0], target)  # type: ignore[index]
    with closing(_session(target)) as session:
        session.execute(f"DROP TABLE IF EXISTS {table}".encode())
        session.execute(f"CREATE TABLE {table} AS SELECT generate_series(1, {_ROWS}) AS id".encode())
    server = ("--server", _dsn(target))
    for words in (("cleanup",), ("compare", *_ARMS, "--workload", workload, *_SHORT, *server), ("cleanup",)):
        yield from ground.failures(ground.pgtrial(*words))
    with closing(_session(target)) as session:
        try:
            row = session.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        except psycopg.Error as error:
            row = (str(error).splitlines()[0],)
    if row != (_ROWS,):
        yield f"the bystander's {_ROWS} rows of {table} are now: {row and row[0]}"


def _index(ground: Ground, major: int) -> Iterator[str]:
    target, index = _indexed(ground, major)
    study = _JOB.format(dsn=_dsn(target))
    active = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'create index big_k%' AND state = 'active'"
    _kill(ground, study, lambda session: session.execute(active).fetchone()[0], target)  # type: ignore[index]
    with closing(_session(target)) as session:
        session.execute("DROP INDEX IF EXISTS app.big_k")
        session.execute(index)
    yield from _still_there(ground, target)


def _index_before(ground: Ground, major: int) -> Iterator[str]:
    target, index = _indexed(ground, major)
    with closing(_session(target)) as session:
        session.execute(index)
    (ground.work / "job.toml").write_text(_JOB.format(dsn=_dsn(target)))
    yield from ground.failures(ground.pgtrial("run", "job.toml"))
    yield from _still_there(ground, target)


def _indexed(ground: Ground, major: int) -> tuple[Target, bytes]:
    target = _database(ground, major)
    with closing(_session(target)) as session:
        session.execute("CREATE SCHEMA app")
        session.execute("CREATE TABLE app.big AS SELECT i AS id, i % 1000 AS k FROM generate_series(1, 1000000) i")
    index = "CREATE INDEX big_k ON app.big (k, id)"
    (ground.work / "job.sql").write_text(f"{index};\n")
    return target, index.encode()


def _still_there(ground: Ground, target: Target) -> Iterator[str]:
    other = replace(target, dbname="postgres")
    for words in (
        ("compare", *_ARMS, "--query", "SELECT 1", *_SHORT, "--server", _dsn(other)),
        ("cleanup",),
    ):
        yield from ground.failures(ground.pgtrial(*words))
    with closing(_session(target)) as session:
        if session.execute("SELECT to_regclass('app.big_k')").fetchone() == (None,):
            yield "the bystander's index is gone"


def _kill(
    ground: Ground, study: str, begun: Callable[[psycopg.Connection[tuple[object, ...]]], object], target: Target
) -> None:
    """Starts a lab and kills it by -9 as soon as `begun` says so; waits for its sessions to end."""
    with closing(_session(target)) as session, start_lab(ground.work, study) as lab:
        until(lambda: bool(begun(session)) or lab.poll() is not None, "the lab has begun", _PATIENCE_S)
        assert lab.poll() is None, f"the lab ended before: {lab.communicate()}"
        engines = psutil.Process(lab.pid).children(recursive=True)
        lab.send_signal(signal.SIGKILL)
        lab.communicate()
        psutil.wait_procs(engines, timeout=_PATIENCE_S)
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop' AND pid <> pg_backend_pid()"
        until(lambda: session.execute(others).fetchone() == (0,), "its sessions have ended", _PATIENCE_S)


def _files(ground: Ground) -> Iterator[str]:
    """Checks that results do not replace files that pgtrial did not write."""
    stranger(ground, Study("", ""))
    (ground.work / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    mine: dict[str, Path] = {
        name: ground.work / name for name in ("mine.html", "mine.md", "mine.xml", "mine.xz", "s.toml")
    }
    for name, path in mine.items():
        if name != "s.toml":
            path.write_text("of the bystander")
    before = {name: path.read_text() for name, path in mine.items()}
    gate = ("gate", *_ARMS, "--study", "s.toml", "--budget", "1s")
    for words in (
        ("report", "b.tar.xz", "-o", "mine.html"),
        ("history", "page", "-o", "mine.html"),
        (*gate, "--summary", "mine.md", "--junit", "mine.xml"),
        (*gate, "--summary", "s.toml"),
        (*gate, "--bundle", "mine.xz"),
        ("bundle", "study", "-o", "mine.xz"),
    ):
        yield from ground.failures(ground.pgtrial(*words))
    for name, path in mine.items():
        if not path.exists() or path.read_text() != before[name]:
            yield f"the bystander's {name} was replaced"


def _database(ground: Ground, major: int) -> Target:
    cluster = ground.clusters(major)
    with closing(_session(cluster.target)) as session:
        session.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
        session.execute("CREATE DATABASE shop")
    return replace(cluster.target, dbname="shop")


def _session(target: Target) -> psycopg.Connection[tuple[object, ...]]:
    address = {"host": target.host, "port": target.port, "user": target.user, "dbname": target.dbname}
    return psycopg.connect(**address, autocommit=True)  # type: ignore[arg-type]


def _dsn(target: Target) -> str:
    return f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
