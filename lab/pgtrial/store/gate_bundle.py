"""Writes and reads the bundle of a gate that runs several studies: one file with the gate's plan and result, and with
the bundle of each study that has begun."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pgtrial.model.errors import StoreError
from pgtrial.model.study.cut_values import cut
from pgtrial.store.bundle import SUFFIX, unpack, unpack_study, unpacked, write_bundle, write_parts
from pgtrial.store.directory import STUDIES
from pgtrial.store.gate_directory import OUTCOME, GateDirectory
from pgtrial.store.temporary import temporary_folder

_PARTS = (
    (re.compile(re.escape(STUDIES)), 1 << 24),
    (re.compile(re.escape(OUTCOME)), 1 << 24),
    (re.compile(rf"\d+-[^/]+{re.escape(SUFFIX)}"), 1 << 32),
)
"""The patterns of the files in the bundle of a gate, each with the largest size, in bytes, that pgtrial unpacks for
such a file."""


def write_gate_bundle(gate: GateDirectory, target: BinaryIO) -> None:
    """Writes the bundle of a gate of several studies. Raises StoreError for a file that a bundle cannot contain, and
    OSError if `target` cannot be written.

    If values that may be secrets are removed from a study, its digest is left out too, since it would help to guess
    them.
    """
    with temporary_folder() as folder:
        studies, bundles = [], []
        for study in gate.record.studies:
            begun = gate.begun(study)
            known = begun is not None and not cut(begun.spec)[1]
            studies.append(study if known else study.model_copy(update={"asked": None}))
            if begun is not None:
                bundles.append(f"{study.directory}{SUFFIX}")
                with (folder / bundles[-1]).open("xb") as file:
                    write_bundle(begun, file, everything=False)
        record = gate.record.model_copy(update={"studies": studies})
        texts = {STUDIES: f"{record.model_dump_json(indent=1)}\n".encode()}
        if (outcome := gate.outcome()) is not None:
            texts[OUTCOME] = f"{outcome.model_dump_json()}\n".encode()
        write_parts(folder, [*texts, *bundles], target, texts)


def is_gate(path: Path) -> bool:
    """True if a bundle begins like that of a gate of several studies. What follows is neither read nor checked."""
    with suppress(StoreError), unpacked(path) as folder:
        unpack(path, folder, _PARTS, 1)
        GateDirectory.open(folder)
        return True
    return False


@contextmanager
def open_gate(path: Path) -> Iterator[GateDirectory]:
    """Yields the gate in a bundle, unpacked into a private directory that is removed at the end. Raises StoreError if
    the file is not the bundle of a gate of several studies, or is damaged."""
    with unpacked(path) as folder:
        unpack(path, folder, _PARTS)
        gate = GateDirectory.open(folder)
        for study in gate.record.studies:
            if (bundle := folder / f"{study.directory}{SUFFIX}").is_file():
                gate.path_of(study).mkdir()
                unpack_study(bundle, gate.path_of(study))
        yield gate
