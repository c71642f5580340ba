"""Keeps the total size of templates, builds and copies of installations in the state directory below a limit.

pgtrial can make all of them again. Those that were used least recently are removed first; those that a running lab uses
are never removed. Records, run directories, sources of builds and downloaded wheels do not count, since they are small
or not made by a study.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pgtrial.files.locks import is_held, name_lock, open_lock, take
from pgtrial.model.errors import ArmError
from pgtrial.model.units import format_size, plural
from pgtrial.servers.builds.kept import Builds
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.trees import bytes_below
from pgtrial.store.state import is_own, state_limit


@dataclass(frozen=True)
class _Kept:
    """A template, a build or a copy of an installation that is kept in the state directory: its size, the time of its
    last use, and the function that removes it."""

    what: str
    bytes_on_disk: int
    last_used: datetime
    in_use: bool
    remove: Callable[[], None]
    """The function that removes this template, build or copy. Raises ArmError if a lab has begun to use it, or if it
    cannot be removed."""


def templates_of(state: Path, study: str = "") -> Templates:
    """Returns the templates in a state directory, for the use of a study whose directory is `study`."""

    def make_room(templates: Templates) -> str | None:
        return trim(templates, builds_of(state), state / "installs", state_limit(state))

    return Templates(state / "templates", study, make_room)


def builds_of(state: Path) -> Builds:
    """Returns the builds in a state directory."""
    return Builds(state / "builds")


def trim(templates: Templates, builds: Builds, installs: Path, limit: int) -> str | None:
    """Removes templates, builds and copies of installations that were used least recently, until the rest takes at most
    `limit` bytes.

    Returns a sentence on what was removed; None if nothing was removed.
    """
    kept = sorted(_all(templates, builds, installs), key=lambda one: one.last_used)
    excess = sum(one.bytes_on_disk for one in kept) - limit
    removed: list[_Kept] = []
    for one in kept:
        if excess > sum(gone.bytes_on_disk for gone in removed) and not one.in_use:
            with suppress(ArmError):
                one.remove()
                removed.append(one)
    if not removed:
        return None
    numbers = Counter(gone.what for gone in removed)
    named = " and ".join(plural(number, what) for what, number in numbers.items())
    return (
        f"removed {named} of {format_size(sum(gone.bytes_on_disk for gone in removed))}, used least recently: "
        f"templates, builds and installations for later studies may take {format_size(limit)} (PGTRIAL_STATE_LIMIT)"
    )


def _all(templates: Templates, builds: Builds, installs: Path) -> Iterator[_Kept]:
    for template in templates.kept():
        remove = partial(templates.remove, template.name)
        yield _Kept("template", template.bytes_on_disk, template.last_used, template.in_use, remove)
    for build in builds.kept():
        remove = partial(builds.remove, build.name)
        yield _Kept("build", build.bytes_on_disk, build.last_used, build.in_use, remove)
    for home in installs.glob("pg*"):
        lock = use_of_install(home)
        if home.is_dir() and is_own(home) and lock.exists():
            used = datetime.fromtimestamp(lock.stat().st_mtime, UTC)
            remove = partial(_remove_install, home)
            yield _Kept("installation", bytes_below(home), used, is_held(lock), remove)


def use_of_install(home: Path) -> Path:
    """Returns the lock file of a copy of an installation. Each lab that uses the copy holds a shared lock on it.

    The file stays when the copy is removed, so that all labs always lock the same file.
    """
    return name_lock(home)


def _remove_install(home: Path) -> None:
    try:
        with open_lock(use_of_install(home)) as lock:
            if not take(lock):
                raise ArmError(f"{home} is in use by a running pgtrial")
            shutil.rmtree(home)
    except OSError as error:
        raise ArmError(f"{home} cannot be removed ({error.strerror})") from None
