"""Data of the user's own on a server: dumps of pg_dump and files of SQL, restored once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.data import Data
from pgtrial.loads.data.plain_files import run_file
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.process import finished
from pgtrial.loads.target import Session, Target
from pgtrial.machines.machine import HostError
from pgtrial.machines.trust import check_program
from pgtrial.model.errors import ArmError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.dumps import DumpKind, kind_of_dump
from pgtrial.store.own_data import data_places, is_to_be_dumped, size_of_dumped
from pgtrial.store.replay_files import dump_at

_GROWTH: dict[DumpKind, float] = {"plain": 1.5, "archive": 6.0}
"""About how many times the bytes of a dump its tables and indexes take; archives are compressed."""


@dataclass(frozen=True)
class RestoredDump(Data):
    """All that a dump has."""

    marks: ClassVar[tuple[str, ...]] = ()

    sha256: str
    size: int = field(compare=False)
    paths: tuple[Path, ...] = field(compare=False)
    name: str = field(compare=False)
    """For people: `the dump shop.dump`."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        replay, files = spec.load.replay, spec.load.data_files
        if point.data is not None and files is not None:
            size = size_of_dumped(spec) or 0 if is_to_be_dumped(spec) else files.size
            return cls(files.sha256, size, tuple(data_places(spec)), point.data)
        if point.replay is None or replay.data is None or replay.files is None:
            return None
        path = dump_at(replay.data)
        return cls(replay.files.data_sha256, replay.files.data_bytes, (path,), f"the dump {path.name}")

    def relations(self, connection: Session) -> str:
        others = "SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_' OR nspname = 'information_schema'"
        return f"c.relnamespace NOT IN ({others})"

    @property
    def label(self) -> str:
        return self.name

    @property
    def digest(self) -> str:
        return f"dump {self.sha256}"

    @property
    def relations_made(self) -> str:
        return f"what {self.name} creates"

    @property
    def short_name(self) -> str:
        return f"dump-{self.sha256[:8]}"

    @property
    def mb(self) -> int:
        factor = max((_GROWTH[kind_of_dump(path)] for path in self.paths if path.exists()), default=1.0)
        return max(1, round(self.size * factor / 1e6))

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Restore it, freeze and analyse all tables. Raises ArmError with the words of PostgreSQL or of pg_restore."""
        for path in self.paths:
            if not path.exists():
                raise ArmError(f"{self.name} is no longer kept as this study took it; run a study of its own")
            if kind_of_dump(path) == "archive":
                _restore(path, server)
            else:
                run_file(path, server)
        with server.connect() as connection:
            # what a session that ends later reports would be added to what VACUUM counts
            wait_for_clients_to_leave(connection, 0)
            # hint bits and frozen rows are written now, not by the first reads of a trial
            connection.execute("VACUUM (FREEZE, ANALYZE)")

    def find(self, connection: Session) -> bool:
        """Whether it is there: no server keeps it but as a template."""
        return False


def _restore(path: Path, server: Target) -> None:
    """Run the pg_restore of the server's own installation."""
    if server.programs is None:
        raise ArmError(
            f"{path} is restored by pg_restore, for servers on this machine; for one on another host give a plain dump "
            "(pg_dump --format=plain)"
        )
    program = server.programs / "pg_restore"
    if not program.is_file():
        raise ArmError(
            f"{server.programs} has no pg_restore to restore {path}; name an installation that has it, or give a plain "
            "dump (pg_dump --format=plain)"
        )
    try:
        check_program(program)
    except HostError as error:
        raise ArmError(
            f"root does not run {program} to restore {path}: {error}; name an installation of root's, or give a plain "
            "dump (pg_dump --format=plain)"
        ) from None
    # the server has no other role than the lab's
    options = ["--no-owner", "--no-privileges", "--exit-on-error", f"--dbname={server.dbname}"]
    done = finished([program, *options, path], server.environment())
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        why = errors[0].removeprefix("pg_restore: error: ") if errors else f"it ended with status {done.returncode}"
        newer = "unsupported version" in why
        cure = f"; it was made by a newer pg_dump: make it by the one of {server.programs}" if newer else ""
        raise ArmError(f"pg_restore cannot restore {path}: {why}{cure}")
