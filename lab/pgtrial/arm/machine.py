"""The state of the host that an arm asks for, in force during each of its trials."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgtrial.arm.workspace import Workspace
from pgtrial.errors import StudyError, TrialError
from pgtrial.host.change import Change, HostError
from pgtrial.host.cpus import parse_cpus
from pgtrial.host.journal import HostJournal
from pgtrial.host.kernel import KernelValue, sysctl_path
from pgtrial.host.pages import KB, HugePages, reserved
from pgtrial.study.spec import SetUp

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_CPUS = Path("/sys/devices/system/cpu")


def page_settings(setup: SetUp) -> dict[str, str]:
    """PostgreSQL's settings that follow from the pages asked for; without an answer none."""
    if setup.huge_pages is None:
        return {}
    if setup.huge_pages == "off":
        return {"huge_pages": "off"}
    return {"huge_pages": "on", "huge_page_size": f"{KB[setup.huge_pages]}kB"}


class MachineState:
    """What one arm asks of the host."""

    def __init__(self, arm: str, setup: SetUp, workspace: Workspace) -> None:
        self._arm = arm
        self._setup = setup
        self._workspace = workspace

    def check(self) -> None:
        """Find out before the first trial whether the host can be as asked for. Raises StudyError."""
        setup, where = self._setup, f"arms.{self._arm}"
        for key, asked in (
            ("huge_pages", setup.huge_pages not in (None, "off")),
            ("thp", setup.thp is not None),
            ("sysctl", bool(setup.sysctl)),
            ("governor", setup.governor is not None),
            ("io_scheduler", setup.io_scheduler is not None),
        ):
            if asked and os.geteuid() != 0:
                raise StudyError(f"{where}: {key} changes the kernel's state, which only root may; run pgtrial as root")
        for name in {*page_settings(setup)} & {*setup.settings}:
            raise StudyError(f"{where}: {name} follows from huge_pages = {setup.huge_pages!r}; remove it from settings")
        try:
            if setup.cpus is not None:
                parse_cpus(setup.cpus)
            self._changes(Path("/"))
            if setup.huge_pages in KB:
                reserved(setup.huge_pages)
        except (HostError, ValueError) as error:
            raise StudyError(f"{where}: {error}") from None

    @contextmanager
    def in_force(self, data: Path, pages: int) -> Iterator[None]:
        """The host as asked for, with so many huge pages more; put back on the way out. Raises TrialError."""
        journal = HostJournal(self._workspace.run)
        with ExitStack() as stack:
            try:
                changes = self._changes(data)
                size = self._setup.huge_pages
                if size in KB and pages > 0:
                    changes.append(HugePages(size=size, pages=pages, previous=reserved(size)))
                for change in changes:
                    stack.enter_context(journal.made(change))
            except HostError as error:
                # memory may be in too small pieces now and not later: that is this trial's failure, not the study's
                raise TrialError(str(error)) from None
            yield

    def _changes(self, data: Path) -> list[Change]:
        """The changes of kernel values; of a scheduler only if there is data to look for."""
        setup = self._setup
        wanted = [(name, sysctl_path(name), value) for name, value in setup.sysctl.items()]
        if setup.thp is not None:
            wanted.append(("transparent huge pages", _THP, setup.thp))
        if setup.governor is not None:
            governors = sorted(_CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor"))
            if not governors:
                raise HostError(
                    "the frequency of this machine's CPUs is not the system's to govern; leave governor out"
                )
            wanted.extend((f"governor of {path.parts[-3]}", path, setup.governor) for path in governors)
        if setup.io_scheduler is not None and data != Path("/"):
            wanted.append(("I/O scheduler", _scheduler(data), setup.io_scheduler))
        return [KernelValue.planned(name, path, value) for name, path, value in wanted]


def _scheduler(data: Path) -> Path:
    """The scheduler's file of the block device under a directory; a partition has its disk's."""
    number = data.stat().st_dev
    home = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    for candidate in (home, home.parent):
        if (candidate / "queue/scheduler").exists():
            return candidate / "queue/scheduler"
    raise HostError(f"{data} is on no block device with a scheduler of its own; leave io_scheduler out")
