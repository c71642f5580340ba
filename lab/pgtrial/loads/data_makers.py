"""Data that the engine makes on a server: the order for it, and who carries it out, one engine here or a fleet's."""

from __future__ import annotations

import collections
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from psycopg import sql

from pgtrial.loads.process import TAIL_LINES, begun, last_words, lines_of
from pgtrial.loads.target import KEEPALIVES, Session
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import ArmError

_UNANSWERED_MS = 300_000
"""So long may rows be under way: a server may well stop reading for a while when its disk is slow."""

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class DataOrder:
    """A command of the engine that makes data, which ends when the data is there."""

    what: str
    """For messages: `loading the tables at scale 10`."""
    command: Sequence[str]
    """The words after the engine's path, the front end first. Engines that share the order get `--shard` after that."""
    env: Mapping[str, str] = field(repr=False)
    """PG* values of the server, with its password, and what else the engine has to find in its environment."""
    most_parts: int = 1
    """How many engines can share it, at most."""
    folder: Path | None = None
    """Where the files are that the command and the environment speak of."""


class DataMaker:
    """Who makes data: one engine on this machine, unless a fleet does."""

    @property
    def engines(self) -> int:
        """How many engines share what can be shared."""
        return 1

    def make(self, order: DataOrder, on_line: OnLine | None = None) -> None:
        """Carry an order out, each line on its progress going to `on_line`. Raises ArmError."""
        tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        with ExitStack() as stack:
            with held_off():
                process = stack.enter_context(begun(order.command, order.env, stderr=subprocess.STDOUT))
                stack.callback(process.kill)
            for line in lines_of(process.stdout):
                tail.append(line)
                if on_line is not None and is_progress(line):
                    on_line(line)
            process.wait()
        if process.returncode != 0:
            raise ArmError(f"{order.what} failed: {last_words(tail, process.returncode)}")


ENGINE_HERE = DataMaker()
"""Who makes data where nobody else is named."""


def is_progress(line: str) -> bool:
    """Whether a line of an engine reports progress, unlike the server's notice that a table does not exist."""
    return not line.startswith("NOTICE:")


def noticing(env: Mapping[str, str]) -> Mapping[str, str]:
    """The same server, with sessions that end some minutes after it has fallen silent: an order has no deadline.

    libpq has no variables for that, but takes a database's name that is a connection string for one.
    """
    host, database = env.get("PGHOST", "/"), env.get("PGDATABASE")
    if database is None or host.startswith(("/", "@")):
        return env
    parameters = {**KEEPALIVES, "tcp_user_timeout": _UNANSWERED_MS}
    notices_silence = " ".join(f"{name}={value}" for name, value in parameters.items())
    quoted = database.replace("\\", "\\\\").replace("'", "\\'")
    return {**env, "PGDATABASE": f"dbname='{quoted}' {notices_silence}"}


def vacuum(connection: Session, tables: Iterable[str], *, freeze: bool = False) -> None:
    """Vacuum and analyse the tables, one in each statement: PostgreSQL 10 takes no list."""
    options = sql.SQL("FREEZE, ANALYZE" if freeze else "ANALYZE")
    for table in tables:
        connection.execute(sql.SQL("VACUUM ({}) {}").format(options, sql.Identifier(table)))
