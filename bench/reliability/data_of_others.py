"""Signals at random moments of studies in databases that hold tables, views and functions of somebody else's."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.conduct.small import start_lab
from tests.packs import OBJECTS, write_pack_of_objects

from bench.programs import sysbench_address
from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing
from bench.reliability.labs import PATIENCE_S, clean_up, forget
from bench.reliability.served import served
from pgtrial.loads.data.order_entry_tables import TABLES
from pgtrial.loads.process import environment
from pgtrial.loads.target import Target

_SHARE = 0.25
"""The number of times that this attack ends the lab by a signal, as a share of the option `--kills`."""
_MOMENT_S = 9.0
_WHOLE_S = 150.0
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_SERVER = {"shared_buffers": "64MB", "huge_pages": "off", "autovacuum": "off"}

_STUDY = """
[study]
name = "others"
[load]
clients = 2
warmup = "1s"
duration = "1s"
interleave = "off"
{load}
[server]
dsn = "{dsn}"
[arms.a]
[arms.b]
[verdict]
blocks = 1
"""

_LOADS = {
    "select-only": 'workload = "select-only"\nscale = 1',
    "tpcb-like": 'workload = "tpcb-like"\nscale = 1',
    "sysbench": 'workload = "oltp_read_write"\nsysbench = { tables = 2, table_size = 2000 }',
    "order-entry": 'workload = "order-entry"\nscale = 1',
    "pack": 'workload = "./objects"\nscale = 1',
    "script": 'workload = "own.sql"',
}
_OWN_SCRIPT = "SELECT count(*) FROM pg_class;\n"

_MIXED = (
    "CREATE EXTENSION pg_trgm",
    "CREATE TABLE late (id int, name text)",
    "INSERT INTO late SELECT i, 'mine ' || i FROM generate_series(1, 1000) AS i",
    "CREATE INDEX late_name ON late USING gin (name gin_trgm_ops)",
    "CREATE FUNCTION total() RETURNS numeric LANGUAGE sql AS 'SELECT 1.0'",
    "CREATE VIEW seen AS SELECT id, total() FROM late",
    "CREATE TABLE pgbench_mine AS SELECT 1 AS mine",
    "CREATE TABLE sbtest_mine AS SELECT 1 AS mine",
    "COMMENT ON TABLE sbtest_mine IS 'pgtrial is no maker of this one'",
)
"""The user's objects in a database. Some have the names of objects that the workload folder makes, most of whose tables
are missing there; others have names like those of the tables of pgbench and sysbench.
"""

_ORDERS = tuple(f"CREATE TABLE {name} AS SELECT i AS id FROM generate_series(1, 100) AS i" for name in TABLES)
_BESIDE_PGBENCH = (
    "CREATE VIEW accounts_seen AS SELECT aid, abalance FROM pgbench_accounts",
    "CREATE FUNCTION balance() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(abalance) FROM pgbench_accounts; "
    "END",
)

_REFUSED = frozenset({("sysbench", "sysbench"), ("sysbench", "order-entry"), ("pack", "pack"), ("mixed", "pack")})
"""The pairs of a database and a load that must be refused, since a name that the load needs is taken."""
_PAIRS = (
    *(("pgbench", load) for load in ("select-only", "sysbench", "pack", "order-entry", "script")),
    *(("sysbench", load) for load in ("tpcb-like", "sysbench", "pack", "order-entry")),
    *(("pack", load) for load in ("tpcb-like", "sysbench", "pack", "script")),
    *(("mixed", load) for load in ("tpcb-like", "sysbench", "pack", "order-entry")),
)
"""The pairs of a database and a load that the attack runs, the refused ones among them. A load that finds the tables it
needs uses them as the user asked, so that on the user's own pgbench tables the attack runs only a load that reads."""


def _run(campaign: Campaign) -> Iterator[Figure]:
    planned = campaign.part(_SHARE)
    if not planned:
        return
    if shutil.which("sysbench") is None:
        raise Missing("the original sysbench makes tables of somebody else's; install the package sysbench")
    what = "studies on a given server with data of others, most of whose labs get a signal, then cleanup"
    attack = Attack(campaign, "others", what, len(_PAIRS) + planned)
    sent: Counter[str] = Counter()
    made = 0
    with served(campaign, {"workload": "select-only", "scale": 1}, _SERVER) as target:
        databases = {database.name: database for database in _databases(target)}
        others = _Others(attack)
        lengths_s = {(name, load): others.whole_study(databases[name], load) for name, load in _PAIRS}
        for _ in range(planned):
            name, load = campaign.chance.choice(_PAIRS)
            number = campaign.chance.choice(_SIGNALS)
            moment_s = campaign.chance.uniform(0, lengths_s[name, load])
            made += others.ended_study(databases[name], load, number, moment_s)
            sent[number.name] += 1
    signals = ", ".join(f"{count} {name}" for name, count in sorted(sent.items()))
    yield attack.figure(
        f"{signals}; {len(_PAIRS)} pairs of data and load: tables of pgbench, of sysbench, with the names of order "
        f"entry's and of a pack's; objects of the lab's were there after {made} of {planned} signals"
    )


@dataclass(frozen=True)
class _State:
    """The content of a database: its dump, and its objects, with their files and how often they were vacuumed."""

    dump: bytes
    objects: frozenset[tuple[object, ...]]


_OBJECTS = """
SELECT 'relation', oid, relname::text, relfilenode, pg_stat_get_vacuum_count(oid), pg_stat_get_analyze_count(oid)
FROM pg_class WHERE oid >= 16384 UNION ALL
SELECT 'function', oid, proname::text, 0, 0, 0 FROM pg_proc WHERE oid >= 16384 UNION ALL
SELECT 'type', oid, typname::text, 0, 0, 0 FROM pg_type WHERE oid >= 16384 UNION ALL
SELECT 'schema', oid, nspname::text, 0, 0, 0 FROM pg_namespace WHERE oid >= 16384 UNION ALL
SELECT 'extension', oid, extname::text, 0, 0, 0 FROM pg_extension UNION ALL
SELECT 'role', oid, rolname::text, 0, 0, 0 FROM pg_roles UNION ALL
SELECT 'database', oid, datname::text, 0, 0, 0 FROM pg_database
"""


class _Database:
    """A database of somebody else's, and its content at first."""

    def __init__(self, target: Target) -> None:
        self.name = target.dbname
        self.target = target
        self.before = self.state()

    @property
    def dsn(self) -> str:
        """The connection string for a study file."""
        target = self.target
        return f"host={target.host} port={target.port} dbname={target.dbname} user={target.user}"

    def state(self) -> _State:
        """Returns the present content of the database."""
        dump = _original(self.target, "pg_dump", "--no-sync")
        lines = [line for line in dump.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))]
        return _State(hashlib.sha256(b"\n".join(lines)).digest(), self.objects())

    def objects(self) -> frozenset[tuple[object, ...]]:
        """Returns the database's objects."""
        with self.target.connect_as_user() as session:
            return frozenset(session.execute(_OBJECTS).fetchall())


def _databases(target: Target) -> Iterator[_Database]:
    """Yields databases as a user could have made them, with the original programs and by hand."""
    names = ("pgbench", "sysbench", "pack", "mixed")
    with target.connect_as_user() as session:
        for name in names:
            session.execute(f"CREATE DATABASE {name}".encode())
    for database in (replace(target, dbname=name) for name in names):
        if database.dbname == "pgbench":
            _original(database, "pgbench", "-i", "-q", "-s", "1")
            _original(database, "pgbench", "-n", "-c", "1", "-t", "100")
        elif database.dbname == "sysbench":
            tables = ["--tables=2", "--table-size=500", "oltp_read_write", "prepare"]
            subprocess.run(["sysbench", *sysbench_address(database), *tables], check=True, capture_output=True)
        statements = {"pgbench": _BESIDE_PGBENCH, "sysbench": _ORDERS, "pack": (OBJECTS,), "mixed": _MIXED}[
            database.dbname
        ]
        _original(database, "psql", "-Xq", "-v", "ON_ERROR_STOP=1", text_in=";\n".join((*statements, "")))
        yield _Database(database)


def _original(target: Target, program: str, *words: str, text_in: str = "") -> bytes:
    """Runs a program of the server's installation and returns its output."""
    assert target.programs is not None
    return subprocess.run(
        [target.programs / program, *words],
        input=text_in.encode(),
        env=environment(target.environment()),
        check=True,
        capture_output=True,
    ).stdout


class _Others:
    """Studies in such databases, and what has to hold after each."""

    def __init__(self, attack: Attack) -> None:
        self._attack = attack
        self._folder = attack.campaign.scratch / "others"

    def whole_study(self, database: _Database, load: str) -> float:
        """Runs a study to its end without killing the lab, and cleans up; returns the seconds that the study took."""
        began = time.monotonic()
        status, output = self._lab(database, load, None, 0)
        length_s = time.monotonic() - began
        refused = (database.name, load) in _REFUSED
        if refused != (status != 0):
            self._attack.defect(f"{load} in the database {database.name} ended with {status}: {output}")
        self._clean_up(database, f"a whole study of {load} in the database {database.name}")
        self._attack.done()
        return length_s

    def ended_study(self, database: _Database, load: str, number: signal.Signals, moment_s: float) -> bool:
        """Sends the lab a signal after this time, and cleans up; returns True if something of the lab's was in the
        database.
        """
        self._lab(database, load, number, moment_s)
        made = not {entry[:3] for entry in database.objects()} <= {entry[:3] for entry in database.before.objects}
        self._clean_up(database, f"{number.name} after {moment_s:.2f} s of {load} in the database {database.name}")
        self._attack.done()
        return made

    def _lab(self, database: _Database, load: str, number: signal.Signals | None, moment_s: float) -> tuple[int, str]:
        forget(self._folder)
        self._folder.mkdir()
        write_pack_of_objects(self._folder / "objects")
        (self._folder / "own.sql").write_text(_OWN_SCRIPT)
        with start_lab(self._folder, _STUDY.format(load=_LOADS[load], dsn=database.dsn)) as lab:
            try:
                _, output = lab.communicate(timeout=PATIENCE_S if number is None else moment_s)
            except subprocess.TimeoutExpired:
                lab.send_signal(number or signal.SIGKILL)
                try:
                    _, output = lab.communicate(timeout=PATIENCE_S)
                except subprocess.TimeoutExpired:
                    self._attack.defect(f"a lab did not end within {PATIENCE_S:.0f} s after {number}")
                    lab.kill()
                    _, output = lab.communicate()
        if "Traceback" in output:
            self._attack.defect(f"a lab ended with a traceback: {output}")
        return lab.returncode, (output.strip().splitlines() or [""])[-1]

    def _clean_up(self, database: _Database, after: str) -> None:
        """Runs `pgtrial cleanup` and checks that the user's data is unchanged and the lab's objects are gone."""
        clean_up(self._attack, after)
        now, before = database.state(), database.before
        for entry in sorted(now.objects - before.objects, key=str):
            self._attack.defect(f"{entry} is new after {after}")
        for entry in sorted(before.objects - now.objects, key=str):
            self._attack.defect(f"{entry} is gone after {after}")
        if now.dump != before.dump:
            self._attack.defect(f"the dump of the database {database.name} is another one after {after}")
        if now != before:  # what follows is judged by itself
            database.before = now


KIND = Kind("others", lambda campaign: _WHOLE_S + campaign.part(_SHARE) * _MOMENT_S, _run)
