"""The base of the container image: Debian's packages, from the sources that apt has on this machine."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from distribution.running import DistributionError, run

_PACKAGES = "ca-certificates,python3-venv"
"""The Debian packages that the Containerfile would install."""

_WITHOUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_COPYRIGHT = "/usr/share/doc/*/copyright"

_CLEANED = (
    'cd "$1"/etc && rm -f apt/apt.conf.d/99mmdebstrap dpkg/dpkg.cfg.d/99mmdebstrap hostname resolv.conf'
    ' && find apt -name "*.list" -exec sed -i "s#://[^/@ ]*@#://#" {} +'
)
"""The commands that remove proxies, names and passwords of the building machine from the image."""

_INDEXES = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
_CONNECTION = re.compile(r"Acquire::https?::")


def make_base(architecture: str, work: Path) -> Path:
    """Makes a tar archive of a small system with Python, for Debian's name of a processor. Raises DistributionError."""
    work.mkdir(parents=True)
    work.chmod(0o700)
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    archive, sources, connection = work / "base.tar", work / "sources.list", work / "apt.conf"
    sources.write_text("".join(f"{line}\n" for line in sources_of(release)))
    connection.write_text("".join(f"{line}\n" for line in _connection()))
    run(
        [
            *(
                "mmdebstrap",
                "--quiet",
                "--variant=minbase",
                f"--architectures={architecture}",
                f"--include={_PACKAGES}",
            ),
            *(f"--dpkgopt=path-exclude={path}" for path in _WITHOUT),
            *(f"--dpkgopt=path-include={_COPYRIGHT}", f"--aptopt={connection}", f"--customize-hook={_CLEANED}"),
            *(release, archive, sources),
        ]
    )
    return archive


def sources_of(release: str) -> list[str]:
    """This machine's sources of its own release, as lines of a sources.list. Raises DistributionError."""
    wanted = {release, f"{release}-updates", f"{release}-security"}
    targets = _index_targets()
    if not targets:
        # apt lists what it has fetched once; a small system has removed that
        run(["apt-get", "--quiet", "update"])
        targets = _index_targets()
    lines = [f"deb {address} {suite} main" for address, suite, part in targets if suite in wanted and part == "main"]
    if not lines:
        raise DistributionError(
            f"apt has no source of {release or 'this system'} main, which the base of the image is made of; "
            "look at `apt-get indextargets`"
        )
    return lines


def _index_targets() -> list[tuple[str, str, str]]:
    """Returns the address, suite and component of each list of packages that apt gets from a network."""
    listed = run(["apt-get", "indextargets", "--format", _INDEXES, "Created-By: Packages"]).splitlines()
    rows = (line.rsplit(" ", 2) for line in listed if not line.startswith("cdrom:"))
    return list(dict.fromkeys((address, suite, component) for address, suite, component in rows))


def _connection() -> list[str]:
    """Returns apt's settings for its connections: proxies and certificates."""
    settings = run(["apt-config", "dump", "--no-empty", "--format", '%f "%v";%n']).splitlines()
    return [line for line in settings if _CONNECTION.match(line)]
