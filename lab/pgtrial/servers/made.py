"""An arm whose server pgtrial makes: initdb, load once, then a fresh copy and a fresh server for every trial.

This is the same on every machine: `_site` determines in which run directory the servers are made, and how clients reach
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import psycopg

from pgtrial.loads.data.data import Data, check_free, volume_bytes
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker
from pgtrial.loads.target import Target
from pgtrial.machines.cpus import parse_numbers, usable_cpus, usable_nodes
from pgtrial.machines.kernel import KB, drop_caches, huge_page_counters, may_drop_caches
from pgtrial.machines.machine import LOCAL, HostError, HostLost, HostTrouble, Machine
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, PgtrialError, StudyError, TrialError, one_line
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.keys import Launcher
from pgtrial.model.study.servers import Made, MadeBySsh, MadeHere
from pgtrial.model.study.setup import KEYS
from pgtrial.servers.access import LOOPBACK_ACCESS, Access, access_to
from pgtrial.servers.arm import Needs, check_clients, check_data, check_sessions, timed
from pgtrial.servers.builds.layouts import in_layout
from pgtrial.servers.cluster import Cluster, check_settings, create_cluster, loading_settings
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.installations import ServerBinaries, program_digest, resolve
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.machine_state import MachineState, page_settings
from pgtrial.servers.ready_wal import fill_wal, trim_wal
from pgtrial.servers.room import copy_cluster, move_wal
from pgtrial.servers.rooms import HostRoom
from pgtrial.servers.templates import KeptCopy, RoomTemplates, TemplateKey, TemplateOrder
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace
from pgtrial.store.temporary import temporary_folder

_RESERVED = ("listen_addresses", "port")


@dataclass(frozen=True)
class _Site:
    """The place in which the servers of an arm are made, and how they are started and reached."""

    room: Workspace | HostRoom
    server: ServerBinaries
    access: Access | None
    launcher: tuple[str, ...]
    state: MachineState
    volumes: Volumes | None


class MadeArm:
    """An arm whose server pgtrial makes. Its template depends on server and data, not on the settings, so that arms
    share it."""

    def __init__(
        self, name: str, setup: MadeHere | MadeBySsh, needs: Needs, workspace: Workspace, maker: LoadMaker
    ) -> None:
        """`maker` makes data on servers elsewhere, which admit the machines on which it makes load."""
        check_settings(name, setup.settings)
        if isinstance(setup, MadeBySsh):
            for reserved in {item.lower() for item in setup.settings} & {*_RESERVED}:
                raise StudyError(f"arms.{name}: {reserved} of a server on another host is set by address and port")
        self.name = name
        self.setup = setup
        self.machine: Machine | None = None if isinstance(setup, MadeBySsh) else LOCAL
        self.data_directory: Path | None = None
        self.host_seen: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []
        self.tables_of_others: Sequence[str] = ()
        self.targets: Sequence[Target] | None = () if isinstance(setup, MadeBySsh) else None
        self._needs = needs
        self._workspace = workspace
        self._maker = maker
        self._statistics: CopyStatistics | None = None
        self._served: Cluster | None = None
        self._checked = 0
        """The number of losses of the host at the last check. After another loss disks may have other names."""

    @property
    def account(self) -> str | None:
        """The account that the server runs as, and that owns the data."""
        return self._site.room.account

    @property
    def kind(self) -> str:
        """A text that is equal for arms whose empty clusters are the same: the server's version, the digest of its
        program, and the options of initdb."""
        return self._kind([])

    def _kind(self, extensions: Sequence[str]) -> str:
        server = self._site.server
        digest = program_digest(self._site.room.machine, server.bin)
        words = [f"PostgreSQL {server.version} {digest[:16]}", *extensions, "initdb", *self.setup.initdb]
        return " ".join(words)

    def check(self, needs: Needs) -> None:
        """Starts the server once with the arm's settings, so that what PostgreSQL refuses is refused here, with its
        message.

        Raises StudyError.
        """
        with _raised_as(StudyError, (ArmError, TrialError, HostTrouble), f"arms.{self.name}: "):
            missing = sum(self._templates(tables).find(self._key(tables)) is None for tables in needs.of_arm(self.name))
            self._check_space(needs.largest, missing, needs.at_once)
            self._check_host()
            with temporary_folder() as logs, self._tried(NO_TABLES, logs / "log") as target:
                with target.connect() as session:
                    check_clients(self.name, needs, session)
                    check_data(self.name, needs, session)
                check_sessions(needs, target, "gives each arm a server of its own")

    @contextmanager
    def rehearsal(self, tables: Data, log: Path) -> Iterator[Target]:
        """Provides a server on a copy of the template, whatever `reset` says."""
        with self._complaining(), self._tried(tables, log) as target:
            yield target

    def loaded(self, tables: Data) -> list[LoadedData]:
        """Returns the template, which arms of one kind on one machine share."""
        key, room = self._key(tables), self._site.room
        kept = self._templates(tables).rows_file(key)
        return [LoadedData((key, room.root), None, lambda log: self.rehearsal(tables, log), kept)]

    @contextmanager
    def _tried(self, tables: Data, log: Path) -> Iterator[Target]:
        with ExitStack() as stack:
            directories = self._place("check", None, stack)
            self._copy(tables, directories)
            cluster = self._cluster(directories.data)
            with self._host_ready(cluster), cluster.running(log, immediate=True):
                yield cluster.served

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Makes the template of this data, unless one exists."""
        with self._complaining():
            self._template(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Provides a server on a fresh copy of the template; with `reset` vacuum or none, on the copy of an earlier
        trial.

        The program of any layout serves data that the program of another layout has made.

        If the host is not there now, ArmError is raised, since the trial has not begun. If it is lost later, the trial
        fails.
        """
        log.touch()
        with self._complaining():
            room = self._site.room
            self.notes = self._workspace.rooms.ready(room) if isinstance(room, HostRoom) else []
            if room.settled != self._checked:
                self._check_host()
        # the trial has to fail: if the study stopped instead, a repeated run would forget that the host was lost in it
        failing = _raised_as(TrialError, HostLost, "", "the server's host was lost in mid-trial: ")
        with self._complaining(), failing, self._serving(tables, log, timings, drawn) as target:
            yield target

    @contextmanager
    def _serving(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn) -> Iterator[Target]:
        watches = self.setup.huge_pages in KB
        reset, room = self.setup.reset, self._site.room
        self.host_seen = {"before": huge_page_counters(room.machine)} if watches else {}
        with ExitStack() as stack:
            with timed(timings, "restore"):
                data = self._data(tables, drawn.place, stack)
                cluster = self._cluster(data)
                cluster.server = in_layout(cluster.server, drawn.layout)
                stack.enter_context(self._host_ready(cluster))
            try:
                with timed(timings, "start"):
                    cluster.start(log)
                self.data_directory, self._served = data, cluster
                if watches:
                    self.host_seen["during"] = huge_page_counters(room.machine)
                if reset == "vacuum" and tables != NO_TABLES:
                    # VACUUM brings the data of an earlier trial near its first state
                    with cluster.target.connect() as connection:
                        tables.reset(connection)
                if reset == "copy" and self._statistics is not None:
                    with timed(timings, "statistics"):
                        self._statistics.give(tables, cluster.served)
                yield cluster.served
            except KeyboardInterrupt:
                room.hurry()
                raise
            finally:
                self.data_directory = self._served = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=reset == "copy")
                    cluster.fetch_log(log)
                    stack.close()
                if watches:
                    self.host_seen["after"] = huge_page_counters(room.machine)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Makes each fresh copy of a trial begin with these statistics of the planner."""
        self._statistics = statistics

    def restart(self, log: Path, *, cold: bool) -> None:
        """Restarts the server being served, so that its shared buffers are empty; with `cold` the kernel's cache is
        emptied too.

        Raises TrialError if the server does not start again, or its host cannot be reached.
        """
        cluster, machine = self._served, self._site.room.machine
        if cluster is None:
            return
        with _raised_as(TrialError, (ArmError, HostTrouble), "before a query: "):
            cluster.restart(log, lambda: drop_caches(machine) if cold else None)

    def fetch_log(self, log: Path) -> None:
        """Appends to `log` what the server being served has logged since the last time. Raises TrialError if its host
        cannot be reached."""
        if self._served is not None:
            try:
                self._served.fetch_log(log)
            except HostTrouble as error:
                raise TrialError(str(error)) from None

    def close(self) -> None:
        """Removes the kept copies on this machine, those shared with other arms too. On another host they go with the
        run directory there."""
        if self.machine is LOCAL and "_site" in vars(self):
            kind, kept = self.kind, self._workspace.kept
            for copy in [copy for copy in kept if copy.owner in (None, self.name) and copy.template.kind == kind]:
                LOCAL.remove_tree(kept.pop(copy))

    @cached_property
    def _site(self) -> _Site:
        """The place in which the arm's servers are made; it is found on first use. Raises HostTrouble, ArmError and
        StudyError."""
        setup, workspace = self.setup, self._workspace
        try:
            match setup:
                case MadeBySsh():
                    patience = self._needs.patience_s or PATIENCE_S
                    host = workspace.rooms.room(setup.ssh, setup.data, sudo=setup.sudo, patience_s=patience)
                    server = resolve(setup.postgres, host.machine, host.account)
                    access: Access | None = access_to(host.host, setup.address, setup.port)
                    room: Workspace | HostRoom = host
                case MadeHere(connect=connect):
                    room, server = workspace, workspace.reachable(resolve(setup.postgres))
                    access = LOOPBACK_ACCESS if connect == "tcp" else None
            launcher = _launcher(room.machine, setup)
        except StudyError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        self.machine = room.machine
        volumes = None if setup.storage is None else Volumes(self.name, setup.storage, room.changes)
        return _Site(room, server, access, launcher, MachineState(self.name, setup, room.changes), volumes)

    def _cluster(self, data: Path, loading: dict[str, str] | None = None) -> Cluster:
        """Returns a cluster on a data directory, with the settings of the arm, or only with those of `loading`."""
        site = self._site
        access = site.access
        if access is not None and isinstance(self.setup, MadeBySsh):
            # the server admits all machines that make load now: one of the fleet may have been replaced by another
            access = replace(access, clients=tuple(dict.fromkeys([*access.clients, *self._maker.addresses])))
        elif loading is not None:
            access = None
        cluster = Cluster(site.room, site.server, data, site.room.socket_directory(), loading or {}, access)
        if loading is None:
            cluster.settings, cluster.launcher = {**self.setup.settings, **page_settings(self.setup)}, site.launcher
        return cluster

    def _check_host(self) -> None:
        """Checks that the host permits the state that the arm asks for. Raises StudyError."""
        site = self._site
        site.state.check()
        if self._needs.cold and not may_drop_caches(machine := site.room.machine):
            raise StudyError(
                f"arms.{self.name}: {marks.key('load.suite', 'cache', 'cold')} empties the kernel's cache of files, "
                f"which only root may, on Linux; {machine.way_to_root}, or write "
                f"{marks.short_key('load.suite', 'cache', 'os')}"
            )
        if site.volumes is not None:
            site.volumes.check(*volume_bytes(self._needs.largest))
        self._checked = site.room.settled

    def _complaining(self) -> AbstractContextManager[None]:
        """Turns an error of the machine outside of trials into an ArmError that names the arm and stops the study."""
        return _raised_as(ArmError, HostTrouble, f"arms.{self.name}: ")

    def _check_space(self, data: Data, templates: int = 1, copies: int = 1) -> None:
        room = self._site.room
        free = room.machine.free_bytes(room.root)
        check_free(free, room.label, room.larger, data, templates=templates, copies=copies)

    def _data(self, tables: Data, place: int | None, stack: ExitStack) -> Path:
        """Returns the data directory of a trial: a fresh copy that `stack` removes, or a copy that is kept."""
        if self.setup.reset != "copy":
            return self._kept(tables, place)
        directories = self._place(tables.short_name, place, stack)
        self._copy(tables, directories)
        return directories.data

    def _kept(self, tables: Data, place: int | None) -> Path:
        """Returns the kept copy with this number, which arms of one kind share, or without a number the arm's own. It
        is made on first use."""
        kept = self._site.room.kept
        copy = KeptCopy(self._key(tables), self.name if place is None else None, place)
        if copy not in kept:
            data = self._site.room.directory(tables.short_name)
            self._copy(tables, DataDirectories(data))
            kept[copy] = data
        return kept[copy]

    def _place(self, name: str, place: int | None, stack: ExitStack) -> DataDirectories:
        """Returns the directories for one copy, which `stack` removes: on volumes of the arm's own, or in the run
        directory."""
        site = self._site
        if site.volumes is not None:
            return stack.enter_context(site.volumes.made(place))
        data = site.room.directory(name)
        stack.callback(site.room.machine.remove_tree, data)
        return DataDirectories(data)

    def _copy(self, tables: Data, to: DataDirectories) -> None:
        """Copies the template. The copy is on disk when this returns, since its write-back must not fall into the
        trial."""
        room, flush = self._site.room, tables != NO_TABLES
        copy_cluster(room, self._template(tables, lambda line: None), to.data, flush=flush and to.wal is None)
        if to.wal is not None:
            move_wal(room, to.data, to.wal, flush=flush)

    def _host_ready(self, cluster: Cluster) -> AbstractContextManager[None]:
        """Puts the host into the state that the arm asks for, with the huge pages that this cluster needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        return self._site.state.in_force(cluster.data_directory, pages)

    def _key(self, tables: Data) -> TemplateKey:
        # the user's own data may contain objects of the extensions
        brought = self.setup.extensions if tables.key.get("prepared") else None
        return TemplateKey(self._kind(brought or []), self._site.server.version, **tables.key)

    def _templates(self, tables: Data) -> Templates | RoomTemplates:
        room = self._site.room
        return room.own_templates if tables.making_is_measured else room.templates

    def _template(self, tables: Data, on_progress: Callable[[str], None]) -> Path:
        """Returns the data directory of the template, which is made if there is none."""
        site = self._site
        called = site.room.name_of(site.server)
        settings = {} if tables == NO_TABLES else loading_settings(tables)
        # only an engine on this machine reaches a private socket
        maker = self._maker if isinstance(self.setup, MadeBySsh) else ENGINE_HERE

        def build(data: Path) -> None:
            if tables == NO_TABLES:
                on_progress(f"{called}: initdb")
                create_cluster(site.room, site.server, data, self.setup.initdb)
                return
            copy_cluster(site.room, self._template(NO_TABLES, on_progress), data, flush=False)
            self._check_space(tables)
            on_progress(f"{called}: loading {tables.label}")
            cluster = self._cluster(data, settings)
            with temporary_folder() as logs, cluster.running(logs / "log"):
                with _raised_as(ArmError, ArmError, f"arms.{self.name}: "):
                    self.notes += tables.make(cluster.served, on_progress, maker) or []
                current = fill_wal(cluster.target, tables)
            trim_wal(site.room, data, current, tables)

        staging = site.room.directory(f"template-{tables.short_name}")
        order = TemplateOrder(self._key(tables), tables.label, settings, build)
        return self._templates(tables).ensure(order, staging, on_progress, self.notes)


_USABLE = {"CPUs": usable_cpus, "NUMA nodes": usable_nodes}


def _launcher(machine: Machine, setup: Made) -> tuple[str, ...]:
    """Returns the words in front of a server's command: its environment, and the programs that its keys ask for. Raises
    StudyError."""
    command = ["env", *(f"{name}={value}" for name, value in setup.environment.items())]
    for name, key in KEYS.items():
        value = getattr(setup, name, None)
        if isinstance(key.effect, Launcher) and value is not None:
            command += _through(machine, f"{name} = {value!r}", value, key.effect)
    return tuple(command)


def _through(machine: Machine, asked: str, value: str, effect: Launcher) -> list[str]:
    try:
        parse_numbers(value, _USABLE[effect.numbers](machine), effect.numbers)
    except (HostError, ValueError) as error:
        raise StudyError(f"{asked} on {machine.label}: {error}") from None
    for program, *options in effect.tools:
        if machine.looked(["sh", "-c", f"command -v {program}"]).status == 0:
            return [program, *(option.format(value) for option in options)]
    programs = [tool[0] for tool in effect.tools]
    none = f"no {programs[0]}" if len(programs) == 1 else f"neither {' nor '.join(programs)}"
    raise StudyError(f"{asked}: {machine.label} has {none}; leave {asked.partition(' ')[0]} out")


@contextmanager
def _raised_as(
    kind: type[PgtrialError], caught: type[PgtrialError] | tuple[type[PgtrialError], ...], where: str, what: str = ""
) -> Iterator[None]:
    """Turns errors within the context that are `caught` into an error of `kind`, with `where` and `what` before their
    message; also errors of connections, as a server that did not answer."""
    try:
        yield
    except caught as error:
        _heed_interrupt(error)
        raise kind(f"{where}{what}{error}") from None
    except psycopg.OperationalError as error:
        raise kind(f"{where}the server did not answer: {one_line(error)}") from None


def _heed_interrupt(error: BaseException) -> None:
    """Raises the interrupt that led to the error, if there was one: no failure of the cleaning up may hide it."""
    behind = error.__context__
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            raise behind from None
        behind = behind.__context__
