"""Checks settings with an installed server before it is started: whether it knows their names, accepts their values,
and takes the values of two arms for equal.

The command `postgres -C NAME -c NAME=VALUE` reads a setting in the same way as the start of a server does, and prints
its value.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import MadeHere, Server
from pgtrial.model.study.sources import is_source
from pgtrial.servers.installations import find_servers, resolve
from pgtrial.store.temporary import temporary_folder

_FATAL = re.compile(r"FATAL: +(.*)")
_TIMEOUT_S = 20.0
_UNKNOWN = "unrecognized configuration parameter"


def check_configured(design: Design) -> None:
    """Raises StudyError for settings with which a server of this machine could not start, and if the server that an arm
    names is not installed."""
    for arm, server in design.servers.items():
        if isinstance(server, MadeHere) and not is_source(server.postgres):  # a source is not built yet
            found = resolve(server.postgres)
            for name, wanted in server.settings.items():
                words = _asked(found.bin, name, wanted)[1]
                if words is not None:
                    cure = _nearest(found.bin, name) if _UNKNOWN in words else _cure_of_value(wanted)
                    what = "factors" if design.factors else f"arms.{arm}"
                    raise StudyError(f"{what}: PostgreSQL {found.version} rejects {name}: {words}; {cure}")


def _cure_of_value(wanted: str) -> str:
    return "separate settings by commas" if re.search(r"[;\s]\s*\w+\s*=", wanted) else "correct the value"


def unknown_setting(name: str, known: list[str]) -> str:
    """Returns the advice for a user who has set a setting that the server does not know: the most similar name among
    `known`, or to correct the name."""
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "correct its name"


def equal_arms(design: Design) -> Iterator[str]:
    """Yields a warning for each pair of arms that are identical, or whose settings have the same values."""
    noise = "the study compares equal set-ups (A/A), so any difference that it shows is noise"
    for first, second in combinations(design.servers, 2):
        if (how := why_equal(design, first, second)) is not None:
            yield f"the arms {first} and {second} are {how}: {noise}"


def why_equal(design: Design, first: str, second: str) -> str | None:
    """Returns, in words, in which way two arms are equal: `identical`, or `equal in effect` with the values of the
    settings. Returns None if the two arms differ or may differ."""
    one, other = design.servers[first], design.servers[second]
    if one == other:
        return "identical"
    if one != other.model_copy(update={"settings": one.settings}):
        return None
    values = _equal_values(one, other.settings)
    return f"equal in effect ({values})" if values is not None else None


def _equal_values(server: Server, others: dict[str, str]) -> str | None:
    """Compares the settings of two arms, of which those of the second are in `others`. Returns a text with the settings
    that the arms write differently although the value is the same. Returns None if a setting has, or may have,
    different values in the two arms.

    For a server that does not run on this machine, the values are read by an installed server of this machine, if there
    is one. Its defaults are not known, so that a setting which only one of the arms has may differ.
    """
    here = isinstance(server, MadeHere)
    try:
        programs = resolve(server.postgres).bin if isinstance(server, MadeHere) else find_servers()[0].bin
    except (StudyError, IndexError):
        return None
    texts = []
    for name in dict.fromkeys((*server.settings, *others)):
        one, other = (settings.get(name) for settings in (server.settings, others))
        if one == other:
            continue
        if not here and None in (one, other):
            return None
        value, same = _asked(programs, name, one)[0], _asked(programs, name, other)[0]
        if value is None or value != same:
            return None
        texts.append(f"{name} = {' and '.join(text or 'the default' for text in (one, other))}")
    return ", ".join(texts)


@lru_cache
def _asked(programs: Path, name: str, wanted: str | None) -> tuple[str | None, str | None]:
    """Asks the postgres program in a bin directory to read a setting with the value `wanted`, or with its default if
    that is None. Returns the value that the server uses, or None and the server's message if it rejects the value.

    Both results are None for a setting of an extension, and if the program gives no usable answer.
    """
    if "." in name:
        return None, None
    with temporary_folder() as folder:
        (folder / "postgresql.conf").touch()
        # the first argument has to be -C, or the program refuses to run as root
        command = [str(programs / "postgres"), "-C", name, "-D", str(folder)]
        command += ["-c", f"{name}={wanted}"] if wanted is not None else []
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env={"LC_ALL": "C"}
            )
        except (OSError, subprocess.TimeoutExpired):
            return None, None
    if done.returncode == 0:
        return done.stdout.strip(), None
    rejected = _FATAL.search(done.stderr)
    return None, rejected[1] if rejected is not None and "parameter" in rejected[1] else None


def _nearest(programs: Path, name: str) -> str:
    done = subprocess.run(
        [programs / "postgres", "--describe-config"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
        env={"LC_ALL": "C"},
    )
    return unknown_setting(name, [line.partition("\t")[0] for line in done.stdout.splitlines()])
