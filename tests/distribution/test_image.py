"""The container image of `make image`: its layout, its programs, and a study with real servers in it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from distribution.buildah import Buildah, buildah_in, mounts_below
from distribution.debian_base import sources_of
from distribution.image import main
from distribution.running import DistributionError
from pgtrial import __version__
from tests.conftest import public_directory, require, require_root
from tests.distribution.conftest import Made
from tests.distribution.manifests import of_kind, pods

pytestmark = pytest.mark.timeout(1800)
"""The limit for a test, seconds: the first test waits for packages and for the build."""

MARK = "only-of-this-machine.invalid"
"""A host that the configuration of pip names while the image is built."""

STUDY = "kubernetes-study.yaml"
SHORTER = {
    r"scale +=.*": "scale = 1",
    r"clients +=.*": 'clients = 2\nwarmup = "1s"\nduration = "1s"',
    r"budget +=.*": "blocks = 2",
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Image:
    layout: Path
    """The directory of the image, an OCI layout."""
    left: list[str]
    """The files that the build has left in the directory for temporary files, and the mounts below it."""

    def blob(self, described: dict[str, Any]) -> Any:
        """Returns the JSON document to which a descriptor of the image points."""
        return json.loads(self.layout.joinpath("blobs", *described["digest"].split(":")).read_bytes())

    @property
    def index(self) -> Any:
        (tagged,) = json.loads((self.layout / "index.json").read_text())["manifests"]
        assert tagged["annotations"]["org.opencontainers.image.ref.name"] == __version__
        return self.blob(tagged)


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Yields a directory on a disk, since an image and its storage take 4 GB."""
    path = public_directory()
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def image(made: Made, directory: Path) -> Image:
    _require_tools()
    layout, temporary = directory / "image", directory / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "distribution.image", "--wheels", made.wheel.parent, "--output", layout]
    done = subprocess.run(
        command,
        env={**os.environ, "TMPDIR": str(temporary), "PIP_TRUSTED_HOST": MARK},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Image(layout, [*(path.name for path in temporary.iterdir()), *mounts_below(directory)])


def _debian() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _require_tools() -> None:
    require_root()
    for tool in ("buildah", "mmdebstrap"):
        require(shutil.which(tool), tool)


@pytest.fixture(scope="module")
def container(image: Image, directory: Path) -> Iterator[Run]:
    """Run a command in one container of the image, as its user."""
    with buildah_in(directory / "storage") as buildah:
        # buildah takes a path for a name of an image too, and those of temporary directories are not always one
        with chdir(image.layout.parent):
            name = buildah("from", f"oci:{image.layout.name}:{__version__}")
        yield _runner(buildah, name)
        assert mounts_below(directory) == []


def _runner(buildah: Buildah, name: str) -> Run:
    def run(*command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        call = buildah.command("run", *options, name, "--", *command)
        return subprocess.run(call, env=buildah.environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.install
def test_the_layout_has_an_image_for_the_platform_of_this_machine(image):
    debian = _debian()
    assert json.loads((image.layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (manifest,) = image.index["manifests"]
    assert manifest["platform"] == {"os": "linux", "architecture": debian}
    configuration = image.blob(image.blob(manifest)["config"])
    assert (configuration["os"], configuration["architecture"]) == ("linux", debian)


@pytest.mark.install
def test_the_image_starts_the_lab_and_not_as_root(image, container):
    (manifest,) = image.index["manifests"]
    settings = image.blob(image.blob(manifest)["config"])["config"]
    assert (settings["Entrypoint"], settings["Cmd"], settings["User"]) == (["pgtrial"], ["demo"], "1000:1000")
    version = container(*settings["Entrypoint"], "--version")
    assert version.stdout == f"pgtrial {__version__}\n", version.stderr
    assert container("sh", "-c", "id -u; pwd; echo $HOME").stdout.split() == ["1000", "/home/pgtrial", "/home/pgtrial"]


@pytest.mark.install
def test_the_engine_has_the_names_of_the_originals(container):
    assert container("pgbench", "--version").stdout.startswith("pgbench (PostgreSQL) ")
    assert container("sysbench", "--version").stdout.startswith("sysbench 1.0")
    assert container("pgtrial-engine", "--version").stdout.startswith(f"pgtrial-engine {__version__} ")


@pytest.mark.install
def test_the_job_of_a_study_runs_in_the_image(container, directory):
    """Like in the pod of the Job, the volume belongs to root and its group may write, and the study is read-only."""
    (study,) = of_kind("ConfigMap", STUDY)["pgtrial-study"]["data"].values()
    (lab,) = pods(STUDY)["pgtrial-study"]["containers"]
    folder = directory / "study"
    folder.mkdir()
    (folder / "study.toml").write_text(_shorter(study))
    volume = ("install", "--directory", "--group=1000", "--mode=2775", "/data")
    assert container(*volume, options=("--user", "0")).returncode == 0
    environment = [f"--env={variable['name']}={variable['value']}" for variable in lab["env"]]
    done = container("pgtrial", *lab["args"], options=(f"--volume={folder}:/study:ro", *environment))
    assert done.returncode == 0, done.stderr
    assert "\nreport: results/study-" in done.stdout
    assert json.loads(container("sh", "-c", "cat results/study-*/verdict.json").stdout)
    trials = container("sh", "-c", "cat results/study-*/trials/*/trial.json").stdout
    assert trials.count('"status": "completed"') == 4
    assert container("ls", "/data/pgtrial/templates").stdout.startswith("pg18")


def _shorter(study: str) -> str:
    for pattern, shorter in SHORTER.items():
        study, count = re.subn(pattern, shorter, study)
        assert count == 1, pattern
    return study


@pytest.mark.install
def test_the_programs_of_all_manifests_are_in_the_image(container):
    programs = {
        container["command"][0] for pod in pods().values() for container in pod["containers"] if "command" in container
    }
    assert programs == {"ray", "sh"}
    found = container("sh", "-c", 'for program; do command -v "$program"; done', "sh", "pgtrial", *sorted(programs))
    assert found.stdout.split() == ["/opt/pgtrial/bin/pgtrial", "/opt/pgtrial/bin/ray", "/usr/bin/sh"]


@pytest.mark.install
def test_ray_of_the_image_knows_the_options_of_the_fleet(container):
    text = json.dumps(pods("kubernetes-fleet.yaml"))
    (lab,) = re.findall(r"ray start ([^\\]+)", text)
    (machine,) = (c["command"] for c in pods()["pgtrial-machines"]["containers"])
    options = {word.partition("=")[0] for word in (*lab.split(), *machine) if word.startswith("--")}
    assert {"--head", "--address", "--block"} < options
    assert options <= set(re.findall(r"--[a-z-]+", container("ray", "start", "--help").stdout))


@pytest.mark.install
def test_nothing_of_the_machine_that_builds_stays_in_the_image(image, container):
    (manifest,) = image.index["manifests"]
    assert MARK not in json.dumps(image.blob(image.blob(manifest)["config"]))
    places = ("/etc", "/home", "/opt", "/root", "/run", "/tmp", "/var")
    found = container(
        "grep", "--recursive", "--devices=skip", "--files-with-matches", MARK, *places, options=("--user", "0")
    )
    assert (found.returncode, found.stdout) == (1, ""), found.stderr
    assert image.left == []


def test_an_image_without_its_tools_names_the_packages(tmp_path):
    require_root()
    command = [sys.executable, "-m", "distribution.image", "--output", tmp_path / "image"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: an image needs buildah and mmdebstrap: apt-get install buildah mmdebstrap\n"
    assert list(tmp_path.iterdir()) == []


def test_an_image_without_a_wheel_is_rejected_before_anything_is_fetched(tmp_path):
    _require_tools()
    command = [sys.executable, "-m", "distribution.image", "--wheels", tmp_path, "--output", tmp_path / "image"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {tmp_path} has no wheel of pgtrial; `make dist-here` makes one in build/dist\n"
    assert list(tmp_path.iterdir()) == []


def test_a_platform_whose_programs_do_not_run_here_is_rejected_with_the_packages(tmp_path, monkeypatch, capsys):
    _require_tools()
    foreign = next(name for name in ("linux/amd64", "linux/arm64") if name != f"linux/{_debian()}")
    (tmp_path / "arch-test").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "arch-test").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert main(["--platform", foreign, "--wheels", str(tmp_path), "--output", str(tmp_path / "image")]) == 1
    assert capsys.readouterr().err == (
        f"error: this machine does not run programs of {foreign}, which an image for it needs: "
        "apt-get install arch-test qemu-user-static\n"
    )


@pytest.mark.install
def test_the_sources_of_apt_are_found_where_no_list_of_packages_is_kept(tmp_path, monkeypatch):
    _require_tools()
    lists = tmp_path / "lists"
    (lists / "partial").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(f'Dir::State::Lists "{lists}";\n')
    kept = sources_of(platform.freedesktop_os_release()["VERSION_CODENAME"])
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    assert sources_of(platform.freedesktop_os_release()["VERSION_CODENAME"]) == kept


def test_a_release_without_a_source_is_named():
    _require_tools()
    with pytest.raises(DistributionError, match=r"^apt has no source of nowhere main, which the base"):
        sources_of("nowhere")
