"""An arm whose server pgtrial makes: by initdb, loading the data once, and then starting a fresh server on a fresh copy
of the data for every trial.

The code is the same for all machines. `_site` determines in which run directory the servers are made, and how clients
reach them.
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
from pgtrial.model.quoting import quoted
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.keys import Launcher
from pgtrial.model.study.servers import Made, MadeBySsh, MadeHere
from pgtrial.model.study.setup import KEYS
from pgtrial.servers.access import LOOPBACK_ACCESS, Access, access_to
from pgtrial.servers.arm import Instrument, Needs, check_clients, check_data, check_sessions, timed
from pgtrial.servers.builds.layouts import in_layout
from pgtrial.servers.cluster import Cluster, check_settings, create_cluster, loading_settings
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.host_run_directory import HostRunDirectory
from pgtrial.servers.installations import ServerBinaries, program_digest, resolve
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.machine_state import MachineState, page_settings
from pgtrial.servers.pg_upgrade import missing_programs, upgrade_cluster
from pgtrial.servers.ready_wal import fill_wal, trim_wal
from pgtrial.servers.run_directory import copy_cluster, move_wal
from pgtrial.servers.templates import KeptCopy, RunTemplates, TemplateKey, TemplateOrder
from pgtrial.servers.used_copies import copy_for_trial
from pgtrial.servers.volumes import DataDirectories, Volumes
from pgtrial.servers.workspace import Workspace
from pgtrial.store.temporary import temporary_folder

_RESERVED = ("listen_addresses", "port")


@dataclass(frozen=True)
class _Site:
    """The circumstances in which the servers of an arm are made: the run directory on their machine, the installation,
    the addresses for clients, the words in front of the server's command, the state of the machine, and the volumes."""

    run_directory: Workspace | HostRunDirectory
    server: ServerBinaries
    access: Access | None
    launcher: tuple[str, ...]
    state: MachineState
    volumes: Volumes | None


class MadeArm:
    """An arm whose server pgtrial makes. Its template depends on the server's build and the data and not on the
    settings, so that arms which differ in settings share one template."""

    def __init__(
        self, name: str, setup: MadeHere | MadeBySsh, needs: Needs, workspace: Workspace, maker: LoadMaker
    ) -> None:
        """`maker` starts the engines that load data on servers of other hosts. Such servers admit connections from the
        machines on which these engines run."""
        check_settings(name, setup.settings)
        if isinstance(setup, MadeBySsh):
            for reserved in {item.lower() for item in setup.settings} & {*_RESERVED}:
                raise StudyError(
                    f"arms.{name}: {reserved} cannot be set in the settings of a server on another host; use the keys "
                    "address and port"
                )
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
        self._at_once = 1
        """The number of servers that run at the same time in the study."""
        self._checked = 0
        """The number of times that the host had been lost before the last check. After a further loss the check is
        repeated, since disks may have other names then."""

    @property
    def account(self) -> str | None:
        """The operating system account as which the server runs, and which owns the data."""
        return self._site.run_directory.account

    @property
    def kind(self) -> str:
        """A text that is equal for arms whose clusters are equal after initdb. It has the server's version, the digest
        of its program, and the options of initdb."""
        return self._kind([])

    def _kind(self, extensions: Sequence[str]) -> str:
        server = self._site.server
        digest = program_digest(self._site.run_directory.machine, server.bin)
        words = [f"PostgreSQL {server.version} {digest[:16]}", *extensions, "initdb", *self.setup.initdb]
        return " ".join(words)

    def check(self, needs: Needs) -> None:
        """Starts the server once with the arm's settings, so that a setting which PostgreSQL refuses is found before
        the first trial.

        Raises StudyError with PostgreSQL's message.
        """
        self._at_once = needs.at_once
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
    def rehearsal(self, tables: Data, log: Path, instrument: Instrument | None = None) -> Iterator[Target]:
        """Provides a server on a fresh copy of the template, also if the key `reset` says that trials keep their
        copies."""
        with self._complaining(), self._tried(tables, log, instrument) as target:
            yield target

    @contextmanager
    def upgraded(self, old: MadeArm, tables: Data, log: Path) -> Iterator[Target]:
        """Provides a server on a copy of the data of another arm, which pg_upgrade has brought from the version of that
        arm to the version of this one. Both arms must be on this machine. The copy is removed on exit.

        The server has the planner statistics that pg_upgrade keeps; before PostgreSQL 18 these are none. Raises
        ArmError, with the words of pg_upgrade if it refuses the data.
        """
        with self._complaining(), ExitStack() as stack:
            before, after = (self._directories(name, None, stack).data for name in ("before", "upgraded"))
            run_directory = self._site.run_directory
            copy_cluster(run_directory, old._template(tables, lambda line: None), before)
            upgrade_cluster(run_directory, (old._site.server, before), (self._site.server, after), self.setup.initdb)
            cluster = self._cluster(after)
            with self._host_ready(cluster), cluster.running(log, immediate=True):
                yield cluster.served

    def why_not_upgraded(self, old: MadeArm) -> str | None:
        """Returns why `upgraded` cannot bring the data of another arm to the version of this one: one of the servers is
        on another host or has a file system of its own, or a program is missing. Returns None if it can."""
        if any(isinstance(arm.setup, MadeBySsh) or arm.setup.storage is not None for arm in (old, self)):
            return "pg_upgrade is tried on this machine only, without storage of the arm's own"
        if missing := missing_programs(old._site.server, self._site.server):
            return f"pg_upgrade needs {missing[0]}, which is not installed"
        return None

    def loaded(self, tables: Data) -> list[LoadedData]:
        """Returns the template of this data, as the only element. Arms of the same `kind` on one machine share it."""
        key, run_directory = self._key(tables), self._site.run_directory
        kept = self._templates(tables).rows_file(key)
        return [LoadedData((key, run_directory.root), None, lambda log: self.rehearsal(tables, log), kept)]

    @contextmanager
    def _tried(self, tables: Data, log: Path, instrument: Instrument | None = None) -> Iterator[Target]:
        with ExitStack() as stack:
            cluster = self._cluster(self._fresh(tables, "check", None, stack, copies=self._at_once))
            if instrument is not None:
                cluster.launcher = (*cluster.launcher, *instrument.command)
                cluster.settings = {**instrument.usual_settings, **cluster.settings, **instrument.settings}
            with self._host_ready(cluster), cluster.running(log, immediate=True):
                yield cluster.served

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Makes the template of this data, unless it exists already."""
        with self._complaining():
            self._template(tables, on_progress)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS) -> Iterator[Target]:
        """Provides a server on a fresh copy of the template. With `reset` vacuum or none, it is the copy that an
        earlier trial has used.

        The server's program has the layout that was drawn for the trial. It can use data that a program with another
        layout has made.

        If the host cannot be reached at the beginning, raises ArmError, since the trial has not begun. If the host is
        lost later, raises TrialError.
        """
        log.touch()
        with self._complaining():
            run_directory = self._site.run_directory
            self.notes = (
                self._workspace.host_directories.ready(run_directory)
                if isinstance(run_directory, HostRunDirectory)
                else []
            )
            if run_directory.settled != self._checked:
                self._check_host()
        # the trial has to fail: if the study stopped instead, the trial would run again later, and the loss would not
        # be recorded
        failing = _raised_as(TrialError, HostLost, "", "the server's host was lost in mid-trial: ")
        with self._complaining(), failing, self._serving(tables, log, timings, drawn) as target:
            yield target

    @contextmanager
    def _serving(self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn) -> Iterator[Target]:
        watches = self.setup.huge_pages in KB
        reset, run_directory = self.setup.reset, self._site.run_directory
        self.host_seen = {"before": huge_page_counters(run_directory.machine)} if watches else {}
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
                    self.host_seen["during"] = huge_page_counters(run_directory.machine)
                if reset == "vacuum" and tables != NO_TABLES:
                    # VACUUM makes the data that an earlier trial has used similar to fresh data
                    with cluster.target.connect() as connection:
                        tables.reset(connection)
                if reset == "copy" and self._statistics is not None:
                    with timed(timings, "statistics"):
                        self._statistics.give(tables, cluster.served)
                yield cluster.served
            except KeyboardInterrupt:
                run_directory.hurry()
                raise
            finally:
                self.data_directory = self._served = None
                with timed(timings, "stop"):
                    cluster.stop(immediate=reset == "copy")
                    cluster.fetch_log(log)
                    stack.close()
                if watches:
                    self.host_seen["after"] = huge_page_counters(run_directory.machine)

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Sets the planner statistics that each fresh copy of the data gets before a trial."""
        self._statistics = statistics

    def restart(self, log: Path, *, cold: bool) -> None:
        """Restarts the server of the current trial, so that its shared buffers are empty. With `cold`, empties the
        kernel's page cache too.

        Raises TrialError if the server does not start again, or if its host cannot be reached.
        """
        cluster, machine = self._served, self._site.run_directory.machine
        if cluster is None:
            return
        with _raised_as(TrialError, (ArmError, HostTrouble), "before a query: "):
            cluster.restart(log, lambda: drop_caches(machine) if cold else None)

    def fetch_log(self, log: Path) -> None:
        """Appends to `log` what the server of the current trial has logged since the last call. Raises TrialError if
        its host cannot be reached."""
        if self._served is not None:
            try:
                self._served.fetch_log(log)
            except HostTrouble as error:
                raise TrialError(str(error)) from None

    def close(self) -> None:
        """Removes the copies of the data on this machine that trials have kept, including those that other arms share.
        On another host, the copies are removed together with the run directory there."""
        if self.machine is LOCAL and "_site" in vars(self):
            kind, kept = self.kind, self._workspace.kept
            for copy in [copy for copy in kept if copy.owner in (None, self.name) and copy.template.kind == kind]:
                LOCAL.remove_tree(kept.pop(copy))

    @cached_property
    def _site(self) -> _Site:
        """The circumstances in which the arm's servers are made. They are determined on first use, for which pgtrial
        connects to the host. Raises HostTrouble, ArmError and StudyError."""
        setup, workspace = self.setup, self._workspace
        try:
            match setup:
                case MadeBySsh():
                    patience = self._needs.patience_s or PATIENCE_S
                    host = workspace.host_directories.at(setup.ssh, setup.data, sudo=setup.sudo, patience_s=patience)
                    server = resolve(setup.postgres, host.machine, host.account)
                    access: Access | None = access_to(host.host, setup.address, setup.port)
                    run_directory: Workspace | HostRunDirectory = host
                case MadeHere(connect=connect):
                    run_directory, server = workspace, workspace.reachable(resolve(setup.postgres))
                    access = LOOPBACK_ACCESS if connect == "tcp" else None
            launcher = _launcher(run_directory.machine, setup)
        except StudyError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None
        self.machine = run_directory.machine
        volumes = None if setup.storage is None else Volumes(self.name, setup.storage, run_directory.changes)
        return _Site(
            run_directory, server, access, launcher, MachineState(self.name, setup, run_directory.changes), volumes
        )

    def _cluster(self, data: Path, loading: dict[str, str] | None = None) -> Cluster:
        """Returns a cluster on a data directory. It has the settings of the arm or, for loading a template, only the
        settings in `loading`."""
        site = self._site
        access = site.access
        if access is not None and isinstance(self.setup, MadeBySsh):
            # the server admits all machines that make load now, since a machine of the fleet may have been replaced
            access = replace(access, clients=tuple(dict.fromkeys([*access.clients, *self._maker.addresses])))
        elif loading is not None:
            access = None
        cluster = Cluster(
            site.run_directory, site.server, data, site.run_directory.socket_directory(), loading or {}, access
        )
        if loading is None:
            cluster.settings, cluster.launcher = {**self.setup.settings, **page_settings(self.setup)}, site.launcher
        return cluster

    def _check_host(self) -> None:
        """Checks that pgtrial can put the host into the state that the arm asks for, and can make its volumes. Raises
        StudyError."""
        site = self._site
        site.state.check()
        if self._needs.cold and not may_drop_caches(machine := site.run_directory.machine):
            raise StudyError(
                f"arms.{self.name}: {marks.key('load.suite', 'cache', 'cold')} empties the kernel's page cache, which "
                f"only root can do, on Linux; {machine.way_to_root}, or write "
                f"{marks.short_key('load.suite', 'cache', 'os')}"
            )
        if site.volumes is not None:
            site.volumes.check(*volume_bytes(self._needs.largest))
        self._checked = site.run_directory.settled

    def _complaining(self) -> AbstractContextManager[None]:
        """Turns an error of the machine within the context into an ArmError, which names the arm and stops the study.
        It is used outside of trials."""
        return _raised_as(ArmError, HostTrouble, f"arms.{self.name}: ")

    def _check_space(self, data: Data, templates: int = 1, copies: int = 1) -> None:
        run_directory = self._site.run_directory
        free = run_directory.machine.free_bytes(run_directory.root)
        check_free(free, run_directory.label, run_directory.larger, data, templates=templates, copies=copies)

    def _data(self, tables: Data, number: int | None, stack: ExitStack) -> Path:
        """Returns the data directory of a trial. It is a fresh copy, which `stack` removes, or a copy that trials
        keep."""
        if self.setup.reset != "copy":
            return self._kept(tables, number)
        return self._fresh(tables, tables.short_name, number, stack)

    def _fresh(self, tables: Data, name: str, number: int | None, stack: ExitStack, copies: int = 1) -> Path:
        """Returns a copy of the template, which is removed when `stack` is closed. `copies` is the number of copies to
        have for later trials."""
        run_directory = self._site.run_directory
        if self._site.volumes is None and run_directory.machine is LOCAL:
            template = self._template(tables, lambda line: None)
            data = stack.enter_context(copy_for_trial(run_directory, template, name, copies=copies))
        else:
            directories = self._directories(name, number, stack)
            self._copy(tables, directories)
            data = directories.data
        self._flush(tables)
        return data

    def _kept(self, tables: Data, number: int | None) -> Path:
        """Returns a copy of the data that several trials use, and makes it on first use. Arms of the same kind share
        the copy with this number. If the number is None, the copy belongs to this arm alone."""
        kept = self._site.run_directory.kept
        copy = KeptCopy(self._key(tables), self.name if number is None else None, number)
        if copy not in kept:
            data = self._site.run_directory.directory(tables.short_name)
            self._copy(tables, DataDirectories(data))
            self._flush(tables)
            kept[copy] = data
        return kept[copy]

    def _directories(self, name: str, number: int | None, stack: ExitStack) -> DataDirectories:
        """Returns the directories for one copy of the data. They are on volumes that pgtrial makes for the arm, or in
        the run directory. `stack` removes them."""
        site = self._site
        if site.volumes is not None:
            return stack.enter_context(site.volumes.made(number))
        data = site.run_directory.directory(name)
        stack.callback(site.run_directory.machine.remove_tree, data)
        return DataDirectories(data)

    def _copy(self, tables: Data, to: DataDirectories) -> None:
        """Copies the template to `to`."""
        run_directory = self._site.run_directory
        copy_cluster(run_directory, self._template(tables, lambda line: None), to.data)
        if to.wal is not None:
            move_wal(run_directory, to.data, to.wal)

    def _flush(self, tables: Data) -> None:
        """Writes the new copy of these tables and all other unwritten data of the machine to disk, so that the kernel
        writes back neither the copy nor data of an earlier trial during the next trial."""
        if tables != NO_TABLES:
            self._site.run_directory.machine.tool(["sync"])

    def _host_ready(self, cluster: Cluster) -> AbstractContextManager[None]:
        """Puts the host into the state that the arm asks for within the context, with the huge pages that this cluster
        needs."""
        pages = cluster.huge_pages_needed() if self.setup.huge_pages in KB else 0
        return self._site.state.in_force(cluster.data_directory, pages)

    def _key(self, tables: Data) -> TemplateKey:
        # the extensions are part of the template's key, since the user's own data may contain objects of the extensions
        brought = self.setup.extensions if tables.key.get("prepared") else None
        return TemplateKey(self._kind(brought or []), self._site.server.version, **tables.key)

    def _templates(self, tables: Data) -> Templates | RunTemplates:
        run_directory = self._site.run_directory
        return run_directory.own_templates if tables.making_is_measured else run_directory.templates

    def _template(self, tables: Data, on_progress: Callable[[str], None]) -> Path:
        """Returns the data directory of the template, and makes the template if there is none."""
        site = self._site
        called = site.run_directory.name_of(site.server)
        settings = {} if tables == NO_TABLES else loading_settings(tables)
        # only an engine on this machine can connect to the private socket
        maker = self._maker if isinstance(self.setup, MadeBySsh) else ENGINE_HERE

        def build(data: Path) -> None:
            if tables == NO_TABLES:
                on_progress(f"{called}: initdb")
                create_cluster(site.run_directory, site.server, data, self.setup.initdb)
                return
            copy_cluster(site.run_directory, self._template(NO_TABLES, on_progress), data)
            self._check_space(tables)
            on_progress(f"{called}: loading {tables.label}")
            cluster = self._cluster(data, settings)
            with temporary_folder() as logs, cluster.running(logs / "log"):
                with _raised_as(ArmError, ArmError, f"arms.{self.name}: "):
                    self.notes += tables.make(cluster.served, on_progress, maker) or []
                current = fill_wal(cluster.target, tables)
            trim_wal(site.run_directory, data, current, tables)

        staging = site.run_directory.directory(f"template-{tables.short_name}")
        order = TemplateOrder(self._key(tables), tables.label, settings, build)
        return self._templates(tables).ensure(order, staging, on_progress, self.notes)


_USABLE = {"CPUs": usable_cpus, "NUMA nodes": usable_nodes}


def _launcher(machine: Machine, setup: Made) -> tuple[str, ...]:
    """Returns the words in front of a server's command: `env` with its environment variables, and programs such as
    taskset, for which keys of the study ask. Raises StudyError."""
    command = ["env", *(f"{name}={value}" for name, value in setup.environment.items())]
    for name, key in KEYS.items():
        value = getattr(setup, name, None)
        if isinstance(key.effect, Launcher) and value is not None:
            command += _through(machine, f"{name} = {quoted(value)}", value, key.effect)
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
    """Turns each error within the context whose type is in `caught` into an error of the type `kind`, with `where` and
    `what` before its message. Also turns errors of database connections into an error of `kind`, with the message that
    the server did not answer."""
    try:
        yield
    except caught as error:
        _heed_interrupt(error)
        raise kind(f"{where}{what}{error}") from None
    except psycopg.OperationalError as error:
        raise kind(f"{where}the server did not answer: {one_line(error)}") from None


def _heed_interrupt(error: BaseException) -> None:
    """If the error occurred while a KeyboardInterrupt was being handled, raises that interrupt again, so that a failed
    cleanup does not hide it."""
    behind = error.__context__
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            raise behind from None
        behind = behind.__context__
