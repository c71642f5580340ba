"""The keys of an arm that describe the machine around a server that pgtrial makes, each declared once."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.keys import Facts, KernelFile, KernelParameters, Key, Launcher, keys_of
from pgtrial.model.units import Setting, variables

_PARAMETER = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9_%:@-]*([./][A-Za-z0-9_%:@-]+)+")

_COUNTERPARTS = {
    "vm.dirty_bytes": "vm.dirty_ratio",
    "vm.dirty_background_bytes": "vm.dirty_background_ratio",
    "vm.overcommit_kbytes": "vm.overcommit_ratio",
}
"""Pairs of kernel parameters of which only one is in force, while the other one reads as 0. The kernel does not always
accept this 0 when it is written back (Linux: sysctl/vm.rst)."""
COUNTERPARTS = {**_COUNTERPARTS, **{other: name for name, other in _COUNTERPARTS.items()}}

_FACTS = {
    "vm.swappiness": "memory.swappiness",
    "vm.overcommit_memory": "memory.overcommit",
    "vm.dirty_ratio": "memory.dirty_ratio",
    "vm.dirty_bytes": "memory.dirty_bytes",
    "vm.dirty_background_ratio": "memory.dirty_background_ratio",
    "vm.dirty_background_bytes": "memory.dirty_background_bytes",
    "vm.dirty_expire_centisecs": "memory.dirty_expire_cs",
    "vm.dirty_writeback_centisecs": "memory.dirty_writeback_cs",
    "vm.zone_reclaim_mode": "memory.zone_reclaim",
    "vm.nr_hugepages": "memory.huge_pages",
    "kernel.numa_balancing": "memory.numa_balancing",
    "kernel.randomize_va_space": "os.address_randomisation",
}
"""For each kernel parameter in this table, the name of the fact that shows its value. The value of any other parameter
is shown by a fact with the parameter's own name."""


def differing(values: dict[str, str], base: dict[str, str]) -> list[str]:
    """Returns the sorted names that have different values in `values` and `base`, or that only one of the two has."""
    return [name for name in sorted(values.keys() | base.keys()) if values.get(name) != base.get(name)]


def _parameters(values: dict[str, str]) -> dict[str, str]:
    for name in values:
        # the name becomes a path below /proc/sys, and an argument of sysctl
        if not _PARAMETER.fullmatch(name):
            raise ValueError(
                f"{quoted(name)} is not the name of a kernel parameter; write it as sysctl does, such as vm.swappiness"
            )
    return values


def _facts_of_parameters(values: dict[str, str], base: dict[str, str]) -> Facts:
    names = [parameter for name in differing(values, base) for parameter in (name, COUNTERPARTS.get(name)) if parameter]
    return [_FACTS.get(name, f"os.{name}") for name in names]


class MachineKeys(Record):
    """The keys that change the machine on which the server runs. What a key sets is in force during the arm's trials;
    pgtrial restores the former state after each trial."""

    huge_pages: Annotated[
        Literal["off", "2MB", "1GB"] | None,
        Key(
            shows=("memory.huge_pages", "settings.huge_pages", "settings.huge_page_size"),
            follows=(
                *("memory.huge_page*", "*.huge_pages", "*.huge_page_size", "*.huge_pages_status"),
                "*.shared_memory_size_in_huge_pages",
            ),
        ),
    ] = Field(
        None,
        description="The size of the huge pages that pgtrial reserves for each trial, which requires root. A trial "
        "whose server does not get them has failed.",
    )
    thp: Annotated[
        Literal["never", "madvise", "always"] | None,
        Key(
            shows=("memory.thp",),
            effect=KernelFile("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ),
    ] = Field(None, description="The mode of transparent huge pages during the trials of the arm, which requires root.")
    sysctl: Annotated[
        dict[str, Setting],
        AfterValidator(_parameters),
        Key(shows=_facts_of_parameters, effect=KernelParameters(), absent={}),
    ] = Field(
        {},
        description='Kernel parameters during the trials of the arm, `{ "vm.swappiness" = 1 }`, which requires '
        "root. Parameters of an arm are added to those of `[server]`.",
    )
    governor: Annotated[
        str | None,
        Key(
            shows=("cpu.governor",),
            effect=KernelFile(
                "governor",
                "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
                absent="the operating system does not govern the CPU frequency; leave governor out",
            ),
        ),
    ] = Field(
        None,
        description="The CPU frequency governor during the trials of the arm, such as `performance`, which requires "
        "root.",
    )
    io_scheduler: Annotated[
        str | None,
        Key(
            shows=("storage.scheduler",),
            follows=("storage.queue_*", "storage.wal_queue_*", "storage.wal_scheduler"),
            effect=KernelFile("I/O scheduler", "queue/scheduler", of_disk=True),
        ),
    ] = Field(
        None,
        description="The I/O scheduler of the device that holds the data during the trials of the arm, such as "
        "`none`, which requires root.",
    )
    numa: Annotated[
        str | None,
        Key(
            shows=("server.numa",),
            follows=("cpu.cpus",),
            effect=Launcher("NUMA nodes", (("numactl", "--cpunodebind={}", "--membind={}"),)),
        ),
    ] = Field(
        None,
        description="The NUMA nodes whose CPUs and memory the server uses, `0` or `0-1` (by `numactl`).",
    )
    cpus: Annotated[
        str | None,
        Key(shows=("cpu.cpus",), effect=Launcher("CPUs", (("taskset", "-c", "{}"), ("cpuset", "-l", "{}")))),
    ] = Field(None, description="The CPUs on which the server runs, `0-3,6`.")
    environment: Annotated[dict[str, str], AfterValidator(variables), Key(shows=("server.environment",), absent={})] = (
        Field(
            {},
            description="Environment variables of the server's processes, and of a [job](jobs.md#a-program) that is a "
            "program. Variables of an arm are added to those of `[server]`.",
        )
    )

    @property
    def of_the_kernel(self) -> list[str]:
        """Returns the names of those keys that the study sets and that change a state of the kernel, which is the same
        for the whole machine."""
        kinds = (KernelFile, KernelParameters)
        named = [name for name, key in keys_of(MachineKeys).items() if isinstance(key.effect, kinds)]
        return [name for name in named if getattr(self, name) not in (None, {})]
