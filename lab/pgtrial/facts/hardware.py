"""The machine and its firmware, as DMI or the device tree names them; no serial numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import read

_DMI = {
    "vendor": "sys_vendor",
    "product": "product_name",
    "product_version": "product_version",
    "board_vendor": "board_vendor",
    "board": "board_name",
    "bios_vendor": "bios_vendor",
    "bios_version": "bios_version",
    "bios_date": "bios_date",
}
_EMPTY = frozenset({"to be filled by o.e.m.", "default string", "not specified", "system product name", "none", "n/a"})
"""What makers leave in fields that they did not fill."""


@collector("hardware")
def hardware(subject: Subject) -> dict[str, Any]:
    """Unknown where the kernel shows no DMI, as in small virtual machines."""
    return linux_hardware(Path("/sys")) if subject.here else {}


def linux_hardware(sys: Path) -> dict[str, Any]:
    """The facts from a sysfs tree (the kernel's Documentation/ABI/testing/sysfs-firmware-dmi-entries, dmi-id)."""
    found: dict[str, Any] = {name: _told(read(sys / "class/dmi/id" / file)) for name, file in _DMI.items()}
    if found["product"] is None:
        found["product"] = _told(read(sys / "firmware/devicetree/base/model"))
    return {**found, "firmware": _firmware(sys)}


def _firmware(sys: Path) -> str | None:
    if (sys / "firmware/efi").is_dir():
        return "UEFI"
    return "BIOS" if (sys / "class/dmi/id").is_dir() else None


def _told(text: str | None) -> str | None:
    plain = (text or "").strip("\0 ")
    return None if plain.lower() in _EMPTY else plain or None
