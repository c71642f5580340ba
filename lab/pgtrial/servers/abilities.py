"""Finds out which features the build of a server has (extensions, ICU, lz4). Reads the files of the installation and
does not start the server.

A study checks the needs of its data against these features before it loads anything, so that the user learns of
everything that is missing at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.restored_dump import RestoredDump
from pgtrial.loads.data.restored_statements import DumpNeeds
from pgtrial.machines.machine import LOCAL, HostTrouble, Machine
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import MadeHere
from pgtrial.model.study.sources import is_source
from pgtrial.model.units import and_more
from pgtrial.servers.installations import ServerBinaries, find_servers, resolve
from pgtrial.servers.run_directory import servers_account

_LOOK = """
shown=$("$1/initdb" --show --pgdata /nonexistent 2>&1 | sed -n 's/^POSTGRES_BKI=//p')
for folder in "${shown%/*}/extension" "$1/../share/extension" "$1/../share/postgresql/extension"; do
    ls "$folder" 2>/dev/null | sed -n 's/^\\([^/]*\\)[.]control$/extension \\1/p'
done
grep -q -a 'ICU is not supported in this build' "$1/postgres" || echo icu
grep -q -a 'server to be built with lz4 support' "$1/postgres" || echo lz4
"""
"""The script that prints the features of a build. It searches the postgres program for the error messages about missing
libraries, since the program contains such a message only if it was built without that library."""

_MOST_NAMED = 4


@dataclass(frozen=True)
class Abilities:
    """The features of a server's build that data may need."""

    extensions: frozenset[str]
    """The extensions that the server can create; empty if they are not known."""
    icu: bool
    lz4: bool

    def lacks(self, needs: DumpNeeds) -> list[str]:
        """Returns the features that the data needs and the build does not have, as phrases for messages."""
        lacking = []
        if needs.icu_collations and not self.icu:
            lacking.append(f"ICU (for {_plural('collation', needs.icu_collations)})")
        if needs.lz4 and not self.lz4:
            lacking.append("lz4 (for the compression of columns)")
        missing = [name for name in needs.extensions if name not in self.extensions] if self.extensions else []
        return [*lacking, f"{_plural('the extension', missing)}"] if missing else lacking


def _plural(noun: str, names: Iterable[str]) -> str:
    shown = list(names)
    some = ", ".join(and_more(shown[:_MOST_NAMED], len(shown)))
    return f"{noun}{'' if len(shown) == 1 else 's'} {some}"


@lru_cache
def abilities_of(machine: Machine, account: str | None, programs: Path) -> Abilities:
    """Returns the features of the build whose programs are in this bin directory. Raises HostTrouble."""
    lines = machine.looked(["sh", "-c", _LOOK, "sh", programs], user=account).stdout.splitlines()
    names = frozenset(line.removeprefix("extension ") for line in lines if line.startswith("extension "))
    return Abilities(names, "icu" in lines, "lz4" in lines)


def check_abilities(design: Design, data: Iterable[Data]) -> None:
    """Raises StudyError, with one sentence for all arms, if servers of this machine lack features that the data needs.

    Arms that are built from source are checked after they were built, and arms on other machines when they load the
    data.
    """
    dumps = [one for one in data if isinstance(one, RestoredDump) and all(path.exists() for path in one.paths)]
    if not dumps:
        return
    arms = dict(_servers(design))
    lacking: dict[str, list[str]] = {}
    cures: dict[str, None] = {}
    account = servers_account(LOCAL)
    for arm, server in arms.items():
        for dump in dumps:
            needs = dump.needs(server.bin)
            if lacks := _lacking(server, account, needs):
                where = f"arms.{arm}: PostgreSQL {server.version} ({server.bin}) lacks {', '.join(lacks)}"
                lacking.setdefault(where, lacks)
                cures[_cure(server, account, needs)] = None
    if lacking:
        names = " and ".join(dict.fromkeys(dump.name for dump in dumps))
        in_words, cure = "; ".join(lacking), " and ".join(cures)
        raise StudyError(f"{marks.key('load', 'data')}: {names} needs more than the servers have: {in_words}; {cure}")


def _servers(design: Design) -> Iterator[tuple[str, ServerBinaries]]:
    for arm, server in design.servers.items():
        # _LOOK does not find extensions in directories that extension_control_path names
        elsewhere = isinstance(server, MadeHere) and "extension_control_path" in server.settings
        if isinstance(server, MadeHere) and not elsewhere and not is_source(server.postgres):
            yield arm, resolve(server.postgres)


def _lacking(server: ServerBinaries, account: str | None, needs: DumpNeeds) -> list[str]:
    try:
        return abilities_of(LOCAL, account, server.bin).lacks(needs)
    except HostTrouble:
        return []


def _cure(server: ServerBinaries, account: str | None, needs: DumpNeeds) -> str:
    """Returns what a user can do about an arm that lacks a feature: name another build of its version on this machine,
    or install the package that has the feature."""
    others = [other for other in find_servers() if other.major == server.major and other.bin != server.bin]
    for other in others:
        if not _lacking(other, account, needs):
            return f'write postgres = "{other.bin}"'
    return (
        f"install a build with these features, such as the package postgresql-{server.major} of your system or of "
        "apt.postgresql.org, "
        f'and name it, e.g. postgres = "/usr/lib/postgresql/{server.major}/bin"'
    )
