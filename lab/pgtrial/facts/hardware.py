"""The machine and its firmware, as DMI or the device tree names them; no serial numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import Files

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
_MODEL = "firmware/devicetree/base/model"
_OTHERS = ("class/dmi/id", "firmware/efi", _MODEL)
_EMPTY = frozenset({"to be filled by o.e.m.", "default string", "not specified", "system product name", "none", "n/a"})
"""What makers leave in fields that they did not fill."""


@collector(
    "hardware",
    files=[*(f"/sys/class/dmi/id/{file}" for file in _DMI.values()), *(f"/sys/{path}" for path in _OTHERS)],
)
def hardware(subject: Subject) -> dict[str, Any]:
    """Unknown where the kernel shows no DMI, as in small virtual machines."""
    return {} if subject.files is None else linux_hardware(subject.files, Path("/sys"))


def linux_hardware(files: Files, sys: Path) -> dict[str, Any]:
    """The facts from a sysfs tree (the kernel's Documentation/ABI/testing/sysfs-firmware-dmi-entries, dmi-id)."""
    found: dict[str, Any] = {name: _told(files.read(sys / "class/dmi/id" / file)) for name, file in _DMI.items()}
    if found["product"] is None:
        found["product"] = _told(files.read(sys / _MODEL))
    return {**found, "firmware": _firmware(files, sys)}


def _firmware(files: Files, sys: Path) -> str | None:
    if files.exists(sys / "firmware/efi"):
        return "UEFI"
    return "BIOS" if files.exists(sys / "class/dmi/id") else None


def _told(text: str | None) -> str | None:
    plain = (text or "").strip("\0 ")
    return None if plain.lower() in _EMPTY else plain or None
