"""A machine on which files of a folder stand for files of the kernel, so that a test controls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pgtrial.machines.machine import Machine

Obey = Callable[[Path, str], str]


def with_kernel_files(
    host: Machine, places: Mapping[str, Path], obey: Obey = lambda path, text: text, available_kb: int | None = None
) -> Machine:
    """Returns a machine like `host`, on which the folders in `places` stand for the directories that they are listed
    for.

    `obey(path, text)` returns the content that a file there has after pgtrial wrote `text` into it, as the kernel would
    answer. With `available_kb` the machine reports this much free memory.
    """

    def there(path: Path) -> Path:
        for place, folder in places.items():
            if path.is_relative_to(place):
                return folder / path.relative_to(place)
        return path

    class WithKernelFiles(type(host)):  # type: ignore[misc]
        def read_text(self, path: Path) -> str:
            if path == Path("/proc/meminfo") and available_kb is not None:
                return f"MemAvailable: {available_kb} kB\n"
            return str(super().read_text(there(path)))

        def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
            texts = super().read_many([there(path) for path in paths])
            return {path: texts[there(path)] for path in paths if there(path) in texts}

        def write_text(self, path: Path, text: str, **how: Any) -> None:
            super().write_text(there(path), obey(path, text) if there(path) != path else text, **how)

        def exists(self, path: Path) -> bool:
            return bool(super().exists(there(path)))

    return WithKernelFiles()
