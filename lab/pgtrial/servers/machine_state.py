"""Puts a machine into the state that an arm asks for (kernel parameters, huge pages) during each of its trials, and
restores the former state afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.kernel import (
    KB,
    SYSCTL,
    HugePages,
    KernelValue,
    Parameter,
    alone_changing,
    reserved_pages,
    sysctl_path,
)
from pgtrial.machines.machine import Change, ChangedMeanwhile, HostError, Machine
from pgtrial.machines.volumes import mount_of, mountinfo
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.keys import KernelFile
from pgtrial.model.study.machine_keys import COUNTERPARTS
from pgtrial.model.study.servers import Made
from pgtrial.model.study.setup import KEYS


def page_settings(setup: Made) -> dict[str, str]:
    """Returns the PostgreSQL settings that follow from the key `huge_pages`; empty if the arm does not set that key."""
    if setup.huge_pages is None:
        return {}
    if setup.huge_pages == "off":
        return {"huge_pages": "off"}
    return {"huge_pages": "on", "huge_page_size": f"{KB[setup.huge_pages]}kB"}


@contextmanager
def _as_planned() -> Iterator[None]:
    """Turns ChangedMeanwhile within the context into a TrialError: somebody else has changed a value that the lab had
    set, so the machine was not in the state that the arm asks for."""
    try:
        yield
    except ChangedMeanwhile as error:
        raise TrialError(str(error)) from None


class MachineState:
    """The state of a machine that one arm asks for. `changes` makes and records the changes on that machine."""

    def __init__(self, arm: str, setup: Made, changes: HostJournal) -> None:
        self._arm = arm
        self._setup = setup
        self._journal = changes
        self._machine = changes.machine

    def check(self) -> None:
        """Checks before the first trial that pgtrial can put the machine into the state that the arm asks for. Raises
        StudyError."""
        setup, where = self._setup, f"arms.{self._arm}"
        for key in [*(["huge_pages"] if setup.huge_pages in KB else []), *setup.of_the_kernel]:
            if not self._machine.root:
                raise StudyError(
                    f"{where}: {key} changes the kernel's state, which only root may do; {self._machine.way_to_root}"
                )
        for name in {*page_settings(setup)} & {*setup.settings}:
            raise StudyError(
                f"{where}: pgtrial sets {name} itself because of huge_pages = {quoted(setup.huge_pages)}; remove "
                f"{name} from settings"
            )
        try:
            self._changes(Path("/"))
            if setup.huge_pages in KB:
                reserved_pages(self._machine, setup.huge_pages)
        except HostError as error:
            raise StudyError(f"{where}: {error}") from None

    @contextmanager
    def in_force(self, data: Path, pages: int) -> Iterator[None]:
        """Puts the machine into the state that the arm asks for, with `pages` more huge pages, and restores the former
        state on exit. `data` is the arm's data directory, by which the disk is found.

        Raises TrialError if the machine refuses a change, HostLost, and ArmError if another lab keeps its own changes
        of this machine for too long.
        """
        with _as_planned(), ExitStack() as stack:
            try:
                if self._setup.of_the_kernel or pages > 0:
                    stack.enter_context(alone_changing(self._machine))
                changes = self._changes(data)
                size = self._setup.huge_pages
                if size in KB and pages > 0:
                    changes.append(HugePages.planned(self._machine, size, pages))
                for change in changes:
                    stack.enter_context(self._journal.made(change))
            except HostError as error:
                # memory may be fragmented now and not later, so this trial fails and not the study
                raise TrialError(str(error)) from None
            yield

    def _changes(self, data: Path) -> list[Change]:
        """Returns the changes of kernel values that the arm asks for. Changes of a disk's parameters are left out if
        there is no data directory yet, since the disk is found by it."""
        planned: list[Change] = [*self._parameters()]
        for name in self._setup.of_the_kernel:
            effect = KEYS[name].effect
            if not isinstance(effect, KernelFile) or (effect.of_disk and data == Path("/")):
                continue
            value = getattr(self._setup, name)
            for path, what in self._files(name, effect, data):
                planned.append(KernelValue.planned(self._machine, what, path, value))
        return planned

    def _files(self, name: str, effect: KernelFile, data: Path) -> list[tuple[Path, str]]:
        """Returns the kernel files that a key of the study sets, each with the name of its value for messages. Raises
        HostError if the machine has no such files."""
        machine = self._machine
        if effect.of_disk:
            disk = _disk(machine, data, effect.path)
            if disk is None:
                raise HostError(
                    f"{data} is not on a block device that has an {effect.what} of its own; leave {name} out"
                )
            return [(disk / effect.path, effect.what)]
        if "[" not in effect.path:
            return [(Path(effect.path), effect.what)]
        of_each = machine.glob(effect.path)
        if not of_each:
            raise HostError(f"on {machine.label} {effect.absent}")
        return [(path, f"{effect.what} of {path.parts[-3]}") for path in of_each]

    def _parameters(self) -> Iterator[Change]:
        """Yields the changes of sysctl parameters. They are made through the files in /proc/sys, or by the command
        sysctl if the system does not have these files."""
        machine, asked = self._machine, self._setup.sysctl
        for name in asked:
            if (other := COUNTERPARTS.get(name)) in asked:
                raise HostError(f"{name} and {other} exclude each other: each sets the other to 0; set one of them")
        files = bool(asked) and machine.exists(SYSCTL)
        for name, value in asked.items():
            if files:
                yield KernelValue.planned(machine, name, sysctl_path(name), value)
            else:
                yield Parameter.planned(machine, name, value)


def _disk(machine: Machine, data: Path, file: str) -> Path | None:
    """Returns the directory in /sys of the block device on which a directory lies, or of the whole disk if that is a
    partition. The directory must have the file `file`; returns None if there is none."""
    mount = mount_of(machine.resolve(data), mountinfo(machine))
    if mount is not None and mount.device:
        # btrfs and some other file systems report a device number of their own instead of the block device's number
        named = Path("/sys/class/block") / machine.resolve(Path(mount.source)).name
        for home in map(machine.resolve, (Path("/sys/dev/block") / mount.device, named)):
            for candidate in (home, home.parent):
                if machine.exists(candidate / file):
                    return candidate
    return None
