"""Fixtures that all tests share: a state root of their own, real servers of every version, and functions that skip a
test where something is missing, but never in CI.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from pgtrial.loads.process import engine_path
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError
from pgtrial.servers.access import reserved_port
from pgtrial.servers.builds.kept import Builds
from pgtrial.servers.builds.of_study import built
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import ServerBinaries, find_servers, resolve
from pgtrial.servers.run_directory import RunDirectory, copy_directory
from pgtrial.servers.workspace import Workspace
from pgtrial.store.bundle import open_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests import old_servers

# A counter-example belongs on the desk of whoever changes a property or what it is about, not into a later run that
# changed neither: two runs of the same tests draw the same examples, and no run is slow enough to fail. Whoever changes
# one hunts: pytest --hypothesis-profile hunt --hypothesis-seed N tests/...
settings.register_profile(
    "same",
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("hunt", settings.get_profile("same"), max_examples=20_000, derandomize=False)
settings.load_profile("same")

# what is collected is kept to the end: to look through it for garbage took a third of the collection's time
gc.disable()

for variable in [name for name in os.environ if name.startswith("PG") and not name.startswith("PGTRIAL_")]:
    del os.environ[variable]  # what leads whoever runs the tests to a server of theirs

VERSIONS = (15, 16, 17, 18)
OLD_VERSIONS = (10, 13)
"""The first one that is supported, and the last one without WAL statistics."""
NEWER_VERSION = VERSIONS[-1] + 1
"""A version that nobody packages yet: its tests are skipped where no build is at hand."""

_OF_A_RUN = 16 << 30
"""The free space that a run of the tests needs for its files, bytes. The tests of one process use about one GB
at once.
"""
_OF_A_TEST = 2 << 30

_NEEDS = {
    "server": {"workspace", "clusters", "cluster", "start_cluster", "sides"},
    "browser": {"browser"},
}
"""Fixtures by the marker of a test that uses one of them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the machine first.

    Raises UsageError for a test without the marker of what its fixtures need: `make quick` would run it.
    """
    items.sort(key=lambda item: item.get_closest_marker("machine") is None)
    for item in items:
        for marker, fixtures in _NEEDS.items():
            if fixtures & set(getattr(item, "fixturenames", ())) and item.get_closest_marker(marker) is None:
                raise pytest.UsageError(f"{item.nodeid} needs a {marker}: mark it with pytest.mark.{marker}")


class _ByFile(LoadScopeScheduling):
    """Distributes the tests over processes. Tests of one file run in one process and share the fixtures of their
    module; so do all tests that change the machine, and all tests of order entry.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid.partition("::")[0])


@functools.cache
def _group(path: str) -> str:
    if path.startswith("tests/engine/order_entry/"):
        return "order entry"
    return "the machine" if "pytest.mark.machine" in Path(__file__).parents[1].joinpath(path).read_text() else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile:
    return _ByFile(config, log)


def pytest_collection_finish() -> None:
    """Freeze the tests and the modules: the garbage collector then looks through what the tests make alone."""
    gc.freeze()
    gc.set_threshold(500_000)
    gc.enable()


ANSWERS = pytest.StashKey[Counter[str]]()
"""Counts the answers of original programs: how many were recorded, and how many came from the program itself, by
reason.
"""


SHARED = pytest.StashKey[Path]()
"""The directory that all processes of a run share. It contains the state root of each process and the templates that
they keep, on one file system.
"""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ANSWERS] = Counter()
    # for `tmp_path`; on ext4 each new file costs a search through those that tests have just removed
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_roomy(_OF_A_RUN)))
    if hasattr(config, "workerinput"):
        config.stash[SHARED] = Path(config.workerinput["shared"])


def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["shared"] = str(_shared(node.config))


def _shared(config: pytest.Config) -> Path:
    """Returns the shared directory, made when it is first needed: a run that only lists its tests needs none."""
    if SHARED not in config.stash:
        config.stash[SHARED] = shared = public_directory(_roomy(_OF_A_RUN))
        for name in ("kept", "templates"):
            (shared / name).mkdir()
        config.add_cleanup(lambda: shutil.rmtree(shared, ignore_errors=True))
    return config.stash[SHARED]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["answers"] = dict(session.config.stash[ANSWERS])


def pytest_testnodedown(node: WorkerController) -> None:
    node.config.stash[ANSWERS].update(getattr(node, "workeroutput", {}).get("answers", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    answers = config.stash[ANSWERS]
    if answers:
        listed = ", ".join(f"{count} {source}" for source, count in sorted(answers.items(), reverse=True))
        terminalreporter.write_line(f"answers of the originals: {listed}")


def require(present: object, what: str) -> None:
    """Skips the test, naming `what` is missing, unless `present` is true. Where nothing may be missing (CI=true), the
    test fails.
    """
    if not present:
        _absent(what)


def _absent(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {what}, and CI has to have it")
    pytest.skip(f"needs {what}")


def require_server(major: int) -> ServerBinaries:
    """Returns the server of a major version, or skips the test. Versions before 15 are programs of
    tests/old_servers.py, and all versions after 18 are the server of `require_newer_server`.
    """
    if major > VERSIONS[-1]:
        return require_newer_server()
    if major < VERSIONS[0]:
        directory = old_servers.bin_directory(str(major))
        if directory is None:
            _absent(f"PostgreSQL {major} (make old-servers)")
        return resolve(str(directory))
    found = next((server for server in _servers() if server.major == major), None)
    if found is None:
        _absent(f"PostgreSQL {major} (see README: the extras pg16 and pg17, or a system package)")
    return found


@functools.cache
def require_newer_server() -> ServerBinaries:
    """Returns a server that is newer than the last of VERSIONS, or skips the test. The test is skipped in CI as well,
    since nobody packages such a version before its release.

    The server is an installed one, or PGTRIAL_TEST_POSTGRES names it as a study does: a bin directory, `git:PATH@REF`,
    or `source:PATH`.
    """
    named = os.environ.get("PGTRIAL_TEST_POSTGRES")
    if named is None:
        found = next((server for server in _servers() if server.major > VERSIONS[-1]), None)
    else:
        spec = build_study({"arms": {"newer": {"postgres": named}, "other": {}}}, "tests")
        builds = Builds(Path(__file__).parents[1] / ".venv" / "newer-servers")
        run_directory = RunDirectory(LOCAL, builds.root, "the tests", None, builds.root)
        found = resolve(built(spec, builds, run_directory, print).resolved("newer").postgres)
    if found is None or found.major <= VERSIONS[-1]:
        pytest.skip(f"needs PostgreSQL {NEWER_VERSION}: PGTRIAL_TEST_POSTGRES names a build or a source of it")
    return found


@functools.cache
def _servers() -> tuple[ServerBinaries, ...]:
    return tuple(find_servers())


def require_engine() -> Path:
    """Returns the load engine, or skips the test."""
    try:
        return engine_path()
    except StudyError as error:
        _absent(f"the engine: {error}")


def require_root() -> None:
    """Skips the test, or fails in CI, unless the tests run as root."""
    require(os.geteuid() == 0, "root")


EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
"""The directory of the committed studies that were really run, with the bundle and the report of each."""

Example = Callable[[str], StudyDirectory]


@pytest.fixture(scope="session")
def example() -> Iterator[Example]:
    """Yields a function that returns a committed study by its name, unpacked at the first call. Tests must not change
    it.
    """
    with ExitStack() as opened:
        yield functools.cache(lambda name: opened.enter_context(open_study(EXAMPLES / f"{name}.tar.xz")))


@pytest.fixture(scope="session", autouse=True)
def state_root(pytestconfig: pytest.Config) -> Iterator[Path]:
    """Yields the state root of this process of the tests. Its path is short enough for sockets, and the servers'
    account can reach it. The state roots of all processes share the script of the charts and the templates.
    """
    shared = _shared(pytestconfig)
    path = shared / os.environ.get("PYTEST_XDIST_WORKER", "alone")
    path.mkdir()
    for name in ("kept", "templates"):
        (path / name).symlink_to(shared / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGTRIAL_STATE", str(path))
        yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """Yields a directory like `tmp_path`, but always below /tmp, and open to every account."""
    path = public_directory()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def fresh_state() -> Iterator[Path]:
    """Yields a state root for one test."""
    path = public_directory(_roomy(_OF_A_TEST))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def workspace(state_root: Path) -> Iterator[Workspace]:
    """Yields the workspace of the session; on exit it stops what was started in it."""
    with Workspace(state_root) as opened:
        yield opened


@pytest.fixture
def run_directory(tmp_path: Path) -> RunDirectory:
    """Returns the run directory of a test, in which builds would run servers; the tests run no server in it."""
    return RunDirectory(LOCAL, tmp_path, "the tests", None, tmp_path)


StartCluster = Callable[..., Cluster]


@pytest.fixture
def start_cluster(workspace: Workspace) -> Iterator[StartCluster]:
    """Start a new empty cluster: `start_cluster(18, settings={...}, hba="...")`; stopped and removed after the test."""
    started: list[Cluster] = []

    def start(major: int = 18, *, settings: dict[str, str] | None = None, hba: str | None = None) -> Cluster:
        cluster = _new_cluster(workspace, major, settings or {})
        started.append(cluster)
        if hba is not None:
            (cluster.data_directory / "pg_hba.conf").write_text(hba)
        cluster.start(_log(cluster))
        return cluster

    yield start
    for cluster in started:
        _remove(cluster)


@pytest.fixture(scope="session")
def clusters(workspace: Workspace) -> Iterator[Callable[[int], Cluster]]:
    """Yields running clusters shared by the session, one per major version: `clusters(17).target`. Tests leave them as
    they were.
    """
    with running_clusters(workspace, {}) as running:
        yield running


@contextmanager
def running_clusters(workspace: Workspace, settings: dict[str, str]) -> Iterator[Callable[[int], Cluster]]:
    """Clusters by their major version, each started when it is asked for first; all end with the context."""
    running: dict[int, Cluster] = {}

    def running_cluster(major: int) -> Cluster:
        if major not in running:
            cluster = _new_cluster(workspace, major, settings)
            cluster.start(_log(cluster))
            running[major] = cluster
        return running[major]

    try:
        yield running_cluster
    finally:
        for cluster in running.values():
            _remove(cluster)


@pytest.fixture(params=(*OLD_VERSIONS, *VERSIONS, NEWER_VERSION), ids=lambda major: f"pg{major}")
def cluster(request: pytest.FixtureRequest, clusters: Callable[[int], Cluster]) -> Cluster:
    """Returns a running cluster, once for every version."""
    return clusters(request.param)


@pytest.fixture
def free_port() -> Iterator[int]:
    """Yields a port from `reserved_port`."""
    with reserved_port() as port:
        yield port


def public_directory(below: Path = Path("/tmp")) -> Path:
    """Returns a new directory that the servers' account can reach."""
    path = Path(tempfile.mkdtemp(prefix="pgt-", dir=below))
    path.chmod(0o755)
    return path


def _roomy(least: int) -> Path:
    """Returns /dev/shm if it has more than `least` bytes free and may hold programs, else /tmp. Memory is faster: a
    copy of a cluster has a thousand files.
    """
    disk, memory = Path("/tmp"), Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        return disk
    room = min(shutil.disk_usage(memory).free, psutil.virtual_memory().available)
    return memory if room > least else disk


_MODEST = {"max_wal_size": "128MB", "min_wal_size": "32MB", "huge_pages": "off"}
"""Settings of the tests' clusters. Up to forty clusters of a run are in memory at once, which has no room for a
gigabyte of WAL of each, PostgreSQL's default. With `huge_pages = try` they would take the pages that another test has
reserved for its own server.
"""


def _new_cluster(workspace: Workspace, major: int, settings: dict[str, str]) -> Cluster:
    server = workspace.reachable(require_server(major))
    data = workspace.directory(f"test-{major}")
    copy_directory(workspace, _initialised(workspace, server), data)
    return Cluster(workspace, server, data, workspace.socket_directory(), {**_MODEST, **settings})


def _initialised(workspace: Workspace, server: ServerBinaries) -> Path:
    """Returns a cluster as initdb leaves it, made once for all processes of the run."""
    data = workspace.state.parent / f"initialised-{server.major}"
    with data.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not data.exists():
            staged = workspace.directory(data.name)
            create_cluster(workspace, server, staged)
            staged.rename(data)
    return data


def _log(cluster: Cluster) -> Path:
    return cluster.data_directory.with_suffix(".log")


def _remove(cluster: Cluster) -> None:
    cluster.stop(immediate=True)
    shutil.rmtree(cluster.data_directory, ignore_errors=True)
    _log(cluster).unlink(missing_ok=True)
