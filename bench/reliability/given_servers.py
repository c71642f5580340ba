"""kill -9 of the lab at random moments of studies that change the settings of a given server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from tests.conduct.small import start_lab

from bench.reliability.kind import Attack, Campaign, Figure, Kind
from bench.reliability.labs import PATIENCE_S, clean_up, forget
from bench.reliability.served import served
from pgtrial.loads.target import Target
from pgtrial.servers.leftovers import leftovers

_SHARE = 0.25
"""The number of times that this attack kills the lab, as a share of the option `--kills`."""
_MOMENT_S = 16.0
_WHOLE_EACH = 10
"""With each kill the attack also runs a study with one more arm, which pgtrial refuses since a setting of that arm
needs a restart. In one of this number of refused studies the lab is not killed.
"""

_SERVER = {"shared_buffers": "64MB", "huge_pages": "off", "autovacuum": "off"}
_ROLE = "given_owner"
_MADE = (
    f"CREATE ROLE {_ROLE} SUPERUSER LOGIN",
    f"ALTER ROLE {_ROLE} SET maintenance_work_mem = '20MB'",
    f"ALTER ROLE {_ROLE} SET effective_cache_size = '100MB'",
    f"REASSIGN OWNED BY pgtrial TO {_ROLE}",  # a superuser's load is refused on what other roles own
)
_FORMER = (
    "work_mem = '3MB'",
    "session_preload_libraries = 'auto_explain', 'pg_stat_statements'",
    "search_path = '$user', 'public'",
    "temp_tablespaces = 'pg_default'",
    "maintenance_work_mem = 65536",
    "max_connections = 120",
    "shared_preload_libraries = '$libdir/pg_stat_statements'",
    "statement_timeout = '30min'",
    "log_line_prefix = '%m \"%p\" ''it\\s'' '",
    "DateStyle = 'German, DMY'",
    "max_wal_size = '1.5GB'",
)
"""The lines from which those of the server's postgresql.auto.conf are drawn. Some need a restart; others have no effect
for the role, which has its own value of the setting."""

_STUDY = """
[study]
name = "given"
[load]
workload = "select-only"
scale = 1
clients = 2
warmup = "200ms"
duration = "1s"
interleave = "off"
share_server = false
[server]
dsn = "{dsn}"
reset = "none"
[arms.libraries]
settings = {{ session_preload_libraries = "pg_stat_statements,auto_explain", work_mem = "21MB", max_wal_size = "2GB" }}
[arms.paths]
settings = {{ search_path = "public, pg_catalog", temp_tablespaces = "", statement_timeout = "90s", work_mem = "3MB" }}
[verdict]
blocks = 2
"""
_RESTART = """
[arms.restart]
settings = { max_connections = "200", session_preload_libraries = "auto_explain" }
"""


def _run(campaign: Campaign) -> Iterator[Figure]:
    planned = campaign.part(_SHARE)
    if not planned:
        return
    attack = Attack(campaign, "given", "kill -9 of the lab in studies that change settings of a given server", planned)
    changed = refused = 0
    chance = campaign.chance
    with served(campaign, {"workload": "select-only", "scale": 1}, _SERVER) as target:
        _execute(target, *_MADE)
        given = _Given(attack, target)
        length_s = given.whole_study()
        for number in range(planned):
            given.draw_settings()
            if number % _WHOLE_EACH == 0:
                refused_s = given.refused_study()
                refused += 1
            else:
                given.killed_study(chance.uniform(0, refused_s), _RESTART)
            changed += given.killed_study(chance.uniform(0, length_s))
            attack.done()
    yield attack.figure(
        f"the file was changed at {changed} of {planned} kills; its lines are lists, values that the role's own hide, "
        "settings that take a restart, and one that is not loaded; beside each moment a study with an arm that takes a "
        f"restart: {planned - refused} labs were killed, {refused} refused it"
    )


class _Given:
    """The given server under attack."""

    def __init__(self, attack: Attack, target: Target) -> None:
        self._attack = attack
        self._target = target
        self._folder = attack.campaign.scratch / "given"
        with target.connect_as_user() as session:
            row = session.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._file = Path(row[0]) / "postgresql.auto.conf"
        dsn = f"host={target.host} port={target.port} dbname={target.dbname} user={_ROLE}"
        self._study = _STUDY.format(dsn=dsn)
        self._before = b""

    def draw_settings(self) -> None:
        """Writes a random choice of the lines into postgresql.auto.conf, in a random order. The server does not reload
        its configuration after the last one."""
        chance = self._attack.campaign.chance
        lines = chance.sample(_FORMER, chance.randint(1, len(_FORMER)))
        *loaded, last = [f"ALTER SYSTEM SET {line}" for line in lines]
        _execute(self._target, "ALTER SYSTEM RESET ALL", *loaded, "SELECT pg_reload_conf()", last)
        self._before = self._file.read_bytes()

    def whole_study(self) -> float:
        """Runs a study that nobody kills and returns the seconds that it took. It loads the tables, unless they
        exist.
        """
        for _ in range(2):
            self.draw_settings()
            began = time.monotonic()
            status, output = self._lab(self._study, None)
            length_s = time.monotonic() - began
            if status != 0:
                self._attack.defect(f"a study that nobody killed ended with {status}: {output}")
            self._check("a whole study")
        return length_s

    def refused_study(self) -> float:
        """Runs a study that is refused because of one arm; returns the seconds that this took."""
        began = time.monotonic()
        status, output = self._lab(self._study + _RESTART, None)
        if status == 0 or "takes effect at a restart only" not in output:
            self._attack.defect(f"a setting that takes a restart was not refused: {status}, {output}")
        self._check("a study that was refused")
        return time.monotonic() - began

    def killed_study(self, moment_s: float, arms: str = "") -> bool:
        """Kills the lab of the study with these additional arms, and cleans up; returns True if the file had been
        changed.
        """
        self._lab(self._study + arms, moment_s)
        changed = self._file.read_bytes() != self._before
        after = f"a kill after {moment_s:.2f} s"
        clean_up(self._attack, after)
        self._check(after)
        return changed

    def _lab(self, study: str, killed_after_s: float | None) -> tuple[int, str]:
        forget(self._folder)
        self._folder.mkdir()
        with start_lab(self._folder, study) as lab:
            try:
                _, output = lab.communicate(timeout=PATIENCE_S if killed_after_s is None else killed_after_s)
            except subprocess.TimeoutExpired:
                lab.kill()
                _, output = lab.communicate()
        if "Traceback" in output:
            self._attack.defect(f"a lab ended with a traceback: {output}")
        return lab.returncode, (output.strip().splitlines() or [""])[-1]

    def _check(self, after: str) -> None:
        """Checks that the file is as it was, and that new sessions start."""
        if (now := self._file.read_bytes()) != self._before:
            self._attack.defect(f"postgresql.auto.conf was {self._before!r} and is {now!r} after {after}")
        for user in (self._target.user, _ROLE):
            try:
                Target(self._target.host, self._target.port, user, self._target.dbname).connect_as_user().close()
            except psycopg.OperationalError as error:
                self._attack.defect(f"no session of {user} starts after {after}: {error}")
        for left in leftovers(self._attack.campaign.state):
            self._attack.defect(f"left behind after {after}: {left.what}")


def _execute(target: Target, *statements: str) -> None:
    with target.connect_as_user() as session:
        for statement in statements:
            session.execute(statement.encode())


KIND = Kind("given", lambda campaign: campaign.part(_SHARE) * _MOMENT_S, _run)
