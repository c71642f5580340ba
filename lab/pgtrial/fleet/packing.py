"""A load as it travels to a machine: what lies in files here is sent along, and found where it is put."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgtrial.host.cpus import cpu_numbers

HERE = "."
"""The folder that the files lie in: the engine works there, so that it has the same name on all machines."""

_CERTIFICATES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")


@dataclass(frozen=True)
class Packed:
    """Arguments, variables and files of an engine; the first two speak of the files as lying in HERE."""

    arguments: Sequence[str]
    environment: dict[str, str] = field(repr=False)
    files: dict[str, bytes] = field(repr=False)
    cpus: Sequence[int] | None = None

    def order(self, *more: str, one_output: bool = False) -> dict[str, Any]:
        """As an agent takes it, with further arguments behind the front end's name."""
        front_end, *rest = self.arguments
        return {
            "arguments": [front_end, *more, *rest],
            "environment": self.environment,
            "files": self.files,
            "cpus": self.cpus,
            "one_output": one_output,
        }


def pack(arguments: Sequence[str], variables: dict[str, str], folder: Path | None, cpus: str | None = None) -> Packed:
    """Take along the files of a folder that arguments and variables speak of, and the certificates."""
    files: dict[str, bytes] = {}
    if folder is not None:
        files |= {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        arguments = [argument.replace(str(folder), HERE) for argument in arguments]
        variables = {name: value.replace(str(folder), HERE) for name, value in variables.items()}
    for name in _CERTIFICATES:
        path = Path(variables.get(name, ""))
        if path.is_file():
            files[name] = path.read_bytes()
            variables = {**variables, name: f"{HERE}/{name}"}
    return Packed(arguments, variables, files, sorted(cpu_numbers(cpus)) if cpus is not None else None)
