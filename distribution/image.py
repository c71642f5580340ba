"""`python -m distribution.image`: the container image that `make image` makes, in build/image.

The Containerfile is built by buildah on a base of Debian's packages. The result is an OCI layout whose index has an
image for each platform.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from distribution.buildah import Buildah, buildah_in
from distribution.debian_base import make_base
from distribution.engine import ROOT
from distribution.running import DistributionError, run
from distribution.targets import TARGETS
from pgtrial import __version__

_OF_DEBIAN = {f"linux/{target.debian}": target for target in TARGETS if target.debian}
"""The platforms by their OCI names; OCI and Debian have the same names of these processors."""

_SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration that an installation reads."""

_CONNECTION = ["cert", "default-timeout", "extra-index-url", "index-url", "proxy", "retries", "timeout", "trusted-host"]
"""The keys of pip's configuration that say where packages come from and how they are reached."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the image as an OCI layout. 1 if it could not be made."""
    parser = argparse.ArgumentParser(prog="python -m distribution.image", description=main.__doc__)
    parser.add_argument(
        "--platform",
        action="append",
        choices=list(_OF_DEBIAN),
        help="repeatable (default: this machine's); others need qemu-user-static, which emulates their processors",
    )
    parser.add_argument("--wheels", type=Path, help="a directory with a wheel for each platform (default: make them)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "image", help="(default: build/image)")
    options = parser.parse_args(arguments)
    output = options.output.absolute()
    try:
        check_tools(options.platform or [])
        with tempfile.TemporaryDirectory(prefix="pgtrial-image-") as directory:
            work = Path(directory)
            wheels = options.wheels or _wheels(options.platform, work / "dist")
            make_image(options.platform or [], wheels, output, work)
    except DistributionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{output} (buildah pull oci:{output}:{__version__})")
    return 0


def check_tools(platforms: Sequence[str]) -> None:
    """Raises DistributionError where something that makes images for these platforms is missing."""
    if os.geteuid() != 0:
        raise DistributionError("an image has files of several accounts, and only root can make them: sudo make image")
    absent = [tool for tool in ("buildah", "mmdebstrap") if shutil.which(tool) is None]
    if absent:
        raise DistributionError(f"an image needs {' and '.join(absent)}: apt-get install {' '.join(absent)}")
    for name in platforms:
        target = _OF_DEBIAN[name]
        if target.processor != platform.machine() and not _runs_here(str(target.debian)):
            raise DistributionError(
                f"this machine does not run programs of {name}, which an image for it needs: "
                "apt-get install arch-test qemu-user-static"
            )


def _runs_here(architecture: str) -> bool:
    """True if programs of a processor, by Debian's name, run on this machine."""
    try:
        return subprocess.run(["arch-test", architecture], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def make_image(platforms: Sequence[str], wheels: Path, output: Path, work: Path) -> None:
    """Build an image for each platform (this machine's if there are none), and write all to `output`, an OCI layout.

    `wheels` has a wheel for each of them. Raises DistributionError.
    """
    context = _context(wheels, work / "context")
    with buildah_in(work / "storage") as buildah:
        secrets = _pip_configuration(work / "pip")
        machine = json.loads(buildah("info"))["host"]
        for name in platforms or [f"{machine['os']}/{machine['arch']}"]:
            base = _base(buildah, name, work / name)
            options = [f"--platform={name}", f"--build-arg=BASE={base}", "--pull-never", "--network=host", *secrets]
            buildah("build", *options, "--manifest=pgtrial", f"--file={context / 'Containerfile'}", context)
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        buildah("manifest", "push", "--quiet", "--all", "pgtrial", f"oci:{output}:{__version__}")


def _wheels(platforms: Sequence[str] | None, output: Path) -> Path:
    """Makes wheels here and returns their directory."""
    targets = [_OF_DEBIAN[name].name for name in platforms or ()]
    which = [f"--only={name}" for name in targets] or ["--here"]
    run([sys.executable, "-m", "distribution", "--output", output, *which], cwd=ROOT)
    return output


def _context(wheels: Path, context: Path) -> Path:
    """Copies the files that the Containerfile takes from a clone, and nothing else, into a context. Raises
    DistributionError.
    """
    place = context / "build" / "dist"
    place.mkdir(parents=True)
    found = list(wheels.glob("pgtrial-*.whl"))
    if not found:
        raise DistributionError(f"{wheels} has no wheel of pgtrial; `make dist-here` makes one in build/dist")
    for wheel in found:
        shutil.copy(wheel, place)
    for name in ("Containerfile", "constraints.txt"):
        shutil.copy(ROOT / name, context)
    return context


def _base(buildah: Buildah, platform_name: str, work: Path) -> str:
    """Returns the name of the image that the Containerfile begins with."""
    system, architecture = platform_name.split("/")
    archive = make_base(architecture, work)
    container = buildah("from", "scratch")
    buildah("config", "--os", system, "--arch", architecture, container)
    buildah("add", "--quiet", container, archive, "/")
    archive.unlink()
    name = f"localhost/base-{architecture}"
    buildah("commit", "--quiet", "--rm", container, name)
    return name


def _pip_configuration(directory: Path) -> list[str]:
    """Options of a build that lend it this machine's configuration of pip, of files and of environment variables."""
    directory.mkdir(mode=0o700)
    settings = {}
    # pip lists environment variables last, and they win
    for line in run([sys.executable, "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in _SECTIONS and key in _CONNECTION:
            settings[key] = str(ast.literal_eval(value))
    secrets = []
    if certificates := settings.pop("cert", None):
        secrets += ["--secret", f"id=certificates,src={certificates}"]
        settings["cert"] = "/run/secrets/certificates"
    lines = [" ".join([key, "=", *value.split()]) for key, value in settings.items()]
    file = directory / "pip.conf"
    file.write_text("\n".join(["[global]", *lines, ""]))
    return [*secrets, "--secret", f"id=pip,src={file}"]


if __name__ == "__main__":
    sys.exit(main())
