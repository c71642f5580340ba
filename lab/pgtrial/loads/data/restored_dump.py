"""Restores the user's own data on a server: dumps of pg_dump and files of SQL."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Self

import psycopg

from pgtrial.files.reading import open_file
from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.data import Data, flush_commits
from pgtrial.loads.data.dump_text import DumpText
from pgtrial.loads.data.made_ready import make_ready
from pgtrial.loads.data.plain_files import PlainFile
from pgtrial.loads.data.restored_statements import DumpNeeds, Treated, treated
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.process import environment
from pgtrial.loads.target import Session, Target
from pgtrial.machines.machine import HostError
from pgtrial.machines.trust import check_program
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.dumps import DumpKind, kind_of_dump
from pgtrial.store.own_data import data_paths, is_to_be_dumped, size_of_dumped
from pgtrial.store.replay_files import dump_at

_GROWTH: dict[DumpKind, float] = {"plain": 1.5, "archive": 6.0}
"""The approximate number of bytes of tables and indexes that one byte of a dump restores to. The number is larger for
archives, since they are compressed."""


_MADE_BY = re.compile(rb"-- Dumped by pg_dump version (\S+)")


@dataclass(frozen=True)
class RestoredDump(Data):
    """The user's own data, which pgtrial restores from one or several dumps."""

    marks: ClassVar[tuple[str, ...]] = ()

    sha256: str
    size: int = field(compare=False)
    paths: tuple[Path, ...] = field(compare=False)
    name: str = field(compare=False)
    """The name of the data in messages, such as `the dump shop.dump`."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        replay, files = spec.load.replay, spec.load.data_files
        if point.data is not None and files is not None:
            size = size_of_dumped(spec) or 0 if is_to_be_dumped(spec) else files.size
            return cls(files.sha256, size, tuple(data_paths(spec)), point.data)
        if point.replay is None or replay.data is None or replay.files is None:
            return None
        path = dump_at(replay.data)
        return cls(replay.files.data_sha256, replay.files.data_bytes, (path,), f"the dump {path.name}")

    @property
    def has_users_rows(self) -> bool:
        return True

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

    def needs(self, programs: Path | None) -> DumpNeeds:
        """Returns what the dump needs on a server: features of the server, and objects that a superuser creates before
        the dump is restored.

        `programs` is the directory with the pg_restore that reads archives. Raises ArmError for a dump that cannot be
        read.
        """
        return _needs(self.sha256, tuple(self._present()), programs)

    def make(
        self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False
    ) -> list[str]:
        """Restores the dump as the role that owns the database, and runs VACUUM (FREEZE, ANALYZE) on all tables.

        Returns sentences for the user about roles that were created and statements that were left out. Raises ArmError
        with the message of PostgreSQL or pg_restore.
        """
        needs = self.needs(server.programs)
        with server.connect() as session:
            roles = make_ready(session, needs, server.owner)
        schemas = [extension.schema for extension in needs.extensions.values() if extension.schema is not None]
        left_out: list[str] = []
        for path in self._present():
            with dump_lines(path, server.programs) as (lines, named), server.connect_as_load() as session:
                text = DumpText(lines, named, partial(treated, schemas=schemas))
                is_archive = kind_of_dump(path) == "archive"
                made_by = None if is_archive else _version_of(path)
                PlainFile(session, text, made_by, has_lines=not is_archive).run()
                left_out += text.left_out
        with server.connect() as connection:
            # a session that ends later would report rows, which PostgreSQL would add to those that VACUUM has counted
            wait_for_clients_to_leave(connection, 0)
            flush_commits(connection)
            # hint bits and frozen rows are written now, and not by the first reads of a trial; functions in an index
            # run with the rights of the table's owner
            try:
                connection.execute("VACUUM (FREEZE, ANALYZE)")
            except psycopg.Error as error:
                raise ArmError(
                    f"{self.name} is restored, but VACUUM (FREEZE, ANALYZE) failed: PostgreSQL says: "
                    f"{one_line(error)}; functions that an index or a check constraint uses must work for every role"
                ) from None
        return [*_notes_on_roles(self.name, roles), *_notes_on_left_out(self.name, left_out)]

    def _present(self) -> Iterator[Path]:
        """Yields the files of the dump. Raises ArmError if a file does not exist any more."""
        for path in self.paths:
            if not path.exists():
                raise ArmError(
                    f"{self.name} has changed or is gone since this study began, so the study cannot continue; run a "
                    "new study"
                )
            yield path

    def find(self, connection: Session) -> bool:
        """Returns false, since pgtrial does not search a server for this data: trials get it as a copy of a template, a
        data directory in which pgtrial has restored the dump once."""
        return False


@lru_cache
def _needs(sha256: str, paths: tuple[Path, ...], programs: Path | None) -> DumpNeeds:
    """Returns what these dumps need before they can be restored. The result is cached by the digest of the dumps, since
    each arm needs the result, and pgtrial has to read the dumps completely to find it."""
    needs = DumpNeeds()

    def look(text: str) -> Treated:
        needs.look_at(text)
        return Treated("")  # the statements are only read here

    for path in paths:
        with dump_lines(path, programs, schema_alone=True) as (lines, named):
            text = DumpText(lines, named, look)
            for part in text.parts():
                for _ in text.rows() if part.has_rows else ():
                    pass
    return needs


def _notes_on_roles(name: str, roles: list[str]) -> list[str]:
    if not roles:
        return []
    what = "role" if len(roles) == 1 else "roles"
    return [f"{name} names the {what} {', '.join(roles)}, which pgtrial created here without login"]


def _notes_on_left_out(name: str, left_out: list[str]) -> list[str]:
    if not left_out:
        return []
    why = "pgtrial restores data as a role without superuser rights"
    verb = "is" if len(left_out) == 1 else "are"
    return [f"of {name}, {', '.join(left_out)} {verb} left out, since {why}"]


@contextmanager
def dump_lines(
    path: Path, programs: Path | None, *, schema_alone: bool = False
) -> Iterator[tuple[Iterator[bytes], str]]:
    """Yields a pair: the lines of SQL of a dump, and the name by which messages call the dump. pg_restore turns
    archives into SQL, without connecting to a server.

    With `schema_alone`, the SQL of an archive has no rows. Raises ArmError if there is no pg_restore for the archive,
    or if it cannot read the archive.
    """
    if kind_of_dump(path) == "plain":
        with open_file(path) as file:
            yield iter(file), str(path)
        return
    program = _pg_restore(path, programs)
    # the owners in the dump are not restored: the role that restores the data owns all its objects
    options = ["--no-owner", "--file=/dev/stdout", *(["--schema-only"] if schema_alone else [])]
    with (
        tempfile.TemporaryFile() as words,
        subprocess.Popen(
            [program, *options, path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            env=environment({}),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield iter(process.stdout), str(path)
        except BaseException:
            process.kill()
            raise
        process.stdout.close()
        status = process.wait()
        words.seek(0)
        spoken = words.read().decode(errors="replace").splitlines()
    if status != 0:
        errors = [line for line in spoken if "error:" in line] or spoken
        why = errors[0].removeprefix("pg_restore: error: ") if errors else f"it ended with status {status}"
        cure = (
            f"; the archive was made by a newer pg_dump: make it with the pg_dump in {programs}"
            if "unsupported version" in why
            else ""
        )
        raise ArmError(f"pg_restore cannot restore {path}: {why}{cure}")


def _pg_restore(path: Path, programs: Path | None) -> Path:
    """Returns the path of pg_restore in the server's own installation. Raises ArmError if there is none that pgtrial
    may run."""
    if programs is None:
        raise ArmError(
            f"{path} is an archive, which pgtrial can restore only on servers of this machine (with pg_restore); for a "
            "server on another host give a plain dump (pg_dump --format=plain)"
        )
    program = programs / "pg_restore"
    if not program.is_file():
        raise ArmError(
            f"there is no pg_restore in {programs} to restore {path}; name a PostgreSQL installation that has it, or "
            "give a plain dump (pg_dump --format=plain)"
        )
    try:
        check_program(program)
    except HostError as error:
        raise ArmError(
            f"root does not run {program} to restore {path}: {error}; name an installation that belongs to root, or "
            "give a plain dump (pg_dump --format=plain)"
        ) from None
    return program


def _version_of(path: Path) -> str | None:
    """Returns the version of the pg_dump that wrote a plain dump; None if the dump does not say so."""
    with open_file(path) as file:
        made_by = _MADE_BY.search(file.read(4096))
    return made_by[1].decode() if made_by is not None else None
