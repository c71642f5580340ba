"""The differences that a study declares for an arm, as keys of facts; the audit reports all others."""

from __future__ import annotations

from typing import Any

from pgtrial.machines.kernel import COUNTERPARTS
from pgtrial.model.study.servers import Server
from pgtrial.model.study.storage import Storage, Volume

_KEYS = {
    "postgres": ("server.version",),
    "dsn": ("server.dsn",),
    "ssh": ("server.host",),
    "data": ("storage.source", "storage.device", "storage.filesystem", "storage.mount_options"),
    "address": ("network.path", "network.interface", "network.mtu"),
    "initdb": ("server.initdb",),
    "setup_sql": ("server.setup_sql",),
    "reset": ("server.reset",),
    "huge_pages": ("memory.huge_pages", "settings.huge_pages", "settings.huge_page_size"),
    "thp": ("memory.thp",),
    "governor": ("cpu.governor",),
    "io_scheduler": ("storage.scheduler",),
    "cpus": ("cpu.cpus",),
    "connect": ("network.path", "network.interface", "network.mtu"),
    "environment": ("server.environment",),
}

_ABSENT = {"connect": "socket", "environment": {}, "sysctl": {}}
"""What a key stands for in servers of a kind that does not have it."""

_SYSCTL_FACTS = {
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
"""The facts that show a kernel parameter; the others are declared under their own names."""


def declared(own: Server, base: Server) -> list[str]:
    """The keys in which one resolved set-up differs from another, e.g. `settings.synchronous_commit`."""
    names = sorted(own.settings.keys() | base.settings.keys())
    keys = [f"settings.{name}" for name in names if own.settings.get(name) != base.settings.get(name)]
    for field, facts in _KEYS.items():
        if _value(own, field) != _value(base, field):
            keys.extend(facts)
    mine, theirs = _value(own, "sysctl"), _value(base, "sysctl")
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            both = [name, *([COUNTERPARTS[name]] if name in COUNTERPARTS else [])]
            keys.extend(_SYSCTL_FACTS.get(each, f"os.{each}") for each in both)
    return list(dict.fromkeys([*keys, *_storage(_value(own, "storage"), _value(base, "storage"))]))


def _value(server: Server, key: str) -> Any:
    return getattr(server, key, _ABSENT.get(key))


def _storage(own: Storage | None, base: Storage | None) -> list[str]:
    if own == base:
        return []
    return [*_volume("", own, base), *_volume("wal_", own and own.wal, base and base.wal)]


def _volume(prefix: str, own: Volume | None, base: Volume | None) -> list[str]:
    """With another filesystem its options are declared too; otherwise only the options that differ."""
    if own == base:
        return []
    if own is None or base is None or (own.fs, own.on) != (base.fs, base.on):
        facts = ["filesystem", "filesystem_parameters", "mount_options", "source", "device"]
    else:
        facts = ["mount_options"] if own.mount != base.mount else []
        facts += ["filesystem_parameters"] if own.mkfs != base.mkfs or own.fs == "zfs" else []
        facts += ["size"] if own.size != base.size else []
    return [f"storage.{prefix}{name}" for name in facts]
