"""Root names paths of another account in every option and key that takes one: nothing of that account is executed,
nothing is written to what it leads to, and nothing waits for it."""

from __future__ import annotations

import inspect
import os
import pwd
import shutil
import stat
import typing
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from pgtrial.cli import COMMANDS, application
from pgtrial.model.errors import StoreError
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.files import make_folder
from tests.conftest import EXAMPLES, public_directory, require_engine, require_root

pytestmark = pytest.mark.machine

WRITTEN, READ, RUN, NO_PATH = "written", "read", "run", "no path"

_LATER = "written after a build"
"""Marks a file that pgtrial writes after a build, into a directory that the same function makes as all other
directories.
"""

_NO_PATHS = {
    "allow",
    "p50", "p90", "p95", "p99", "p999", "arrival", "budget", "build", "cache", "capacity", "clients", "commit", "date",
    "duration", "failures", "forget", "interleave", "keys", "latency_limit", "limit", "margin", "metrics", "more",
    "percentile", "planted", "profile", "protocol", "question", "rate", "scale", "template", "unchecked", "undo",
    "unused", "values", "warmup",
}  # fmt: skip
"""The parameters of all commands that name no path. `--forget` names records that pgtrial knows, and removes only
those; `--set` takes keys of a study, which the table KEYS has.
"""

OPTIONS: dict[str, dict[str, str]] = {
    "demo": {"results": WRITTEN},
    "run": {"study": READ, "results": WRITTEN, "fleet": NO_PATH},
    "stop": {"directory": READ},
    "compare": {
        "arms": RUN, "workload": READ, "query": NO_PATH, "data": READ, "beside": READ, "server": RUN,
        "command": RUN, "reads": NO_PATH, "fleet": NO_PATH, "results": WRITTEN,
    },
    "upgrade": {
        "old": RUN, "new": RUN, "data": READ, "workload": READ, "query": NO_PATH, "log": READ, "database": NO_PATH,
        "statements_of": NO_PATH,
        "server": RUN, "results": WRITTEN,
    },
    "gate": {
        "base": RUN, "head": RUN, "study": READ, "summary_file": WRITTEN, "junit_file": WRITTEN, "bundle": WRITTEN,
        "results": WRITTEN,
    },
    "bisect": {"good": NO_PATH, "bad": NO_PATH, "study": READ, "results": _LATER},
    "capacity": {"arms": RUN, "workload": READ, "query": NO_PATH, "data": READ, "server": RUN, "results": WRITTEN},
    "screen": {
        "factors": NO_PATH, "workload": READ, "query": NO_PATH, "data": READ, "server": RUN, "metric": NO_PATH,
        "results": WRITTEN,
    },
    "selftest": {"directory": READ, "workload": NO_PATH, "server": NO_PATH, "results": WRITTEN},
    "plan": {"study": READ, "fleet": NO_PATH},
    "verdict": {"studies": READ},
    "judge": {"file": READ, "baseline": NO_PATH, "value": NO_PATH, "arms": NO_PATH},
    "report": {"study": READ, "output": WRITTEN},
    "bundle": {"directory": READ, "output": WRITTEN},
    "verify": {"study": READ},
    "rerun": {"bundle": READ, "results": WRITTEN},
    "history": {"bundles": READ, "named": WRITTEN, "output": WRITTEN, "study": READ},
    "publish": {"paths": READ, "output": WRITTEN},
    "serve": {"paths": READ},
    "sql": {"query": NO_PATH, "studies": READ},
    "metrics": {"directory": READ},
    "facts": {"study": READ, "fleet": NO_PATH},
    "pack": {"pack": READ, "postgres": RUN},
    "cleanup": {},
}  # fmt: skip

KEYS: dict[str, str] = {
    "load.workload": READ,
    "load.data": READ,
    "load.replay.data": READ,
    "load.job.command": RUN,
    "load.job.beside": READ,
    "load.job.reads.file": READ,
    "metrics.command": RUN,
    "server.postgres": RUN,
    "server.storage.on": RUN,
    "server.storage.mkfs": RUN,
    "server.storage.mount": RUN,
    "server.build": RUN,
    "server.patches": RUN,
    "server.compiler": RUN,
    "server.extensions": RUN,
    "server.command": RUN,
    "server.command_directory": RUN,
    "server.workload": READ,
    "server.data": READ,
}
_SAME_AS = {"server.storage.wal.mkfs", "server.storage.wal.mount", "server.storage.wal.on"}
_NO_KEYS = {
    "study.question", "study.name", "study.profile", "study.published", "load.query", "load.values",
    "load.data_files.sha256", "load.capacity.percentile", "load.sysbench.options", "load.tasks.arrival",
    "load.pack.variables", "load.replay.files.capture_sha256", "load.replay.files.data_sha256",
    "load.replay.files.doubts",
    "load.replay.files.server_version", "load.suite.unchecked", "load.job.undo", "load.job.reads",
    "load.job.reads.pattern", "load.job.reads.json_path", "load.job.reads.unit", "metrics", "metrics.sql",
    "metrics.pattern", "metrics.json_path", "metrics.unit", "load.cpus", "load.on_server_loss",
    "server.dsn", "server.ssh", "server.data_files.sha256", "server.values", "server.address",
    "server.monitoring.cloudwatch",
    "server.monitoring.region", "server.settings", "server.initdb", "server.setup_sql", "server.price",
    "server.sysctl", "server.governor", "server.io_scheduler", "server.numa", "server.cpus", "server.environment",
    "server.command_files", "arms", "factors", "server.query", "verdict.metrics", "fleet.address",
    "fleet.on_machine_loss",
}  # fmt: skip
"""The keys that name no path of the lab's machine, or a path that only the servers' account uses."""


def texts_of_commands() -> dict[str, dict[str, object]]:
    """Returns the parameters of each command that take a text or a path."""
    found = {}
    for name, (module, _) in COMMANDS.items():
        if module is not None:
            command = typer.main.get_command(application(name)).commands[name]
            hints = typing.get_type_hints(inspect.unwrap(command.callback))
            found[name] = {one: hint for one, hint in hints.items() if one != "return" and takes_text(hint)}
    return found


def takes_text(hint: object) -> bool:
    return hint in (str, Path) or any(takes_text(part) for part in typing.get_args(hint))


def texts_of_study(
    model: type[BaseModel] = StudySpec, within: str = "", seen: frozenset[type] = frozenset()
) -> set[str]:
    """Returns the keys of a study that hold a text."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        place = f"{within}{name}"
        if takes_text(field.annotation):
            found.add(place)
        for inner in models_in(field.annotation):
            if inner not in seen and name != "arms":  # an arm has the keys of [server]
                found |= texts_of_study(inner, f"{place}.", seen | {inner})
    return found


def models_in(hint: object) -> list[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    return [model for part in typing.get_args(hint) for model in models_in(part)]


def test_every_option_that_may_name_a_path_is_tried():
    for name, parameters in texts_of_commands().items():
        known = set(OPTIONS.get(name, {})) | _NO_PATHS
        assert not set(parameters) - known, f"say in OPTIONS what pgtrial {name} does with the paths of these"


def test_every_key_of_a_study_that_may_name_a_path_is_tried():
    assert texts_of_study() - set(KEYS) - _SAME_AS - _NO_KEYS == set(), "say in KEYS what is done with these paths"


class Hostile:
    """A directory of another account, and files of root's that its links lead to."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "home"
        self.mark = root / "ran-as-root"
        self.victim = root / "victim"
        self.victim.mkdir(mode=0o700)
        (self.victim / "secret").write_text("root's secret")
        self.home.mkdir(mode=0o755)
        for name in ("program", "bin/postgres", "bin/initdb", "bin/pg_config", "bin/git", "source/configure"):
            path = self.home / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\nid -u >> {self.mark}\necho 'postgres (PostgreSQL) 16.1'\n")
            path.chmod(0o755)
        (self.home / "script.lua").write_text(f'function event() os.execute("id -u >> {self.mark}") end\n')
        (self.home / "polars.py").write_text(f"open({str(self.mark)!r}, 'a').write('0')\n")
        shutil.copy(self.home / "polars.py", self.home / "pip.py")
        (self.home / "source" / "Makefile").write_text(f"all install:\n\tid -u >> {self.mark}\n")
        os.mkfifo(self.home / "pipe")
        (self.home / "to-pipe").symlink_to(self.home / "pipe")
        (self.home / "to-victim").symlink_to(self.victim)
        (self.home / "to-secret").symlink_to(self.victim / "secret")
        account = pwd.getpwnam("nobody")
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)

    def state(self) -> list[tuple[object, ...]]:
        """Returns owner, mode and content of the files of root's and of the account's that a command of root must not
        change.
        """
        seen = []
        for path in (self.victim, self.home, *self.victim.rglob("*"), *self.home.rglob("*")):
            found = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
            seen.append((path, found.st_uid, found.st_mode, content))
        return seen


@pytest.fixture
def hostile():
    require_root()
    require_engine()
    root = public_directory()
    yield Hostile(root)
    shutil.rmtree(root)


@pytest.fixture
def pgtrial(commands, hostile, fresh_state):
    """Runs a command as root and checks that it neither executes nor writes a file of the other account."""

    def run(*words: object, cwd: Path | None = None, **variables: str) -> tuple[int, str]:
        environment = {**os.environ, "PGTRIAL_STATE": str(fresh_state), **variables}
        environment.pop("SUDO_UID", None)
        before = hostile.state()
        done = commands.run([str(word) for word in words], cwd or hostile.root, environment)
        assert not hostile.mark.exists(), (words, "root has run a program of another account")
        assert hostile.state() == before, words
        assert "fault of pgtrial" not in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        return done.returncode, done.stdout + done.stderr

    return run


_STUDY = {
    "load": {"workload": '"select-only"', "scale": "1", "clients": "1", "warmup": '"0.2s"', "duration": '"1s"'},
    "server": {},
    "arms.a": {},
    "arms.b": {"settings": '{ jit = "off" }'},
    "verdict": {"blocks": "2"},
}


def study_file(hostile: Hostile, **sections: dict[str, str]) -> Path:
    changed = {name: {**keys, **sections.pop(name.replace(".", "_"), {})} for name, keys in _STUDY.items()}
    changed |= {name.replace("_", "."): keys for name, keys in sections.items()}
    texts = [
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)
        for name, keys in changed.items()
    ]
    path = hostile.root / "study.toml"
    path.write_text("\n".join(texts))
    return path


@dataclass(frozen=True)
class Lines:
    """Command lines that name a path in one parameter and are valid in all others."""

    hostile: Hostile
    study: Path
    stored: Path
    bundle: Path = EXAMPLES / "app-tasks.tar.xz"

    def naming(self, command: str, parameter: str, value: object) -> list[object]:
        """Returns the words of a command line in which this parameter names a path."""
        arms = ["jit=on", "jit=off"]
        small = ["--scale", 1, "--clients", 1]
        postgres = f"postgres={value}"
        selecting = ["--query", "SELECT 1", "--data", self.hostile.root / "data.sql"]
        whole: dict[tuple[str, str], list[object]] = {
            ("compare", "arms"): [postgres, "jit=on", *small],
            ("compare", "server"): [*arms, *small, "--server", postgres],
            ("compare", "command"): [*arms, "--command", f"sh {value}"],
            ("upgrade", "old"): [value, "18", *selecting],
            ("upgrade", "new"): ["15", value, *selecting],
            ("upgrade", "server"): ["work_mem=4MB", "work_mem=8MB", *selecting, "--server", postgres],
            ("upgrade", "data"): ["15", "18", "--query", "SELECT 1", "--data", value],
            ("screen", "server"): ["jit=on,off", *small, "--server", postgres],
            ("capacity", "arms"): [postgres, "--p99", "5ms", *small],
            ("capacity", "server"): ["jit=on", "--p99", "5ms", *small, "--server", postgres],
            ("gate", "base"): [postgres, "jit=off", "--study", self.study],
            ("gate", "head"): ["jit=on", postgres, "--study", self.study],
            ("gate", "study"): [*arms, "--study", value],
            ("bisect", "study"): ["main~1", "main", "--study", value],
            ("history", "bundles"): ["add", value],
            ("history", "named"): ["add", self.bundle, "--in", value],
            ("history", "study"): ["confirm", "--study", value, "--in", value],
            ("history", "output"): ["page", "--in", self.hostile.root / "history", "-o", value],
            ("pack", "pack"): ["check", value, "--files-only"],
            ("pack", "postgres"): ["check", "queue", "--postgres", value],
            ("serve", "paths"): ["--no-browser", value],
            ("sql", "studies"): ["SELECT 1", value],
        }
        if (command, parameter) in whole:
            return [command, *whole[command, parameter]]
        begin: dict[str, list[object]] = {
            "run": [self.study],
            "compare": [*arms, *small],
            "upgrade": ["15", "18", *selecting],
            "screen": ["jit=on,off", *small],
            "gate": [*arms, "--study", self.study],
            "capacity": ["jit=on", "--p99", "5ms", *small],
            "report": [self.bundle],
            "bundle": [self.stored],
            "rerun": [self.bundle, "--trust"],
            "publish": [self.bundle],
        }
        options = {"output": "-o", "summary_file": "--summary", "junit_file": "--junit"}
        options |= {name: f"--{name}" for name in ("results", "workload", "data", "beside", "log")}
        option = "--bundle" if (command, parameter) == ("gate", "bundle") else options.get(parameter)
        return [command, value] if option is None else [command, *begin.get(command, []), option, value]


@pytest.fixture
def lines(hostile, example):
    stored = hostile.root / "stored"
    shutil.copytree(example("app-tasks").path, stored)
    (hostile.root / "data.sql").write_text("CREATE TABLE orders (id int);\n")
    return Lines(hostile, study_file(hostile), stored)


_JOB = {"clients": "", "duration": "", "warmup": ""}
_PROGRAMS = {"workload": '"client-programs"', "clients": ""}


def tried(kind: str) -> list[tuple[str, str]]:
    return [(name, one) for name, known in OPTIONS.items() for one, its in known.items() if its == kind]


@pytest.mark.parametrize("tried", tried(WRITTEN), ids="-".join)
def test_root_writes_nothing_below_a_directory_of_another_account(pgtrial, lines, tried):
    home = lines.hostile.home
    if tried == ("history", "output"):
        assert pgtrial("history", "add", lines.bundle, "--in", lines.hostile.root / "history")[0] == 0
    ending = ".html" if tried == ("report", "output") else ""
    for place in (f"new{ending}", f"to-victim/new{ending}"):
        status, said = pgtrial(*lines.naming(*tried, home / place))
        assert status == 3, said
        assert f"pgtrial runs as root and does not write {home}" in said, said
        assert f"{home} belongs to the account nobody" in said, said


@pytest.mark.parametrize("tried", tried(READ), ids="-".join)
def test_root_waits_for_no_pipe_and_reads_no_device(pgtrial, lines, tried):
    for place in (lines.hostile.home / "to-pipe", "/dev/zero"):
        status, said = pgtrial(*lines.naming(*tried, place))
        assert status != 0, said
        assert "pgtrial: error: " in said, said


@pytest.mark.parametrize("tried", tried(RUN), ids="-".join)
def test_root_runs_no_program_that_an_option_names(pgtrial, lines, tried):
    for value in (lines.hostile.home / "bin", f"source:{lines.hostile.home / 'source'}"):
        status, said = pgtrial(*lines.naming(*tried, value))
        assert status == 3, said
        if tried[0] != "pack" or value == lines.hostile.home / "bin":  # a pack is checked on no source
            assert "belongs to the account nobody" in said, said


def lines_of_keys(hostile: Hostile) -> dict[str, dict[str, dict[str, str]]]:
    """Sections of a study file that name a path of the other account in each key."""
    home = hostile.home
    program, pipe, source = f'"{home / "program"}"', f'"{home / "pipe"}"', f"source:{home / 'source'}"
    own = {**_JOB, "workload": '"job:job.sql"'}
    two = {"arms_a": {"command": '"true a"'}, "arms_b": {"command": '"true b"', "settings": "{}"}}
    return {
        "load.workload": {"load": {"workload": pipe}},
        "load.data": {"load": {"data": f"[{pipe}]"}},
        "load.replay.data": {"load": {"workload": f'"replay:{pipe[1:-1]}"'}, "load_replay": {"data": pipe}},
        "load.job.command": {"load": {**_JOB, "workload": '"job:"'}, "load_job": {"command": program}},
        "load.job.reads.file": {
            "load": {**_JOB, "workload": '"job:"'},
            "load_job": {"command": '"true"', "reads": f'{{ speed = {{ pattern = "speed", file = {pipe} }} }}'},
        },
        "metrics.command": {"metrics_mine": {"command": program, "better": '"more"'}},
        "load.job.beside": {"load": own, "load_job": {"beside": pipe}},
        "server.postgres": {"server": {"postgres": f'"{home / "bin"}"'}},
        "server.storage.on": {"server": {"storage": f'{{ fs = "ext4", on = "/dev/..{home}/to-pipe", size = "1GB" }}'}},
        "server.storage.mkfs": {"server": {"storage": f'{{ fs = "ext4", mkfs = ["-z", "{home}/undo"] }}'}},
        "server.storage.mount": {"server": {"storage": f'{{ fs = "ext4", mount = ["journal_path={home}/x"] }}'}},
        "server.build": {"server": {"postgres": '"source:own"', "build": f'["CC={home / "program"}"]'}},
        "server.patches": {"server": {"postgres": '"source:own"', "patches": pipe}},
        "server.compiler": {"server": {"postgres": '"source:own"', "compiler": program}},
        "server.extensions": {"server": {"extensions": f'["{source}"]'}},
        "server.command": {"load": _PROGRAMS, **two, "arms_a": {"command": program}},
        "server.command_directory": {
            "load": _PROGRAMS,
            **two,
            "arms_a": {"command": '"sh program"', "command_directory": f'"{home}"'},
        },
        "server.workload": {"arms_a": {"workload": pipe}, "arms_b": {"workload": '"./job.sql"'}},
        "server.data": {
            "load": {"workload": '"./job.sql"'}, "arms_a": {"data": pipe}, "arms_b": {"data": '"./job.sql"'},
        },
    }  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_root_runs_and_awaits_nothing_that_a_key_of_a_study_names(pgtrial, hostile, key):
    own = hostile.root / "own"
    own.mkdir()
    for name in ("configure", "Makefile", "job.sql"):
        (own / name).write_text("#!/bin/sh\nexit 1\n")
    (hostile.root / "job.sql").write_text("SELECT 1")
    path = study_file(hostile, **lines_of_keys(hostile)[key])
    status, said = pgtrial("run", path)
    assert status == 3, said
    if KEYS[key] == RUN:
        assert "belongs to the account nobody" in said, said
    assert "unknown" not in said, said


def test_root_takes_no_program_from_a_folder_of_path_and_says_so(pgtrial, hostile):
    status, said = pgtrial("list", PATH=f"{hostile.home / 'bin'}:{os.environ['PATH']}")
    assert status == 0
    assert (
        f"PATH: root runs no program from {hostile.home / 'bin'}: {hostile.home} belongs to the account nobody" in said
    )
    assert "16.1 " not in said


def test_root_imports_no_module_of_the_current_directory(pgtrial, hostile):
    status, said = pgtrial("verdict", EXAMPLES / "app-tasks.tar.xz", cwd=hostile.home)
    assert status in (0, 1, 2), said


def test_root_begins_no_study_in_a_directory_of_another_account(pgtrial, hostile):
    status, said = pgtrial("run", study_file(hostile), cwd=hostile.home)
    assert status == 3
    assert f"pgtrial runs as root and does not write results: {hostile.home} belongs to the account nobody" in said
    assert "run pgtrial as nobody" in said


def test_root_makes_no_directory_there(hostile):
    with pytest.raises(StoreError, match="belongs to the account nobody"):
        make_folder(hostile.home / "bisection")
    assert not (hostile.home / "bisection").exists()


def test_root_goes_on_with_no_study_that_another_account_can_write(pgtrial, hostile, example):
    """A study.toml can name programs, which root would run for the account that wrote it."""
    stored = hostile.home / "stored"
    shutil.copytree(example("app-tasks").path, stored)
    (hostile.root / "data.sql").write_text("CREATE TABLE orders (id int);\n")
    for path in (stored, *stored.rglob("*")):
        shutil.chown(path, "nobody")
    for line in (
        ["run", stored, "--trust"],
        ["stop", stored],
        ["report", stored],
    ):
        status, said = pgtrial(*line)
        assert status == 3, said
        assert "belongs to the account nobody" in said or "nothing to stop" in said, said


def test_a_lua_script_of_another_account_is_not_run_by_root(pgtrial, hostile):
    status, said = pgtrial("compare", "jit=on", "jit=off", "--workload", hostile.home / "script.lua")
    assert status == 3
    assert "the script can run programs: root runs no program from" in said
