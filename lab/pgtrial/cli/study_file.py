"""Reading a study for a command: with the profile that was asked for, and the servers that this machine has."""

from __future__ import annotations

import sys

from pgtrial.arm.servers import find_servers
from pgtrial.study.builds import Build
from pgtrial.study.load import profiles_of, read_study
from pgtrial.study.spec import StudySpec

PROFILE_HELP = "The profile of a study that has several; default: its first."


def read(study: str, profile: str | None) -> StudySpec:
    """The spec of a study file or a bundled study (`@name`); says which profile it is where none was asked for."""
    names = profiles_of(study)
    if profile is None and names:
        profile = names[0]
        others = " or ".join(f"--profile {name}" for name in names[1:]) or "it has no other"
        print(f"pgtrial: profile {profile} of {study}; {others}", file=sys.stderr)
    return read_study(study, profile, builds_here)


def builds_here() -> list[Build]:
    """The server builds that `postgres = "every"` stands for."""
    return [Build(server.version, str(server.bin), server.origin.split()[0]) for server in find_servers()]
